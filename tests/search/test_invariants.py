"""What must hold for any grid, model and machine, whatever the numbers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from any_job import JOBS, LINEARS, MACHINES, layouts, one_layout, terms
from machines import job
from perfmodel.memory.per_device import memory_per_device
from perfmodel.models.model import Block, Model
from perfmodel.numerics import divisors
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.enumeration import factorizations
from perfmodel.parallel.layout import PLACEMENTS
from perfmodel.parallel.rules import first_broken, grid_rules
from perfmodel.step.flops import compute_time
from perfmodel.step.predict import predict, step_time
from perfmodel.traffic.per_step import communication_time, traffic


def at(value, row):
    return np.broadcast_to(value, np.shape(value) or (row + 1,))[row]


@given(JOBS, layouts())
def test_row_i_of_many_layouts_is_the_single_call_exactly(question, many):
    whole = predict(question, many)
    for row in range(len(many.x)):
        one = many.take(row)
        single = predict(question, one)
        for record in ("communication", "memory"):
            for name, value in terms(getattr(whole, record)).items():
                assert at(value, row) == getattr(getattr(single, record), name), name
        assert at(whole.compute, row) == single.compute
        assert at(whole.utilization, row) == single.utilization
        assert at(whole.step, row) == single.step
        assert at(step_time(question, many), row) == step_time(question, one)


@given(JOBS, layouts())
def test_row_i_of_every_collective_and_link_is_the_single_call_exactly(question, many):
    whole = list(traffic(question, many))
    for row in range(len(many.x)):
        for batch, single in zip(whole, traffic(question, many.take(row)), strict=True):
            for name in ("buffer", "calls", "time", "total"):
                assert at(getattr(batch, name), row) == getattr(single, name), (batch.layer, batch.term, name)
            for name in ("size", "inner", "bandwidth"):
                assert at(getattr(batch.link, name), row) == getattr(single.link, name), (batch.layer, batch.term, name)


@given(JOBS, layouts())
def test_row_i_of_the_rules_is_the_single_call_exactly(question, many):
    rules = grid_rules(question)
    assert first_broken(rules, many).tolist() == [int(first_broken(rules, many.take(i))) for i in range(len(many.x))]


@given(
    JOBS,
    one_layout(),
    st.sampled_from(["activation_bytes", "weight_bytes", "gradient_bytes", "data_gradient_bytes"]),
    st.floats(1, 1.9),  # at twice, activations are fp32, and what is computed in fp32 needs no copy
)
def test_more_bytes_are_never_cheaper_in_time_or_memory(question, layout, name, factor):
    settings = replace(question.settings, data_gradient_bytes=question.settings.sent_gradient_bytes)
    larger = replace(settings, **{name: factor * getattr(settings, name)})
    lean, fat = (replace(question, settings=chosen) for chosen in (settings, larger))
    before, after = terms(communication_time(lean, layout)), terms(communication_time(fat, layout))
    assert all(after[term] >= before[term] for term in before)
    assert memory_per_device(fat, layout).total >= memory_per_device(lean, layout).total * (
        1 - 1e-9
    )  # terms are those of the fullest moment


def exchanged_order(code):
    swapped = {"x": "y", "y": "x"}
    return PLACEMENTS.index(tuple(swapped.get(axis, axis) for axis in PLACEMENTS[code]))


def flipped(model):
    """The same model with normal layers transposed and transposed ones normal."""
    blocks = (
        Block(
            name=b.name,
            layers=tuple(replace(layer, transposed=not layer.transposed) for layer in b.layers),
            repeat=b.repeat,
            checkpointed=b.checkpointed,
        )
        for b in model.blocks
    )
    return Model(name=model.name, sequence=model.sequence, blocks=tuple(blocks))


@given(LINEARS, st.sampled_from(MACHINES), one_layout())
def test_exchanging_x_and_y_with_their_places_and_the_layers_roles_changes_nothing(model, where, layout):
    mirrored = replace(layout.exchanged(), placement=exchanged_order(layout.placement))
    here, there = job(model, where), job(flipped(model), where)
    assert communication_time(there, mirrored).total == pytest.approx(communication_time(here, layout).total, rel=1e-12)
    mine, theirs = memory_per_device(here, layout), memory_per_device(there, mirrored)
    assert theirs.weights == pytest.approx(mine.weights)
    assert theirs.activations == pytest.approx(mine.activations)


@given(LINEARS, st.sampled_from(MACHINES), one_layout())
def test_at_paper_fidelity_it_holds_without_moving_the_places(model, where, layout):
    here, there = (job(chosen, where, fidelity="paper") for chosen in (model, flipped(model)))
    assert communication_time(there, layout.exchanged()).total == pytest.approx(
        communication_time(here, layout).total, rel=1e-12
    )


@given(st.integers(1, 3000))
def test_factorizations_are_all_the_ordered_ones_once_each_and_sorted(gpus):
    grids = [tuple(int(size) for size in row) for row in zip(*factorizations(gpus), strict=True)]
    expected = [
        (x, y, z, gpus // (x * y * z))
        for x in divisors(gpus)
        for y in divisors(gpus // x)
        for z in divisors(gpus // x // y)
    ]
    assert grids == expected


@given(layouts())
def test_the_product_of_the_axes_is_the_number_of_gpus(many):
    assert np.all(many.x * many.y * many.z * many.data == many.gpus)
    assert len(set(many.gpus.tolist())) == 1


@given(JOBS, one_layout())
def test_more_recomputation_never_keeps_more_and_never_computes_less(question, layout):
    modes = [replace(layout, recompute=index) for index in range(len(RECOMPUTES))]
    kept = [memory_per_device(question, mode).activations for mode in modes]
    work = [compute_time(question, mode, question.costs.rate) for mode in modes]
    assert kept[0] >= kept[1] >= kept[2] * (1 - 1e-12)
    assert work[0] <= work[1] <= work[2]


@given(JOBS, one_layout(), st.integers(0, 2))
def test_more_caching_never_holds_less_and_never_gathers_more(question, layout, recompute):
    modes = [replace(layout, recompute=recompute, weight_cache=index) for index in range(len(WEIGHT_CACHES))]
    gathered = [communication_time(question, mode).weight_gather for mode in modes]
    assert gathered[0] >= gathered[1] >= gathered[2]
    held = [memory_per_device(question, mode).gathered_weights for mode in modes]
    assert held[0] <= held[1] <= held[2]


@given(JOBS, one_layout(), st.integers(2, 4))
def test_a_larger_micro_batch_takes_more_memory_and_no_more_time(question, layout, factor):
    larger = replace(layout, micro_batch=factor * layout.micro_batch)
    assert memory_per_device(question, larger).activations >= memory_per_device(question, layout).activations
    if question.batch % (larger.z * larger.data * larger.micro_batch) == 0:  # else a last micro-step is partly filled
        assert communication_time(question, larger).total <= communication_time(question, layout).total * (1 + 1e-12)
