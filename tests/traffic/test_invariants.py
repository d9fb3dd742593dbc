"""What must hold of what is sent, for any grid, model and machine, whatever the numbers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from any_job import JOBS, jobs, one_layout, terms
from machines import four_layers, job, linears, machine, with_bandwidths
from perfmodel.costs import ring
from perfmodel.costs.bandwidth import Bandwidths
from perfmodel.costs.straddling import fewest_members
from perfmodel.machines import profiles
from perfmodel.parallel.layout import Layout
from perfmodel.traffic.per_step import communication_time, traffic


@given(JOBS, st.integers(1, 5))
def test_one_rank_communicates_nothing(question, micro_batch):
    assert communication_time(question, Layout(x=1, y=1, z=1, data=1, micro_batch=micro_batch)).total == 0


@given(JOBS, one_layout())
def test_only_split_axes_communicate(question, layout):
    sizes = {"x": layout.x, "y": layout.y, "z": layout.z, "data": layout.data, "xy": layout.x * layout.y}
    for collective in traffic(question, layout):
        assert (collective.total > 0) == (collective.link.size > 1)
        assert sizes[collective.link.axis] == collective.link.size


@given(JOBS, one_layout())
def test_terms_add_up_to_the_total_and_to_the_sum_of_the_collectives(question, layout):
    found = communication_time(question, layout)
    assert sum(terms(found).values()) == pytest.approx(found.total)
    assert sum(collective.total for collective in traffic(question, layout)) == pytest.approx(found.total)


@given(size=st.integers(1, 4096), buffer=st.floats(0, 1e15), bandwidth=st.floats(1, 1e13))
def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(size, buffer, bandwidth):
    group = {"size": size, "bandwidth": bandwidth}
    halves = ring.reduce_scatter(buffer, **group) + ring.all_gather(buffer, **group)
    assert ring.all_reduce(buffer, **group) == pytest.approx(halves, rel=1e-12)


@given(jobs("flat", "paper"), one_layout(), st.floats(1e-3, 1e3))
def test_below_full_fidelity_scaling_bytes_and_bandwidths_together_changes_nothing(question, layout, factor):
    settings, bandwidths = question.settings, question.costs.bandwidths
    sizes = {name: factor * getattr(settings, name) for name in ("activation_bytes", "weight_bytes", "gradient_bytes")}
    settings = replace(settings, **sizes, data_gradient_bytes=factor * settings.sent_gradient_bytes)
    rates = {name: factor * getattr(bandwidths, name) for name in ("inside", "between", "links")}
    scaled = with_bandwidths(replace(question, settings=settings), **rates)
    before, after = communication_time(question, layout), communication_time(scaled, layout)
    for name in ("weight_gather", "gradient_scatter", "forward_reduce", "backward_reduce", "data_reduce"):
        assert getattr(after, name) == pytest.approx(getattr(before, name))


@given(JOBS, one_layout(), st.sampled_from(["inside", "between"]), st.floats(1, 100))
def test_more_bandwidth_is_never_slower(question, layout, name, factor):
    faster = with_bandwidths(question, **{name: factor * getattr(question.costs.bandwidths, name)})
    before, after = communication_time(question, layout), communication_time(faster, layout)
    assert all(after_ <= before_ for before_, after_ in zip(terms(before).values(), terms(after).values(), strict=True))


def device_links(where):
    return where.fabric.device_bandwidth.value if where.fabric.device_bandwidth else float("inf")


@given(JOBS, one_layout())
def test_no_collective_beats_the_links_of_a_device_or_the_way_out_of_a_node(question, layout):
    bandwidths, domain = question.costs.bandwidths, question.machine.domain
    for collective in traffic(question, layout):
        link = collective.link
        if link.size == 1:
            continue
        share = (link.size - 1) / link.size * (2 if collective.operation == "all-reduce" else 1)
        achieved = share * collective.buffer / collective.time
        assert achieved <= device_links(question.machine) * (1 + 1e-12)
        if link.inner * link.size > max(domain, 1) and layout.gpus > domain:
            assert achieved <= bandwidths.between * (1 + 1e-12)
            assert achieved * min(domain, link.inner) <= bandwidths.between * (1 + 1e-12)


@pytest.mark.parametrize("name", profiles.names())
def test_no_shipped_machine_has_a_group_that_beats_its_own_links(name):
    where = profiles.load(name)
    bandwidths, domain = Bandwidths.of(where), where.domain
    for inner in (1, 2, 3, 4, 8, 64):
        for size in (2, 3, 4, 8, 16, 72):
            gpus = inner * size * 4
            if where.network.topology == "none" and gpus > domain:
                continue
            found = bandwidths.of_group(inner=inner, size=size, gpus=gpus)
            assert 0 < found <= device_links(where)
            if not bandwidths.contained(inner=inner, size=size, gpus=gpus):
                members = int(fewest_members(inner=inner, size=size, domain=domain, gpus=gpus))
                if members > 1:
                    assert found <= bandwidths.of_group(inner=inner, size=members, gpus=inner * members)
                assert found <= where.network.injection.value * domain / where.node_devices / min(domain, inner)


def test_a_machine_with_one_device_a_node_talks_only_between_nodes():
    question = job(linears(*four_layers(256)), machine(1, between=50e9))
    for collective in traffic(question, Layout(x=2, y=2, z=2, data=2)):
        assert collective.link.bandwidth == 50e9
