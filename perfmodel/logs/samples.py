"""What every reader of logs makes: samples of collectives, and problems with file and line."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from perfmodel.costs import ring
from perfmodel.errors import PerfmodelError
from perfmodel.machines.collective_times import Operation, ranks_apart
from perfmodel.units import Bytes, BytesPerSecond, Number, Seconds, parse, show

Place = Literal["out-of-place", "in-place", ""]

OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        "allgather": "all-gather",
        "reducescatter": "reduce-scatter",
        "allreduce": "all-reduce",
    }
)
_TIMES = {
    "all-gather": ring.all_gather,
    "reduce-scatter": ring.reduce_scatter,
    "all-reduce": ring.all_reduce,
}
_LEAST_TIME, _MOST_TIME = parse("100 ns", "s"), parse("1000 s", "s")
_MOST_SIZE = parse("100 TiB", "B")
_GIGABYTE = parse("1 GB/s", "B/s")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """A group: `ranks` on each of `nodes`, `inner` ranks from one to the next; `idle`: no other group communicated."""

    nodes: int
    ranks: int
    inner: int = 1
    idle: bool = True

    def __post_init__(self) -> None:
        """At least two members."""
        if self.nodes < 1 or self.ranks < 1 or self.inner < 1 or self.size < 2:
            raise PerfmodelError(f"{self.ranks} ranks on each of {self.nodes} nodes are no group")

    @property
    def size(self) -> int:
        """Members of the group."""
        return self.nodes * self.ranks

    @property
    def words(self) -> str:
        """The group in words."""
        return f"{ranks_apart(self.ranks, self.inner)}, on {self.nodes} node{'s' * (self.nodes > 1)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One measured time of one call; `size` is the output of an all-gather, or the input of a reduction."""

    operation: Operation
    group: RankGroup
    size: float
    time: float
    file: str
    line: int
    place: Place = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem in a file, and the number of rows lost to it."""

    file: str
    line: int
    text: str
    rows: int = 1

    def __str__(self) -> str:
        """The problem in the style of a compiler."""
        return f"{self.file}:{self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class Log:
    """The contents of one file: its samples, its problems in the order of lines, and the versions that it names."""

    samples: tuple[Sample, ...]
    problems: tuple[Problem, ...]
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """What the user states where the log does not: the operation, the number of nodes, and the ranks per node."""

    operation: Operation | None = None
    nodes: int | None = None
    ranks: int | None = None

    def group(self) -> RankGroup | None:
        """The group, where the user states all of it."""
        return None if self.nodes is None or self.ranks is None else RankGroup(nodes=self.nodes, ranks=self.ranks)


def operation_named(text: str) -> Operation | None:
    """The operation of a name such as all_gather, AllReduce or reduce-scatter; None for any other.

    >>> operation_named("Reduce_scatter"), operation_named("broadcast")
    ('reduce-scatter', None)
    """
    return OPERATIONS.get("".join(letter for letter in text.lower() if letter.isalnum()))


def traffic(operation: Operation, size: Bytes, members: Number) -> Bytes:
    """Bytes through each rank's link: (n-1)/n S, twice that for an all-reduce; S / t times it is the bus bandwidth.

    Source: nccl-tests, doc/PERFORMANCE.md. Range: n of 2 or more.

    >>> traffic("all-reduce", 1e9, 4)
    1500000000.0
    """
    return _TIMES[operation](size, size=members, bandwidth=1.0)


def time_from_bandwidth(operation: Operation, size: Bytes, members: Number, bus: BytesPerSecond) -> Seconds:
    """Seconds of a call that reached the bus bandwidth `bus`: traffic / bus  (nccl-tests, doc/PERFORMANCE.md).

    >>> time_from_bandwidth("all-gather", 4e9, 4, 100e9)
    0.03
    """
    return _TIMES[operation](size, size=members, bandwidth=bus)


def check_amounts(size: float, time: float) -> None:
    """Refuse a size or a time that no table can hold."""
    if not math.isfinite(time) or not time > 0:
        raise PerfmodelError(f"the time {time:g} s is no positive number")
    if not _LEAST_TIME <= time <= _MOST_TIME:
        raise PerfmodelError(f"the time {show(time, 's')} is not between 100 ns and 1000 s")
    if not 1 <= size <= _MOST_SIZE or size != int(size):
        raise PerfmodelError(f"the size {size:g} B is no whole number of bytes from 1 B to 100 TiB")


@dataclass(frozen=True, slots=True)
class Printed:
    """A number as a log prints it, in SI; the true value lies within `half`, the rounding, of it."""

    value: float
    half: float

    @classmethod
    def of(cls, text: str, unit: float) -> "Printed":
        """Read digits: `12.34` is exact to half of its last digit.

        >>> Printed.of("12.34", 1.0).half
        0.005
        """
        digits, _, exponent = text.lower().partition("e")
        last = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
        return cls(float(text) * unit, last / 2 * unit)


def contradiction(name: str, printed: Printed, amount: float, time: Printed) -> str:
    """What is wrong with a printed bandwidth of `amount` bytes in `time`, "" if rounding explains the difference.

    >>> contradiction("algbw", Printed(93.46e9, 5e6), 2**29, Printed(5744.6e-6, 5e-8))
    ''
    >>> contradiction("algbw", Printed(80e9, 5e6), 2**29, Printed(5744.6e-6, 5e-8))
    'algbw is 80 GB/s, but 512 MiB in 5.745 ms are 93.46 GB/s'
    """
    slowest, fastest = amount / (time.value + time.half), amount / max(time.value - time.half, time.value / 2)
    rounding = 1.01 * printed.half  # a digit that ends in 5 goes either way
    if slowest - rounding <= printed.value <= fastest + rounding and math.isfinite(rounding):
        return ""
    rate = f"{amount / time.value / _GIGABYTE:.4g} GB/s"
    said = f"{name} is {printed.value / _GIGABYTE:.4g} GB/s"
    return f"{said}, but {show(amount, 'B', digits=4)} in {show(time.value, 's', digits=4)} are {rate}"
