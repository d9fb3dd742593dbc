"""Time of one collective at full fidelity: start-up, hops and bytes of the fastest algorithm and protocol.

NCCL and RCCL send small messages with flags inside the data (LL: short hops, low bandwidth) and large ones in bulk
(Simple: long hops, full bandwidth). They use a ring or, for an all-reduce between nodes, a double binary tree.
Reduction in the switch (NVLS) is a third way. The library selects by its own model; here the fastest is taken.

A hop between nodes costs the profile's `network.latency`, one inside a node `fabric.latency`, both as observed for a
ring with LL. What the profile leaves out follows from the ratios of NCCL's own tuning constants (github NVIDIA/nccl
2.28, src/graph/tuning.cc): they describe the library, the profile describes the machine.

All functions take scalars or arrays alike, and a row of a batch equals the single call exactly.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType

import numpy as np

from perfmodel.machines.collective_times import Operation
from perfmodel.machines.machine import Machine
from perfmodel.sources import Figure
from perfmodel.units import Bytes, BytesPerSecond, Count, Number, Seconds, parse

# Start-up of a call, which no profile gives: baseLat of NCCL's tuning.cc (above) for a ring with Simple.
START_UP = parse("8.4 us", "s")
# NCCL's tuning constants: a hop of a ring in LL and in bulk, between nodes and over NVLink.
_NETWORK_LL, _NETWORK_BULK = parse("2.7 us", "s"), parse("14 us", "s")
_FABRIC_LL, _FABRIC_BULK = parse("0.6 us", "s"), parse("3.4 us", "s")
_POST = parse("6 us", "s")  # a hop inside a node of a ring that leaves it: three posts of 2 us by the host
_SWITCH = parse("25 us", "s")
_LL_FABRIC, _LL_NETWORK = parse("87.7 GB/s", "B/s"), parse("19 GB/s", "B/s")
_LL_BYTES = 2  # half of what LL sends is flags
_CHANNEL = 23.6 / 300  # a tree's channel moves 23.6 GB/s on an A100, whose links move 300; one channel per NIC
_LONE = 0.7 / 0.92  # with one rank per node it sends and receives through the same device
_LARGE_CHUNKS, _SMALL_CHUNKS = 0.92, 0.5  # shares of the rate that a tree reaches; about a half up to 16 MiB
_LEAST_SWITCHED = 4  # NCCL reduces in the switch for more ranks than this


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """The figures of a machine that collectives need, as floats; rates are per domain, `near` is in ranks."""

    domain: int
    fabric: float
    network: float
    bulk: float
    ring: float
    far: float
    eager: float
    near: float
    startup: float
    channels: float
    switched: float
    tapered: float

    @classmethod
    def of(cls, machine: Machine) -> "Constants":
        """Read the profile; the time of a bulk hop follows from that of a small one where the profile has none."""
        fabric, network, domain = machine.fabric, machine.network, machine.domain
        hop = _or(network.latency, 0.0)
        bulk = _or(network.bulk_latency, hop * _NETWORK_BULK / _NETWORK_LL)
        tapered = _or(network.injection, math.inf) / network.taper.value if network.taper else math.inf
        channels = _or(network.nics, 1.0) * domain / machine.node_devices
        return cls(
            domain=domain,
            fabric=_or(fabric.latency, 0.0),
            network=hop,
            bulk=bulk,
            ring=_or(network.ring_latency, bulk),
            far=_or(network.far_latency, hop),
            eager=_or(network.far_eager, math.inf),
            near=_or(network.group_nodes, math.inf) * machine.node_devices,
            startup=_or(network.startup, 0.0),
            channels=channels * _CHANNEL * _or(fabric.device_bandwidth, math.inf),
            switched=_or(fabric.reduction_bandwidth, 0.0),
            tapered=tapered * domain / machine.node_devices,
        )


def _or(figure: Figure | None, otherwise: float) -> float:
    return figure.value if figure else otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Latencies and costs of the messages of one group, computed once and used by all its collectives.

    Latencies are those of one pass round a ring, or of a tree up and down; a cost is in seconds per byte. `nodes`
    counts the domains that the group spans, and `ranks` its members in each, with a stride of `inner` ranks.
    """

    inner: Count
    size: Number
    nodes: Number
    ranks: Number
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
    tree_small_cost: Number
    tree_large_cost: Number
    switch: Seconds
    switch_cost: Number


