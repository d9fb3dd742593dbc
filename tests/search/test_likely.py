"""The likely range of a step from published evidence."""

import math

import pytest

from perfmodel.search.likely import Evidence, chip, evidence, likely, within


def sets(*means, framework="f", device="d", spread=0.05):
    return [
        Evidence(set=str(n), framework=framework, device=device, rows=10, mean=mean, spread=spread)
        for n, mean in enumerate(means)
    ]


def test_shipped_evidence_is_there_for_the_usual_devices():
    devices = {one.device for one in evidence()}
    assert {"A100", "H100", "B200"} <= devices
    assert all(one.rows > 0 and one.spread >= 0 for one in evidence())


def test_the_range_holds_the_sets_that_it_is_made_from():
    found = likely("f", "d", sets(0.0, 0.1, 0.2))
    for mean in (0.0, 0.1, 0.2):
        assert found.low < math.exp(mean) < found.high


def test_more_scatter_between_sets_makes_it_wider():
    narrow, wide = (likely("f", "d", sets(*means)) for means in ((0.1, 0.1, 0.1), (0.0, 0.1, 0.4)))
    assert wide.high / wide.low > narrow.high / narrow.low


def test_the_nearest_evidence_counts():
    both = [*sets(0.5, framework="f", device="d"), *sets(0.0, 0.0, framework="g", device="e")]
    assert likely("f", "d", both).of == "f on d"
    assert likely("h", "e", both).of == "e"
    assert likely("f", "x", both).of == "f"
    assert likely("h", "x", both).of == "all devices"
    assert likely("f", "d", both).centre > likely("g", "e", both).centre


def test_a_measurement_of_ones_own_narrows_the_range():
    found = likely("f", "d", sets(0.0, 0.1, 0.4))
    own, several = (found.measured(within(sets(0.0, 0.1, 0.4)), rows) for rows in (1, 10))
    assert several.high / several.low < own.high / own.low
    assert own.low < 1 < own.high
    assert own.high / own.low < found.high / found.low


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NVIDIA H100-SXM5-80GB", "H100"),
        ("NVIDIA H100-SXM5-96GB (HBM2e, 500 W)", "H100"),
        ("CPU process", "CPU process"),
    ],
)
def test_a_device_is_known_by_its_chip(name, kind):
    assert chip(name) == kind
