"""A dry run of the launch code beside the analytical model: what is sent, multiplied and held, at any scale."""

import time
from collections import defaultdict
from dataclasses import replace

import pytest
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from decoders import case, in_dtype
from gloo.counted import counted, small
from gloo.spawn import on_ranks
from machines import gpt, job
from perfmodel.errors import UsageError
from perfmodel.launch.dryrun.step import dry_run
from perfmodel.launch.training.groups import Grid
from perfmodel.memory.per_device import memory_per_device
from perfmodel.parallel.layout import Layout
from perfmodel.step.flops import product_flops
from perfmodel.traffic.per_step import traffic


def sent_by_the_model(question, layout):
    """{(operation, axis): bytes}."""
    sent = defaultdict(float)
    for one in traffic(question, layout):
        if one.link.size > 1:
            sent[one.operation, one.link.axis] += float(one.calls * one.buffer)
    return dict(sent)


def sent_by(found):
    return {key: size for key, (_, size) in found.ledger.totals().items()}


def held_by_the_model(question, layout):
    found = memory_per_device(question, layout)
    return float(found.total - found.slack - found.communicators - found.reserve)


@pytest.mark.parametrize("seed", range(200))
def test_the_launch_code_does_exactly_what_the_model_counts(seed):
    question, layout = case(seed)
    found = dry_run(question, layout)
    assert sent_by(found) == sent_by_the_model(question, layout)
    assert found.products == product_flops(question, layout)
    assert found.peak == pytest.approx(held_by_the_model(question, layout), rel=0.05)
    assert sum(found.kinds.values()) == found.peak


@pytest.mark.parametrize("seed", [3, 17, 40])
def test_every_rank_does_the_same(seed):
    question, layout = case(seed)
    first = dry_run(question, layout)
    for rank in {int(layout.gpus) - 1, int(layout.gpus) // 2, 1 % int(layout.gpus)}:
        other = dry_run(question, layout, rank=rank)
        assert (sent_by(other), other.products, other.peak) == (sent_by(first), first.products, first.peak)


def test_real_ranks_send_what_the_dry_run_says():
    layouts = [
        Layout(x=2, y=2, z=1, data=1),
        Layout(x=1, y=2, z=2, data=1, recompute=2),
        Layout(x=1, y=1, z=2, data=2, weight_cache=1),
        Layout(x=2, y=1, z=2, data=1),
    ]
    real = on_ranks(4, counted, layouts)
    for rank in range(4):
        for layout, ledger in zip(layouts, real[rank], strict=True):
            assert ledger == dry_run(small(), layout, rank=rank).ledger.totals(), (layout.text(), rank)


@pytest.mark.parametrize("grid", [(8, 8, 64, 8), (1, 1, 32768, 1), (32, 1, 1, 1024)])
def test_the_groups_of_a_rank_among_32768_are_made_within_ten_seconds(grid):
    start = time.perf_counter()
    dist.init_process_group("fake", rank=12345, world_size=32768, store=FakeStore())
    try:
        made = Grid.of(Layout.of(grid), 12345)
        assert [made.x.size, made.y.size, made.z.size, made.replicas.size] == list(grid)
    finally:
        dist.destroy_process_group()
    assert time.perf_counter() - start < 10


def test_a_rank_that_does_not_exist_is_refused():
    with pytest.raises(UsageError, match="rank 4 of 4 ranks; wanted 0 to 3"):
        dry_run(job(gpt(), in_dtype("bf16")), Layout(x=2, y=2, z=1, data=1), rank=4)


@pytest.mark.parametrize(
    "chosen", [{"dropout": True}, {"optimizer": "sgd"}, {"activation_bytes": 1}, {"data_gradient_bytes": 2}]
)
def test_settings_that_the_launch_code_does_not_have_are_refused(chosen):
    with pytest.raises(UsageError, match="dry run"):
        dry_run(job(gpt(), in_dtype("bf16"), **chosen), Layout(x=2, y=2, z=1, data=1))


def test_at_paper_fidelity_the_same_is_run():
    question = job(gpt(layers=1, hidden=64, heads=4, vocabulary=500, sequence=16), in_dtype("bf16"), batch=4)
    paper = replace(question, settings=replace(question.settings, fidelity="paper"))
    layout = Layout(x=2, y=2, z=1, data=1)
    assert sent_by(dry_run(paper, layout)) == sent_by_the_model(question, layout)
