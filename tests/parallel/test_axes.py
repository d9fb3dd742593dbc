"""The table of axes, and the groups that follow from it."""

import numpy as np
import pytest

from perfmodel.errors import UsageError
from perfmodel.parallel import axes
from perfmodel.parallel.axes import AXES, COMMUNICATION_GROUPS, KINDS, MEMBERS, Shape, read_sizes


def test_the_groups_of_today_are_the_paper_s():
    assert AXES == ("x", "y", "z", "data")
    assert axes.TENSOR_AXES == ("x", "y")
    assert axes.WEIGHT_AXES == ("z",)
    assert axes.BATCH_AXES == ("z", "data")
    assert axes.REPLICA_AXES == ("data",)
    assert COMMUNICATION_GROUPS == ("x", "y", "z", "data", "xy")


def test_every_axis_of_the_batch_is_summed_over_once_by_gathering_or_by_replicas():
    assert sorted(axes.BATCH_AXES) == sorted({*axes.REPLICA_AXES, *axes.WEIGHT_AXES} & {*axes.BATCH_AXES})
    assert not {*axes.REPLICA_AXES} & {*axes.WEIGHT_AXES}


def test_places_in_axonn_s_order_are_all_different():
    assert sorted(kind.axonn for kind in KINDS.values()) == list(range(len(AXES)))


@pytest.mark.parametrize("group", MEMBERS)
def test_the_size_of_a_group_is_the_product_of_its_axes_for_one_and_for_many(group):
    sizes = {"x": 2, "y": 3, "z": 5, "data": 7}
    product = np.prod([sizes[axis] for axis in MEMBERS[group]])
    assert Shape(**sizes).size(group) == product
    many = Shape(**{axis: np.array([size, 1]) for axis, size in sizes.items()})
    assert many.size(group).tolist() == [product, 1]
    assert many.gpus.tolist() == [210, 1]


def test_what_is_not_named_is_not_split():
    assert Shape(z=8).sizes() == {"x": 1, "y": 1, "z": 8, "data": 1}
    assert Shape(z=8).text() == "1x1x8x1"


def test_a_grid_is_read_as_it_is_written():
    assert Shape.of(read_sizes("2x3X5x7")) == Shape(x=2, y=3, z=5, data=7)


@pytest.mark.parametrize("text", ["", "2x2", "1x2x3x4x5", "1x2x3xy", "0x1x1x1", "1x1x1x-1"])
def test_what_is_no_grid_is_refused_with_how_one_is_written(text):
    with pytest.raises(UsageError, match="wanted Gx x Gy x Gz x Gdata as 4 counts, such as 1x2x32x4"):
        read_sizes(text)
