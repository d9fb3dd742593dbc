"""How many devices a machine gives a job: whole nodes, and no more than there are."""

from dataclasses import replace

import pytest

from machines import figure, machine
from perfmodel.errors import PerfmodelError
from perfmodel.machines.allocation import count_problem, device_total, whole_nodes


def sized(devices=4, nodes=10, kind="slurm"):
    where = machine(devices)
    network = replace(where.network, nodes=figure(nodes) if nodes else None)
    return replace(where, network=network, scheduler=replace(where.scheduler, kind=kind))


def test_a_machine_has_its_nodes_times_their_devices():
    assert device_total(sized(4, 10)) == 40
    assert device_total(sized(4, None)) is None


@pytest.mark.parametrize(
    ("gpus", "problem"), [(1, ""), (3, ""), (4, ""), (6, "whole nodes of 4"), (44, "has 40 devices")]
)
def test_a_job_gets_part_of_a_node_or_whole_ones(gpus, problem):
    found = count_problem(sized(), gpus)
    assert problem in found
    assert bool(found) == bool(problem)


@pytest.mark.parametrize(("gpus", "nodes"), [(4, 1), (8, 2), (40, 10)])
def test_devices_are_counted_in_nodes(gpus, nodes):
    assert whole_nodes(sized(), gpus) == nodes


@pytest.mark.parametrize(("gpus", "instead"), [(6, "wanted 4 or 8"), (3, "wanted 4;"), (44, "asked for 44")])
def test_what_a_scheduler_does_not_give_is_refused_with_what_it_would(gpus, instead):
    with pytest.raises(PerfmodelError, match=instead):
        whole_nodes(sized(), gpus)


def test_without_a_scheduler_a_node_may_stay_idle_in_part():
    assert whole_nodes(sized(kind="none"), 6) == 2
