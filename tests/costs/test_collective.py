"""One collective of a step: what a call takes, and how calls add up to a step."""

from dataclasses import replace

import pytest

from perfmodel.costs import ring
from perfmodel.costs.collective import Collective, Link

LINK = Link(axis="z", size=8.0, inner=1, bandwidth=25e9, crosses=False)


def collective(operation="all-gather", *, link=LINK, **others):
    given = {"layer": "a layer", "role": "gather", "term": "weight_gather", "buffer": 1e9, "calls": 3, **others}
    return Collective(operation=operation, link=link, **given)


@pytest.mark.parametrize(
    ("operation", "seconds"),
    [("all-gather", 7 / 8 / 25), ("reduce-scatter", 7 / 8 / 25), ("all-reduce", 2 * 7 / 8 / 25)],
)
def test_without_a_path_a_call_takes_what_a_ring_of_bandwidth_alone_takes(operation, seconds):
    one = collective(operation)
    assert one.time == pytest.approx(seconds, rel=1e-12)
    assert one.time == ring.TIMES[operation](1e9, size=8.0, bandwidth=25e9)


def test_a_step_has_as_many_calls_as_it_says():
    one = collective(calls=12)
    assert one.total == 12 * one.time
    assert (one.sent, one.together) == (12, 1e9)


def test_a_group_of_one_sends_nothing():
    alone = replace(LINK, size=1.0, known={})
    assert [collective(one, link=alone).total for one in ("all-gather", "reduce-scatter", "all-reduce")] == [0, 0, 0]


def test_buffers_of_one_bucket_share_its_call():
    parts = [collective(buffer=size, calls=1, bucket=4e9) for size in (1e9, 3e9)]
    whole = collective(buffer=4e9, calls=1)
    assert [part.together for part in parts] == [4e9, 4e9]
    assert sum(part.sent for part in parts) == 1
    assert sum(part.total for part in parts) == pytest.approx(whole.total, rel=1e-12)


def test_a_link_times_equal_buffers_once():
    counted = []

    class Counting(Link):
        def _seconds(self, operation, buffer):
            counted.append(operation)
            return super()._seconds(operation, buffer)

    link, buffer = Counting(axis="z", size=8.0, inner=1, bandwidth=25e9, crosses=False), 1e9
    times = [collective(link=link, buffer=buffer).time for _ in range(3)]
    assert len(set(times)) == 1
    assert counted == ["all-gather"]
