"""What a machine does not let a job have is refused with the limit and who says so."""

import re

import pytest

from job_requests import MACHINES, load
from perfmodel.errors import PerfmodelError, UsageError
from perfmodel.jobscripts import limits
from perfmodel.machines import allocation


def way(machine, nodes, time, wanted=""):
    found = limits.way_in(load(machine), nodes, limits.seconds(time), wanted)
    return found and (found.kind, found.name, found.max_time)


@pytest.mark.parametrize(
    ("machine", "gpus", "refusal"),
    [
        (
            "perlmutter",
            255,
            "255 devices are not whole nodes of 4 on perlmutter, which is what a job is given; wanted 252 or 256;",
        ),
        ("frontier", 4, "4 devices are not whole nodes of 8 on frontier, which is what a job is given; wanted 8;"),
        ("perlmutter", 6148, "perlmutter has 6144 devices (1536 nodes of 4), asked for 6148;"),
        ("vista", 601, "vista has 600 devices (600 nodes of 1), asked for 601;"),
    ],
)
def test_what_are_not_whole_nodes_of_the_machine_is_refused_with_the_source(machine, gpus, refusal):
    with pytest.raises(PerfmodelError, match=f"^{re.escape(refusal)} (vendor|assumed) " + r"\[[A-Z-]+\] \S"):
        allocation.whole_nodes(load(machine), gpus)


@pytest.mark.parametrize("machine", MACHINES)
def test_whole_nodes_up_to_all_of_them_are_taken(machine):
    found = load(machine)
    total = int(found.network.nodes.value) if found.network.nodes else 1
    assert allocation.whole_nodes(found, total * found.node_devices) == total


def test_a_machine_without_a_scheduler_gives_any_part_of_its_node():
    assert allocation.whole_nodes(load("rtx4090-8x"), 3) == 1


@pytest.mark.parametrize(
    ("machine", "nodes", "time", "wanted", "found"),
    [
        ("perlmutter", 64, "00:30:00", "", ("qos", "regular", "48:00:00")),
        ("perlmutter", 8, "00:30:00", "debug", ("qos", "debug", "00:30:00")),
        ("frontier", 91, "02:00:00", "", ("bin", "batch", "02:00:00")),
        ("frontier", 92, "06:00:00", "", ("bin", "batch", "06:00:00")),
        ("frontier", 64, "24:00:00", "", ("partition", "extended", "24:00:00")),
        ("polaris", 2, "01:00:00", "", ("queue", "debug", "01:00:00")),
        ("polaris", 24, "03:00:00", "", ("queue", "prod", "03:00:00")),
        ("polaris", 100, "1-00:00:00", "prod", ("queue", "prod", "24:00:00")),
        ("summit", 46, "06:00:00", "", ("bin", "batch", "06:00:00")),
        ("aws-p5", 1000, "900:00:00", "", None),
    ],
)
def test_the_first_way_in_that_admits_the_job_is_taken(machine, nodes, time, wanted, found):
    assert way(machine, nodes, time, wanted) == found


@pytest.mark.parametrize(
    ("machine", "nodes", "time", "wanted", "refusal"),
    [
        ("perlmutter", 9, "00:30:00", "debug", "debug: at most 8 nodes, asked for 9; vendor [NERSC-Q] "),
        ("perlmutter", 8, "00:30:01", "debug", "debug: at most 00:30:00, asked for 00:30:01; vendor [NERSC-Q] "),
        ("perlmutter", 64, "48:00:01", "", "regular: at most 48:00:00, asked for 48:00:01; vendor [NERSC-Q] "),
        ("frontier", 92, "06:00:01", "", "batch: at most 06:00:00, asked for 06:00:01; vendor [OLCF-F] "),
        ("frontier", 65, "24:00:00", "extended", "extended: at most 64 nodes, asked for 65; vendor [OLCF-F] "),
        ("aurora", 255, "02:00:00", "prod", "prod: at least 256 nodes, asked for 255; "),
        ("vista", 65, "01:00:00", "", "gh: at most 64 nodes, asked for 65; "),
    ],
)
def test_more_than_a_way_in_admits_is_refused_with_the_limit_and_its_source(machine, nodes, time, wanted, refusal):
    with pytest.raises(PerfmodelError, match=re.escape(refusal) + r"\S"):
        way(machine, nodes, time, wanted)


def test_where_time_alone_is_against_a_job_the_ways_that_are_too_small_are_not_told():
    with pytest.raises(PerfmodelError) as told:
        way("frontier", 92, "06:00:01")
    assert "at most 91 nodes" not in str(told.value)


def test_queues_for_tests_and_for_jobs_that_may_be_ended_are_taken_by_name_only():
    with pytest.raises(PerfmodelError, match=r"booster: at most 24:00:00, asked for 25:00:00"):
        way("juwels-booster", 4, "25:00:00")
    assert way("juwels-booster", 4, "00:30:00", "develbooster") == ("partition", "develbooster", "")
    with pytest.raises(PerfmodelError, match=r"polaris admits no job of 8 nodes for 04:00:00"):
        way("polaris", 8, "04:00:00")
    assert way("polaris", 8, "04:00:00", "preemptable") == ("queue", "preemptable", "72:00:00")


def test_work_is_limited_where_the_centre_limits_it():
    assert way("alps", 1, "01:30:00", "debug") == ("partition", "debug", "01:30:00")
    with pytest.raises(PerfmodelError, match=r"debug: at most 90 node-minutes, asked for 360; vendor \[CSCS-CLA\]"):
        way("alps", 4, "01:30:00", "debug")


def test_a_limit_that_several_bins_have_is_told_once():
    with pytest.raises(PerfmodelError) as refused:
        way("frontier", 9600, "02:00:00")
    told = str(refused.value).partition(": ")[2].split(" / ")
    assert len(told) == len(set(told)) > 1


def test_a_way_in_that_does_not_exist_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match=r"no QOS, partition or queue 'regulr' \(did you mean regular"):
        way("perlmutter", 1, "00:30:00", "regulr")


@pytest.mark.parametrize("text", ["", "30", "30:00", "00:00:00", "1:60:00", "-1:00:00", "00:30:00 ", "٣0:00:00", "1d"])
def test_a_time_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match=re.escape("wanted [days-]hours:minutes:seconds")):
        limits.seconds(text)


@pytest.mark.parametrize(("text", "seconds"), [("00:30:00", 1800), ("48:00:00", 172800), ("2-00:00:00", 172800)])
def test_a_time_is_read_and_written(text, seconds):
    assert limits.seconds(text) == limits.seconds(limits.clock(seconds)) == seconds
