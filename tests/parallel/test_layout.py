"""Grids, their orders, and rows of many."""

import numpy as np
import pytest

from perfmodel.errors import UsageError
from perfmodel.numerics import divisors
from perfmodel.parallel.axes import AXES, AXONN, PAPER
from perfmodel.parallel.enumeration import factorizations, placed
from perfmodel.parallel.layout import NAMED_PLACEMENTS, PLACEMENTS, Layout
from perfmodel.parallel.ranks import groups


def test_the_two_named_orders_are_the_library_s_and_the_paper_s():
    assert PLACEMENTS[NAMED_PLACEMENTS["axonn"][0]] == AXONN == ("y", "x", "z", "data")
    assert PLACEMENTS[NAMED_PLACEMENTS["paper"][0]] == PAPER == ("x", "y", "z", "data")


def test_any_order_is_each_of_the_24_once():
    assert NAMED_PLACEMENTS["any"] == tuple(range(24))
    assert len(set(PLACEMENTS)) == 24
    assert all(sorted(placement) == sorted(AXES) for placement in PLACEMENTS)


@pytest.mark.parametrize("order", PLACEMENTS)
def test_the_stride_of_an_axis_is_the_product_of_those_inside(order):
    sizes = {"x": 2, "y": 3, "z": 5, "data": 7}
    layout = Layout(**sizes, placement=PLACEMENTS.index(order))
    stride = 1
    for axis in order:
        assert layout.inner(axis) == stride
        stride *= sizes[axis]


def test_x_and_y_joined_lie_inside_what_is_inside_both_when_they_are_neighbours():
    layout = Layout(x=2, y=3, z=5, data=7, placement=PLACEMENTS.index(("z", "y", "x", "data")))
    assert (layout.size("xy"), layout.inner("xy")) == (6, 5)


def test_a_joined_group_with_z_between_shares_its_longer_block_with_more_groups():
    layout = Layout(x=2, y=3, z=5, data=7, placement=PLACEMENTS.index(("x", "z", "y", "data")))
    assert (layout.size("xy"), layout.inner("xy")) == (6, 5)
    assert layout.inner("xy") * layout.size("xy") == layout.inner("y") * layout.y


def test_exchanging_x_and_y_twice_gives_the_same():
    layout = Layout(x=2, y=3, z=5, data=7, placement=4, micro_batch=3, recompute=2, weight_cache=1)
    assert layout.exchanged() == Layout(x=3, y=2, z=5, data=7, placement=4, micro_batch=3, recompute=2, weight_cache=1)
    assert layout.exchanged().exchanged() == layout


def test_rows_of_many_are_one_or_fewer_and_scalars_go_for_every_row():
    many = Layout(x=np.array([1, 2, 4]), y=np.array([4, 2, 1]), z=np.array([1, 1, 1]), data=2, placement=1)
    assert many.take(1) == Layout(x=2, y=2, z=1, data=2, placement=1)
    assert isinstance(many.take(1).x, int)
    fewer = many.take(np.array([2, 0]))
    assert (fewer.x.tolist(), fewer.data.tolist(), fewer.placement.tolist()) == ([4, 1], [2, 2], [1, 1])
    assert many.take(many.x > 1).y.tolist() == [2, 1]


def test_a_grid_reads_as_in_the_paper():
    assert Layout(x=1, y=2, z=32, data=4).text() == "1x2x32x4"


@pytest.mark.parametrize(
    ("gpus", "count"),
    [(1, 1), (2, 4), (7, 4), (6, 16), (64, 84), (512, 220), (1000, 400), (192, 336), (720720, 89600)],
)
def test_the_number_of_grids_is_that_of_dealing_the_primes(gpus, count):
    x, y, z, data = factorizations(gpus)
    assert len(x) == count
    assert set((x * y * z * data).tolist()) == {gpus}


def test_a_large_prime_has_four_grids():
    assert [axis.tolist() for axis in factorizations(1_000_003)] == [
        [1, 1, 1, 1_000_003],
        [1, 1, 1_000_003, 1],
        [1, 1_000_003, 1, 1],
        [1_000_003, 1, 1, 1],
    ]


@pytest.mark.parametrize("gpus", [0, -8])
def test_no_gpus_are_refused_with_the_number(gpus):
    with pytest.raises(UsageError, match=f"the number of GPUs is {gpus}"):
        factorizations(gpus)


def test_divisors_are_all_and_ascending():
    assert all(divisors(n) == [d for d in range(1, n + 1) if n % d == 0] for n in range(1, 400))


def test_axes_of_one_rank_stand_anywhere_so_equal_orders_count_once():
    grids = placed(8, NAMED_PLACEMENTS["any"])
    rows = {}
    for row in range(len(grids.x)):
        layout = grids.take(row)
        split = tuple(axis for axis in PLACEMENTS[layout.placement] if layout.size(axis) > 1)
        rows.setdefault(layout.text(), []).append(split)
    assert all(len(orders) == len(set(orders)) for orders in rows.values())
    assert [len(rows[text]) for text in ("8x1x1x1", "2x4x1x1", "2x2x2x1")] == [1, 2, 6]


def test_the_first_of_equal_orders_is_kept_so_the_library_s_own_goes_first():
    grids = placed(4, NAMED_PLACEMENTS["any"])
    single = (grids.x == 4) | (grids.y == 4) | (grids.z == 4) | (grids.data == 4)
    assert set(grids.placement[single].tolist()) == {0}


@pytest.mark.parametrize("placement", range(len(PLACEMENTS)))
def test_a_joined_group_of_which_one_axis_is_not_split_is_the_other_s_own(placement):
    assert (
        PLACEMENTS[placement] != ("y", "z", "x", "data")
        or Layout(x=1, y=4, z=8, data=1, placement=placement).inner("xy") == 1
    )
    for axis, layout in (
        ("y", Layout(x=1, y=4, z=8, data=2, placement=placement)),
        ("x", Layout(x=4, y=1, z=8, data=2, placement=placement)),
    ):
        assert layout.inner("xy") == layout.inner(axis)
        strides = np.diff(groups(layout, "xy"), axis=1)
        assert set(strides.ravel().tolist()) == {layout.inner("xy")}
    many = Layout.of(np.array([[1, 4, 2], [4, 1, 2], [8, 8, 2], [2, 2, 2]]), placement=placement)
    assert many.inner("xy").tolist() == [many.take(row).inner("xy") for row in range(3)]
