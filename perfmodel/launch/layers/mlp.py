"""Linear layers with GELU between them, normal and transposed in turn: the least that shows the algorithm."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn.functional import gelu

from perfmodel.launch.layers.linear import Linear
from perfmodel.launch.training.plan import Plan
from perfmodel.models import layers


class Mlp(nn.Module):
    """Layers between `widths`; an even number of layers gives what is split over Y, as its inputs are."""

    def __init__(self, plan: Plan, widths: tuple[int, ...], *, bias: bool = True) -> None:
        """Layers are called "mlp.0", "mlp.1" and so on."""
        super().__init__()
        self.schedule = plan.schedule
        self.linears = nn.ModuleList(
            Linear(
                plan,
                layers.Linear(
                    name=f"mlp.{index}", inputs=inputs, outputs=outputs, transposed=index % 2 == 1, bias=bias
                ),
            )
            for index, (inputs, outputs) in enumerate(pairwise(widths))
        )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """(rows, first width / Y) to (rows, last width / Y or X)."""
        for index, linear in enumerate(self.linears):
            inputs = linear(inputs if index == 0 else gelu(inputs))
        return inputs
