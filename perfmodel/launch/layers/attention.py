"""Causal attention of the heads that a rank of X holds; all ranks of Y compute the same heads.

The preceding layer orders features by groups of heads that share a key and a value: queries, key, value. So X splits
between whole groups, and grouped-query attention is not a special case.
"""

import math
from typing import Any

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention, softmax

from perfmodel.errors import UsageError
from perfmodel.launch.layers import recompute
from perfmodel.launch.layers.dropout import dropped
from perfmodel.launch.layers.norms import Norm
from perfmodel.launch.layers.rotary import turned
from perfmodel.launch.training.plan import MicroStep, Plan
from perfmodel.models import layers


class Attention(nn.Module):
    """From joined queries, keys and values to the heads' outputs; keeps these three, and no scores with `flash`."""

    def __init__(self, plan: Plan, layer: layers.Attention, *, name: str = "", flash: bool = True) -> None:
        """Query and key norms are shared by all heads, so every rank holds them whole."""
        super().__init__()
        self.plan, self.layer, self.name, self.flash = plan, layer, name or layer.name, flash
        self.groups, rest = divmod(layer.kv_heads, plan.grid.x.size)
        if rest:
            raise UsageError(f"{layer.kv_heads} key-value heads, which x {plan.grid.x.size} cannot split evenly")
        self.shared = layer.heads // layer.kv_heads
        self.query_norm, self.key_norm = (
            Norm(layers.Norm(name=f"{self.name}.{what}", width=layer.head_dim, bias=False), partial=True)
            if layer.query_key_norm
            else None
            for what in ("query norm", "key norm")
        )

    def forward(self, joined: torch.Tensor, at: MicroStep) -> torch.Tensor:
        """(sequences, positions, (heads + 2 kv_heads) head_dim / X) to (sequences, positions, heads head_dim / X)."""
        queries, keys, values = _Split.apply(  # type: ignore[no-untyped-call]
            joined, self.groups, self.shared, self.layer.head_dim
        )
        if self.query_norm is not None and self.key_norm is not None:
            queries, keys = self.query_norm(queries), self.key_norm(keys)
        if at.turns is not None:
            queries, keys = turned(queries, at.turns), turned(keys, at.turns)
        core = _flash if self.flash else self._materialized
        if self.plan.recompute == "selective":
            return recompute.again(self.plan, core, queries, keys, values, at)
        return core(queries, keys, values, at)

    def _materialized(
        self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, at: MicroStep
    ) -> torch.Tensor:
        """Keeps the softmax, and with dropout its mask and result. Heads of a group are stacked."""
        sequences, positions, heads, width = queries.shape
        queries, keys, values = (
            part.transpose(1, 2).reshape(sequences * self.groups, -1, width) for part in (queries, keys, values)
        )
        future = torch.full((positions, positions), -math.inf, device=queries.device, dtype=queries.dtype).triu(1)
        future = future.repeat(self.shared, 1).expand(len(queries), -1, -1)
        scores = torch.baddbmm(future, queries, keys.transpose(1, 2), alpha=1 / math.sqrt(width))
        shares = self._dropped(softmax(scores, -1).view(sequences, heads, positions, positions), at)
        outputs = torch.bmm(shares.view(scores.shape), values).view(sequences, heads, positions, width)
        return outputs.transpose(1, 2).flatten(2)

    def _dropped(self, shares: torch.Tensor, at: MicroStep) -> torch.Tensor:
        """Dropout by global index of sequence, head, query and key."""
        if not self.plan.dropout:
            return shares
        sequences, heads, positions, _ = shares.shape
        counted = [torch.arange(count, device=shares.device) for count in (sequences, heads, positions)]
        sequence, head, query = at.first + counted[0], self.plan.grid.x.place * heads + counted[1], counted[2]
        rows = (sequence[:, None, None] * self.layer.heads + head[:, None]) * positions + query
        return dropped(self.plan, shares, rows * positions, name=f"{at.step}/{self.name}")


def _flash(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, _: MicroStep) -> torch.Tensor:
    """Drops no scores: the kernel's own random state would make each grid drop different ones."""
    grouped = queries.shape[2] != keys.shape[2]
    queries, keys, values = (part.transpose(1, 2) for part in (queries, keys, values))
    outputs = scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=grouped)
    return outputs.transpose(1, 2).flatten(2)


class _Split(torch.autograd.Function):
    """Split the joined tensor into copies, so that it is not kept as well; the backward pass writes into one tensor."""

    @staticmethod
    def forward(ctx: Any, joined: torch.Tensor, groups: int, shared: int, width: int) -> tuple[torch.Tensor, ...]:
        """Queries, keys and values, each (sequences, positions, heads, features)."""
        ctx.shared = shared
        grouped = joined.view(*joined.shape[:-1], groups, shared + 2, width)
        parts = torch.split(grouped, [shared, 1, 1], -2)
        return tuple(part.flatten(-3, -2).clone(memory_format=torch.contiguous_format) for part in parts)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        """The gradients, joined again."""
        before, width = gradients[0].shape[:-2], gradients[0].shape[-1]
        parts = [
            part.reshape(*before, -1, size, width) for part, size in zip(gradients, (ctx.shared, 1, 1), strict=True)
        ]
        return torch.cat(parts, -2).flatten(-3), None, None, None
