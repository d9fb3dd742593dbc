"""Convolutions of a U-Net as 4D layers: channels are split as the features of a linear layer are.

An image is (height, width, channels), channels last as features are everywhere, and images are the rows that Z and
data split. A weight is stored as `layers.Linear` counts it: for each output, kernel^2 numbers of each input channel.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.functional import conv2d, conv_transpose2d, group_norm, silu
from torch.nn.grad import conv2d_weight

from perfmodel.errors import UsageError
from perfmodel.launch.layers.linear import Linear
from perfmodel.launch.training.groups import Axis, Grid, join_features
from perfmodel.launch.training.parameters import Piece, Vector
from perfmodel.launch.training.plan import Plan
from perfmodel.launch.training.tuner import Products
from perfmodel.models import layers
from perfmodel.models.model import Block

_GROUPS = 32  # of a U-Net's norms (Wu and He 2018; Dhariwal and Nichol 2021)


class Convolution(Linear):
    """A convolution of odd kernel, stride 1 and zeros around the image, whose size stays."""

    def __init__(self, plan: Plan, layer: layers.Linear, *, name: str = "", std: float = 0.02) -> None:
        """As a linear layer; a channel's kernel is not cut."""
        super().__init__(plan, layer, name=name, std=std)
        if layer.kernel % 2 == 0:
            raise UsageError(f"{layer.name} has a kernel of {layer.kernel}; wanted an odd one, which keeps the size")
        if layer.inputs % self.at.y.size:
            raise UsageError(
                f"{layer.name} has {layer.inputs} channels, which {self.at.y.name} {self.at.y.size} cannot split evenly"
            )
        self.products = _Convolved(kernel=layer.kernel)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """(images, height, width, inputs / Y) to (..., outputs / X); a transposed layer exchanges X and Y."""
        outputs = self.multiply(inputs, None)
        return outputs if self.bias is None else outputs + self.bias().to(outputs.dtype)


class _Convolved(Products):
    """What takes the place of a linear layer's three products; images have their channels last."""

    def __init__(self, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel

    def nt(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Outputs from inputs and weight."""
        return _last(conv2d(_first(a), self._weight(b), padding=self.kernel // 2))

    def nn(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """The gradient of the inputs from that of the outputs and the weight."""
        return _last(conv_transpose2d(_first(a), self._weight(b), padding=self.kernel // 2))

    def tn(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """The gradient of the weight from that of the outputs and the inputs."""
        sizes = (a.shape[-1], b.shape[-1], self.kernel, self.kernel)
        gradient: torch.Tensor = conv2d_weight(  # type: ignore[no-untyped-call]
            _first(b), sizes, _first(a), padding=self.kernel // 2
        )
        return gradient

    def _weight(self, block: torch.Tensor) -> torch.Tensor:
        """(outputs, inputs * kernel^2) as torch takes it."""
        return block.view(len(block), -1, self.kernel, self.kernel)


def _first(images: torch.Tensor) -> torch.Tensor:
    """Channels where torch looks for them; nothing moves."""
    return images.permute(0, 3, 1, 2)


def _last(images: torch.Tensor) -> torch.Tensor:
    return images.permute(0, 2, 3, 1).contiguous()


class GroupNorm(nn.Module):
    """A norm over the positions and some channels of an image. No axis cuts a group, so ranks send nothing."""

    def __init__(self, layer: layers.Norm, axis: Axis, *, name: str = "", groups: int = _GROUPS) -> None:
        """`groups` in all, of `layer.width` channels that `axis` splits."""
        super().__init__()
        name = name or layer.name
        if groups % axis.size or layer.width % groups:
            raise UsageError(
                f"{name}: {axis.name} {axis.size} cannot split {layer.width} channels in {groups} groups evenly"
            )
        self.groups = groups // axis.size
        self.scale = Vector(Piece(name=f"{name}.scale", rows=layer.width, columns=1, over_rows=axis, fill=1.0))
        self.shift = (
            Vector(Piece(name=f"{name}.shift", rows=layer.width, columns=1, over_rows=axis)) if layer.bias else None
        )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """(images, height, width, channels / axis) to the same."""
        shift = self.shift() if self.shift is not None else None
        return _last(group_norm(_first(inputs), self.groups, self.scale(), shift))


class ResidualBlock(nn.Module):
    """Norm, SiLU and convolution twice, the second transposed, beside a skip; records as `models.unet` has them."""

    def __init__(self, plan: Plan, block: Block, *, name: str = "", groups: int = _GROUPS) -> None:
        """Channels are split over Y before and after, over X between."""
        super().__init__()
        self.grid, name = plan.grid, name or block.name
        records = {layer.name: layer for layer in block.layers}
        self.norms, self.convolutions = nn.ModuleList(), nn.ModuleList()
        for which, axis in (("first", plan.grid.y), ("second", plan.grid.x)):
            norm = records[f"{which} norm"]
            assert isinstance(norm, layers.Norm)  # noqa: S101 - a U-Net names its layers
            self.norms.append(GroupNorm(norm, axis, name=f"{name}.{norm.name}", groups=groups))
            self.convolutions.append(_convolution(plan, records, f"{which} convolution", name))
        self.skip = _convolution(plan, records, "skip convolution", name) if "skip convolution" in records else None

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """(images, height, width, channels / Y) to the same with the block's channels."""
        hidden = inputs
        for norm, convolution in zip(self.norms, self.convolutions, strict=True):
            hidden = convolution(silu(norm(hidden)))
        if self.skip is None:
            return inputs + hidden
        beside: torch.Tensor = _FromXToY.apply(self.skip(inputs), self.grid)  # type: ignore[no-untyped-call]
        return beside + hidden


def _convolution(plan: Plan, records: Mapping[str, layers.Layer], which: str, name: str) -> Convolution:
    layer = records[which]
    assert isinstance(layer, layers.Linear)  # noqa: S101 - a U-Net names its layers
    return Convolution(plan, layer, name=f"{name}.{which}")


class _FromXToY(torch.autograd.Function):
    """What a normal layer gives, split over X, as what a transposed one gives, split over Y."""

    @staticmethod
    def forward(ctx: Any, split: torch.Tensor, grid: Grid) -> torch.Tensor:
        ctx.grid = grid
        return _changed(split, grid.x, grid.y)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return _changed(gradients[0], ctx.grid.y, ctx.grid.x), None


def _changed(split: torch.Tensor, before: Axis, after: Axis) -> torch.Tensor:
    """Features split over one axis, gathered and split over another."""
    part = after.part(join_features(before, split.flatten(0, -2)), 1).contiguous()
    return part.view(*split.shape[:-1], -1)
