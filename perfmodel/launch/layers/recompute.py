"""Running a part of the forward pass again instead of keeping what it computes."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

from perfmodel.launch.training.plan import Plan


def again(plan: Plan, function: Callable[..., torch.Tensor], *inputs: object) -> torch.Tensor:
    """`function(*inputs)`, of which only `inputs` are kept; the backward pass runs all of it a second time."""

    def passes() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        return plan.schedule.during("first"), plan.schedule.during("again")

    # With early stopping, ranks would not send the same collectives as in the first pass.
    with set_checkpoint_early_stop(False):
        outputs: torch.Tensor = checkpoint(
            function, *inputs, use_reentrant=False, preserve_rng_state=False, context_fn=passes
        )
    return outputs
