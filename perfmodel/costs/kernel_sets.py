"""Passes over memory of the kernels other than matrix products, by how a framework builds them.

A pass reads or writes one tensor once, in the format of activations (2 bytes); a tensor in fp32 counts as 2. Counted
operation by operation, r for a read and w for a write; tables in fp32 of the loss count passes in fp32.

Eager RMSNorm as Hugging Face and torch's composite compute it in fp32: cast r1 w2, square r2 w2, mean r2, scale r2 w2,
cast back r2 w1, weight r1 w1: 18. Backward: weight (for itself r2 w1 r1, for the input r1 w1), cast r1 w2, scale r2 w2
and r4 w2 r2. Then square r2 w2 and r4 w2, sum of two gradients r4 w2, cast r2 w1: 38 in all. LayerNorm is one kernel
of torch in each pass (r1 w1; r4 w1), eager or not.

Eager rotary embedding of queries and keys: times cosine r1 w1, half negated r1, joined r1 w1, times sine r1 w1, sum
r2 w1: 10. Backward: both factors r2 w2, slices joined r2 w2, negated r1, sum r2 w1: 12. As complex numbers in fp32
(torchtitan) cast r1 w2, product r2 w2, cast r2 w1: 10 each. Fused: r1 w1 each.

Eager gate: SiLU r1 w1, product r2 w1: 5. Backward: both factors r4 w2, SiLU r2 w1: 9. Fused: r2 w1 and r3 w2.

Loss over fp32 logits. Megatron-LM's vocabulary-parallel one: convert 1.5, maximum 1, subtract 2, exponential 2, sum 1,
divide 2; backward scale 2, convert 1.5. Torch's: convert 1.5, log-softmax r1 w1; backward r2 w1, convert 1.5. A fused
kernel reads 16-bit logits twice and writes their gradient once: 1 and 0.5.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCost:
    """Passes over a tensor, forward and backward, and kernels that the framework issues for them."""

    passes: tuple[float, float]
    issued: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSet:
    """What each kind of kernel costs. `rotary` counts queries and keys; `loss` counts fp32 logits."""

    layer_norm: KernelCost
    rms_norm: KernelCost
    rotary: KernelCost
    gelu: KernelCost
    gated: KernelCost
    residual: KernelCost
    loss: KernelCost


# Megatron-LM's: bias and GELU, bias, dropout and residual, norms, rotary embedding and gates are one kernel each.
FUSED = KernelSet(
    layer_norm=KernelCost(passes=(2, 5), issued=(1, 2)),
    rms_norm=KernelCost(passes=(2, 5), issued=(1, 2)),
    rotary=KernelCost(passes=(2, 2), issued=(2, 2)),
    gelu=KernelCost(passes=(2, 3), issued=(1, 2)),
    gated=KernelCost(passes=(3, 5), issued=(1, 2)),
    residual=KernelCost(passes=(3, 3), issued=(0, 0)),
    loss=KernelCost(passes=(9.5, 3.5), issued=(12, 4)),
)

EAGER = replace(
    FUSED,
    rms_norm=KernelCost(passes=(18, 38), issued=(6, 12)),
    rotary=KernelCost(passes=(10, 12), issued=(10, 14)),
    gated=KernelCost(passes=(5, 9), issued=(2, 3)),
    loss=KernelCost(passes=(3.5, 4.5), issued=(3, 3)),
)

# torch.compile of a block: pointwise chains and the norm's reduction become one kernel each.
COMPILED = replace(
    FUSED,
    rotary=KernelCost(passes=(2, 2), issued=(1, 1)),
    gated=KernelCost(passes=(3, 5), issued=(1, 1)),
    loss=KernelCost(passes=(1.5, 2), issued=(2, 2)),
)

KERNEL_SETS: Mapping[str, KernelSet] = MappingProxyType({"eager": EAGER, "fused": FUSED, "compiled": COMPILED})
