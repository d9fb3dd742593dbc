"""When a weight is gathered over Z, how long it is kept, and when its gradient is scattered.

Every micro-step asks for weights in the same order. The first micro-step records this order. After that, if gathers
overlap, the next weight is gathered while the present one is in use (arXiv 2502.08145, section V-D, OAG). A scattered
gradient is waited for when two more have been sent, or at the end (ORS).
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import torch

from perfmodel.launch.training.groups import Axis, Pending
from perfmodel.launch.training.parameters import Weight
from perfmodel.parallel.choices import AXONN_OVERLAPS, Overlap, WeightCache

# A forward pass that will be run again keeps nothing for the backward pass; "again" is that second forward pass.
Pass = Literal["forward", "first", "again", "backward"]
_SCATTERS_UNDER_WAY = 2  # each keeps a whole gradient in memory


class Schedule:
    """Gathers weights and scatters their gradients over Z, for all layers of a model."""

    def __init__(
        self, z: Axis, *, overlap: frozenset[Overlap] = AXONN_OVERLAPS, weight_cache: WeightCache = "none"
    ) -> None:
        """`weight_cache`: a gathered weight is kept for no other pass, from the last forward pass on, or always."""
        self._z, self.overlap, self._cache = z, overlap, weight_cache
        self._during: Pass = "forward"
        self._order: list[tuple[Weight, torch.dtype]] = []
        self._next = 0
        self._recorded = False
        self._ahead: tuple[Weight, torch.Tensor, Pending] | None = None
        self._kept: dict[Weight, torch.Tensor] = {}
        self._scatters: deque[tuple[Weight, torch.Tensor, Pending]] = deque()
        self.scattered: Callable[[Weight], None] = lambda _: None

    def begin(self) -> None:
        """Start a micro-step."""
        self.finish()
        self._recorded, self._next = self._recorded or bool(self._order), 0

    def finish(self) -> None:
        """End a micro-step: wait for all gradients, and release all gathered weights."""
        while self._scatters:
            self._settle()
        if self._ahead:
            self._ahead[2].wait()
        self._ahead = None
        self._kept.clear()

    @contextmanager
    def during(self, which: Pass) -> Iterator[None]:
        """Count what runs inside this context as part of a pass."""
        before, self._during = self._during, which
        try:
            yield
        finally:
            self._during = before

    def gather(self, weight: Weight, dtype: torch.dtype, *, last: bool = False) -> torch.Tensor:
        """This rank's block of a weight, in the format of its product; `last` marks its last use in the micro-step."""
        if self._z.size == 1:
            return weight.values.to(dtype).view(weight.piece.block)
        if weight in self._kept:
            return self._kept.pop(weight) if last else self._kept[weight]
        found = self._arrive(weight, dtype).view(weight.piece.block)
        if not last and (self._cache == "all" or (self._cache == "forward" and self._during != "first")):
            self._kept[weight] = found
        return found

    def scatter(self, weight: Weight, gradient: torch.Tensor) -> None:
        """Add this rank's shard of the gradient, summed over Z, to what the step has accumulated."""
        part, pending = self._z.reduce_scatter(gradient.reshape(-1))
        self._scatters.append((weight, part, pending))
        allowed = _SCATTERS_UNDER_WAY if "reduce-scatter" in self.overlap else 0
        while len(self._scatters) > allowed:
            self._settle()

    def _settle(self) -> None:
        weight, part, pending = self._scatters.popleft()
        pending.wait()
        weight.accumulate(part)
        self.scattered(weight)

    def _arrive(self, weight: Weight, dtype: torch.dtype) -> torch.Tensor:
        """The gathered weight, whose gather begins now or has begun earlier; then begin to gather the next one."""
        if self._ahead and self._ahead[0] is weight and self._ahead[1].dtype == dtype:
            _, whole, pending = self._ahead
        else:
            whole, pending = self._send(weight, dtype)
        self._ahead = None
        pending.wait()
        self._note(weight, dtype)
        if "all-gather" in self.overlap and self._recorded and self._next < len(self._order):
            following, form = self._order[self._next]
            self._ahead = (following, *self._send(following, form))
        return whole

    def _send(self, weight: Weight, dtype: torch.dtype) -> tuple[torch.Tensor, Pending]:
        return self._z.all_gather(weight.values.detach().to(dtype))

    def _note(self, weight: Weight, dtype: torch.dtype) -> None:
        """Advance in the recorded order; if a weight deviates from it (an evaluation pass), record anew from there."""
        if self._recorded and self._next < len(self._order) and self._order[self._next][0] is weight:
            self._next += 1
            return
        self._recorded = False
        self._order[self._next :] = [(weight, dtype)]
        self._next += 1
