"""Who is in a group with whom, against AxoNN's own arithmetic."""

import numpy as np
import pytest

from perfmodel.machines.domains import contained
from perfmodel.parallel.axes import COMMUNICATION_GROUPS
from perfmodel.parallel.enumeration import placed
from perfmodel.parallel.layout import PLACEMENTS, Layout
from perfmodel.parallel.ranks import first_group, groups, members_with, rank_array


def test_a_grid_of_two_by_two_by_two_is_the_paper_s_picture():
    # arXiv 2502.08145, section V-B: X pairs 0-1, 2-3, ...; Y pairs 0-2, 1-3, 4-6, 5-7.
    layout = Layout(x=2, y=2, z=2, data=1, placement=1)
    assert groups(layout, "x").tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert groups(layout, "y").tolist() == [[0, 2], [1, 3], [4, 6], [5, 7]]


def test_ranks_are_axonn_s_column_fastest_then_row_depth_data():
    row, column, depth, data = 3, 2, 4, 2
    ranks = rank_array(Layout(x=row, y=column, z=depth, data=data, placement=0))
    for r, c, d, g in np.ndindex(row, column, depth, data):
        assert ranks[r, c, d, g] == c + column * (r + row * (d + depth * g))


def test_axonn_with_two_data_ranks_and_two_rows_joins_0_and_2():
    assert groups(Layout(x=2, y=1, z=1, data=2), "data").tolist() == [[0, 2], [1, 3]]


@pytest.mark.parametrize("axis", ["x", "y", "z", "data", "xy"])
@pytest.mark.parametrize("placement", range(len(PLACEMENTS)))
def test_every_rank_is_in_one_group_of_every_axis_and_members_differ_in_that_axis_only(axis, placement):
    layout = Layout(x=2, y=3, z=4, data=2, placement=placement)
    where = {int(rank): place for place, rank in np.ndenumerate(rank_array(layout))}
    lines = groups(layout, axis)
    assert sorted(lines.ravel().tolist()) == list(range(48))
    assert lines.shape[1] == layout.size(axis)
    kept = [i for i, name in enumerate(("x", "y", "z", "data")) if name not in (axis if axis != "data" else ("data",))]
    for line in lines.tolist():
        assert line == sorted(line)
        assert len({tuple(where[rank][i] for i in kept) for rank in line}) == 1


@pytest.mark.parametrize("axis", ["x", "y", "z", "data", "xy"])
def test_the_first_group_is_the_first_of_all_groups(axis):
    grids = placed(36, tuple(range(24)))
    for row in range(len(grids.x)):
        layout = grids.take(row)
        size = int(layout.size(axis))
        assert first_group(layout, axis, np.arange(size)).tolist() == groups(layout, axis)[0].tolist()
        assert first_group(layout, axis, size - 1) == groups(layout, axis)[0][-1]


def test_the_first_group_of_two_thousand_million_ranks_is_no_array():
    largest = Layout(x=2**15, y=2**15, z=2, data=1)
    assert first_group(largest, "xy", 2**30 - 1) == 2**30 - 1
    assert first_group(largest, "z", 1) == 2**30


def test_groups_of_the_innermost_axis_are_neighbours():
    grids = placed(24, tuple(range(24)))
    for row in range(len(grids.x)):
        layout = grids.take(row)
        innermost = PLACEMENTS[layout.placement][0]
        assert set(np.diff(groups(layout, innermost), axis=1).ravel().tolist()) <= {1}


@pytest.mark.parametrize("group", COMMUNICATION_GROUPS)
@pytest.mark.parametrize("placement", [0, 1, 5, 17])
def test_the_group_of_a_rank_is_the_one_of_all_groups_that_it_is_in(group, placement):
    layout = Layout(x=2, y=3, z=4, data=2, placement=placement)
    of = {rank: line.tolist() for line in groups(layout, group) for rank in line.tolist()}
    for rank in range(48):
        assert sorted(members_with(layout, group, rank).tolist()) == of[rank]


@pytest.mark.parametrize("group", COMMUNICATION_GROUPS)
@pytest.mark.parametrize("devices", [1, 4, 6, 8])
def test_a_group_crosses_nodes_where_the_model_says_so(group, devices):
    grids = placed(48, tuple(range(24)))
    inside = contained(inner=grids.inner(group), size=grids.size(group), domain=devices, gpus=grids.gpus)
    for row in (row for row in range(0, len(grids.x), 7) if grids.take(row).size(group) > 1):
        nodes = groups(grids.take(row), group) // devices
        assert bool(inside[row]) == bool(np.all(nodes == nodes[:, :1]))
