"""What must hold of memory for any grid, model and machine, whatever the numbers."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from any_job import JOBS, one_layout, terms
from machines import job
from perfmodel.memory.per_device import Memory, memory_per_device
from perfmodel.parallel.sharding import replicated_parameters, sharded_parameters

FINER = st.sampled_from(["x", "y", "z"])


@given(JOBS, one_layout(), FINER, st.sampled_from([2, 3, 4]))
def test_what_is_stored_never_grows_as_an_axis_grows(question, layout, axis, factor):
    """Not what is gathered (from Z = 2 on) nor communicators; what tokens take is of the fullest moment."""
    question = replace(question, settings=replace(question.settings, vocabulary_multiple=0))  # padding grows with x y
    finer = replace(layout, **{axis: factor * getattr(layout, axis)})
    before, after = memory_per_device(question, layout), memory_per_device(question, finer)
    for name in ("weights", "gradients", "optimizer"):
        assert getattr(after, name) <= getattr(before, name) * (1 + 1e-9), name
    if layout.z > 1:
        assert after.total - after.communicators <= (before.total - before.communicators) * (1 + 1e-9)


@given(JOBS, one_layout())
def test_data_parallel_ranks_hold_copies(question, layout):
    more = replace(layout, data=2 * layout.data)
    before, after = terms(memory_per_device(question, layout)), terms(memory_per_device(question, more))
    del before["communicators"], after["communicators"]
    assert before == after


@given(JOBS, one_layout())
def test_parts_add_up_to_the_whole_with_what_is_replicated_counted_once_a_copy(question, layout):
    """Sharded parameters times x y z are the weights and padded tables; nobody holds less than an even share."""
    model = question.model
    tables = weights = 0
    for block, layer in model.layers():
        weights += block.repeat * getattr(layer, "weight", 0)
        if type(layer).__name__ == "Embedding" or (type(layer).__name__ == "Head" and not layer.tied):
            tables += question.padded_vocabulary(layer.vocabulary, layout) * layer.width
    shards = layout.x * layout.y * layout.z
    held = sharded_parameters(question, layout)
    assert held * shards == pytest.approx(weights + tables, rel=1e-12)
    assert held + replicated_parameters(job(model), layout) >= model.parameters / shards * (1 - 1e-12)


@given(JOBS, one_layout())
def test_memory_terms_are_positive_and_add_up(question, layout):
    found = memory_per_device(question, layout)
    assert all(value >= 0 for value in terms(found).values())
    assert found.total == pytest.approx(sum(terms(found).values()), rel=1e-12)
    assert [field.name for field in fields(Memory)] == list(terms(found))
