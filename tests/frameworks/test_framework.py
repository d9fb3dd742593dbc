"""Traits are the defaults of a job's settings, and what the user sets replaces them."""

import pytest

from machines import gpt, job
from perfmodel.frameworks import loading
from perfmodel.memory.per_device import memory_per_device
from perfmodel.parallel.choices import OVERLAPS, RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.rules import complaints, grid_rules
from perfmodel.parallel.settings import Settings
from perfmodel.traffic.per_step import traffic

ALL = [loading.load(name) for name in loading.names()]
DATA = Layout(x=1, y=1, z=1, data=8)


@pytest.mark.parametrize("framework", ALL, ids=lambda one: one.name)
def test_names_in_traits_exist(framework):
    assert set(framework.overlapping.hidden) <= set(OVERLAPS)
    assert set(framework.kernels.recomputes) <= set(RECOMPUTES)
    assert set(framework.kernels.weight_caches) <= set(WEIGHT_CACHES)
    assert set(framework.spread.axes) <= {"x", "y", "z", "data"}


@pytest.mark.parametrize("framework", ALL, ids=lambda one: one.name)
def test_a_trait_holds_unless_the_user_says_otherwise(framework):
    found = Settings(framework=framework).resolve("bf16")
    assert found.overlap == frozenset(framework.overlapping.hidden)
    assert found.kernels == framework.kernels.built
    assert found.shards == framework.spread.shards_over_data
    own = Settings(framework=framework, overlap=frozenset(), kernels="eager", shards="gradients").resolve("bf16")
    assert (own.overlap, own.kernels, own.shards) == (frozenset(), "eager", "gradients")


def test_an_axis_that_a_framework_lacks_is_told():
    question = job(framework=loading.load("megatron-lm"))
    told = dict(complaints(grid_rules(question), Layout(x=2, y=2, z=1, data=2)))
    assert told["framework"] == "megatron-lm does not split along y, which is 2; wanted y = 1"
    assert "framework" not in dict(complaints(grid_rules(job()), Layout(x=2, y=2, z=1, data=2)))


def test_padded_shards_need_no_divisor():
    thirds = Layout(x=1, y=1, z=3, data=1)
    refused, padded = (
        dict(complaints(grid_rules(job(batch=12, framework=loading.load(name))), thirds))
        for name in ("perfmodel", "fsdp2")
    )
    assert "weight_shards" in refused
    assert "weight_shards" not in padded


def test_a_sharded_optimizer_keeps_an_eighth_of_its_states_on_eight_ranks():
    plain, sharded = (memory_per_device(job(gpt(), shards=shards), DATA) for shards in ("nothing", "optimizer"))
    assert sharded.optimizer == pytest.approx(plain.optimizer / 8)
    assert sharded.gradients == plain.gradients
    both = memory_per_device(job(gpt(), shards="gradients"), DATA)
    assert both.gradients == pytest.approx(plain.gradients / 8)


def test_sharding_over_two_ranks_keeps_half():
    plain, sharded = (memory_per_device(job(gpt(), shards="optimizer", shard_ranks=n), DATA) for n in (0, 2))
    assert sharded.optimizer == pytest.approx(4 * plain.optimizer)


def test_a_sharded_optimizer_scatters_gradients_and_gathers_weights_of_the_same_elements():
    sent = traffic(job(gpt(), shards="optimizer"), DATA)
    whole = traffic(job(gpt(), shards="nothing"), DATA)
    of = lambda record, role: [one for one in record if one.role == role and one.layer != "biases"]  # noqa: E731
    reduced, scattered, gathered = of(whole, "data"), of(sent, "data"), of(sent, "update")
    assert {one.operation for one in reduced} == {"all-reduce"}
    assert {one.operation for one in scattered} == {"reduce-scatter"}
    assert {one.operation for one in gathered} == {"all-gather"}
    assert sum(one.buffer for one in scattered) == sum(one.buffer for one in reduced)
    assert sum(one.buffer for one in gathered) * 2 == pytest.approx(sum(one.buffer for one in scattered))


def test_sequence_parallelism_sends_the_halves_of_the_all_reduces_and_one_gather_more():
    layout = Layout(x=4, y=1, z=1, data=1, micro_batch=4)
    plain, split = (
        [
            one
            for one in traffic(job(gpt(), sequence_parallel=given), layout)
            if one.link.axis == "x" and one.term in ("forward_reduce", "backward_reduce")
        ]
        for given in (False, True)
    )
    halves = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1}
    sent = [sum(halves[one.operation] * one.calls * one.buffer for one in record) for record in (plain, split)]
    assert {one.operation for one in split} == {"all-gather", "reduce-scatter"}
    assert sent[1] == pytest.approx(sent[0] * 5 / 4)  # the input is gathered again for the weight's gradient


def test_sequence_parallelism_splits_what_lies_between_layers():
    layout = Layout(x=4, y=1, z=1, data=1, micro_batch=4)
    plain, split = (memory_per_device(job(gpt(), sequence_parallel=given), layout) for given in (False, True))
    assert split.activations < plain.activations
