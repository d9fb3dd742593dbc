"""The network between nodes, from groups that span several."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perfmodel.launch.measuring.fits import Fit, of_shape
from perfmodel.launch.measuring.medians import figure
from perfmodel.machines.domains import contained
from perfmodel.units import parse

_LEAST_HOP = parse("10 ns", "s")


@dataclass(frozen=True, slots=True)
class Between:
    """The network block of the profile, and the network's part of the bandwidth database."""

    block: dict[str, Any] = field(default_factory=lambda: {"topology": "none"})
    database: dict[str, Any] = field(default_factory=dict)


def network(
    found: Sequence[Fit], start: Mapping[str, Any], fabric: dict[str, Any], measured: str, instead: str
) -> Between:
    """The bandwidth of a node when one group uses all its cards; `fabric` notes if a card is faster than its links."""
    node, ranks = start["devices_per_node"], start["ranks"]
    rates = [of_shape(found, 1, size) for size in {one.size for one in found if one.inner == 1 and one.size > node}]
    known = [rate for rate in rates if rate is not None]
    if ranks == node or not known:
        return Between()
    between = statistics.median(known)
    cards = start["nic_bandwidths"]
    injection = max(sum(cards), between)
    key = measured if not cards else "SYSTEM"
    block = {
        "topology": "fat-tree",
        "description": "the kind of network is not known; rates are what collectives reach",
        "nics": figure(len(cards) or 1, "1", key if cards else instead),
        "nic_bandwidth": figure(injection / (len(cards) or 1), "B/s", key),
        "injection": figure(injection, "B/s", key),
        "efficiency": figure(min(1.0, between / injection), "1", measured),
        "latency": figure(_hop(found, node), "s", measured),
        "nodes": figure(ranks // node, "1", measured),
    }
    links = fabric.get("device_bandwidth")
    if links and parse(block["injection"].partition(" [")[0], "B/s") / node > parse(links.partition(" [")[0], "B/s"):
        fabric["slower_than_network"] = "so it was measured, with the line rate of the network's cards beside it"
    return Between(block, {"between": figure(min(between, injection), "B/s", measured)})


def _hop(found: Sequence[Fit], node: int) -> float:
    """Seconds of one hop between nodes, from all-gathers with one rank per node, or the start-up over the nodes."""
    hops = [
        one.alpha / max(1, one.size // max(1, node // one.inner))
        for one in found
        if one.operation == "all-gather" and not contained(inner=one.inner, size=one.size, domain=node)
    ]
    return max(statistics.median(hops), _LEAST_HOP) if hops else _LEAST_HOP
