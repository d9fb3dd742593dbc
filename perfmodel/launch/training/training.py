"""A step of training: micro-steps, sums over Z and data, clipping, AdamW."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from perfmodel.errors import UsageError
from perfmodel.launch.training.gradients import Gradients
from perfmodel.launch.training.optimizer import ShardedAdamW
from perfmodel.launch.training.parameters import Flat, Weight
from perfmodel.launch.training.plan import Plan
from perfmodel.parallel.settings import BUCKET

Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a model is trained, by default as GPT-3 of 350 million parameters (arXiv 2005.14165, table 2.1, appendix B).

    `clip`: the largest allowed norm of the gradient, or None.
    """

    learning_rate: float = 3e-4
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = 0.1
    clip: float | None = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Mean loss over the tokens of a step before its update, and norm of the gradient before clipping.

    Both are scalars on the device; reading one (`float(...)`) waits for the step.
    """

    loss: torch.Tensor
    gradient_norm: torch.Tensor


class Trainer:
    """A model, its parameters, and the optimizer's state on one rank.

    The model is called as `model(tokens, targets, scale=..., step=..., micro_step=...)` and returns this rank's sum of
    token losses times `scale`. So the sum over micro-steps, Z and data is the mean over the tokens of the step.
    """

    def __init__(
        self,
        model: nn.Module,
        flat: Flat,
        plan: Plan,
        settings: Training,
        accumulation: int = 1,
        *,
        bucket: float = BUCKET,
    ) -> None:
        """`accumulation` micro-steps make a step; `bucket`: see `gradients.Gradients`."""
        self.model, self.flat, self.plan, self.accumulation = model, flat, plan, accumulation
        self.settings = settings
        self.gradients = Gradients(flat, plan.grid, bucket=bucket)
        self.optimizer = ShardedAdamW(
            flat,
            learning_rate=settings.learning_rate,
            betas=settings.betas,
            eps=settings.eps,
            weight_decay=settings.weight_decay,
        )

    def step(self, step: int, batches: Sequence[Batch]) -> Outcome:
        """Train on this rank's batches of a step, one per micro-step; `step` counts from 0."""
        if len(batches) != self.accumulation:
            raise UsageError(f"batches for a step: {len(batches)}; wanted {self.accumulation}, one per micro-step")
        self.gradients.begin()
        loss = self._passes(step, batches)
        self.gradients.finish()
        norm = self.gradients.norm()
        if self.settings.clip is not None:
            self.gradients.clip(norm, self.settings.clip)
        self.optimizer.step()
        return Outcome(self._summed(loss), norm)

    def _passes(self, step: int, batches: Sequence[Batch]) -> torch.Tensor:
        """Forward and backward passes of all micro-steps; this rank's part of the loss."""
        schedule, device = self.plan.schedule, self.flat.master.device
        tokens_of_step = sum(targets.numel() for _, targets in batches) * self.plan.grid.shares
        total = torch.zeros((), device=device, dtype=self.flat.master.dtype)
        for micro_step, batch in enumerate(batches):
            tokens, targets = (part.to(device, non_blocking=True) for part in batch)
            schedule.begin()
            if micro_step == self.accumulation - 1 and "data" in schedule.overlap:
                schedule.scattered = self.gradients.arrived
            loss = self.model(tokens, targets, scale=1.0 / tokens_of_step, step=step, micro_step=micro_step)
            loss.backward()
            total += loss.detach()
        schedule.finish()
        schedule.scattered = _ignore
        return total

    def _summed(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss of all ranks; the ranks of x and y have computed the same value, so it is not summed over them."""
        self.plan.grid.z.all_reduce(loss).wait()
        self.plan.grid.replicas.all_reduce(loss).wait()
        return loss


def _ignore(_: Weight) -> None:
    """Do nothing: buckets are sent only in the last micro-step."""
