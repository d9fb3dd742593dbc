"""AdamW on the flat tensors: its state is sharded because the parameters are."""

import torch
from torch import nn

from perfmodel.launch.training.parameters import Flat


class ShardedAdamW:
    """torch.optim.AdamW with a rank's parameters in two groups, and the two moments in the same order as the values.

    Weight decay applies to the parameters that Z shards (matrices), but not to the others (biases, norms, positions).
    Moments have the number format of the master copy.
    """

    def __init__(
        self, flat: Flat, *, learning_rate: float, betas: tuple[float, float], eps: float, weight_decay: float
    ) -> None:
        """Start with moments of zero, before the first step."""
        self._flat = flat
        self.first, self.second = torch.zeros_like(flat.master), torch.zeros_like(flat.master)
        sharded = flat.section("sharded")
        rest = slice(sharded.stop, flat.master.numel())
        self._runs = [(run, nn.Parameter(flat.master[run])) for run in (sharded, rest)]
        groups = [
            {"params": [values], "weight_decay": decay}
            for (_, values), decay in zip(self._runs, (weight_decay, 0.0), strict=True)
        ]
        # One fused kernel needs no temporary tensors as large as the model.
        self._adamw = torch.optim.AdamW(groups, lr=learning_rate, betas=betas, eps=eps, fused=True)
        self.resume(0)

    def resume(self, steps: int) -> None:
        """Continue as if `steps` had been made; the bias corrections of the moments depend on this number."""
        self.steps = steps
        for run, values in self._runs:
            made = torch.tensor(float(steps), device=values.device)
            self._adamw.state[values] = {"step": made, "exp_avg": self.first[run], "exp_avg_sq": self.second[run]}

    def step(self) -> None:
        """Update the master copy with the gradient, and round it to the format of products."""
        for run, values in self._runs:
            values.grad = self._flat.gradient[run]
        self._adamw.step()
        self.steps += 1
        self._flat.publish()
