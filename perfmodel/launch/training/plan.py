"""How a model is run on a grid: what every layer needs to know, passed down when the model is built."""

from dataclasses import dataclass, field

import torch

from perfmodel.launch.training.groups import Grid
from perfmodel.launch.training.schedule import Schedule
from perfmodel.launch.training.tuner import Products
from perfmodel.parallel.choices import AXONN_OVERLAPS, Overlap, Recompute, WeightCache


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The grid, the schedule of weights, the modes of products, recomputation, and dropout."""

    grid: Grid
    schedule: Schedule
    products: Products = field(default_factory=Products)
    recompute: Recompute = "none"
    dropout: float = 0.0
    seed: int = 0

    @classmethod
    def of(
        cls,
        grid: Grid,
        *,
        overlap: frozenset[Overlap] = AXONN_OVERLAPS,
        weight_cache: WeightCache = "none",
        recompute: Recompute = "none",
        tune: bool = False,
    ) -> "Plan":
        """A plan with a new schedule."""
        schedule = Schedule(grid.z, overlap=overlap, weight_cache=weight_cache)
        return cls(grid=grid, schedule=schedule, products=Products(tune=tune), recompute=recompute)


@dataclass(frozen=True, slots=True)
class MicroStep:
    """The step, the index in its batch of this rank's first sequence, and the rotary angles of positions."""

    step: int
    first: int
    turns: tuple[torch.Tensor, torch.Tensor] | None = None


def first_sequence(grid: Grid, *, micro_batch: int, micro_step: int) -> int:
    """The index in the step's batch of this rank's first sequence in a micro-step.

    A micro-step takes the next `micro_batch` sequences for every share of the batch. The shares of one z group follow
    each other.
    """
    mine = grid.replicas.place * grid.z.size + grid.z.place
    return (micro_step * grid.shares + mine) * micro_batch
