"""One collective of a step: its bytes, the groups that it runs in, how often it is called, the time of a call.

The groups of one axis are a `Link`. Below full fidelity the time of a call is its bytes over the bandwidth of the link
(the paper's Eqs. 1 to 5). At full fidelity a `ProtocolLink` adds hops, protocols and measured tables.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, Protocol, Self

import numpy as np

from perfmodel.costs import nccl, ring
from perfmodel.costs.bandwidth import Bandwidths
from perfmodel.costs.interpolated import MeasuredTable, TableMatch
from perfmodel.machines.collective_times import Operation
from perfmodel.numerics import expand_rows
from perfmodel.units import Array, Bytes, BytesPerSecond, Count, Number, Seconds

Term = Literal[
    "weight_gather",
    "gradient_scatter",
    "forward_reduce",
    "backward_reduce",
    "data_reduce",
    "update_gather",
    "vocabulary",
    "small",
]
# What a collective does for its layer. `gather`: the weight, before a pass. `reduce`: the sum that ends the forward
# pass, and statistics in it. `reduce_back`: the sum of input gradients, beside the weight gradient's product. `wait`:
# what the backward pass waits for. `scatter`: the weight gradient, every micro-step. `data`: the gradient, once per
# step. `update`: the weights that a sharded optimizer has updated, once per step. `end`: what ends a step and belongs
# to no layer.
Role = Literal["gather", "reduce", "reduce_back", "wait", "scatter", "data", "update", "end"]
ROLES: tuple[Role, ...] = ("gather", "reduce", "reduce_back", "wait", "scatter", "data", "update", "end")


class LinkCosts(Protocol):
    """The part of a machine's costs that a link needs (see `costs.Costs`)."""

    @property
    def bandwidths(self) -> Bandwidths:
        """Of groups, by their place in the hierarchy."""

    @property
    def constants(self) -> nccl.Constants:
        """Of the library's protocols."""

    @property
    def tables(self) -> tuple[MeasuredTable, ...]:
        """Measured times."""

    @property
    def host_time(self) -> Seconds:
        """Seconds to issue a call."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Link:
    """The groups of one axis: size, place in the hierarchy, achieved bandwidth, and whether any leaves its domain.

    `known`: a cache of the times of calls, since all norms of a model send the same buffer.
    """

    axis: str
    size: Number
    inner: Count
    bandwidth: BytesPerSecond
    crosses: Count
    known: dict[tuple[Operation, int], tuple[Bytes, Seconds]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, costs: LinkCosts, *, axis: str, size: Count, inner: Count, gpus: Count) -> Self:
        """The groups of `size` ranks with `inner` ranks between neighbours, in a job of `gpus` devices."""
        bandwidth = costs.bandwidths.of_group(inner=inner, size=size, gpus=gpus)
        crosses = np.logical_not(costs.bandwidths.contained(inner=inner, size=size, gpus=gpus))
        return cls(axis=axis, size=1.0 * size, inner=inner, bandwidth=bandwidth, crosses=crosses)

    def time(self, operation: Operation, buffer: Bytes) -> Seconds:
        """Seconds of one call; the cache keeps the buffer, so no other buffer can get the same id."""
        key = operation, id(buffer)
        if key not in self.known:
            self.known[key] = buffer, self._seconds(operation, buffer)
        return self.known[key][1]

    def expand_rows(self, back: Array, count: int) -> Self:
        """The same for more layouts: row i of the result is row `back[i]` (see `numerics.expand_rows`)."""
        return replace(self, known={}, **_rows(self, ("size", "inner", "bandwidth", "crosses"), back, count))

    def _seconds(self, operation: Operation, buffer: Bytes) -> Seconds:
        return ring.TIMES[operation](buffer, size=self.size, bandwidth=self.bandwidth)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProtocolLink(Link):
    """A link at full fidelity: route of the messages, tables measured for such groups, time to issue a call."""

    route: nccl.Route
    measured: tuple[TableMatch, ...]
    tables: tuple[MeasuredTable, ...]
    issue: Seconds

    @classmethod
    def of(cls, costs: LinkCosts, *, axis: str, size: Count, inner: Count, gpus: Count) -> Self:
        """As for any link, with the protocols and measurements for such groups."""
        plain = Link.of(costs, axis=axis, size=size, inner=inner, gpus=gpus)
        route = nccl.route(
            costs.constants, inner=inner, size=size, inside=np.logical_not(plain.crosses), bandwidth=plain.bandwidth
        )
        return cls(
            **{each.name: getattr(plain, each.name) for each in fields(plain)},
            route=route,
            measured=_held(costs.tables, route),
            tables=costs.tables,
            issue=costs.host_time,
        )

    def expand_rows(self, back: Array, count: int) -> Self:
        """As for any link, with its route; measured tables are looked up again."""
        route = replace(self.route, **_rows(self.route, (each.name for each in fields(self.route)), back, count))
        rows = _rows(self, ("size", "inner", "bandwidth", "crosses"), back, count)
        return replace(self, known={}, route=route, measured=_held(self.tables, route), **rows)

    def _seconds(self, operation: Operation, buffer: Bytes) -> Seconds:
        def formula(sent: Bytes) -> Seconds:
            return nccl.TIMES[operation](sent, self.route)

        along = formula(buffer)
        for held in self.measured:
            if held.table.timings.operation == operation:
                along = held.override(along, buffer, formula)
        issued: Seconds = np.maximum(along, np.where(self.size > 1, self.issue, 0.0))
        return issued


def _rows(of: object, names: Iterable[str], back: Array, count: int) -> dict[str, Any]:
    return {name: expand_rows(getattr(of, name), back, count) for name in names}


def _held(tables: tuple[MeasuredTable, ...], route: nccl.Route) -> tuple[TableMatch, ...]:
    return tuple(held for held in (table.match(route) for table in tables) if len(held.rows))


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: the time of a call is computed once, on first use
class Collective:
    """One collective of one layer: `buffer` bytes per device (gathered or unreduced), `calls` times per step.

    `bucket`, if not None: bytes of the one call that sends the buffer with others. `each`: calls per pass.
    """

    layer: str
    role: Role
    term: Term
    operation: Operation
    link: Link
    buffer: Bytes
    calls: Number
    bucket: "Bytes | None" = None
    each: int = 1

    @cached_property
    def time(self) -> Seconds:
        """Seconds of one call, or the buffer's share of the call of its bucket."""
        if self.bucket is None:
            return self.link.time(self.operation, self.buffer)
        return self.link.time(self.operation, self.bucket) * (self.buffer / self.bucket)

    @property
    def together(self) -> Bytes:
        """Bytes of the call that sends the buffer."""
        return self.buffer if self.bucket is None else self.bucket

    @property
    def sent(self) -> Number:
        """Calls per step; a call that several layers share counts as a fraction."""
        return self.calls if self.bucket is None else self.calls * self.buffer / self.bucket

    @property
    def total(self) -> Seconds:
        """Seconds of all calls in a step."""
        return self.calls * self.time
