"""What a machine is: device, node, fabric inside the node, network between nodes, bandwidth database, scheduler.

A device is what the scheduler and torch see as one GPU: a GCD on MI250X, a tile on PVC, a whole chip elsewhere.
Bandwidths are one direction. `node.devices` counts devices in a node of the scheduler; `fabric.domain` counts devices
joined by the fast fabric (72 in a GB200 NVL72 rack of 18 nodes), and is the paper's G_node.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from perfmodel.errors import PartError, PerfmodelError
from perfmodel.machines.attention import AttentionRates
from perfmodel.machines.collective_times import Timings
from perfmodel.machines.domains import contained
from perfmodel.machines.scheduler import Scheduler
from perfmodel.sources import Figure, Source, at_most_one, need, refuse, whole
from perfmodel.units import show

FlopRate = Annotated[Figure, "flop/s"]
Size = Annotated[Figure, "B"]
MessageSize = Annotated[Figure, "B", "1 B"]  # with the plausible minimum
Rate = Annotated[Figure, "B/s"]
Time = Annotated[Figure, "s"]
Plain = Annotated[Figure, "1"]

Dtype = Literal["fp32", "tf32", "bf16", "fp16", "fp8"]

FORMAT = 1
MAX_DEVICES = 1024
MOST_THREADS_A_CORE = 4
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
TRAINING_DTYPES: tuple[Dtype, ...] = ("bf16", "fp16", "fp32")  # the first one that a device supports is used


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeRates:
    """FLOP/s of one device per number format, dense (never the doubled figure for 2:4 sparsity)."""

    fp32: FlopRate | None = None
    tf32: FlopRate | None = None
    bf16: FlopRate | None = None
    fp16: FlopRate | None = None
    fp8: FlopRate | None = None

    def get(self, dtype: Dtype) -> Figure | None:
        """The figure for `dtype`, or None where the device has none."""
        found: Figure | None = getattr(self, dtype)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One schedulable device. `gemm` is the measured rate of large matrix products.

    `gemm_sustained`, `memory_sustained`: shares of `gemm` and `memory_bandwidth` that a long run sustains.
    `compute_units`: units that each work on one tile of a matrix product (SM, CU); absent on processors. `host_time`,
    `contention`: of the framework on this device; the defaults are in `settings`. `attention`: rates of attention
    kernels. `slow_layout`: how many times longer products take whose operands lie in the layout that the library
    handles worst.
    """

    name: str
    kind: str
    peak: DtypeRates
    memory: Size
    memory_bandwidth: Rate
    gemm: DtypeRates = field(default_factory=DtypeRates)
    gemm_efficiency: Plain | None = None
    gemm_sustained: Plain | None = None
    memory_sustained: Plain | None = None
    compute_units: Plain | None = None
    attention: AttentionRates = field(default_factory=AttentionRates)
    slow_layout: Plain | None = None
    reserve: Size | None = None
    communicator_buffer: Size | None = None
    host_time: Time | None = None
    contention: Plain | None = None

    def __post_init__(self) -> None:
        """Refuse a measurement above the peak and an efficiency above 1."""
        for dtype in ("fp32", "tf32", "bf16", "fp16", "fp8"):
            peak, measured = self.peak.get(dtype), self.gemm.get(dtype)
            if measured is not None and peak is None:
                raise PerfmodelError(f"gemm has {dtype}, peak has none")
            if measured is not None and peak is not None and measured.value > peak.value:
                rates = f"{show(measured.value, 'flop/s')} is above the peak of {show(peak.value, 'flop/s')}"
                raise PerfmodelError(f"gemm {dtype} of {rates}")
        if not any(self.peak.get(dtype) for dtype in TRAINING_DTYPES):
            raise PerfmodelError(f"peak needs at least one of {', '.join(TRAINING_DTYPES)}")
        if self.gemm_efficiency is None and not self.gemm.get(self.dtype):
            raise PerfmodelError(f"neither gemm nor gemm_efficiency says how fast products in {self.dtype} are")
        for share in ("gemm_efficiency", "gemm_sustained", "memory_sustained", "contention"):
            at_most_one(getattr(self, share), share)
        if self.compute_units:
            whole(self.compute_units, "device.compute_units")

    @property
    def dtype(self) -> Dtype:
        """The number format of matrix products in training: bf16 where the device has it, else fp16, else fp32."""
        return next(dtype for dtype in TRAINING_DTYPES if self.peak.get(dtype))


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the scheduler."""

    devices: Plain
    cpu_cores: Plain
    host_memory: Size

    def __post_init__(self) -> None:
        """Devices and cores are counts."""
        whole(self.devices, "node.devices", most=MAX_DEVICES)
        whole(self.cpu_cores, "node.cpu_cores")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """Links between the devices of a node.

    `pair_bandwidth`: two devices alone, one direction. `device_bandwidth`: all links of one device, one direction.
    `topology` is mesh (a separate link for every pair), switch (any pair gets the full bandwidth of a device), shared
    (all traffic passes one host or bus), or irregular (the slowest link counts). It is none with one device per node.
    """

    topology: Literal["mesh", "switch", "shared", "irregular", "none"]
    pair_bandwidth: Rate | None = None
    device_bandwidth: Rate | None = None
    efficiency: Plain | None = None
    latency: Time | None = None
    domain: Plain | None = None
    reduction_bandwidth: Rate | None = None
    description: str = ""
    slower_than_network: str = ""

    def __post_init__(self) -> None:
        """Bandwidths are given unless the topology is none; that of a pair is at most that of a device."""
        figures = ("pair_bandwidth", "device_bandwidth", "efficiency", "latency")
        if self.topology == "none":
            refuse(self, (*figures, "domain", "reduction_bandwidth"), "a fabric of topology none")
            return
        need(self, figures, f"a {self.topology} fabric")
        at_most_one(self.efficiency, "fabric.efficiency")
        if self.pair_bandwidth and self.device_bandwidth and self.pair_bandwidth.value > self.device_bandwidth.value:
            raise PerfmodelError(
                f"pair_bandwidth {show(self.pair_bandwidth.value, 'B/s')} is above "
                f"device_bandwidth {show(self.device_bandwidth.value, 'B/s')}"
            )
        if self.domain:
            whole(self.domain, "fabric.domain", most=MAX_DEVICES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The network between nodes. `injection`: bandwidth out of a node, one direction; topology none = one node."""

    topology: Literal["dragonfly", "dragonfly+", "fat-tree", "rail-optimised", "rail-only", "cloud", "none"]
    nics: Plain | None = None
    nic_bandwidth: Rate | None = None
    injection: Rate | None = None
    efficiency: Plain | None = None
    latency: Time | None = None
    bulk_latency: Time | None = None
    ring_latency: Time | None = None
    far_latency: Time | None = None
    far_eager: MessageSize | None = None
    startup: Time | None = None
    nodes: Plain | None = None
    group_nodes: Plain | None = None
    taper: Plain | None = None
    description: str = ""

    def __post_init__(self) -> None:
        """NICs and injection agree; a network that exists has bandwidth, efficiency and latency."""
        figures = ("nics", "nic_bandwidth", "injection", "efficiency", "latency")
        if self.topology == "none":
            hops = ("bulk_latency", "ring_latency", "far_latency", "far_eager", "startup")
            refuse(self, (*figures, *hops, "nodes", "group_nodes", "taper"), "a network of topology none")
            return
        need(self, figures, f"a {self.topology} network")
        at_most_one(self.efficiency, "network.efficiency")
        nodes, group = (
            figure and whole(figure, "network.nodes or group_nodes") for figure in (self.nodes, self.group_nodes)
        )
        if nodes and group and group > nodes:
            raise PerfmodelError(f"a group of {group} nodes is larger than the machine of {nodes}")
        if self.nics and self.nic_bandwidth and self.injection:
            line_rate = whole(self.nics, "network.nics") * self.nic_bandwidth.value
            if self.injection.value > line_rate and not math.isclose(self.injection.value, line_rate):
                raise PerfmodelError(
                    f"injection {show(self.injection.value, 'B/s')} is above {self.nics.value:g} NICs of "
                    f"{show(self.nic_bandwidth.value, 'B/s')} = {show(line_rate, 'B/s')}"
                )


