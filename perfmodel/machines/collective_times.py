"""Measured times of collectives as a profile holds them: one table per operation and shape of group."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from perfmodel.errors import PartError
from perfmodel.units import show

Operation = Literal["all-gather", "reduce-scatter", "all-reduce"]
MeasuredSize = Annotated[float, "B", "1 B", "100 TiB"]  # unit, plausible minimum and maximum
MeasuredTime = Annotated[float, "s", "100 ns", "1000 s"]


@dataclass(frozen=True, slots=True)
class TimingRow:
    """Times of one call on so many nodes, one for each size of the table."""

    nodes: int
    times: tuple[MeasuredTime, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Times of one operation in groups of `ranks` members in each node, `inner` ranks from one to the next.

    A size is the output of an all-gather, or the input of a reduction. As in the bandwidth database, all groups of that
    shape in the nodes communicate at once: with `inner` 1 and several nodes that is one group, which has all the NICs.
    """

    operation: Operation
    ranks: int
    source: str
    sizes: tuple[MeasuredSize, ...]
    rows: tuple[TimingRow, ...]
    inner: int = 1

    def __post_init__(self) -> None:
        """A full table of at least two sizes, in order."""
        if self.ranks < 1 or self.inner < 1:
            raise PartError(f"a group of {self.ranks} ranks per node, stride {self.inner}: wanted 1 or more of each")
        if len(self.sizes) < 2:
            raise PartError(f"{len(self.sizes)} sizes, wanted two or more to interpolate between", "sizes")
        if not self.rows:
            raise PartError("no row of times, wanted one or more", "rows")
        if place := _out_of_order(self.sizes):
            before, after = (show(size, "B", digits=6) for size in self.sizes[place - 1 : place + 1])
            raise PartError(f"the size {after} comes after {before}; wanted each once, ascending", "sizes", place)
        if place := _out_of_order([row.nodes for row in self.rows]):
            counts = f"{self.rows[place].nodes} nodes comes after {self.rows[place - 1].nodes}"
            raise PartError(f"the row of {counts}; wanted each once, ascending", "rows", place)
        for place, row in enumerate(self.rows):
            self._check_row(row, place)

    def _check_row(self, row: TimingRow, place: int) -> None:
        if row.nodes < 1 or row.nodes * self.ranks == 1:
            raise PartError(f"{self.ranks} ranks on each of {row.nodes} nodes are no group", "rows", place)
        if len(row.times) != len(self.sizes):
            counts = f"{len(row.times)} times for {len(self.sizes)} sizes"
            raise PartError(f"the row of {row.nodes} nodes has {counts}; wanted one for each", "rows", place)

    @property
    def shape(self) -> str:
        """The groups to which the table applies, in words."""
        return ranks_apart(self.ranks, self.inner)


def ranks_apart(ranks: int, inner: int) -> str:
    """The shape of a group, in words.

    >>> ranks_apart(4, 1)
    '4 ranks per node, stride 1'
    """
    return f"{ranks} rank{'s' * (ranks > 1)} per node, stride {inner}"


def _out_of_order(values: Sequence[float]) -> int:
    """The first place whose value is not above the one before it, 0 where all ascend."""
    return next((place for place in range(1, len(values)) if values[place] <= values[place - 1]), 0)
