"""Embedding and head: a table whose rows, one per token of the vocabulary, are split over X and Y together.

Every rank looks up the tokens that it holds and leaves zeros for the others. The sum over X and Y is the hidden state,
of which each rank of Y keeps its features. The head gathers these features again and multiplies them by its rows of the
table. Logits stay where they are computed, and only three numbers per token are reduced: the largest logit, that of the
target, and the sum of exponentials (vocabulary-parallel cross-entropy, Shoeybi et al. 2019).
"""

import math
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import embedding

from perfmodel.errors import UsageError
from perfmodel.launch.layers.linear import product_dtype
from perfmodel.launch.layers.norms import exact
from perfmodel.launch.training.groups import join_features
from perfmodel.launch.training.parameters import Piece, Vector, Weight
from perfmodel.launch.training.plan import Plan
from perfmodel.models import layers


class VocabularyTable(nn.Module):
    """The rows of a vocabulary, padded so that all ranks hold the same number; padding rows stay zero."""

    def __init__(self, plan: Plan, name: str, layer: layers.Embedding | layers.Head, *, padded: int) -> None:
        """Rows are initialized like weights."""
        super().__init__()
        self.grid, self.schedule, self.products = plan.grid, plan.schedule, plan.products
        piece = Piece(
            name=f"{name}.weight",
            rows=padded,
            columns=layer.width,
            over_rows=plan.grid.xy,
            over_z=plan.grid.z,
            std=0.02,
            drawn=layer.vocabulary,
        )
        self.weight = Weight(piece)
        self.start, self.rows = piece.corner[0], piece.block[0]
        self.tokens = min(max(layer.vocabulary - self.start, 0), self.rows)
        self.tied = False
        self._waiting: torch.Tensor | None = None

    def gather(self, dtype: torch.dtype) -> torch.Tensor:
        """This rank's rows; a caller that needs them twice keeps them."""
        rows: torch.Tensor = self.schedule.gather(self.weight, dtype, last=True)
        return rows

    def local(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(row here, whether it is here) of each token."""
        row = tokens - self.start
        return row.clamp(0, self.rows - 1), (row >= 0) & (row < self.rows)

    def scatter_from_head(self, gradient: torch.Tensor) -> None:
        """Delays a tied head's gradient until the embedding's is ready, so that one reduce-scatter carries both."""
        if not self.tied:
            self.schedule.scatter(self.weight, gradient)
        elif self.grid.z.size == 1:
            self.weight.accumulate(gradient.reshape(-1))
        else:
            self._waiting = gradient

    def scatter_from_embedding(self, gradient: torch.Tensor) -> None:
        """The sum of both gradients, if the head is tied."""
        waiting, self._waiting = self._waiting, None
        self.schedule.scatter(self.weight, gradient if waiting is None else waiting.add_(gradient))


class Embedding(nn.Module):
    """Token table and learned positions; returns hidden states split over Y."""

    def __init__(self, plan: Plan, layer: layers.Embedding, *, padded: int) -> None:
        """Positions are initialized like weights."""
        super().__init__()
        self.table = VocabularyTable(plan, layer.name, layer, padded=padded)
        positions, y = layer.learned_positions, plan.grid.y
        self.positions = (
            Vector(Piece(name=f"{layer.name}.positions", rows=positions, columns=layer.width, over_columns=y, std=0.02))
            if positions
            else None
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(sequences, positions) to (sequences, positions, width / Y)."""
        hidden: torch.Tensor = _LookUp.apply(self.table.weight.values, tokens, self.table)  # type: ignore[no-untyped-call]
        if self.positions is None:
            return hidden
        known = self.positions.piece.rows
        if tokens.shape[1] > known:
            raise UsageError(f"a sequence of {tokens.shape[1]} tokens, but the model has {known} learned positions")
        learned: torch.Tensor = self.positions()
        return hidden + learned[: tokens.shape[1]].to(hidden.dtype)


class Head(nn.Module):
    """Logits and loss, from hidden states split over Y."""

    def __init__(self, plan: Plan, layer: layers.Head, *, padded: int, tied_to: VocabularyTable | None = None) -> None:
        """Use a separate table, or that of the embedding."""
        super().__init__()
        self.table = VocabularyTable(plan, layer.name, layer, padded=padded) if tied_to is None else tied_to
        self.table.tied = tied_to is not None
        piece = Piece(name=f"{layer.name}.bias", rows=padded, columns=1, over_rows=plan.grid.xy, drawn=layer.vocabulary)
        self.bias = Vector(piece) if layer.bias else None

    def forward(self, hidden: torch.Tensor, targets: torch.Tensor, scale: float) -> torch.Tensor:
        """`scale` times the sum of the losses of this rank's tokens, the same number on all ranks of X and Y."""
        bias = self.bias() if self.bias is not None else None
        rows, values = hidden.flatten(0, -2), self.table.weight.values
        loss: torch.Tensor = _Loss.apply(rows, values, bias, targets.flatten(), self.table, scale)  # type: ignore[no-untyped-call]
        return loss


class _LookUp(torch.autograd.Function):
    """Keeps the tokens."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, tokens: torch.Tensor, table: VocabularyTable) -> torch.Tensor:
        dtype = product_dtype(values)
        row, here = table.local(tokens)
        hidden = embedding(row, table.gather(dtype)).mul_(here[..., None])
        table.grid.xy.all_reduce(hidden).wait()
        ctx.save_for_backward(row, here)
        ctx.table = table
        return table.grid.y.part(hidden, -1).contiguous()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[None, None, None]:
        """Rows are summed by torch's kernel, on GPUs in fp32; an extra row collects the tokens of other ranks."""
        (row, here), table = ctx.saved_tensors, ctx.table
        whole = join_features(table.grid.y, gradients[0].flatten(0, -2))
        row = torch.where(here, row, table.rows).flatten()
        of_rows = torch.ops.aten.embedding_dense_backward(
            whole, row, table.rows + 1, padding_idx=table.rows, scale_grad_by_freq=False
        )
        table.scatter_from_embedding(of_rows[: table.rows])
        return None, None, None


class _Loss(torch.autograd.Function):
    """Keeps the joined hidden states, the table, and in fp32 the gradient of the logits, computed in place."""

    @staticmethod
    def forward(  # noqa: PLR0913, PLR0917 - torch passes on the arguments of `apply`
        ctx: Any,
        hidden: torch.Tensor,
        values: torch.Tensor,
        bias: torch.Tensor | None,
        targets: torch.Tensor,
        table: VocabularyTable,
        scale: float,
    ) -> torch.Tensor:
        xy, dtype = table.grid.xy, product_dtype(values)
        joined, rows = join_features(table.grid.y, hidden.to(dtype)), table.gather(dtype)
        logits = table.products.nt(joined, rows)
        if bias is not None:
            logits += bias
        logits = logits.to(exact(dtype))
        logits[:, table.tokens :] = -math.inf
        largest = logits.amax(-1, keepdim=True)
        xy.all_reduce(largest, op=dist.ReduceOp.MAX).wait()
        logits -= largest
        row, here = table.local(targets)
        wanted = logits.gather(1, row[:, None]).masked_fill_(~here[:, None], 0.0)
        xy.all_reduce(wanted).wait()
        total = logits.exp_().sum(-1, keepdim=True)
        xy.all_reduce(total).wait()
        logits /= total
        logits.scatter_add_(1, row[:, None], -here[:, None].to(logits.dtype))
        ctx.save_for_backward(joined, rows, logits)
        ctx.table, ctx.scale, ctx.bias = table, scale, None if bias is None else bias.dtype
        ctx.given = hidden.dtype
        return (total.log() - wanted).sum() * scale

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The hidden states' gradient is sent while the table's is computed."""
        joined, rows, logits = ctx.saved_tensors
        table: VocabularyTable = ctx.table
        gradient = logits.mul_(gradients[0] * ctx.scale).to(rows.dtype)
        back = table.products.nn(gradient, rows)
        pending = table.grid.xy.all_reduce(back)
        if "all-reduce" not in table.schedule.overlap:
            pending.wait()
        table.scatter_from_head(table.products.tn(gradient, joined))
        of_bias = logits.sum(0).to(ctx.bias) if ctx.bias is not None else None
        pending.wait()
        return table.grid.y.part(back, -1).contiguous().to(ctx.given), None, of_bias, None, None, None
