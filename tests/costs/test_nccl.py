"""Collectives by algorithm and protocol: worked values, orders that must hold, arrays as single calls."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines import EVERY_SHAPE, figure, machine
from perfmodel.costs import nccl
from perfmodel.costs.bandwidth import Bandwidths
from perfmodel.costs.nccl import Constants, Route, all_gather, all_reduce, choice, reduce_scatter, route
from perfmodel.machines import profiles

OPERATIONS = (all_gather, reduce_scatter, all_reduce)
AT = Constants(
    domain=4,
    fabric=1e-6,
    network=6e-6,
    bulk=31e-6,
    ring=31e-6,
    far=6e-6,
    eager=float("inf"),
    near=512,
    startup=17e-6,
    channels=94e9,
    switched=0.0,
    tapered=float("inf"),
)
SWITCHED = replace(AT, domain=8, switched=480e9)
SIZES = st.floats(1, 1e11)


def spread(at=AT, *, size=64, inner=1, bandwidth=70e9):
    return route(at, inner=inner, size=size, inside=False, bandwidth=bandwidth)


def within(at=AT, *, size=4, inner=1, bandwidth=225e9):
    return route(at, inner=inner, size=size, inside=True, bandwidth=bandwidth)


def route_of(where, *, inner, size, gpus):
    bandwidths = Bandwidths.of(where)
    shape = {"inner": inner, "size": size, "gpus": gpus}
    inside, bandwidth = bandwidths.contained(**shape), bandwidths.of_group(**shape)
    return route(Constants.of(where), inner=inner, size=size, inside=inside, bandwidth=bandwidth)


@st.composite
def groups(draw):
    where = draw(
        st.sampled_from([*EVERY_SHAPE, *(profiles.load(name) for name in ("frontier", "polaris", "dgx-h200"))])
    )
    inner, size, outer = (draw(st.integers(1, 40)) for _ in range(3))
    return where, {"inner": inner, "size": size, "gpus": inner * size * outer}


@given(groups(), SIZES)
def test_one_rank_communicates_nothing(group, size):
    where, shape = group
    along = route_of(where, **shape | {"size": 1})
    assert [float(call(size, along)) for call in OPERATIONS] == [0, 0, 0]


@given(groups(), SIZES, st.floats(1, 100))
def test_more_bytes_are_never_faster(group, size, factor):
    where, shape = group
    along = route_of(where, **shape)
    for call in OPERATIONS:
        assert call(size * factor, along) >= call(size, along)


@given(groups(), SIZES, st.floats(1, 10))
def test_more_bandwidth_is_never_slower(group, size, factor):
    where, shape = group
    bandwidths = Bandwidths.of(where)
    inside, rate = bandwidths.contained(**shape), bandwidths.of_group(**shape)
    at, shape = Constants.of(where), {name: shape[name] for name in ("inner", "size")}
    slow, fast = (route(at, **shape, inside=inside, bandwidth=rate * more) for more in (1, factor))
    for call in OPERATIONS:
        assert call(size, fast) <= call(size, slow)


@given(
    st.sampled_from(["fabric", "network", "bulk", "ring", "far", "startup"]),
    st.floats(0, 1),
    st.integers(1, 700),
    st.sampled_from([1, 2, 4, 600]),
    st.booleans(),
    SIZES,
)
def test_lower_latency_is_never_slower(name, factor, size, inner, inside, sent):
    was = replace(AT, far=20e-6)
    now = replace(was, **{name: getattr(was, name) * factor})
    before, after = (route(at, inner=inner, size=size, inside=inside, bandwidth=70e9) for at in (was, now))
    for call in OPERATIONS:
        assert call(sent, after) <= call(sent, before)


@given(groups(), SIZES)
def test_a_ring_never_beats_its_bandwidth_nor_an_all_reduce_what_a_byte_must_cross(group, size):
    where, shape = group
    shape["size"] += 1
    along = route_of(where, **shape | {"gpus": shape["inner"] * shape["size"]})
    share = (shape["size"] - 1) / shape["size"] * size
    assert all_gather(size, along) * along.bandwidth >= share * (1 - 1e-12)
    at = Constants.of(where)
    floor = share / max(float(along.bandwidth), at.switched)
    assert all_reduce(size, along) >= floor * (1 - 1e-12)


@given(st.lists(groups(), min_size=1, max_size=8), SIZES)
def test_a_row_of_a_batch_equals_the_single_call(found, size):
    where = found[0][0]
    shapes = [shape for _, shape in found]
    many = route_of(where, **{name: np.array([shape[name] for shape in shapes]) for name in ("inner", "size", "gpus")})
    sizes = size * np.arange(1, len(shapes) + 1)
    for call in OPERATIONS:
        rows = np.broadcast_to(call(sizes, many), len(shapes))
        for row, shape in enumerate(shapes):
            assert rows[row] == call(float(sizes[row]), route_of(where, **shape))


def test_large_messages_take_bytes_over_bandwidth():
    big = 1e13
    assert all_gather(big, spread()) == pytest.approx(63 / 64 * big / 70e9, rel=1e-3)
    assert all_gather(big, within()) == pytest.approx(3 / 4 * big / 225e9, rel=1e-3)
    assert all_reduce(big, spread()) == pytest.approx(2 * 63 / 64 * big / 70e9, rel=1e-3)


def test_small_messages_take_start_and_hops():
    assert all_gather(1, spread()) == pytest.approx(8.4e-6 + 17e-6 + 16 * 6e-6 + 48 * 1e-6, rel=1e-4)
    assert all_gather(1, within()) == pytest.approx(8.4e-6 + 3e-6, rel=1e-4)
    assert all_reduce(1, within()) == pytest.approx(8.4e-6 + 6e-6, rel=1e-4)
    assert all_reduce(1, spread()) == pytest.approx(8.4e-6 + 17e-6 + 8 * 6e-6 + 6 * 1e-6, rel=1e-4)


def test_bulk_overlaps_between_nodes_and_adds_inside():
    hops, post = 16 * 31e-6, 48 * 31e-6 * 6 / 14
    volume = 63 / 64 * 64e6
    assert all_gather(64e6, spread()) == pytest.approx(25.4e-6 + np.hypot(hops + post, volume / 70e9))
    assert all_gather(64e6, within()) == pytest.approx(8.4e-6 + 3e-6 * 3.4 / 0.6 + 0.75 * 64e6 / 225e9)


@pytest.mark.parametrize(
    ("operation", "size", "along", "expected"),
    [
        ("all-gather", 1e4, spread(), "ring, LL"),
        ("all-gather", 1e8, spread(), "ring, Simple"),
        ("all-reduce", 1e4, spread(), "tree, LL"),
        ("all-reduce", 1e6, spread(), "tree, Simple"),
        ("all-reduce", 1e10, spread(), "ring, Simple"),
        ("all-reduce", 1e4, within(), "ring, LL"),
        ("all-reduce", 1e9, within(SWITCHED, size=8), "switch, NVLS"),
        ("all-reduce", 1e9, within(size=1), "nothing to send"),
    ],
)
def test_the_library_picks_by_size_and_group(operation, size, along, expected):
    assert choice(operation, size, along) == expected


def test_a_switch_adds_for_more_than_four_neighbours():
    slow = 900e9
    for size, inner, used in ((8, 1, True), (5, 1, True), (4, 1, False), (4, 2, False)):
        along = within(SWITCHED, size=size, inner=inner, bandwidth=slow / 3)
        assert (choice("all-reduce", 1e9, along) == "switch, NVLS") is used, (size, inner)
    assert choice("all-gather", 1e9, within(SWITCHED, size=8)) == "ring, Simple"
    assert all_reduce(1e12, within(SWITCHED, size=8)) == pytest.approx(2 * 7 / 8 * 1e12 / 480e9, rel=1e-3)


def test_two_domains_exchange_a_byte_once_as_far_as_channels_go():
    wide = replace(AT, channels=1e15)
    assert all_reduce(1e12, spread(wide, size=8)) == pytest.approx(1e12 / 70e9 / 0.92, rel=1e-3)
    assert all_reduce(1e12, spread(replace(AT, channels=1e9), size=8)) == pytest.approx(
        2 * 7 / 8 * 1e12 / 70e9, rel=1e-3
    )


def test_one_rank_a_node_uses_its_nic_less_well():
    assert spread(inner=4, size=16).bandwidth == pytest.approx(70e9 * 0.7 / 0.92)
    assert spread(inner=2, size=16).bandwidth == 70e9


def test_hops_are_counted_by_what_the_ring_crosses():
    for inner, size, nodes, ranks in ((1, 64, 16, 4), (2, 64, 32, 2), (4, 64, 64, 1), (8, 64, 64, 1), (1, 6, 2, 4)):
        along = spread(inner=inner, size=size)
        assert (along.nodes, along.ranks) == (nodes, ranks)
        assert along.ll == pytest.approx(nodes * 6e-6 + (size - nodes) * 1e-6)


def test_a_group_that_straddles_a_border_crosses_it():
    along = route(replace(AT, domain=6), inner=1, size=4, inside=False, bandwidth=70e9)
    assert along.nodes == 2
    assert along.ll == pytest.approx(2 * 6e-6 + 2 * 1e-6)


def test_far_groups_have_longer_hops_and_no_flags_in_large_messages():
    far = replace(AT, far=27e-6, eager=16384)
    assert spread(far, size=512).ll == pytest.approx(128 * 6e-6 + 384e-6)
    assert spread(far, size=1024).ll == pytest.approx(256 * 27e-6 + 768e-6)
    assert spread(far, size=64, inner=16).ll == pytest.approx(64 * 27e-6)
    along = spread(far, size=1024)
    assert choice("all-gather", 1024 * 16000, along) == "ring, LL"
    assert choice("all-gather", 1024 * 16384, along) == "ring, Simple"


def test_the_hops_of_far_trees_are_as_long_as_those_of_rings():
    slow = replace(AT, bulk=26e-6, ring=95e-6)
    near, far = (spread(slow, size=nodes * 4).tree for nodes in (128, 256))
    chain = spread(slow, size=8).tree - 2 * 26e-6
    assert near - chain == pytest.approx(14 * 26e-6)
    assert far - chain == pytest.approx(16 * 95e-6)


def test_a_tapered_network_is_shared_by_the_hops_that_leave_a_group():
    at = replace(AT, tapered=50e9)
    assert spread(at, size=512).bandwidth == 70e9  # does not leave
    assert spread(at, size=1024, inner=1).bandwidth == 70e9  # one hop in 512 leaves
    assert spread(at, size=64, inner=256, bandwidth=70e9 / 4).bandwidth == pytest.approx(70e9 / 4 * 0.7 / 0.92)
    assert spread(at, size=64, inner=512, bandwidth=70e9 / 4).bandwidth == pytest.approx(50e9 / 4 * 0.7 / 0.92)


def test_constants_follow_from_the_profile():
    at = Constants.of(machine(4, domain=72))
    assert (at.domain, at.fabric, at.network, at.near, at.tapered) == (72, 1e-6, 5e-6, np.inf, np.inf)
    assert (at.bulk, at.ring, at.far) == (pytest.approx(5e-6 * 14 / 2.7), at.bulk, 5e-6)
    assert at.channels == pytest.approx(4 * 18 * 23.6e9)
    where = machine(4)
    network = replace(
        where.network,
        bulk_latency=figure(40e-6), ring_latency=figure(50e-6), far_latency=figure(9e-6), startup=figure(1e-6),
        nodes=figure(100), group_nodes=figure(10), taper=figure(2),
    )  # fmt: skip
    where = replace(where, network=network, fabric=replace(where.fabric, reduction_bandwidth=figure(400e9)))
    at = Constants.of(where)
    assert (at.bulk, at.ring, at.far, at.near, at.startup) == (40e-6, 50e-6, 9e-6, 40, 1e-6)
    assert (at.tapered, at.switched) == (200e9, 400e9)


def test_every_field_of_a_path_is_a_number_for_every_machine():
    for where in profiles.names():
        machine_ = profiles.load(where)
        along = route_of(machine_, inner=1, size=machine_.domain * 2, gpus=machine_.domain * 2)
        assert (
            not any(np.isnan(getattr(along, field.name)) for field in fields(Route))
            or machine_.network.topology == "none"
        )


def test_the_formula_is_cheap_enough_for_the_search():
    # Counted, not timed: operations on arrays a call, of which a search does about thirty for every block of grids.
    class Counting(np.ndarray):
        calls = 0

        def __array_ufunc__(self, function, method, *inputs, **options):
            Counting.calls += 1
            plain = [np.asarray(one) if isinstance(one, Counting) else one for one in inputs]
            return np.asarray(getattr(function, method)(*plain, **options)).view(Counting)

    along = route_of(machine(4), inner=np.array([1, 4]), size=np.array([8, 8]), gpus=np.array([64, 64]))
    counted = nccl.Route(
        **{field.name: np.asarray(getattr(along, field.name)).view(Counting) for field in fields(Route)}
    )
    all_reduce(np.array([1e6, 1e7]).view(Counting), counted)
    assert Counting.calls <= 40
