"""What a machine charges: read from its profile by fidelity, and scaled as a whole."""

import pytest

from machines import machine
from perfmodel.costs.collective import Link, ProtocolLink
from perfmodel.costs.costs import Costs, Factors


def costs(where=None, fidelity="full"):
    return Costs.of(where or machine(), fidelity=fidelity, host_time=42e-6, contention=0.115, attention=("flash_2",))


@pytest.mark.parametrize(("fidelity", "link"), [("paper", Link), ("flat", Link), ("full", ProtocolLink)])
def test_only_full_fidelity_has_protocols(fidelity, link):
    found = costs(fidelity=fidelity)
    groups = found.link.of(found, axis="z", size=4, inner=1, gpus=8)
    assert type(groups) is link
    assert found.bandwidths.literal == (fidelity == "paper")


def test_factors_of_one_change_nothing():
    plain = costs()
    same = plain.scaled(Factors.all(1.0))
    assert (same.rate, same.chip, same.constants) == (plain.rate, plain.chip, plain.constants)


def test_every_rate_and_latency_follows_its_factor():
    plain, twice = costs(), costs().scaled(Factors.all(2.0))
    assert twice.rate.value == 2 * plain.rate.value
    assert twice.chip.memory == 2 * plain.chip.memory
    assert twice.host_time == 2 * plain.host_time
    assert twice.constants.network == 2 * plain.constants.network
    assert twice.bandwidths.between == 2 * plain.bandwidths.between
