"""Measured tables: they give back what was measured, hold for the measured groups only, and say so."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from machines import GOLDEN
from perfmodel.costs.bandwidth import Bandwidths
from perfmodel.costs.interpolated import measured_tables, origin
from perfmodel.costs.nccl import Constants, all_gather, route
from perfmodel.machines import profiles
from perfmodel.machines.collective_times import TimingRow
from perfmodel.numerics import isotonic
from perfmodel.units import parse

MEASURED = profiles.load_file(GOLDEN / "perlmutter-measured.yaml")
GATHER, PAIR, INSIDE, ACROSS = measured_tables(MEASURED)
MEBI = parse("1 MiB", "B")
SIZES = st.floats(1, 1e11)


def groups(size, inner=1, gpus=None):
    """The path of groups on Perlmutter."""
    shape = {"inner": inner, "size": size, "gpus": gpus or np.max(inner * size)}
    bandwidths = Bandwidths.of(MEASURED)
    inside, bandwidth = bandwidths.contained(**shape), bandwidths.of_group(**shape)
    return route(Constants.of(MEASURED), inner=inner, size=size, inside=inside, bandwidth=bandwidth)


def changed(table, factor=1.0, rows=None):
    """The same table with other times."""
    rows = rows or tuple(TimingRow(row.nodes, tuple(factor * time for time in row.times)) for row in table.timings.rows)
    return table.of(replace(table.timings, rows=rows), rows)


def formula(size):
    """Any: a millisecond, and a second for a gigabyte."""
    return 1e-3 + size / 1e9


def known(held, sent):
    """What a table says, -1 where it says nothing."""
    return held.override(-1.0, sent, formula)


def test_a_table_gives_back_its_entries():
    for row in GATHER.timings.rows:
        for size, time in zip(GATHER.timings.sizes, row.times, strict=True):
            assert known(GATHER.match(groups(4 * row.nodes)), size) == pytest.approx(time, rel=1e-12)


def test_what_lies_between_is_interpolated_by_logarithms():
    # 8 nodes between 4 and 16, 2 MiB between 1 and 4: both half-way, so the geometric mean of four times.
    found = known(GATHER.match(groups(32)), 2 * MEBI)
    assert found == pytest.approx((0.22e-3 * 0.35e-3 * 0.53e-3 * 0.80e-3) ** 0.25, rel=1e-12)


@given(st.integers(16, 1024), st.floats(MEBI, 1024 * MEBI))
def test_what_lies_between_is_between_its_neighbours(size, sent):
    there = known(GATHER.match(groups(4 * (size // 4))), sent)
    times = [time for row in GATHER.timings.rows for time in row.times]
    assert min(times) * (1 - 1e-12) <= there <= max(times) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("table", "size", "inner", "there"),
    [
        (GATHER, 16, 1, True),
        (GATHER, 1024, 1, True),
        (GATHER, 12, 1, False),  # fewer nodes than measured
        (GATHER, 1028, 1, False),  # more
        (GATHER, 4, 1, False),  # one node
        (GATHER, 16, 2, False),  # two a node, and another such group beside them
        (GATHER, 16, 4, False),
        (GATHER, 18, 1, False),  # straddles a border
        (PAIR, 2, 1, True),
        (PAIR, 2, 2, False),
        (PAIR, 4, 1, False),
        (INSIDE, 2, 2, True),
        (INSIDE, 4, 2, False),
        (ACROSS, 2, 2, False),
        (ACROSS, 4, 2, True),
        (ACROSS, 16, 2, True),
        (ACROSS, 18, 2, False),
        (ACROSS, 2, 4, False),
    ],
)
def test_a_table_holds_for_groups_as_measured_and_for_no_others(table, size, inner, there):
    override = known(table.match(groups(size, inner, gpus=4096)), 8 * MEBI)
    assert bool(override != -1.0) is there


def test_one_node_and_several_are_never_mixed():
    alone, pair = groups(2, 2), groups(4, 2)
    assert known(INSIDE.match(alone), MEBI) == pytest.approx(60e-6)
    assert known(ACROSS.match(pair), MEBI) == pytest.approx(0.2e-3)
    assert (len(INSIDE.nodes), len(ACROSS.nodes)) == (1, 2)


def test_one_rank_is_no_group():
    assert not len(PAIR.match(groups(1)).rows)


def test_beyond_its_sizes_a_table_goes_on_as_the_formula_does_from_there():
    held = GATHER.match(groups(16))
    smaller, larger = formula(MEBI / 2) / formula(MEBI), formula(2048 * MEBI) / formula(1024 * MEBI)
    assert known(held, MEBI / 2) == pytest.approx(0.22e-3 * smaller)
    assert known(held, 2048 * MEBI) == pytest.approx(16.25e-3 * larger)
    assert known(held, 1024.001 * MEBI) == pytest.approx(known(held, 1024 * MEBI), rel=1e-5)


def overridden(held, sent, along):
    """All-gathers, by the table where it holds."""
    return held.override(all_gather(sent, along), sent, partial(all_gather, along=along))


@given(st.sampled_from([8, 16, 24, 64, 900, 1024, 4096]), SIZES, st.floats(1, 100))
def test_more_bytes_are_never_faster(size, sent, factor):
    along = groups(size)
    held = GATHER.match(along)
    small, large = (overridden(held, bytes_, along) for bytes_ in (sent, factor * sent))
    assert large >= small * (1 - 1e-12)


@given(st.lists(st.tuples(st.integers(1, 300), st.sampled_from([1, 2, 4])), min_size=1, max_size=9), SIZES)
def test_a_row_of_a_batch_equals_the_single_call(shapes, sent):
    sizes, inner = (np.array(column) for column in zip(*shapes, strict=True))
    sizes = 4 * sizes
    sent = sent * np.arange(1, len(shapes) + 1)
    many = groups(sizes, inner, gpus=65536)
    for table in (GATHER, ACROSS):
        rows = overridden(table.match(many), sent, many)
        for row, (size, stride) in enumerate(zip(sizes.tolist(), inner.tolist(), strict=True)):
            along, one = groups(size, stride, gpus=65536), float(sent[row])
            assert rows[row] == overridden(table.match(along), one, along)


def test_one_group_may_send_many_sizes():
    sent = np.array([MEBI / 2, MEBI, 3 * MEBI, 2048 * MEBI])
    along = groups(16)
    rows = overridden(GATHER.match(along), sent, along)
    assert rows.tolist() == [overridden(GATHER.match(along), one, along) for one in sent]


def test_a_time_above_that_of_a_larger_size_is_taken_for_noise():
    # RCCL's reduce-scatter on 256 devices of Frontier: 21.78 ms for 1 MiB, 2.23 for 4 (same source).
    noisy = changed(GATHER, rows=(TimingRow(4, (21.78e-3, 2.23e-3, 4.38e-3, 6.95e-3, 7.96e-3, 14.51e-3)),))
    assert known(noisy.match(groups(16)), MEBI) == pytest.approx(2.23e-3)


def test_slower_measurements_make_slower_calls():
    for sent in (MEBI, 5 * MEBI, 1024 * MEBI):
        was, now = (known(table.match(groups(40)), sent) for table in (GATHER, changed(GATHER, 2.0)))
        assert now == pytest.approx(2 * was)


def test_the_origin_of_a_time_is_told():
    tables = (GATHER, PAIR, INSIDE, ACROSS)
    assert origin(tables, "all-gather", MEBI, groups(16)) == "measured table, measured [PCCL]"
    assert origin(tables, "all-reduce", MEBI, groups(2, 2)) == "measured table, assumed [INVENTED]"
    assert origin(tables, "all-gather", MEBI, groups(1)) == "nothing to send"
    assert origin(tables, "reduce-scatter", MEBI, groups(16)) == "formula: the profile has no measured reduce-scatter"
    assert origin(tables, "all-gather", MEBI / 2, groups(16)) == (
        "measured table, measured [PCCL], for its smallest size, 1 MiB, and from there as the formula"
    )
    assert origin(tables, "all-gather", 2048 * MEBI, groups(16)) == (
        "measured table, measured [PCCL], for its largest size, 1 GiB, and from there as the formula"
    )
    assert origin(tables, "all-reduce", MEBI, groups(4)) == (
        "formula: no table of all-reduce is for 4 ranks per node, stride 1, on 1 node (there is: 2 ranks per node, "
        "stride 1, on 1 node; 2 ranks per node, stride 2, on 1 node; 2 ranks per node, stride 2, on 2 to 8 nodes)"
    )


def least_distance(values):
    """Of all that never falls the least sum of distances to `values`, by linear programming over (fit, distance)."""
    count = len(values)
    one, none = np.eye(count), np.zeros((count - 1, count))
    never_falls = np.hstack((one[:-1] - one[1:], none))
    above, below = np.hstack((one, -one)), np.hstack((-one, -one))
    limits = np.concatenate((np.zeros(count - 1), values, -values))
    costs = np.repeat((0.0, 1.0), count)
    return linprog(costs, np.vstack((never_falls, above, below)), limits, bounds=(None, None)).fun


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=9).map(lambda values: np.array(values, dtype=float)))
def test_noise_is_evened_out_by_isotonic_median_regression(values):
    found = isotonic(values)
    assert (np.diff(found) >= 0).all()
    assert np.abs(found - values).sum() == pytest.approx(least_distance(values))


def test_one_call_that_happened_to_be_fast_does_not_make_all_smaller_ones_fast():
    # Start-up time is all that small calls take; one of four was measured at half of it.
    sizes, times = tuple(2.0**power for power in (10, 12, 14, 16, 24)), (4e-3, 4.2e-3, 4.1e-3, 2e-3, 9e-3)
    rows = (TimingRow(1, times),)
    table = INSIDE.of(replace(INSIDE.timings, sizes=sizes, rows=rows), rows)
    found = [float(known(table.match(groups(2, 2)), size)) for size in sizes]
    assert found == pytest.approx([4e-3, 4.1e-3, 4.1e-3, 4.1e-3, 9e-3])
