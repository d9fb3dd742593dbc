"""A count of all collectives by operation, axis and size, as the analytical model counts them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch

Operation = Literal["all-gather", "reduce-scatter", "all-reduce"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One kind of call; `elements` is the size of one device's buffer after a gather or before a reduction."""

    operation: Operation
    axis: str
    elements: int
    dtype: torch.dtype

    @property
    def buffer(self) -> int:
        """The size of the buffer in bytes."""
        return self.elements * self.dtype.itemsize


@dataclass(slots=True)
class Ledger:
    """How often each kind of call was made; all axes of a grid share one ledger."""

    calls: Counter[Call] = field(default_factory=Counter)

    def add(self, operation: Operation, axis: str, elements: int, dtype: torch.dtype) -> None:
        """Count one call."""
        self.calls[Call(operation=operation, axis=axis, elements=elements, dtype=dtype)] += 1

    def totals(self) -> dict[tuple[Operation, str], tuple[int, int]]:
        """(calls, bytes) by operation and axis."""
        found: dict[tuple[Operation, str], tuple[int, int]] = {}
        for call, times in self.calls.items():
            calls, sent = found.get((call.operation, call.axis), (0, 0))
            found[call.operation, call.axis] = calls + times, sent + times * call.buffer
        return found

    def since(self, before: Counter[Call]) -> "Ledger":
        """The calls that were added after a copy of `calls` was taken."""
        return Ledger(self.calls - before)

    def __iter__(self) -> Iterator[tuple[Call, int]]:
        """Every kind of call with its count, in the order of the first calls."""
        return iter(self.calls.items())
