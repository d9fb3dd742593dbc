"""Which bandwidth a group gets: database, rule inside a domain, share between domains."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines import EVERY_SHAPE, figure, machine, script_machine
from perfmodel.costs.bandwidth import Bandwidths, derived_between, derived_inside, shared_between
from perfmodel.costs.straddling import fewest_members, sharing
from perfmodel.machines import profiles
from perfmodel.machines.machine import Fabric
from perfmodel.units import GIBI

# Axonn-ai/Megatron-AxoNN 885d2e7, examples/comm_model.py: [inner product][own size] of the two tables, in GiB/s.
SCRIPT = {
    "perlmutter": {
        1: {2: 76, 4: 225, 8: 80, 64: 80},
        2: {2: 76, 4: 40, 8: 40},
        4: {2: 20, 4: 20},
        8: {2: 20},
        64: {8: 20},
    },
    "frontier": {
        1: {2: 129, 4: 52, 8: 135, 16: 40},
        2: {2: 50, 4: 72, 8: 20, 16: 20},
        4: {2: 36, 4: 10, 8: 10},
        8: {2: 5, 64: 5},
        64: {2: 5},
    },
}


@pytest.mark.parametrize("name", SCRIPT)
def test_groups_get_what_the_authors_table_gives_them(name):
    bandwidths = Bandwidths.of(script_machine(name))
    for inner, row in SCRIPT[name].items():
        for size, expected in row.items():
            assert bandwidths.of_group(inner=inner, size=size, gpus=4096) / GIBI == expected, (inner, size)


def test_the_share_is_the_smaller_of_the_node_and_the_groups_inside():
    assert shared_between(100.0, sharing=sharing(inner=np.array([1, 2, 4, 8, 512]), size=8, domain=4)).tolist() == [
        100,
        50,
        25,
        25,
        25,
    ]


def with_fabric(**changes):
    fabric = Fabric(
        topology="mesh",
        pair_bandwidth=figure(100e9),
        device_bandwidth=figure(300e9),
        efficiency=figure(0.8),
        latency=figure(1e-6),
    )
    return replace(machine(4), fabric=replace(fabric, **changes))


@pytest.mark.parametrize(
    ("topology", "rates"),
    [("mesh", [80e9, 160e9, 240e9]), ("switch", [240e9] * 3), ("shared", [240e9] * 3), ("irregular", [80e9] * 3)],
)
def test_what_nobody_measured_is_derived_from_the_links(topology, rates):
    where = with_fabric(topology=topology)
    assert [derived_inside(where, size) for size in (2, 3, 4)] == pytest.approx(rates)


def test_a_mesh_never_beats_all_links_of_a_device():
    where = with_fabric(device_bandwidth=figure(150e9))
    assert derived_inside(where, 4) == pytest.approx(0.8 * 150e9)


def test_measured_entries_replace_derived_ones_only_where_they_are():
    bandwidths = Bandwidths.of(machine(4, inside={(1, 2): 7e9}))
    assert bandwidths.of_group(inner=1, size=2, gpus=8) == 7e9
    assert bandwidths.of_group(inner=2, size=2, gpus=8) == 300e9


def test_between_nodes_is_measured_or_an_efficiency_times_the_injection_of_all_nodes_of_a_domain():
    assert Bandwidths.of(machine(4, between=33e9)).between == 33e9
    assert derived_between(machine(4)) == 0.5 * 400e9
    assert derived_between(machine(4, domain=72)) == 0.5 * 400e9 * 18


def test_a_device_sends_no_faster_than_its_own_links_however_wide_the_rack_s_way_out_is():
    bandwidths = Bandwidths.of(machine(4, domain=72, between=None))
    assert bandwidths.between == 3.6e12
    assert bandwidths.of_group(inner=1, size=144, gpus=144) == 300e9
    assert bandwidths.of_group(inner=72, size=2, gpus=144) == 3.6e12 / 72


@pytest.mark.parametrize("where", EVERY_SHAPE, ids=lambda where: where.name)
def test_a_job_inside_one_domain_never_leaves_it(where):
    bandwidths = Bandwidths.of(where)
    for gpus in range(1, where.domain + 1):
        for size in range(2, gpus + 1):
            if gpus % size == 0:
                assert bandwidths.contained(inner=1, size=size, gpus=gpus)
                assert bandwidths.of_group(inner=1, size=size, gpus=gpus) == 300e9


def test_a_block_that_straddles_a_boundary_leaves_its_node_though_it_is_shorter():
    bandwidths = Bandwidths.of(machine(4, between=12e9))
    assert not bandwidths.contained(inner=1, size=3, gpus=12)
    assert bandwidths.of_group(inner=1, size=3, gpus=12) == 12e9 / 4  # its shortest piece is one rank, with one NIC
    assert bandwidths.contained(inner=1, size=3, gpus=3)


def test_groups_of_one_send_nothing_and_need_no_network():
    bandwidths = Bandwidths.of(machine(1))
    assert bandwidths.origin(inner=1, size=1, gpus=1) == "nothing to send"
    assert bandwidths.of_group(inner=1, size=1, gpus=1) == float("inf")


def test_a_group_uses_the_nics_that_its_members_reach_and_no_more():
    rack = Bandwidths.of(machine(4, domain=72, between=3.6e12))
    assert fewest_members(inner=1, size=64, domain=72) == 8
    assert rack.of_group(inner=1, size=64, gpus=1152) == min(300e9, 3.6e12 * 8 / 72)
    assert rack.of_group(inner=72, size=2, gpus=144) == 3.6e12 / 72


def test_to_the_letter_of_the_paper_members_and_their_nics_do_not_count():
    literal = Bandwidths.of(machine(4, domain=72, between=800e9), literal=True)
    assert literal.of_group(inner=4, size=64, gpus=1152) == 800e9 / 4


def test_on_powers_of_two_only_the_links_of_its_members_limit_a_group_that_leaves_its_domain():
    for name in ("dgx-h100", "frontier", "mi300x-node"):
        bandwidths = Bandwidths.of(profiles.load(name))
        inner, size = (axis.ravel() for axis in np.meshgrid([1, 2, 4, 8], [2, 4, 8, 16, 64]))
        crossing = inner * size > bandwidths.domain
        inner, size = inner[crossing], size[crossing]
        found = bandwidths.of_group(inner=inner, size=size, gpus=np.full_like(size, 4096))
        shared = shared_between(bandwidths.between, sharing=np.minimum(bandwidths.domain, inner))
        members = np.maximum(1, bandwidths.domain // inner)
        links = bandwidths.of_group(inner=inner, size=members, gpus=members * inner)
        assert found.tolist() == np.where(members > 1, np.minimum(shared, links), shared).tolist()
        assert (found < shared).any() == (name == "mi300x-node")


def test_the_origin_says_which_rule_gave_the_number():
    bandwidths = Bandwidths.of(machine(4, inside={(1, 2): 7e9}, between=80e9))
    assert bandwidths.origin(inner=1, size=2, gpus=8) == "database (1, 2), assumed [T]"
    assert bandwidths.origin(inner=1, size=4, gpus=8) == "derived for (1, 4): 1 x link rate (switch), assumed [T]"
    assert bandwidths.origin(inner=1, size=8, gpus=8) == "80 GB/s between nodes, assumed [T]"
    assert bandwidths.origin(inner=4, size=2, gpus=8) == "80 GB/s between nodes, assumed [T], shared by 4 groups"
    derived = Bandwidths.of(machine(4, between=None))
    assert (
        derived.origin(inner=2, size=4, gpus=8)
        == "200 GB/s between domains of 4, 0.5 x injection, assumed [T], shared by 2 groups"
    )


@pytest.mark.parametrize("name", profiles.names())
def test_every_group_on_a_shipped_machine_has_a_bandwidth_and_an_origin(name):
    where = profiles.load(name)
    bandwidths = Bandwidths.of(where)
    for inner, size in ((1, 2), (2, 2), (1, where.domain), (where.domain, 2), (1, 2 * where.domain)):
        gpus = max(inner * size, 2)
        if size == 1 or (gpus > where.domain and where.network.topology == "none"):
            continue
        assert bandwidths.of_group(inner=inner, size=size, gpus=gpus) > 0
        assert bandwidths.origin(inner=inner, size=size, gpus=gpus)


def test_at_paper_fidelity_a_gpu_sends_no_faster_than_its_own_links_on_a_rack():
    literal = Bandwidths.of(profiles.load("gb200-nvl72"), literal=True)
    found = literal.of_group(inner=np.array([1, 2, 72]), size=144, gpus=144 * 72)
    assert found.tolist() == [900e9, 900e9, literal.between / 72]
    assert "limited by the links of a device, 900 GB/s" in literal.origin(inner=1, size=144, gpus=144)


@pytest.mark.parametrize("name", ["perlmutter", "frontier", "alps"])
def test_on_the_paper_s_machines_equation_7_is_exact(name):
    literal = Bandwidths.of(profiles.load(name), literal=True)
    for inner in (1, 2, 4, 8, 64):
        shared = shared_between(literal.between, sharing=min(literal.domain, inner))
        assert literal.of_group(inner=inner, size=128, gpus=128 * inner) == shared


def test_a_rack_and_a_bit_is_held_to_the_one_block_that_really_leaves_it():
    rack = Bandwidths.of(profiles.load("gb200-nvl72"))
    shape = {"inner": 1, "size": 19}
    assert (
        fewest_members(**shape, domain=72, gpus=76) == 4
    )  # blocks of 19: the fourth has 15 ranks in the rack, 4 outside
    assert sharing(**shape, domain=72, gpus=76) == 1
    assert rack.of_group(**shape, gpus=76) == pytest.approx(4 * rack.of_group(**shape, gpus=19 * 72), rel=0.01)


def test_jobs_of_many_racks_are_held_to_every_way_that_a_block_can_lie():
    assert fewest_members(inner=1, size=19, domain=72, gpus=19 * 72) == 1
    assert sharing(inner=1, size=19, domain=72, gpus=19 * 72) == 2


def test_no_layouts_have_no_bandwidths():
    none = np.array([], dtype=int)
    assert Bandwidths.of(machine()).of_group(inner=none, size=none, gpus=none).tolist() == []


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(2, 80), st.integers(1, 40)), min_size=1, max_size=12))
def test_a_row_is_the_single_call_whatever_the_job_sizes_beside_it(rows):
    inner, size, times = (np.array(column) for column in zip(*rows, strict=True))
    gpus = inner * size * times
    for rule in (sharing, fewest_members):
        together = rule(inner=inner, size=size, domain=6, gpus=gpus)
        alone = [rule(inner=i, size=s, domain=6, gpus=i * s * t) for i, s, t in rows]
        assert together.tolist() == [int(one) for one in alone]
