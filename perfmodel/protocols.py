"""Time of one collective at full fidelity: start-up, hops and bytes of the algorithm and protocol that is fastest.

NCCL and RCCL send small messages with flags inside the data (LL: short hops, few bytes a second) and large ones in
bulk (Simple: long hops, the full rate), along rings or, for an all-reduce between nodes, along a double binary tree; a
switch that adds (NVLS) is a third way. The library picks by a model of its own; here the fastest is taken.

A hop between nodes costs the profile's `network.latency`, one inside a node `fabric.latency`, both as an LL ring shows
them. Other protocols cost multiples of these: the ratios of NCCL's own tuning constants (github NVIDIA/nccl,
src/graph/tuning.cc, 2.28), which describe the library, whereas the profile describes the machine.
"""

from dataclasses import dataclass

import numpy as np

from perfmodel.machine import Machine
from perfmodel.units import KIBI, Array, Bytes, BytesPerSecond, Count, Number, Seconds, parse

# NCCL's tuning constants: seconds of a hop of a ring, rates of LL, shares of the rate that a protocol reaches.
_RING_LL, _RING_BULK = parse("2.7 us", "s"), parse("14 us", "s")  # between nodes
_CHAIN_LL, _CHAIN_BULK = parse("0.6 us", "s"), parse("3.4 us", "s")  # over NVLink
_POST_BULK = parse("6 us", "s")  # a hop inside a node of a ring that leaves it: three posts of 2 us by an AMD host
_START = parse("8.4 us", "s")
_SWITCH = parse("25 us", "s")
_LL_INSIDE, _LL_BETWEEN = parse("87.7 GB/s", "B/s"), parse("19 GB/s", "B/s")
_LL_BYTES = 2  # half of what LL sends is flags
_LONE = 0.7 / 0.92  # one rank a node sends and receives through the same device
_TREE, _SMALL_CHUNKS = 0.92, 0.5  # tree correction factors: about a half up to 16 MiB, 0.9 from 128 MiB
_LEAST_SWITCHED = 4  # a switch adds for groups larger than this
_EAGER = 16 * KIBI  # libfabric, provider cxi: larger messages wait for the receiver (FI_CXI_RDZV_THRESHOLD)


@dataclass(frozen=True, slots=True)
class Constants:
    """What collectives need to know of a machine, as plain floats."""

    domain: int
    inside: float
    between: float
    bulk: float
    far: float
    near_nodes: float
    start: float
    switched: float

    @classmethod
    def of(cls, machine: Machine) -> "Constants":
        """Read them from the profile; what it leaves out follows from NCCL's ratios."""
        fabric, network = machine.fabric, machine.network
        between = network.latency.value if network.latency else 0.0
        bulk = network.bulk_latency.value if network.bulk_latency else between * _RING_BULK / _RING_LL
        far = network.far_latency.value if network.far_latency else between
        return cls(
            domain=machine.domain,
            inside=fabric.latency.value if fabric.latency else 0.0,
            between=between,
            bulk=bulk,
            far=far,
            near_nodes=network.group_nodes.value if network.group_nodes and network.far_latency else float("inf"),
            start=network.startup.value if network.startup else 0.0,
            switched=fabric.reduction_bandwidth.value if fabric.reduction_bandwidth else 0.0,
        )


@dataclass(frozen=True, slots=True)
class Path:
    """What the messages of one group meet: one record a group, used by all its collectives.

    Latencies are of one pass of a ring (LL, bulk), or of a tree up and down; costs are seconds a byte.
    """

    size: Number
    nodes: Number
    bandwidth: BytesPerSecond
    start: Seconds
    ll: Seconds
    ll_cost: Number
    ll_limit: Bytes
    bulk: Seconds
    serial: Number
    tree_ll: Seconds
    tree_ll_cost: Number
    tree: Seconds
    tree_cost: Number
    switch: Seconds
    switch_cost: Number


