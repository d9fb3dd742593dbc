"""What happens to gradients at the end of a step: sums over Z and data, the norm over all ranks, and clipping.

The schedule has summed the gradients of sharded weights over Z in every micro-step. Their flat section is summed over
data in buckets, from its end to its start, because the backward pass finishes the last layers first. If "data" is
overlapped, a bucket is sent in the last micro-step as soon as its last weight has been scattered. All other parameters
are replicated over Z and data, and their gradients are summed over both as one slice.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from perfmodel.launch.training.groups import Grid, Pending
from perfmodel.launch.training.parameters import Flat, Weight, copies
from perfmodel.parallel.settings import BUCKET


@dataclass(slots=True, eq=False)
class _Bucket:
    """A slice of the flat gradient, and the weights in it whose gradients have not arrived."""

    where: slice
    awaited: set[Weight] = field(default_factory=set)
    pending: Pending | None = None


class Gradients:
    """The flat gradient of a model's parameters, summed once per step."""

    def __init__(self, flat: Flat, grid: Grid, *, bucket: float = BUCKET) -> None:
        """`bucket`: the size in bytes from which a bucket takes no further weight."""
        self._flat, self._grid, self._bytes = flat, grid, bucket
        self._buckets: list[_Bucket] = []
        self._of: dict[Weight, _Bucket] = {}
        self.begin()

    def begin(self) -> None:
        """Start a step: clear the gradient and mark all buckets as unsent."""
        self._flat.clear()
        self._buckets = list(_buckets(self._flat, self._bytes))
        self._of = {weight: bucket for bucket in self._buckets for weight in bucket.awaited}

    def arrived(self, weight: Weight) -> None:
        """Note that the last micro-step has scattered this weight's gradient, and send its bucket if it is complete."""
        bucket = self._of[weight]
        bucket.awaited.remove(weight)
        if not bucket.awaited:
            self._send(bucket)

    def finish(self) -> None:
        """Sum the unsent gradients over Z and data, and partial gradients over x, and wait for all of these sums."""
        self._flat.complete()
        for bucket in self._buckets:
            if bucket.pending is None:
                self._send(bucket)
        gradient, copied = self._flat.gradient, self._copied()
        if copied.numel():
            self._grid.z.all_reduce(copied).wait()
            partial = gradient[self._flat.section("partial")]
            if partial.numel():
                self._grid.x.all_reduce(partial).wait()
            self._grid.replicas.all_reduce(copied).wait()
        for bucket in self._buckets:
            assert bucket.pending is not None  # noqa: S101 - sent above
            bucket.pending.wait()

    def norm(self) -> torch.Tensor:
        """Euclidean norm of the whole model's gradient, each element counted once; the same on every rank."""
        gradient = self._flat.gradient
        total = torch.zeros((), device=gradient.device, dtype=gradient.dtype)
        for name, start, end in self._flat.sections:
            if end > start:
                total += torch.linalg.vector_norm(gradient[start:end]).square() / copies(self._grid, name)
        self._grid.xy.all_reduce(total).wait()
        self._grid.z.all_reduce(total).wait()
        return total.sqrt()

    def clip(self, norm: torch.Tensor, most: float) -> None:
        """Scale the gradient so that its norm is at most `most`; the host does not wait for the norm."""
        self._flat.gradient.mul_(torch.clamp(most / norm, max=1.0))

    def _send(self, bucket: _Bucket) -> None:
        bucket.pending = self._grid.replicas.all_reduce(self._flat.gradient[bucket.where])

    def _copied(self) -> torch.Tensor:
        """The gradients of parameters that are replicated over Z and data."""
        return self._flat.gradient[self._flat.section("sharded").stop :]


def _buckets(flat: Flat, size: float) -> Iterator[_Bucket]:
    """Buckets of the sharded section, from its end to its start: runs of whole weights of at least `size` bytes."""
    end = start = flat.section("sharded").stop
    awaited: set[Weight] = set()
    for weight in reversed([held for held in flat.held if isinstance(held, Weight)]):
        start -= weight.piece.elements
        awaited.add(weight)
        if (end - start) * flat.gradient.itemsize >= size:
            yield _Bucket(slice(start, end), awaited)
            end, awaited = start, set()
    if awaited:
        yield _Bucket(slice(start, end), awaited)
