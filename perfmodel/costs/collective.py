"""One collective of a step: its bytes, the groups that it runs in, how often it is called, what a call takes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from perfmodel.costs import ring
from perfmodel.machines.collective_times import Operation
from perfmodel.units import Bytes, BytesPerSecond, Count, Number, Seconds

if TYPE_CHECKING:
    from perfmodel.costs.interpolated import Held
    from perfmodel.costs.nccl import Path

Term = Literal[
    "weight_gather", "gradient_scatter", "forward_reduce", "backward_reduce", "data_reduce", "vocabulary", "small"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The groups of one axis: size, place in the hierarchy, achieved bandwidth, and whether any leaves its domain.

    At full fidelity also the path of its messages, the tables measured on such groups, and the least time of a call:
    issuing it.
    """

    axis: str
    size: Number
    inner: Count
    bandwidth: BytesPerSecond
    crosses: Count
    path: "Path | None" = None
    measured: "tuple[Held, ...]" = ()
    issue: Seconds = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One collective of one layer: `buffer` bytes a device (gathered or unreduced), `calls` times a step.

    `bucket`, where it is not None: bytes that travel together, among them the buffer.
    """

    layer: str
    term: Term
    operation: Operation
    link: Link
    buffer: Bytes
    calls: Number
    bucket: "Bytes | None" = None

    @property
    def time(self) -> Seconds:
        """Seconds of one call, or the buffer's part of those of its bucket."""
        if self.bucket is None:
            return self._alone(self.buffer)
        return self._alone(self.bucket) * (self.buffer / self.bucket)

    @property
    def together(self) -> Bytes:
        """Bytes of the call that the buffer travels in."""
        return self.buffer if self.bucket is None else self.bucket

    @property
    def sent(self) -> Number:
        """Calls a step, those that many share counted in part."""
        return self.calls if self.bucket is None else self.calls * self.buffer / self.bucket

    def _alone(self, buffer: Bytes) -> Seconds:
        name, link = self.operation.replace("-", "_"), self.link
        if link.path is None:
            seconds: Seconds = getattr(ring, name)(buffer, size=link.size, bandwidth=link.bandwidth)
            return seconds

        from perfmodel.costs import nccl  # noqa: PLC0415 - as in Job

        formula: Callable[[Bytes], Seconds] = partial(getattr(nccl, name), along=link.path)
        along = formula(buffer)
        for held in link.measured:
            if held.table.timings.operation == self.operation:
                along = held.override(along, buffer, formula)
        issued: Seconds = np.maximum(along, np.where(link.size > 1, link.issue, 0.0))
        return issued

    @property
    def total(self) -> Seconds:
        """Seconds of all calls in a step."""
        return self.calls * self.time