def path(constants: Constants, *, inner: Count, size: Count, inside: Count, bandwidth: BytesPerSecond) -> Path:
    """The path of groups of `size` ranks, `inner` ranks between neighbours; `inside` says which stay in a domain.

    A ring of n ranks over N domains has N hops between and n - N inside them, each pass. `bandwidth` is what the rule
    of `bandwidth.py` gives the group, sharing included.
    """
    out = np.where(inside, 0.0, 1.0)
    ranks = np.minimum(size, np.maximum(constants.domain // inner, 1))
    nodes = 1.0 + out * (np.ceil(size / ranks) - 1)
    chain = size - 1 - out * (nodes - 1)
    lone = np.where((out > 0) & (ranks == 1), _LONE, 1.0)
    rate = bandwidth * lone
    hop = np.where(nodes > constants.near_nodes, constants.far, constants.between)
    post = np.maximum(constants.inside * _CHAIN_BULK / _CHAIN_LL, out * constants.between * _POST_BULK / _RING_LL)
    ll_cost = _LL_BYTES / rate + 1 / np.where(out > 0, _LL_BETWEEN, _LL_INSIDE)
    levels = 2 * np.ceil(np.log2(nodes))
    climb = np.where(out > 0, 2 * (ranks - 1) * constants.inside, np.inf)
    heavy = np.where(out > 0, 2 * (ranks - 1) * post, np.inf)
    switched = (constants.switched > 0) & (size > _LEAST_SWITCHED) & (out == 0) & (inner == 1)
    return Path(
        size=1.0 * size,
        nodes=nodes,
        bandwidth=rate,
        start=np.where(size > 1, _START + out * constants.start, 0.0),
        ll=out * nodes * hop + (chain - out) * constants.inside,
        ll_cost=ll_cost,
        ll_limit=np.where(nodes > constants.near_nodes, _EAGER * size, np.inf),
        bulk=out * nodes * np.maximum(constants.bulk, hop) + (chain - out) * post,
        serial=2 * (1 - out),
        tree_ll=levels * hop + climb,
        tree_ll_cost=levels * 2 * ll_cost,
        tree=levels * np.maximum(hop, constants.between * _RING_BULK / _RING_LL) + heavy,
        tree_cost=2 / rate,
        switch=np.where(switched, _SWITCH, np.inf),
        switch_cost=2 / (constants.switched or 1.0),
    )


def _ring(volume: Bytes, chunk_total: Bytes, passes: int, along: Path) -> Seconds:
    """The faster of LL and bulk on a ring, without the start: `volume` bytes a rank, `chunk_total` the whole buffer."""
    latency, transfer = passes * along.bulk, volume / along.bandwidth
    bulk = np.sqrt(latency * latency + transfer * transfer + along.serial * latency * transfer)
    ll = passes * along.ll + volume * along.ll_cost
    return np.minimum(np.where(chunk_total > along.ll_limit, np.inf, ll), bulk)


def all_gather(gathered: Bytes, along: Path) -> Seconds:
    """Every rank ends with `gathered` bytes."""
    return along.start + _ring((along.size - 1) / along.size * gathered, gathered, 1, along)


def reduce_scatter(buffer: Bytes, along: Path) -> Seconds:
    """Every rank brings `buffer` bytes and ends with its part of the sum."""
    return all_gather(buffer, along)


def all_reduce(buffer: Bytes, along: Path) -> Seconds:
    """Every rank brings and ends with `buffer` bytes."""
    share = (along.size - 1) / along.size * buffer
    ring = _ring(2 * share, buffer, 2, along)
    tree_ll = along.tree_ll + buffer * along.tree_ll_cost
    sent = buffer * along.tree_cost
    small = along.tree + sent / _SMALL_CHUNKS
    large = 2 * along.tree + sent / _TREE
    switch = along.switch + share * along.switch_cost
    return along.start + np.minimum(np.minimum(np.minimum(ring, switch), tree_ll), np.minimum(small, large))
