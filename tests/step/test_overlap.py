"""Overlap: the closed form over arrays against the same rules played as events, and what must hold of both."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines import EVERY_SHAPE, gpt, machine
from perfmodel import models
from perfmodel.machines import profiles
from perfmodel.parallel.choices import OVERLAPS
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.passes import Passes
from perfmodel.parallel.settings import Settings
from perfmodel.step.layer_units import block_units, computation
from perfmodel.step.overlap import Mode, data_reduce, micro_step
from perfmodel.step.predict import predict, step_time
from perfmodel.step.timeline import chrome_trace, simulate
from perfmodel.traffic.per_step import traffic

SUBSETS = [frozenset(subset) for count in range(len(OVERLAPS) + 1) for subset in combinations(OVERLAPS, count)]
GRIDS = [(1, 1, 64, 1), (4, 2, 8, 1), (2, 1, 16, 2), (1, 1, 1, 8), (8, 1, 1, 1), (1, 1, 1, 1)]
MODELS = {
    "gpt": gpt(layers=3),
    "one block": gpt(layers=1),
    "llama": models.load("llama-3-8b"),
    "u-net": models.load("unet-7b"),
}
SIZES = st.sampled_from([1, 2, 4, 8])


def asked(model, where=None, **settings):
    return Job.of(model, where or machine(8), batch=1024, settings=Settings(fidelity="full", **settings))


def parts_and_mode(job, layout):
    return block_units(job, layout, traffic(job, layout)), Mode.of(job, layout)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("overlap", SUBSETS, ids=lambda subset: "+".join(sorted(subset)) or "nothing")
def test_the_closed_form_is_the_end_of_the_timeline(model, overlap):
    job = asked(model, overlap=overlap)
    for grid in GRIDS:
        for recompute in range(3):
            for cache in range(3):
                parts, mode = parts_and_mode(
                    job, Layout.of(grid, micro_batch=2, recompute=recompute, weight_cache=cache)
                )
                events, end = simulate(parts, mode)
                assert float(micro_step(parts, mode)) == pytest.approx(end, rel=1e-9)
                assert max(event.end for event in events) <= end * (1 + 1e-9)
                _, whole = simulate(parts, mode, last=True)
                assert float(micro_step(parts, mode) + data_reduce(parts, mode)) == pytest.approx(whole, rel=1e-9)


@given(st.tuples(SIZES, SIZES, SIZES, SIZES), st.integers(0, 2), st.integers(0, 2), st.sampled_from(SUBSETS))
def test_more_overlap_is_never_slower(grid, recompute, cache, overlap):
    layout = Layout.of(grid, recompute=recompute, weight_cache=cache)
    job = asked(MODELS["gpt"], overlap=overlap)
    before = step_time(job, layout)
    for more in OVERLAPS:
        wider = asked(MODELS["gpt"], overlap=overlap | {more})
        assert step_time(wider, layout) <= before * (1 + 1e-12)


@pytest.mark.parametrize(
    ("model", "where", "batch", "grid", "overlap", "more"),
    [
        ("gpt-80b", "frontier", 8192, (1, 1, 8192, 1), ("all-gather",), "reduce-scatter"),
        ("gpt-10b", "marenostrum5", 256, (1, 4, 4, 2), ("all-gather", "all-reduce"), "reduce-scatter"),
        ("gpt-5b", "perlmutter", 64, (2, 2, 4, 32), ("all-gather", "reduce-scatter", "data"), "all-reduce"),
    ],
)
def test_more_overlap_is_never_slower_where_links_are_shared(model, where, batch, grid, overlap, more):
    def step(kinds):
        settings = Settings(fidelity="full", overlap=frozenset(kinds))
        job = Job.of(models.load(model), profiles.load(where), batch=batch, settings=settings)
        return step_time(job, Layout.of(grid))

    assert step((*overlap, more)) <= step(overlap) * (1 + 1e-12)


@pytest.mark.parametrize("micro_batch", [1, 2])
def test_a_faster_host_is_never_slower_with_two_queues(micro_batch):
    def step(host):
        settings = Settings(fidelity="full", overlap=frozenset(OVERLAPS), host_time=host, flash_attention=False)
        job = Job.of(models.load("unet-28b"), profiles.load("delta"), batch=64, settings=settings)
        return step_time(
            job,
            Layout(x=8, y=2, z=4, data=4, placement=0, micro_batch=micro_batch, recompute=2, weight_cache=2),
        )

    times = [float(step(host)) for host in (1e-6, 1e-5, 1e-4, 5e-4)]
    assert times == sorted(times)


def test_a_lower_latency_is_never_slower_where_far_hops_have_their_own():
    def step(latency):
        network = profiles.load("polaris").network
        near = replace(network, latency=replace(network.latency, value=latency))
        job = asked(models.load("gpt-5b"), replace(profiles.load("polaris"), network=near))
        return step_time(job, Layout(x=8, y=1, z=64, data=1, placement=0, micro_batch=1, recompute=0, weight_cache=0))

    times = [float(step(latency)) for latency in (1e-6, 5e-6, 13e-6, 26.9e-6, 27e-6)]
    assert times == sorted(times)


@given(st.lists(st.tuples(SIZES, SIZES, SIZES, SIZES, st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=20))
def test_a_row_of_a_batch_is_the_single_call(rows):
    x, y, z, data, recompute, cache = (np.array(column) for column in zip(*rows, strict=True))
    many = Layout(
        x=x,
        y=y,
        z=z,
        data=data,
        placement=np.zeros_like(x),
        micro_batch=np.ones_like(x),
        recompute=recompute,
        weight_cache=cache,
    )
    job = asked(MODELS["llama"])
    whole = predict(job, many)
    for index in range(len(rows)):
        single = predict(job, many.take(index))
        assert single.step == whole.step[index]
        assert single.compute == whole.compute[index]
        assert single.exposed_communication == whole.exposed_communication[index]


@pytest.mark.parametrize("where", EVERY_SHAPE, ids=lambda where: where.name)
def test_one_device_communicates_nothing(where):
    job = asked(MODELS["gpt"], where)
    found = predict(job, Layout(x=1, y=1, z=1, data=1))
    assert found.communication.total == 0
    assert found.exposed_communication == 0


@given(SIZES, SIZES, SIZES, SIZES, st.sampled_from(SUBSETS))
def test_a_step_lies_between_the_longer_of_its_parts_and_their_sum(x, y, z, data, overlap):
    job = asked(MODELS["gpt"], overlap=overlap)
    found = predict(job, Layout(x=x, y=y, z=z, data=data, placement=0, micro_batch=1, recompute=2, weight_cache=1))
    assert found.step >= max(found.compute, 0) * (1 - 1e-12)
    assert found.step <= (found.compute + found.communication.total) * (1 + 1e-12)


@given(st.floats(1, 20), SIZES, SIZES, SIZES)
def test_more_bandwidth_between_nodes_is_never_slower(factor, x, z, data):
    layout = Layout(x=x, y=1, z=z, data=data, placement=0, micro_batch=1, recompute=2, weight_cache=1)
    slow, fast = (asked(MODELS["gpt"], machine(4, between=rate)) for rate in (10e9, 10e9 * factor))
    assert step_time(fast, layout) <= step_time(slow, layout) * (1 + 1e-12)


def test_without_overlap_a_step_is_the_sum_of_its_parts():
    job = asked(MODELS["gpt"], overlap=frozenset())
    layout = Layout(x=2, y=2, z=4, data=2, placement=0, micro_batch=2, recompute=2, weight_cache=1)
    found = predict(job, layout)
    assert found.step == pytest.approx(found.compute + found.communication.total, rel=1e-12)


def test_full_recomputation_runs_the_blocks_once_more():
    parts, mode = parts_and_mode(
        asked(MODELS["gpt"]), Layout(x=1, y=1, z=4, data=1, placement=0, micro_batch=1, recompute=2, weight_cache=1)
    )
    rerun = sum(s.repeat * unit.forward for s in parts if s.checkpointed for unit in s.units)
    plain = computation(parts, Passes.of(Layout(x=1, y=1, z=4, data=1)))
    assert computation(parts, mode.passes) == pytest.approx(plain + rerun)


def test_a_trace_has_every_event_once_with_its_duration():
    parts, mode = parts_and_mode(
        asked(MODELS["one block"]),
        Layout(x=2, y=1, z=4, data=1, placement=0, micro_batch=1, recompute=2, weight_cache=0),
    )
    events, end = simulate(parts, mode)
    trace = chrome_trace(events, {"model": "one block"})["traceEvents"]
    complete = [entry for entry in trace if entry["ph"] == "X"]
    assert len(complete) == len(events)
    assert max(entry["ts"] + entry["dur"] for entry in complete) == pytest.approx(end * 1e6)
