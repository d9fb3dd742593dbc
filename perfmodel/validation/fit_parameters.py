"""The few figures of a profile that a calibration may change, each with a name, bounds and a place in the file.

A calibration fits a factor of one figure, or of several that belong together. Only fields of a profile are fitted, so
that the written profile is the fitted model.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from perfmodel.costs.gemm import GEMM_SUSTAINED, MEMORY_SUSTAINED
from perfmodel.machines.machine import GroupBandwidth, Machine
from perfmodel.parallel.settings import CONTENTION, HOST_TIME
from perfmodel.sources import PLAUSIBLE, Figure, Source
from perfmodel.units import parse

_BLOCKS = ("device", "fabric", "network", "bandwidth")
_LATENCIES = ("latency", "bulk_latency", "ring_latency", "far_latency", "startup")
_LEAST_SHARE = 0.02
_LEAST_CONTENTION = parse(PLAUSIBLE["1"][0], "1")  # least figure that a profile may have
_HOST_TIMES = parse("100 ns", "s"), parse("10 ms", "s")
_FACTORS = 0.05, 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A figure of a profile with its new value; `shape`: (inner, size) of an entry of the bandwidth database."""

    block: str
    field: str
    value: float
    unit: str
    shape: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """One parameter: its name, the `uncertainty` input that it scales, its figures, and the bounds of the factor."""

    name: str
    scales: str
    figures: tuple[Change, ...]
    low: float
    high: float

    def changed(self, factor: float) -> tuple[Change, ...]:
        """The figures times a factor."""
        return tuple(replace(figure, value=figure.value * factor) for figure in self.figures)

    @property
    def place(self) -> str:
        """The field that holds the first figure."""
        return f"{self.figures[0].block}.{self.figures[0].field}"


def _share(name: str, given: Figure | None, otherwise: float, low: float, high: float, unit: str = "1") -> Any:
    """A single figure of the device, with bounds on its value."""
    value = given.value if given else otherwise
    return (Change(block="device", field=name, value=value, unit=unit),), min(1.0, low / value), max(1.0, high / value)


def _gemm(machine: Machine) -> Any:
    """The efficiency where no rate is measured; else the share of the measured rate that is sustained."""
    device = machine.device
    if device.gemm.get(device.dtype) is None and device.gemm_efficiency:
        return _share("gemm_efficiency", device.gemm_efficiency, 1.0, _LEAST_SHARE, 1.0)
    return _share("gemm_sustained", device.gemm_sustained, GEMM_SUSTAINED, _LEAST_SHARE, 1.0)


def _memory(machine: Machine) -> Any:
    return _share("memory_sustained", machine.device.memory_sustained, MEMORY_SUSTAINED, _LEAST_SHARE, 1.0)


def _host_time(machine: Machine) -> Any:
    return _share("host_time", machine.device.host_time, HOST_TIME, *_HOST_TIMES, "s")


def _contention(machine: Machine) -> Any:
    return _share("contention", machine.device.contention, CONTENTION, _LEAST_CONTENTION, 1.0)


def _fabric_latency(machine: Machine) -> Any:
    return _given("fabric", ("latency",), machine, "s"), *_FACTORS


def _network_latency(machine: Machine) -> Any:
    return _given("network", _LATENCIES, machine, "s"), *_FACTORS


def _inside(machine: Machine) -> Any:
    """Efficiency of the links, entries of the database, and the switch's share; none above a device's bandwidth."""
    fabric = machine.fabric
    figures = [*_given("fabric", ("efficiency",), machine, "1")]
    figures += _given("fabric", ("reduction_bandwidth",), machine, "B/s")
    entries = machine.bandwidth.inside
    figures += [
        Change(block="bandwidth", field="inside", value=each.bandwidth.value, unit="B/s", shape=(each.inner, each.size))
        for each in entries
    ]
    links = fabric.device_bandwidth.value if fabric.device_bandwidth else math.inf
    room = [links / each.bandwidth.value for each in entries]
    room += [1 / fabric.efficiency.value] if fabric.efficiency else []
    return tuple(figures), _FACTORS[0], min([_FACTORS[1], *room])


def _between(machine: Machine) -> Any:
    """The measured bandwidth between nodes, else the efficiency of the network; at most the injection bandwidth."""
    network, measured = machine.network, machine.bandwidth.between
    if measured:
        injected = network.injection.value * machine.domain / machine.node_devices if network.injection else math.inf
        figure = Change(block="bandwidth", field="between", value=measured.value, unit="B/s")
        return (figure,), _FACTORS[0], min(_FACTORS[1], injected / measured.value)
    most = min(_FACTORS[1], 1 / network.efficiency.value) if network.efficiency else _FACTORS[1]
    return _given("network", ("efficiency",), machine, "1"), _FACTORS[0], most


def _given(block: str, names: tuple[str, ...], machine: Machine, unit: str) -> tuple[Change, ...]:
    """The figures of a block that the profile has."""
    found = ((name, getattr(getattr(machine, block), name)) for name in names)
    return tuple(Change(block=block, field=name, value=figure.value, unit=unit) for name, figure in found if figure)


# By name: the input of `uncertainty` that the same factor scales, and the figures with their bounds.
_PARAMETERS: Mapping[str, tuple[str, Callable[[Machine], Any]]] = MappingProxyType(
    {
        "gemm": ("products", _gemm),
        "memory": ("memory", _memory),
        "host-time": ("issuing", _host_time),
        "contention": ("contention", _contention),
        "fabric-latency": ("fabric_latency", _fabric_latency),
        "network-latency": ("network_latency", _network_latency),
        "inside-bandwidth": ("inside", _inside),
        "between-bandwidth": ("between", _between),
    }
)
NAMES = tuple(_PARAMETERS)


def adjustments(machine: Machine) -> Iterator[Adjustment]:
    """The adjustments that this machine has figures for; without a network, for instance, there is no latency."""
    for name, (scales, of) in _PARAMETERS.items():
        figures, low, high = of(machine)
        if figures:
            yield Adjustment(name=name, scales=scales, figures=figures, low=low, high=max(1.0, high))


def adjusted(machine: Machine, changes: tuple[Change, ...], key: str, source: Source) -> Machine:
    """The machine with changed figures, checked as a whole."""
    blocks: dict[str, Any] = {}
    for block in _BLOCKS:
        mine = [change for change in changes if change.block == block]
        named = {one.field: Figure(one.value, key, source) for one in mine if one.shape is None}
        shaped = tuple(GroupBandwidth(*one.shape, Figure(one.value, key, source)) for one in mine if one.shape)
        if mine:
            blocks[block] = replace(getattr(machine, block), **named, **({"inside": shaped} if shaped else {}))
    return replace(machine, sources={**machine.sources, key: source}, **blocks)
