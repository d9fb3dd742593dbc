"""LayerNorm and RMSNorm over features that one axis may split: statistics are always those of the full width.

Ranks send one or two numbers per row, in fp32 (or fp64 if products run in fp64). Means and variances never come from
sums of x and x^2, whose difference loses all digits if the mean is large. Ranks send the mean and the squared
deviations of their own part, which are combined exactly (Chan, Golub and LeVeque 1979).
"""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import layer_norm, rms_norm

from perfmodel.launch.training.groups import Axis
from perfmodel.launch.training.parameters import WHOLE, Piece, Vector
from perfmodel.models import layers

_EPSILON = 1e-5


class Norm(nn.Module):
    """A norm over `layer.width` features split over `axis`: LayerNorm, or RMSNorm where there is no shift."""

    def __init__(self, layer: layers.Norm, axis: Axis = WHOLE, *, name: str = "", partial: bool = False) -> None:
        """Scales start at 1, shifts at 0; `partial` where each rank of X normalizes different heads."""
        super().__init__()
        self.axis, self.width, name = axis, layer.width, name or layer.name
        self.scale = Vector(
            Piece(name=f"{name}.scale", rows=layer.width, columns=1, over_rows=axis, fill=1.0), partial=partial
        )
        self.shift = (
            Vector(Piece(name=f"{name}.shift", rows=layer.width, columns=1, over_rows=axis)) if layer.bias else None
        )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """(..., width / axis) to the same."""
        scale, shift = self.scale(), None if self.shift is None else self.shift()
        if self.axis.size == 1 and inputs.is_cuda and inputs.dtype == scale.dtype:
            return fused(inputs, scale, shift)
        if shift is None:
            outputs: torch.Tensor = _RMSNorm.apply(inputs, scale, self)  # type: ignore[no-untyped-call]
        else:
            outputs = _LayerNorm.apply(inputs, scale, shift, self)  # type: ignore[no-untyped-call]
        return outputs


def fused(inputs: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor | None) -> torch.Tensor:
    """Torch's own kernels, where nothing is split: on GPUs each reads the rows once."""
    if shift is None:
        return rms_norm(inputs, scale.shape, scale, _EPSILON)
    return layer_norm(inputs, scale.shape, scale, shift, _EPSILON)


def exact(dtype: torch.dtype) -> torch.dtype:
    """The format of sums that must not be rounded to that of products: fp32, or fp64 where products run in it."""
    return torch.float64 if dtype == torch.float64 else torch.float32


class _LayerNorm(torch.autograd.Function):
    """Keeps its input, and for each row the mean and 1 / deviation."""

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor, norm: Norm) -> torch.Tensor:
        wide = inputs.to(exact(inputs.dtype))
        mean, inverse = _statistics(wide, norm)
        ctx.save_for_backward(inputs, scale, mean, inverse)
        ctx.norm = norm
        return torch.addcmul(shift.to(wide.dtype), (wide - mean) * inverse, scale.to(wide.dtype)).to(inputs.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, None]:
        """(g - mean(g) - x mean(g x)) / deviation, x normalised, g the incoming gradient times the scale."""
        inputs, scale, mean, inverse = ctx.saved_tensors
        normalised, gradient = (inputs.to(mean.dtype) - mean) * inverse, gradients[0].to(mean.dtype)
        scaled = gradient * scale.to(mean.dtype)
        sums = torch.stack((scaled.sum(-1, keepdim=True), (scaled * normalised).sum(-1, keepdim=True)))
        pending = ctx.norm.axis.all_reduce(sums)
        of_scale, of_shift = _over_rows(gradient * normalised), _over_rows(gradient)
        pending.wait()
        sums /= ctx.norm.width
        back = (scaled - sums[0] - normalised * sums[1]) * inverse
        return back.to(inputs.dtype), of_scale.to(scale.dtype), of_shift.to(scale.dtype), None


class _RMSNorm(torch.autograd.Function):
    """Keeps its input, and for each row 1 / root mean square."""

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor, scale: torch.Tensor, norm: Norm) -> torch.Tensor:
        wide = inputs.to(exact(inputs.dtype))
        squares = wide.square().sum(-1, keepdim=True)
        norm.axis.all_reduce(squares).wait()
        inverse = torch.rsqrt(squares / norm.width + _EPSILON)
        ctx.save_for_backward(inputs, scale, inverse)
        ctx.norm = norm
        return (wide * inverse * scale.to(wide.dtype)).to(inputs.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        """As for LayerNorm, without the means."""
        inputs, scale, inverse = ctx.saved_tensors
        normalised, gradient = inputs.to(inverse.dtype) * inverse, gradients[0].to(inverse.dtype)
        scaled = gradient * scale.to(inverse.dtype)
        sums = (scaled * normalised).sum(-1, keepdim=True)
        pending = ctx.norm.axis.all_reduce(sums)
        of_scale = _over_rows(gradient * normalised)
        pending.wait()
        back = (scaled - normalised * (sums / ctx.norm.width)) * inverse
        return back.to(inputs.dtype), of_scale.to(scale.dtype), None


def _statistics(wide: torch.Tensor, norm: Norm) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and 1 / deviation of each row over all features."""
    here = wide.shape[-1]
    mean = wide.mean(-1, keepdim=True)
    squares = (wide - mean).square().sum(-1, keepdim=True)
    if norm.axis.size > 1:
        whole, pending = norm.axis.all_gather(torch.stack((mean, squares)))
        pending.wait()
        means, parts = whole.view(norm.axis.size, 2, *mean.shape).unbind(1)
        mean = means.mean(0)
        squares = parts.sum(0) + here * (means - mean).square().sum(0)
    return mean, torch.rsqrt(squares / norm.width + _EPSILON)


def _over_rows(rows: torch.Tensor) -> torch.Tensor:
    """Sum over all dimensions but the last."""
    return rows.reshape(-1, rows.shape[-1]).sum(0)
