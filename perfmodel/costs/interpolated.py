"""Measured times of collectives, which override the formula of `nccl` for the groups they were measured on.

A table applies to one operation in groups of one shape. Between its sizes and node counts it is interpolated
logarithmically; one node and several are never mixed, since one node uses no network. Beyond its sizes the nearest time
is scaled as the formula scales. The table does not apply to other groups or beyond its node counts.

All functions take scalars or arrays alike, and a row of a batch equals the single call exactly.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from perfmodel.machines.collective_times import Operation, TimingRow, Timings, ranks_apart
from perfmodel.units import Array, Bytes, Number, Seconds, show

if TYPE_CHECKING:
    from perfmodel.costs.nccl import Route
    from perfmodel.machines.machine import Machine
from perfmodel.numerics import isotonic

Formula: TypeAlias = Callable[[Bytes], Seconds]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MeasuredTable:
    """Times as an array: `logarithms` of seconds, with a row for each of `nodes` and a column for each of `sizes`.

    `factor` multiplies the seconds: samples of their uncertainty (see `uncertainty`).
    """

    timings: Timings
    source: str
    nodes: Array
    sizes: Array
    logarithms: Array
    factor: Number = 1.0

    @classmethod
    def of(cls, timings: Timings, rows: Iterable[TimingRow], source: str = "") -> "MeasuredTable":
        """Some rows of a profile's table.

        A small call could always send more, so a time above that of a larger size is noise: see `isotonic`.
        """
        rows = tuple(rows)
        logarithms = np.array([isotonic(np.log(row.times)) for row in rows])
        nodes = np.array([float(row.nodes) for row in rows])
        return cls(timings=timings, source=source, nodes=nodes, sizes=np.array(timings.sizes), logarithms=logarithms)

    def match(self, along: "Route") -> "TableMatch":
        """The groups that the table applies to: of its shape, complete in each node, within its node counts.

        >>> from perfmodel.costs.nccl import Constants, route
        >>> rows = (TimingRow(2, (1e-4, 4e-4)), TimingRow(8, (2e-4, 8e-4)))
        >>> timings = Timings(operation="all-gather", ranks=4, source="", sizes=(1e6, 4e6), rows=rows)
        >>> table = MeasuredTable.of(timings, rows)
        >>> at = Constants(
        ...     domain=4, fabric=1e-6, network=6e-6, bulk=31e-6, ring=31e-6, far=6e-6, eager=float("inf"), near=512,
        ...     startup=17e-6, channels=94e9, switched=0.0, tapered=float("inf"),
        ... )
        >>> found = table.match(route(at, inner=1, size=16, inside=False, bandwidth=70e9))  # 4 nodes, half-way
        >>> seconds = [found.override(1.0, size, lambda size: size / 1e9) for size in (2e6, 8e6)]  # the last: twice 4e6
        >>> [round(float(each), 9) for each in seconds]
        [0.000282843, 0.001131371]
        """
        shape = (along.inner == self.timings.inner) & (along.ranks == self.timings.ranks)
        whole = (along.size == along.nodes * along.ranks) & (along.size > 1)
        within = (along.nodes >= self.nodes[0]) & (along.nodes <= self.nodes[-1])
        there = np.asarray(shape & whole & within)
        rows = np.flatnonzero(there)
        nodes = np.broadcast_to(along.nodes, there.shape).ravel()[rows]
        low, high, share = _between(self.nodes, nodes)
        return TableMatch(table=self, rows=rows, shape=there.shape, low=low, high=high, share=share)

    def origin(self, buffer: float) -> str:
        """The source of the time of a call in a group that the table applies to, in words."""
        measured = f"measured table, {self.source}"
        if self.sizes[0] <= buffer <= self.sizes[-1]:
            return measured
        if buffer < self.sizes[0]:
            return f"{measured}, for its smallest size, {show(self.sizes[0], 'B')}, and from there as the formula"
        return f"{measured}, for its largest size, {show(self.sizes[-1], 'B')}, and from there as the formula"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableMatch:
    """A table and the groups of one axis: the `rows` that it applies to, and their places among its node counts."""

    table: MeasuredTable
    rows: Array
    shape: tuple[int, ...]
    low: Array
    high: Array
    share: Array

    def measures(self, operation: Operation, buffer: float) -> bool:
        """Whether one call in a group that the table applies to is within its sizes."""
        return self.table.timings.operation == operation and bool(self.table.sizes[0] <= buffer <= self.table.sizes[-1])

    def override(self, known: Seconds, buffer: Bytes, formula: Formula) -> Array:
        """The table's time where it applies, else `known`; `formula` is the time of a size without a table.

        The last axis is that of a batch; only the rows that the table applies to are looked up.
        """
        if not len(self.rows):
            return np.asarray(known)
        shape = np.broadcast_shapes(np.shape(known), np.shape(buffer), np.shape(self.table.factor), self.shape)
        times = np.atleast_1d(np.array(np.broadcast_to(known, shape)))
        rows = self.rows if self.shape else slice(None)  # one group in every row
        sent = np.broadcast_to(buffer, shape[-1:] or 1)[rows]
        times[..., rows] = self._measured(sent)
        nearest = np.clip(buffer, self.table.sizes[0], self.table.sizes[-1])
        if np.any(nearest != buffer):
            here, there = (np.broadcast_to(formula(size), shape or 1)[..., rows] for size in (buffer, nearest))
            times[..., rows] *= here / there
        return times.reshape(shape)

    def _measured(self, buffer: Array) -> Array:
        """From the table's entries; beyond its sizes, the time of the nearest."""
        known = self.table.logarithms
        left, right, part = _between(self.table.sizes, buffer)
        lower = (1 - part) * known[self.low, left] + part * known[self.low, right]
        upper = (1 - part) * known[self.high, left] + part * known[self.high, right]
        seconds: Array = self.table.factor * np.exp((1 - self.share) * lower + self.share * upper)
        return seconds


