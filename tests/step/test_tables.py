"""Measured tables in a whole step: rows are single calls, more bytes are never faster, the search finds the best."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines import GOLDEN, gpt, job
from perfmodel.machines import profiles
from perfmodel.numerics import divisors
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.enumeration import shapes
from perfmodel.parallel.layout import PLACEMENTS, Layout
from perfmodel.search.search import Space, rank
from perfmodel.step.predict import predict, step_time
from perfmodel.traffic.per_step import communication_time, traffic

MEASURED = profiles.load_file(GOLDEN / "perlmutter-measured.yaml")
QUESTION = job(gpt(hidden=2048), MEASURED, batch=1024, fidelity="full")
AXES = st.sampled_from([1, 2, 4, 8, 16, 64])
ROWS = st.tuples(AXES, AXES, AXES, AXES, st.integers(0, len(PLACEMENTS) - 1), st.sampled_from([1, 2, 4]))


def layout_of(row):
    """What one of ROWS, or its columns, stand for."""
    *sizes, placement, micro_batch = row
    return Layout.of(sizes, placement=placement, micro_batch=micro_batch)


@settings(max_examples=50, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=12))
def test_a_row_of_a_batch_is_the_single_call(rows):
    many = layout_of(np.array(rows).T)
    many = replace(many, recompute=many.micro_batch // 2, weight_cache=many.micro_batch // 2)
    whole = list(traffic(QUESTION, many))
    steps = step_time(QUESTION, many)
    for row in range(len(rows)):
        one = many.take(row)
        assert steps[row] == step_time(QUESTION, one)
        for batch, single in zip(whole, traffic(QUESTION, one), strict=True):
            assert np.broadcast_to(batch.time, len(rows))[row] == single.time


@settings(max_examples=50, deadline=None)
@given(ROWS, st.sampled_from(["activation_bytes", "weight_bytes", "gradient_bytes"]), st.floats(1, 100))
def test_more_bytes_are_never_faster(row, name, factor):
    layout, settings = layout_of(row), QUESTION.settings
    larger = replace(QUESTION, settings=replace(settings, **{name: factor * getattr(settings, name)}))
    before, after = communication_time(QUESTION, layout), communication_time(larger, layout)
    for term in fields(before):
        assert getattr(after, term.name) >= getattr(before, term.name) * (1 - 1e-9), term.name


@settings(max_examples=50, deadline=None)
@given(ROWS)
def test_one_group_in_many_layouts_has_the_time_of_each(row):
    micro = np.array([1, 2, 4, 8])
    many = layout_of((*row[:5], micro))
    alone = zip(*(traffic(QUESTION, replace(many, micro_batch=one)) for one in micro), strict=True)
    for batch, singles in zip(traffic(QUESTION, many), alone, strict=True):
        assert np.broadcast_to(batch.time, len(micro)).tolist() == [float(single.time) for single in singles]


def test_slower_tables_never_make_a_faster_step():
    layouts = shapes(64)
    times = []
    for factor in (0.5, 1.0, 2.0):
        tables = tuple(replace(table, factor=factor) for table in QUESTION.costs.tables)
        times.append(step_time(replace(QUESTION, costs=replace(QUESTION.costs, tables=tables)), layouts))
    assert np.all(np.diff(times, axis=0) >= 0)
    assert np.any(np.diff(times, axis=0) > 0)


def test_the_search_finds_the_best_where_a_larger_call_takes_more_than_its_share():
    steep = tuple(
        replace(each, logarithms=each.logarithms + 3 * np.arange(len(each.sizes))) for each in QUESTION.costs.tables
    )
    fixed = replace(QUESTION.settings, fixed={"x": 1, "y": 2, "z": 2, "data": 1})
    question = replace(QUESTION, batch=16, costs=replace(QUESTION.costs, tables=steep), settings=fixed)
    best = rank(question, Space(gpus=4, top=1))
    grid, most = best.layouts.take(0), MEASURED.device.memory.value
    tried = [
        predict(question, replace(grid, micro_batch=micro, recompute=recompute, weight_cache=cache))
        for micro in divisors(question.batch // 2)
        for recompute in range(len(RECOMPUTES))
        for cache in range(len(WEIGHT_CACHES))
    ]
    least = min(float(found.step) for found in tried if found.memory.total <= most)
    assert float(best.prediction.step[0]) == pytest.approx(least, rel=1e-9)