@dataclass(frozen=True, slots=True)
class GroupBandwidth:
    """Achieved bandwidth of groups of `size` devices inside a node, `inner` = product of the dimensions inside them."""

    inner: int
    size: int
    bandwidth: Rate

    def __post_init__(self) -> None:
        """A group has at least two members."""
        if self.inner < 1 or self.size < 2:
            raise PerfmodelError(f"a group of inner {self.inner} and size {self.size}: wanted inner >= 1 and size >= 2")


@dataclass(frozen=True, slots=True)
class BandwidthDatabase:
    """The paper's database: measured group bandwidths inside a node, and the bandwidth between nodes (beta_inter)."""

    inside: tuple[GroupBandwidth, ...] = ()
    between: Rate | None = None

    def __post_init__(self) -> None:
        """One entry per group shape."""
        keys = [(entry.inner, entry.size) for entry in self.inside]
        doubled = sorted({key for key in keys if keys.count(key) > 1})
        if doubled:
            raise PerfmodelError(f"the bandwidth of inner {doubled[0][0]}, size {doubled[0][1]} is given twice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A complete machine profile."""

    format: int
    name: str
    title: str
    sources: Mapping[str, Source]
    device: Device
    node: Node
    fabric: Fabric
    network: Network
    scheduler: Scheduler
    bandwidth: BandwidthDatabase = field(default_factory=BandwidthDatabase)
    collectives: tuple[Timings, ...] = ()
    base: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check what must agree across the blocks of a profile."""
        if self.format != FORMAT:
            raise PerfmodelError(f"format {self.format} is unknown; this version reads format {FORMAT}")
        if not _NAME.fullmatch(self.name):
            raise PerfmodelError(f"the name {self.name!r} is not made of letters, digits, dots, dashes and underscores")
        self._check_fabric()
        self._check_bandwidth()
        self._check_scheduler()
        for place, timings in enumerate(self.collectives):
            self._check_timings(timings, place)

    def _check_fabric(self) -> None:
        if self.node_devices > 1 and self.fabric.topology == "none":
            raise PerfmodelError(f"{self.node_devices} devices per node, but a fabric of topology none")
        if self.domain % self.node_devices:
            raise PerfmodelError(f"fabric.domain {self.domain} is no multiple of node.devices {self.node_devices}")
        link, memory = self.fabric.device_bandwidth, self.device.memory_bandwidth
        if link and link.value > memory.value:
            raise PerfmodelError(
                f"fabric.device_bandwidth {show(link.value, 'B/s')} is above the memory's {show(memory.value, 'B/s')}"
            )
        share = self.network.injection.value / self.node_devices if self.network.injection else 0.0
        if link and share > link.value and not self.fabric.slower_than_network:
            rates = f"{show(share, 'B/s')}, is above the fabric's {show(link.value, 'B/s')}"
            advice = "if that is so, say why in fabric.slower_than_network"
            raise PerfmodelError(f"a device's share of the network, {rates}; {advice}")

    def _check_bandwidth(self) -> None:
        for entry in self.bandwidth.inside:
            shape, devices = f"inner {entry.inner}, size {entry.size}", entry.inner * entry.size
            if devices > self.domain:
                raise PerfmodelError(
                    f"the bandwidth of {shape} is for {devices} devices, the fabric joins {self.domain}"
                )
            ceiling = self.fabric.device_bandwidth
            if ceiling and entry.bandwidth.value > ceiling.value:
                rates = f"{show(entry.bandwidth.value, 'B/s')}, above the device's {show(ceiling.value, 'B/s')}"
                raise PerfmodelError(f"{shape} has {rates}")
        between, injection = self.bandwidth.between, self.network.injection
        if between and injection and between.value > injection.value * self.domain / self.node_devices:
            raise PerfmodelError(
                f"between {show(between.value, 'B/s')} exceeds the injection of {show(injection.value, 'B/s')} per node"
            )

    def _check_timings(self, timings: Timings, place: int) -> None:
        """Each table is the only one of its kind, cites a source, and is for groups of jobs on whole nodes."""
        kinds = [(other.operation, other.ranks, other.inner) for other in self.collectives]
        if kinds.index(kinds[place]) < place:
            raise PartError(f"the {timings.operation} of {timings.shape} is given twice", "collectives", place)
        if timings.source not in self.sources:
            told = f"the table names the source {timings.source}, which the file does not list"
            raise PartError(told, "collectives", place, "source")
        ranks, inner, domain = timings.ranks, timings.inner, self.domain
        if timings.rows[0].nodes == 1 and not contained(inner=inner, size=ranks, domain=domain):
            told = f"a group inside one node with {timings.shape} does not divide the {domain} devices"
            raise PartError(told, "collectives", place)
        fills = inner * ranks == domain or (ranks == 1 and inner % domain == 0)
        if timings.rows[-1].nodes > 1 and not fills:
            told = f"{timings.shape}: in several nodes, ranks times stride must be the {domain} devices of one"
            raise PartError(f"{told}, since no step leaves some of them idle", "collectives", place)

    def _check_scheduler(self) -> None:
        named = [qos.source for qos in self.scheduler.qos] + [
            variable.source for variable in self.scheduler.environment
        ]
        unknown = sorted({self.scheduler.source, *named} - set(self.sources))
        if unknown:
            raise PerfmodelError(f"scheduler names the source {unknown[0]}, which the file does not list")
        tasks, cores = self.scheduler.tasks_per_node, self.scheduler.cores_per_task
        if tasks not in (1, self.node_devices):
            raise PerfmodelError(f"tasks_per_node is {tasks}, wanted one per device ({self.node_devices}) or per node")
        if tasks * cores > MOST_THREADS_A_CORE * self.node.cpu_cores.value:
            have = f"{MOST_THREADS_A_CORE} threads on each of the node's {self.node.cpu_cores.value:g} cores"
            raise PerfmodelError(f"{tasks} tasks of {cores} cores are more than {have}")

    @property
    def node_devices(self) -> int:
        """Devices in a node of the scheduler."""
        return int(self.node.devices.value)

    @property
    def domain(self) -> int:
        """Devices joined by the fast fabric (the paper's G_node)."""
        return int(self.fabric.domain.value) if self.fabric.domain else self.node_devices
