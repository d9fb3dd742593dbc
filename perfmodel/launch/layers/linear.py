"""The 4D linear layer (arXiv 2502.08145, Algorithm 1).

On rank (i, j, k) of X, Y, Z, with a weight of n outputs and k inputs:

    forward     W  = all-gather of the shard over Z                 (n / X) x (k / Y)
                O  = all-reduce over Y of I W^T                     (m / Z) x (n / X)
    backward    dI = all-reduce over X of dO W                      (m / Z) x (k / Y)
                dW = reduce-scatter over Z of dO^T I                a shard again

I is split over Y and replicated over X; O is split over X and replicated over Y. So the next layer is *transposed*: X
and Y change roles, it takes O as it is, and its output is split like I. dI is sent while dW is computed (OAR).
"""

from typing import Any

import torch
from torch import nn

from perfmodel.launch.training.parameters import Piece, Vector, Weight
from perfmodel.launch.training.plan import Plan
from perfmodel.models import layers


class Linear(nn.Module):
    """A fully connected layer whose weight is split over X, Y and Z. Rows of the input are this rank's share."""

    def __init__(self, plan: Plan, layer: layers.Linear, *, name: str = "", std: float = 0.02) -> None:
        """Initial weights are normal with deviation `std`, biases zero; `name` distinguishes layers of one kind."""
        super().__init__()
        self.at = plan.grid.exchanged() if layer.transposed else plan.grid
        self.schedule, self.products = plan.schedule, plan.products
        name, (x, y, z) = name or layer.name, (self.at.x, self.at.y, self.at.z)
        self.weight = Weight(
            Piece(
                name=f"{name}.weight",
                rows=layer.outputs,
                columns=layer.inputs,
                over_rows=x,
                over_columns=y,
                over_z=z,
                std=std,
            )
        )
        self.bias = (
            Vector(Piece(name=f"{name}.bias", rows=layer.outputs, columns=1, over_rows=x)) if layer.bias else None
        )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """(..., inputs / Y) to (..., outputs / X); a transposed layer (..., inputs / X) to (..., outputs / Y)."""
        bias = self.bias() if self.bias is not None else None
        rows = inputs.reshape(-1, inputs.shape[-1])
        outputs: torch.Tensor = _Linear.apply(rows, self.weight.values, bias, self)  # type: ignore[no-untyped-call]
        return outputs.view(*inputs.shape[:-1], outputs.shape[-1])


class _Linear(torch.autograd.Function):
    """The products and collectives of one layer. The weight's gradient goes to the schedule, not to autograd."""

    @staticmethod
    def forward(
        ctx: Any, inputs: torch.Tensor, values: torch.Tensor, bias: torch.Tensor | None, layer: Linear
    ) -> torch.Tensor:
        """`values` is an argument so that autograd calls `backward` even where the inputs need no gradient."""
        inputs = inputs.to(product_dtype(values))
        weight = layer.schedule.gather(layer.weight, inputs.dtype)
        outputs = layer.products.nt(inputs, weight)
        layer.at.y.all_reduce(outputs).wait()
        if bias is not None:
            outputs += bias
        ctx.save_for_backward(inputs)
        ctx.layer, ctx.with_bias, ctx.given = layer, bias is not None, bias.dtype if bias is not None else None
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, None, torch.Tensor | None, None]:
        """Where nothing is sent over X, dW comes first, so that its reduce-scatter runs while dI is computed."""
        (gradient,), (inputs,) = gradients, ctx.saved_tensors
        layer, schedule, at = ctx.layer, ctx.layer.schedule, ctx.layer.at
        gradient = gradient.to(inputs.dtype).contiguous()
        weight = schedule.gather(layer.weight, inputs.dtype, last=True)
        scatter_first = at.x.size == 1 and at.z.size > 1 and "reduce-scatter" in schedule.overlap
        if scatter_first:
            _scatter(layer, gradient, inputs)
        back = layer.products.nn(gradient, weight)
        pending = at.x.all_reduce(back)
        if "all-reduce" not in schedule.overlap:
            pending.wait()
        if not scatter_first:
            _scatter(layer, gradient, inputs)
        of_bias = gradient.sum(0).to(ctx.given) if ctx.with_bias else None
        pending.wait()
        return back, None, of_bias, None


def _scatter(layer: Linear, gradient: torch.Tensor, inputs: torch.Tensor) -> None:
    """The gradient dW = dO^T I, on its way to where it is accumulated."""
    weight, schedule = layer.weight, layer.schedule
    if layer.at.z.size == 1 and weight.gradient.dtype == inputs.dtype:
        weight.accumulate_product(gradient.t(), inputs)
        schedule.scattered(weight)
    else:
        schedule.scatter(weight, layer.products.tn(gradient, inputs))


def product_dtype(values: torch.Tensor) -> torch.dtype:
    """The format of the products: the weight's own, or that of autocast."""
    kind = values.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else values.dtype
