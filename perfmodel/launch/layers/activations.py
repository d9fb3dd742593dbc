"""The activation between the two layers of an MLP; keeps only its input."""

from typing import Any

import torch
from torch.nn.functional import gelu, silu

from perfmodel.models import layers


def activate(layer: layers.Activation, inputs: torch.Tensor) -> torch.Tensor:
    """GELU; or, gated, SiLU(gate) * up, with features alternating gate, up, so that a split keeps pairs whole."""
    if not layer.gated:
        return gelu(inputs)
    outputs: torch.Tensor = _Gated.apply(inputs)  # type: ignore[no-untyped-call]
    return outputs


class _Gated(torch.autograd.Function):
    """Autograd by itself would keep SiLU(gate) as well."""

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(inputs)
        gate, up = _pairs(inputs)
        return silu(gate) * up

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        (inputs,), (gradient,) = ctx.saved_tensors, gradients
        gate, up = _pairs(inputs)
        part = torch.sigmoid(gate)
        of_gate = gradient * up * part * (1 + gate * (1 - part))
        return torch.stack((of_gate, gradient * gate * part), -1).flatten(-2)


def _pairs(inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    gate, up = inputs.view(*inputs.shape[:-1], -1, 2).unbind(-1)
    return gate, up
