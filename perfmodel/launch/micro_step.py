"""What layers are told of the micro-step that they run in."""

from dataclasses import dataclass

import torch

from perfmodel.launch.groups import Grid


@dataclass(frozen=True, slots=True)
class MicroStep:
    """The step, the first of this rank's sequences counted through the step's batch, and the angles of positions."""

    step: int
    first: int
    turns: tuple[torch.Tensor, torch.Tensor] | None = None


def first_sequence(grid: Grid, *, micro_batch: int, micro_step: int) -> int:
    """A micro-step takes the next `micro_batch` sequences for every rank of z and data, those of data outermost."""
    shares, mine = grid.data.size * grid.z.size, grid.data.place * grid.z.size + grid.z.place
    return (micro_step * shares + mine) * micro_batch