def route(at: Constants, *, inner: Count, size: Count, inside: Count, bandwidth: BytesPerSecond) -> Route:
    """The route of groups of `size` ranks with `inner` ranks between neighbours; `inside`: the group stays in a domain.

    A ring of n ranks over N domains has N hops between them and n - N inside, each pass; a tree has log2 N levels.
    `bandwidth` is what `bandwidth.Bandwidths` gives, so groups that leave a domain share its NICs (Eq. 7): a group with
    g ranks per domain gets g parts of them. Two things lower it further. One rank per domain reaches 0.7/0.92 (NCCL).
    In a tapered network a hop over s nodes leaves its group of nodes with probability s / group_nodes, and all hops
    that leave share injection / taper. A rail-only network costs nothing, since rings and trees stay on their rails.

    >>> at = Constants(
    ...     domain=4, fabric=1e-6, network=6e-6, bulk=31e-6, ring=31e-6, far=6e-6, eager=float("inf"), near=512,
    ...     startup=17e-6, channels=94e9, switched=0.0, tapered=float("inf"),
    ... )
    >>> found = route(at, inner=1, size=64, inside=False, bandwidth=76e9)
    >>> float(found.nodes), float(found.ll * 1e6), float(found.ll_cost * 1e12)  # 16 * 6 us + 48 * 1 us
    (16.0, 144.0, 78.94736842105263)
    """
    ranks = np.where(inside, size, np.minimum(size, np.maximum(at.domain // inner, 1)))
    nodes = np.maximum(np.ceil(size / ranks), np.where(inside, 1.0, np.minimum(size, 2.0)))  # 2: it straddles a border
    out = np.where(nodes > 1, 1.0, 0.0)
    within = size - nodes
    far = inner * size > at.near
    crossing = at.tapered * np.maximum(at.near / inner, 1.0) / np.minimum(at.domain, inner)
    rate = np.minimum(bandwidth, np.where(far, crossing, np.inf)) * np.where(out * (ranks == 1) > 0, _LONE, 1.0)
    post = np.maximum(at.fabric * _FABRIC_BULK / _FABRIC_LL, out * at.bulk * _POST / _NETWORK_BULK)
    hop = np.where(far, at.far, at.network)
    ll_cost = _LL_BYTES / rate + 1 / np.where(nodes > 1, _LL_NETWORK, _LL_FABRIC)
    return Route(
        inner=inner,
        size=1.0 * size,
        nodes=nodes,
        ranks=1.0 * ranks,
        bandwidth=rate,
        start=np.where(size > 1, START_UP + out * at.startup, 0.0),
        ll=out * nodes * hop + within * at.fabric,
        ll_cost=ll_cost,
        ll_limit=np.where(out * far > 0, at.eager * size, np.inf),
        bulk=out * nodes * at.ring + within * post,
        serial=2 * (1 - out),
        **_tree(at, nodes=nodes, ranks=ranks, rate=rate, far=far, post=post),
        **_switch(at, inner=inner, size=size, nodes=nodes, ranks=ranks, rate=rate),
    )


def _shares(nodes: Number, rate: BytesPerSecond) -> Number:
    """Seconds per byte of an all-reduce by tree through the NICs of a domain.

    A node of a double tree sends each byte twice (to a parent and to children); of two nodes each sends it once.
    """
    return np.where(nodes == 2, 1.0, 2.0) / rate


def _levels(nodes: Number) -> Number:
    """Hops between domains, up a tree and down again."""
    return 2 * np.ceil(np.log2(nodes))


def climb(at: Constants, *, nodes: Number, far: Number) -> Seconds:
    """Seconds of the bulk hops of a tree over `nodes` domains, up and down: 2 ceil(log2 N) hops.

    A hop takes `bulk`, or `ring` where the tree is `far`: it spans more than a group of nodes, so its hops meet other
    traffic, as those of a ring do. Read off Polaris, 256 and 540 nodes, all-reduces of 2 MiB and more: 36 % too fast
    with bulk hops (median), 9 and 14 % off with the ring's 95 us. Profiles without a ring latency stay as they are.

    >>> at = Constants(
    ...     domain=4, fabric=1e-6, network=5e-6, bulk=26e-6, ring=95e-6, far=27e-6, eager=float("inf"), near=224,
    ...     startup=0.0, channels=94e9, switched=0.0, tapered=float("inf"),
    ... )
    >>> [float(climb(at, nodes=n, far=n > 56) * 1e6) for n in (32, 256)]  # 10 * 26, 16 * 95
    [260.0, 1520.0]
    """
    return _levels(nodes) * np.where(far, at.ring, at.bulk)


def _tree(
    at: Constants, *, nodes: Number, ranks: Number, rate: BytesPerSecond, far: Number, post: Seconds
) -> dict[str, Number]:
    """The double binary tree over domains, with a chain of ranks in each; NCCL uses none inside a single domain.

    Up and down: 2 log2 N hops between domains and 2 (g - 1) inside. A channel carries each byte up and down.
    """
    levels, chain = _levels(nodes), 2 * (ranks - 1)
    there = np.where(nodes > 1, 0.0, np.inf)
    cost = _shares(nodes, rate)
    return {
        "tree_ll": there + levels * np.where(far, at.far, at.network) + chain * at.fabric,
        "tree_ll_cost": levels * 2 * (_LL_BYTES / rate + 1 / _LL_NETWORK),
        "tree": there + climb(at, nodes=nodes, far=far) + chain * post,
        "tree_small_cost": cost / _SMALL_CHUNKS,
        "tree_large_cost": np.maximum(cost, 2 * np.maximum(at.domain / ranks, 1.0) / at.channels) / _LARGE_CHUNKS,
    }


def _switch(
    at: Constants, *, inner: Count, size: Number, nodes: Number, ranks: Number, rate: BytesPerSecond
) -> dict[str, Number]:
    """Reduction in the switch of each domain, a tree between domains; for neighbours, more than four per domain."""
    if not np.any(at.switched):
        return {"switch": np.inf, "switch_cost": 0.0}
    levels = _levels(nodes)
    usable = (inner == 1) & (ranks > _LEAST_SWITCHED)
    between = np.where(nodes > 1, _shares(nodes, rate), 0.0)
    return {
        "switch": np.where(usable, _SWITCH + levels * at.bulk, np.inf),
        "switch_cost": np.maximum(2 * (size - 1) / size / at.switched, between),
    }


def all_gather(gathered: Bytes, along: Route) -> Seconds:
    """Every rank ends with `gathered` bytes, of which it had 1/n; each receives V = (n - 1)/n * gathered.

        LL     start + hops + V (2/beta + 1/r)      r = 19 GB/s between nodes, 88 GB/s inside (NCCL)
        bulk   start + sqrt(hops^2 + (V/beta)^2)    between nodes: few hops are slow, the rest overlaps
               start + hops + V/beta                inside a domain: all hops are equally slow

    and the smaller of the two. Valid for n >= 1; one rank takes no time.

    >>> at = Constants(
    ...     domain=4, fabric=1e-6, network=6e-6, bulk=31e-6, ring=31e-6, far=6e-6, eager=float("inf"), near=512,
    ...     startup=17e-6, channels=94e9, switched=0.0, tapered=float("inf"),
    ... )
    >>> along = route(at, inner=1, size=8, inside=False, bandwidth=70e9)
    >>> round(float(all_gather(1048576, along)) * 1e6, 3)  # 25.4 + 2 * 6 + 6 * 1 + 0.9175 * (28.57 + 52.63)
    117.9
    """
    return along.start + reduce(
        np.minimum, _ring(gathered, (along.size - 1) / along.size * gathered, 1, along).values()
    )


def reduce_scatter(buffer: Bytes, along: Route) -> Seconds:
    """Every rank brings `buffer` bytes and ends with 1/n of the sum: the same hops and bytes as an all-gather."""
    return all_gather(buffer, along)


def all_reduce(buffer: Bytes, along: Route) -> Seconds:
    """Every rank brings and ends with `buffer` bytes: the fastest of four ways.

        ring     twice the hops and bytes of an all-gather
        tree LL  start + climb + 2 log2 N * 2 * buffer (2/beta + 1/r)    each level takes the buffer from two below
        tree     start + climb + k buffer/(0.5 beta), or start + 2 climb + k buffer/(0.92 beta); k = 1 for N = 2, else 2
        switch   start + 25 us + 2 log2 N hops + bytes over the switch's own rate

    where a tree splits the buffer into small chunks (low latency, half the rate) or large ones. Valid for n >= 1.

    >>> at = Constants(
    ...     domain=4, fabric=1e-6, network=6e-6, bulk=31e-6, ring=31e-6, far=6e-6, eager=float("inf"), near=512,
    ...     startup=17e-6, channels=94e9, switched=0.0, tapered=float("inf"),
    ... )
    >>> along = route(at, inner=1, size=64, inside=False, bandwidth=70e9)
    >>> round(float(all_reduce(1048576, along)) * 1e6, 1)  # 25.4 + 8 * 31 + 6 * 13.3 + 2 * 1.048576 / 0.035
    413.0
    """
    return along.start + reduce(np.minimum, _ways(buffer, along).values())


TIMES: Mapping[Operation, Callable[[Bytes, Route], Seconds]] = MappingProxyType(
    {"all-gather": all_gather, "reduce-scatter": reduce_scatter, "all-reduce": all_reduce}
)


def choice(operation: str, buffer: float, along: Route) -> str:
    """Which algorithm and protocol is the fastest for one call, in words.

    >>> at = Constants(
    ...     domain=4, fabric=1e-6, network=6e-6, bulk=31e-6, ring=31e-6, far=6e-6, eager=float("inf"), near=512,
    ...     startup=17e-6, channels=94e9, switched=0.0, tapered=float("inf"),
    ... )
    >>> choice("all-reduce", 1e6, route(at, inner=1, size=64, inside=False, bandwidth=70e9))
    'tree, Simple'
    """
    if along.size == 1:
        return "nothing to send"
    ways = _ways(buffer, along) if operation == "all-reduce" else _ring(buffer, (1 - 1 / along.size) * buffer, 1, along)
    return min(ways, key=lambda name: float(ways[name]))


def _ring(buffer: Bytes, volume: Bytes, passes: int, along: Route) -> dict[str, Seconds]:
    hops, transfer = passes * along.bulk, volume / along.bandwidth
    ll = passes * along.ll + volume * along.ll_cost
    return {
        "ring, LL": np.where(buffer >= along.ll_limit, np.inf, ll),
        "ring, Simple": np.sqrt(hops * hops + transfer * transfer + along.serial * hops * transfer),
    }


def _ways(buffer: Bytes, along: Route) -> dict[str, Seconds]:
    ring = _ring(buffer, 2 * (along.size - 1) / along.size * buffer, 2, along)
    small = along.tree + buffer * along.tree_small_cost
    large = 2 * along.tree + buffer * along.tree_large_cost
    return ring | {
        "tree, LL": along.tree_ll + buffer * along.tree_ll_cost,
        "tree, Simple": np.minimum(small, large),
        "switch, NVLS": along.switch + buffer * along.switch_cost,
    }
