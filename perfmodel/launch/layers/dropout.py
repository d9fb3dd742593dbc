"""Dropout with the same masks on every grid: each element's random number depends on its index in the batch.

No state is kept or restored: a recomputed block draws the same mask again.
"""

import torch

from perfmodel.launch.training import draws
from perfmodel.launch.training.groups import Axis
from perfmodel.launch.training.plan import MicroStep, Plan


class Dropout:
    """Dropout of `width` features that `axis` splits."""

    def __init__(self, plan: Plan, name: str, width: int, axis: Axis) -> None:
        """`name` gives each layer its own masks."""
        self.plan, self.name, self.width, self.axis = plan, name, width, axis

    def __call__(self, inputs: torch.Tensor, at: MicroStep) -> torch.Tensor:
        """Of (sequences, positions, features / axis)."""
        if not self.plan.dropout:
            return inputs
        sequences, positions, here = inputs.shape
        rows = at.first * positions + torch.arange(sequences * positions, device=inputs.device)
        starts = rows.view(sequences, positions) * self.width + self.axis.place * here
        return dropped(self.plan, inputs, starts, name=f"{at.step}/{self.name}")


def dropped(plan: Plan, inputs: torch.Tensor, starts: torch.Tensor, *, name: str) -> torch.Tensor:
    """`inputs` where kept, scaled up; `starts` are the indices of the first elements along the last dimension."""
    kept = _kept(starts.flatten(), inputs.shape[-1], draws.key(plan.seed, name), plan.dropout)
    return inputs * kept.view(inputs.shape) * (1 / (1 - plan.dropout))


def _kept(starts: torch.Tensor, width: int, key: int, rate: float) -> torch.Tensor:
    """Which elements stay, one byte each; a few rows at a time, as hashes take 16 bytes per element."""
    kept = torch.empty(len(starts), width, dtype=torch.bool, device=starts.device)
    places, rows = torch.arange(width, device=starts.device), max(1, draws.CHUNK // width)
    for first in range(0, len(starts), rows):
        index = starts[first : first + rows, None] + places
        kept[first : first + rows] = draws.uniform(index, key) >= rate
    return kept
