"""What a user may choose of how a step runs, by name. `--help` lists these names, so that this module is light."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Recompute = Literal["none", "selective", "full", "operations"]
WeightCache = Literal["none", "forward", "all"]

# Communication that overlaps computation (arXiv 2502.08145, section V-D): the all-reduce of an input gradient with the
# weight gradient's product, reduce-scatters with the rest of the backward pass, gathers with the layer before.
Overlap = Literal["all-reduce", "reduce-scatter", "all-gather", "data"]
OVERLAPS: tuple[Overlap, ...] = ("all-reduce", "reduce-scatter", "all-gather", "data")
# AxoNN overlaps the first three; "data" sends each layer's gradient over data as soon as the last micro-step has
# computed it.
AXONN_OVERLAPS = frozenset(OVERLAPS[:3])

# A layout holds these as indices, so that one array can mix them.
# "operations" keeps the results of attention and of every second product, and computes the rest of a block again.
RECOMPUTES: tuple[Recompute, ...] = ("none", "selective", "full", "operations")
WEIGHT_CACHES: tuple[WeightCache, ...] = ("none", "forward", "all")

MAX_COUNT = 2**40
"""The largest batch, sequence length or other count that is accepted."""


@dataclass(frozen=True, slots=True)
class Optimizer:
    """Bytes per parameter of optimizer state, the accumulated gradient, and the fp32 master copy in the state."""

    state: float
    gradient: float
    copy: float = 4


# Mixed precision AdamW: fp32 master copy, two moments; gradients accumulate in fp32.
OPTIMIZERS: Mapping[str, Optimizer] = MappingProxyType(
    {
        "adamw": Optimizer(state=12, gradient=4),
        "adamw-bf16-gradients": Optimizer(state=12, gradient=2),
        "adamw-8bit": Optimizer(state=6, gradient=4),
        "adamw-pure-bf16": Optimizer(state=4, gradient=2, copy=0),
        "sgd-momentum": Optimizer(state=8, gradient=4),
        "sgd": Optimizer(state=4, gradient=4),
    }
)