def measured_tables(machine: "Machine") -> tuple[MeasuredTable, ...]:
    """The tables of a profile, separate for one node and for several."""
    found = []
    for timings in machine.collectives:
        source = f"{machine.sources[timings.source].kind} [{timings.source}]"
        for inside in (True, False):
            rows = [row for row in timings.rows if (row.nodes == 1) is inside]
            if rows:
                found.append(MeasuredTable.of(timings, rows, source))
    return tuple(found)


def origin(tables: Sequence[MeasuredTable], operation: Operation, buffer: float, along: "Route") -> str:
    """The source of the time of one call, in words: a table, or the formula and why."""
    if along.size == 1:
        return "nothing to send"
    mine = [table for table in tables if table.timings.operation == operation]
    for table in mine:
        if len(table.match(along).rows):
            return table.origin(buffer)
    if not mine:
        return f"formula: the profile has no measured {operation}"
    known = "; ".join(f"{table.timings.shape}, on {_span(table.nodes[0], table.nodes[-1])}" for table in mine)
    group = f"{ranks_apart(int(along.ranks), int(along.inner))}, on {_span(along.nodes, along.nodes)}"
    return f"formula: no table of {operation} is for {group} (there is: {known})"


def _span(least: Number, most: Number) -> str:
    return f"{least:g} node{'s' * int(least > 1)}" if least == most else f"{least:g} to {most:g} nodes"


def _between(grid: Array, value: Number) -> tuple[Array, Array, Array]:
    """The neighbours of `value` in `grid`, and its logarithmic position between them, 0 to 1."""
    inside = np.clip(value, grid[0], grid[-1])
    right = np.minimum(np.searchsorted(grid, inside, side="right"), len(grid) - 1)
    left = np.maximum(right - 1, 0)
    width = np.where(right > left, np.log(grid[right] / grid[left]), 1.0)
    return left, right, np.log(inside / grid[left]) / width
