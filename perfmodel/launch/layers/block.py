"""One block of a decoder: attention and MLP, each a normal layer, an operation in between, and a transposed layer."""

import math
from collections.abc import Mapping
from typing import TypeVar

import torch
from torch import nn

from perfmodel.launch.layers.activations import activate
from perfmodel.launch.layers.attention import Attention
from perfmodel.launch.layers.dropout import Dropout
from perfmodel.launch.layers.linear import Linear
from perfmodel.launch.layers.norms import Norm
from perfmodel.launch.training.plan import MicroStep, Plan
from perfmodel.models import layers

STD = 0.02
Records = Mapping[str, layers.Layer]
_Kind = TypeVar("_Kind", bound=layers.Layer)


def record(records: Records, name: str, kind: type[_Kind]) -> _Kind:
    """The layer of that name."""
    found = records[name]
    assert isinstance(found, kind)  # noqa: S101 - `workload.Transformer` names its layers
    return found


class DecoderBlock(nn.Module):
    """Residuals around attention and MLP; with a single norm, both read its output and their sum is added."""

    def __init__(self, plan: Plan, records: Records, *, name: str, blocks: int, flash: bool) -> None:
        """`records`: the layers by name. With more `blocks`, what is added to the residual starts smaller."""
        super().__init__()
        added = STD / math.sqrt(2 * blocks)

        def linear(which: str, std: float = STD) -> Linear:
            return Linear(plan, record(records, which, layers.Linear), name=f"{name}.{which}", std=std)

        def norm(which: str) -> nn.Module | None:
            if which not in records:
                return None
            return Norm(record(records, which, layers.Norm), plan.grid.y, name=f"{name}.{which}")

        self.attention_norm, self.attention_output_norm = norm("attention norm"), norm("attention output norm")
        self.mlp_norm, self.mlp_output_norm = norm("mlp norm"), norm("mlp output norm")
        self.qkv, self.attention_output = linear("qkv"), linear("attention output", added)
        self.up, self.down = linear("mlp up"), linear("mlp down", added)
        heads = record(records, "attention", layers.Attention)
        self.attention = Attention(plan, heads, name=f"{name}.attention", flash=flash)
        self.activation = record(records, "activation", layers.Activation)
        self.attention_dropout, self.mlp_dropout = (
            Dropout(plan, f"{name}.{which}", record(records, which, layers.Linear).outputs, plan.grid.y)
            for which in ("attention output", "mlp down")
        )

    def forward(self, hidden: torch.Tensor, at: MicroStep) -> torch.Tensor:
        """(sequences, positions, width / Y) to the same."""
        normalised = _through(self.attention_norm, hidden)
        attended = hidden + self._attend(normalised, at)
        if self.mlp_norm is not None:
            normalised = _through(self.mlp_norm, attended)
        return attended + self._transform(normalised, at)

    def _attend(self, normalised: torch.Tensor, at: MicroStep) -> torch.Tensor:
        added = self.attention_output(self.attention(self.qkv(normalised), at))
        return _through(self.attention_output_norm, self.attention_dropout(added, at))

    def _transform(self, normalised: torch.Tensor, at: MicroStep) -> torch.Tensor:
        added = self.down(activate(self.activation, self.up(normalised)))
        return _through(self.mlp_output_norm, self.mlp_dropout(added, at))


def _through(norm: nn.Module | None, hidden: torch.Tensor) -> torch.Tensor:
    """The norm of this name, or none."""
    normalised: torch.Tensor = hidden if norm is None else norm(hidden)
    return normalised
