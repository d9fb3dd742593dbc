"""The grid as torch sees it: a process group for each axis, cut from the same array of ranks that the model reads.

A rank creates only the groups that it is a member of, at most five for any number of ranks. AxoNN 0.2.0 creates every
group of every rank: 24,578 calls at 8192 ranks of pure depth. An axis of size 1 has no group and sends nothing; an axis
that spans all ranks uses the default group.
"""

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import torch
import torch.distributed as dist

from perfmodel.launch.training.ledger import Ledger
from perfmodel.parallel import ranks
from perfmodel.parallel.axes import BATCH_GROUP, COMMUNICATION_GROUPS, REPLICA_GROUP, TENSOR_GROUP
from perfmodel.parallel.layout import Layout

# The names in torch 2.13, and the older names of the same functions.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


class Pending(Protocol):
    """A collective in progress. `wait` makes later work on this device wait for it; the host waits only on gloo."""

    def wait(self) -> object:
        """Return when the result may be used."""


class Nothing:
    """A collective in a group of one rank."""

    def wait(self) -> None:
        """Return at once, since nothing was sent."""


NOTHING = Nothing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """This rank's group along one axis: its size, this rank's place in it, and the collectives over it.

    All three collectives return at once, with a `Pending`. The result may be used only after its `wait`.
    """

    name: str
    size: int = 1
    place: int = 0
    group: dist.ProcessGroup | None = None
    ledger: Ledger = field(default_factory=Ledger)

    @classmethod
    def strided(cls, *, rank: int, world: int, inner: int, size: int) -> "Axis":
        """The group of `rank` among the groups of `size` ranks with stride `inner`."""
        first = rank // (inner * size) * (inner * size) + rank % inner
        members, name = np.arange(first, first + inner * size, inner), f"{size} ranks, stride {inner}"
        return cls(name=name, size=size, place=(rank - first) // inner, group=_group(members, world, name))

    def all_reduce(self, tensor: torch.Tensor, op: dist.ReduceOp.RedOpType = dist.ReduceOp.SUM) -> Pending:
        """Replace `tensor`, which is contiguous, on every rank with the sum (or `op`) over the group."""
        if self.size == 1:
            return NOTHING
        self.ledger.add("all-reduce", self.name, tensor.numel(), tensor.dtype)
        pending: Pending = dist.all_reduce(tensor, op=op, group=self.group, async_op=True)
        return pending

    def all_gather(self, part: torch.Tensor) -> tuple[torch.Tensor, Pending]:
        """The parts of all ranks, joined along the first dimension in the order of their places in the group."""
        if self.size == 1:
            return part, NOTHING
        whole = part.new_empty((self.size * part.shape[0], *part.shape[1:]))
        self.ledger.add("all-gather", self.name, whole.numel(), whole.dtype)
        return whole, _all_gather(whole, part.contiguous(), group=self.group, async_op=True)

    def reduce_scatter(self, whole: torch.Tensor) -> tuple[torch.Tensor, Pending]:
        """This rank's part of the sum of all ranks' `whole`, cut along the first dimension; may overwrite `whole`.

        Gloo's reduce-scatter takes a third longer than its all-reduce (16 MiB, 2 to 8 ranks), so on gloo this calls the
        all-reduce.
        """
        if self.size == 1:
            return whole, NOTHING
        self.ledger.add("reduce-scatter", self.name, whole.numel(), whole.dtype)
        whole = whole.contiguous()
        if dist.get_backend(self.group) == "gloo":
            return self.part(whole, 0), dist.all_reduce(whole, group=self.group, async_op=True)
        part = whole.new_empty((whole.shape[0] // self.size, *whole.shape[1:]))
        return part, _reduce_scatter(part, whole, group=self.group, async_op=True)

    def part(self, tensor: torch.Tensor, dimension: int) -> torch.Tensor:
        """This rank's part of `tensor`, split evenly along a dimension, as a view."""
        length = tensor.shape[dimension] // self.size
        return tensor.narrow(dimension, self.place * length, length)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """One rank's place in the grid: its axes, two joint axes, and the ledger of what they have sent.

    `replicas` are ranks that hold the same weights and see different tokens; `xy` joins X and Y, which together split
    the vocabulary.
    """

    layout: Layout
    rank: int
    x: Axis
    y: Axis
    z: Axis
    replicas: Axis
    xy: Axis
    ledger: Ledger

    @classmethod
    def of(cls, layout: Layout, rank: int = 0) -> "Grid":
        """Create this rank's groups; torch.distributed must have been set up, unless there is only one rank."""
        ledger = Ledger()
        made: dict[str, tuple[np.ndarray, dist.ProcessGroup | None]] = {}
        for name in COMMUNICATION_GROUPS:
            members = ranks.members_with(layout, name, rank)
            same = [axis for axis in made.values() if members.size > 1 and np.array_equal(axis[0], members)]
            group = same[0][1] if same else _group(members, int(layout.gpus), name)
            made[name] = members, group
        axes = {
            name: Axis(
                name=name, size=len(members), place=int(np.flatnonzero(members == rank)[0]), group=group, ledger=ledger
            )
            for name, (members, group) in made.items()
        }
        replicas, xy = axes.pop(REPLICA_GROUP), axes.pop(TENSOR_GROUP)
        return cls(layout=layout, rank=rank, **axes, replicas=replicas, xy=xy, ledger=ledger)

    def sent_over(self, group: str) -> Axis:
        """The axis, or the joint axis, that the ledger counts under this name."""
        return next(axis for axis in (self.x, self.y, self.z, self.replicas, self.xy) if axis.name == group)

    @property
    def shares(self) -> int:
        """The number of shares of the batch: ranks that see different tokens."""
        return int(self.layout.size(BATCH_GROUP))

    def exchanged(self) -> "Grid":
        """The grid of a transposed layer: X and Y are exchanged, but keep their groups and names in the ledger."""
        return replace(self, x=self.y, y=self.x)


def join_features(axis: Axis, part: torch.Tensor) -> torch.Tensor:
    """Rows whose features are gathered from all ranks of an axis."""
    whole, pending = axis.all_gather(part)
    pending.wait()
    if axis.size == 1:
        return whole
    return whole.view(axis.size, *part.shape).transpose(0, 1).reshape(len(part), -1)


def _group(members: np.ndarray, world: int, name: str) -> dist.ProcessGroup | None:
    if members.size == 1:
        return None
    if members.size == world:
        return dist.group.WORLD
    made: dist.ProcessGroup = dist.new_group(members.tolist(), use_local_synchronization=True, group_desc=name)
    return made
