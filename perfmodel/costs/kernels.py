"""Time of a layer on one device in one micro-step: the kernels beside its matrix products, and all of it together.

Kernels that are no products do little arithmetic: their time is bytes over the sustained memory bandwidth. A *pass*
reads or writes one tensor once. How many there are depends on how a framework builds its kernels (`kernel_sets`). Bias
and GELU, bias, dropout and residual, and the scaled masked softmax are counted as fused; a dropout mask takes one byte,
hence half a pass.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from perfmodel.costs.gemm import Chip, LayerTimes, linear
from perfmodel.costs.kernel_sets import FUSED, KernelCost, KernelSet
from perfmodel.models.layers import Activation, Attention, Embedding, Head, Layer, Linear, Norm
from perfmodel.units import Bytes, Number, Seconds

AttentionKernel = Literal["materialized", "flash"]

_FP32 = 4
_MASK = 1
# Queries a flash kernel needs to be half as fast as at long sequences under a causal mask (fitted by eye to figure 5 of
# FlashAttention-2, arXiv 2307.08691: 99 Tflop/s at 512, 189 at 16384, heads of 128, forward).
_SHORT = 512
_WIDE_HEAD, _NARROW = 128, 16  # the same figure: heads of 64 reach 0.9 of what heads of 128 do
# Kernels that every framework issues, forward and backward (Megatron-LM's transformer layer, counted module by module).
_LINEAR = (2, 4)  # product, bias or residual; two products, bias gradient, accumulation into the main gradient
_ATTENTION = {"flash": (4, 6), "materialized": (8, 12)}  # split and transpose of queries, keys, values; the kernel
_EMBEDDING = (6, 4)
_HEAD = (2, 4)  # besides those of the loss


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceShare:
    """One device's share of a micro-step: tokens, sequence length, degrees of X and Y, and how kernels are built.

    `element`, `weight`: bytes of an activation and of a gathered weight. `between`: into how many parts X splits the
    tokens between layers (sequence parallelism; 1 without). `rotary`: whether positions rotate queries and keys.
    """

    rows: Number
    sequence: int
    x: Number = 1
    y: Number = 1
    attention: AttentionKernel = "flash"
    dropout: bool = False
    element: Bytes = 2
    weight: Bytes = 2
    between: Number = 1
    rotary: bool = False
    kernels: KernelSet = FUSED

    def exchanged(self) -> "DeviceShare":
        """For a transposed layer: X and Y exchanged."""
        return replace(self, x=self.y, y=self.x)


def passes(*, elements: Number, count: Number, chip: Chip, element: Bytes = 2) -> Seconds:
    """Seconds of reading or writing a tensor `count` times: count * elements * bytes / sustained bandwidth.

    >>> passes(elements=8192 * 1024, count=2, chip=Chip(gemm=271e12, memory=1.73e12, units=108)) * 1e6
    19.395
    """
    found: Seconds = elements * (count * element / chip.memory)
    return found


def cast(*, elements: Number, part: DeviceShare, chip: Chip) -> Seconds:
    """Seconds to cast a gathered weight to the format of activations, in which products run; 0 if they are equal.

    Under autocast AxoNN gathers fp32 weights and every product with the weight casts them (axonn 0b6328c,
    intra_layer/fully_connected.py): one read and one write, forward and for dI.

    >>> a100 = Chip(gemm=271e12, memory=1.5e12, units=108)
    >>> cast(elements=1e9, part=DeviceShare(rows=1, sequence=1, weight=4), chip=a100) * 1e3
    4.0
    """
    if part.weight == part.element:
        return 0.0
    return passes(elements=elements, count=1, chip=chip, element=part.weight + part.element)


def _both_ways(elements: Number, counts: tuple[Number, Number], part: DeviceShare, chip: Chip) -> LayerTimes:
    """Seconds of so many passes over a tensor, forward and backward."""
    return LayerTimes(*(passes(elements=elements, count=c, chip=chip, element=part.element) for c in counts))


def norm(layer: Norm, *, part: DeviceShare, chip: Chip) -> LayerTimes:
    """Passes of a norm over hidden states, which Y splits, and X too under sequence parallelism."""
    elements = part.rows * (layer.positions * layer.width) / (part.y * part.between)
    return _both_ways(elements, norm_cost(layer, part.kernels).passes, part, chip)


def norm_cost(layer: Norm, kernels: KernelSet) -> KernelCost:
    """LayerNorm has a shift (a bias); RMSNorm has none."""
    return kernels.layer_norm if layer.bias else kernels.rms_norm


def activation(layer: Activation, *, part: DeviceShare, chip: Chip) -> LayerTimes:
    """Passes of GELU or of a gate, over one of its inputs."""
    elements = part.rows * (layer.positions * layer.width) / part.x
    return _both_ways(elements, activation_cost(layer, part.kernels).passes, part, chip)


def activation_cost(layer: Activation, kernels: KernelSet) -> KernelCost:
    """A gate (SwiGLU) or GELU."""
    return kernels.gated if layer.gated else kernels.gelu


def residual(*, elements: Number, part: DeviceShare, chip: Chip) -> LayerTimes:
    """Output + residual, with dropout between: half a pass more forward, 1.5 backward."""
    forward, backward = part.kernels.residual.passes
    mask = _MASK / part.element if part.dropout else 0.0
    return _both_ways(elements / part.between, (forward + mask, backward + part.dropout + mask), part, chip)


def projection(layer: Linear, *, part: DeviceShare, chip: Chip) -> LayerTimes:
    """The three products of a linear layer, its bias gradient (a pass), and the residual after a transposed layer.

    The weight is cast before each of the two products that use it.
    """
    at = part.exchanged() if layer.transposed else part
    rows, inputs = part.rows * layer.positions, layer.inputs * layer.kernel**2 / at.y
    outputs = layer.outputs / at.x
    products = linear(rows=rows, inputs=inputs, outputs=outputs, chip=chip)
    elements = rows * outputs
    extra = residual(elements=elements, part=part, chip=chip) if layer.transposed else LayerTimes()
    bias = passes(elements=elements, count=1, chip=chip, element=part.element) if layer.bias else 0.0
    casting = cast(elements=inputs * outputs, part=part, chip=chip)
    return LayerTimes(
        products.forward + extra.forward + casting,
        products.input_gradient + extra.input_gradient + casting,
        products.weight_gradient + bias,
    )


def attention(layer: Attention, *, part: DeviceShare, chip: Chip) -> LayerTimes:
    """Attention of the heads on a rank of X, copies that split and join queries, keys and values, rotary positions."""
    kernel = flash if part.attention == "flash" else materialized
    core = kernel(layer, part=part, chip=chip)
    token = part.rows * layer.head_dim / part.x
    moved = passes(elements=token * (layer.heads + 2 * layer.kv_heads), count=2, chip=chip, element=part.element)
    turned = LayerTimes()
    if part.rotary:
        turned = _both_ways(token * (layer.heads + layer.kv_heads), part.kernels.rotary.passes, part, chip)
    normed = LayerTimes()
    if layer.query_key_norm:
        normed = _both_ways(token * (layer.heads + layer.kv_heads), part.kernels.rms_norm.passes, part, chip)
    return LayerTimes(
        core.forward + moved + turned.forward + normed.forward,
        core.input_gradient + moved + turned.input_gradient + normed.input_gradient,
    )


def flash(layer: Attention, *, part: DeviceShare, chip: Chip) -> LayerTimes:
    """FLOPs over the kernel's rate; the causal half is not computed. Forward 2 products, backward 5 (2.5 times).

    rate = kernel's rate * s / (s + 512) * (d / (d + 16)) / (128 / 144). The kernel's rate is in the device's profile.
    """
    length = part.sequence
    useful = 0.5 * layer.flops(part.rows, length) / part.x
    width = layer.head_dim / (layer.head_dim + _NARROW) * ((_WIDE_HEAD + _NARROW) / _WIDE_HEAD)
    shape = length / (length + _SHORT) * width
    forward, backward = (useful / (rate * shape) for rate in chip.attention)
    return LayerTimes(forward, 2.5 * backward)


def materialized(layer: Attention, *, part: DeviceShare, chip: Chip) -> LayerTimes:
    """Scores written to memory: heads * s per token, in passes, or the products' arithmetic where that takes longer.

    Forward: product 1, scaled masked softmax 2, dropout 2.5, product 1. Backward: 1 + 1, dropout 2.5, softmax 3, 1 + 1.
    """
    scores = part.rows * (layer.heads * part.sequence) / part.x
    dropped = 2 + _MASK / part.element if part.dropout else 0.0
    depth = layer.head_dim / (layer.head_dim + 96.0)  # pipeline filled anew for each tile, as in other products
    product = 0.5 * layer.flops(part.rows, part.sequence) / part.x / (chip.gemm * depth)
    one = passes(elements=scores, count=1, chip=chip, element=part.element)
    forward = 2 * np.maximum(product, one) + (2 + dropped) * one
    return LayerTimes(forward, 4 * np.maximum(product, one) + (3 + dropped) * one)


def embedding(layer: Embedding, *, part: DeviceShare, chip: Chip) -> LayerTimes:
    """Look-up and adding positions: 3 passes over the hidden states; backward the same, into the table's gradient."""
    elements = part.rows * layer.width / (part.y * part.between)
    moved = passes(elements=elements, count=3, chip=chip, element=part.element)
    return LayerTimes(moved, 0.0, moved)


def head(layer: Head, *, part: DeviceShare, chip: Chip, vocabulary: Number = 0) -> LayerTimes:
    """Logits and loss, vocabulary split over X and Y: the three products, and the loss in fp32 over all logits.

    `vocabulary`: the padded size, if padded.
    """
    rows_of_table = np.maximum(layer.vocabulary, vocabulary) / (part.x * part.y)
    products = linear(rows=part.rows, inputs=1.0 * layer.width, outputs=rows_of_table, chip=chip)
    logits = part.rows * rows_of_table
    forward, backward = (passes(elements=logits, count=c, chip=chip, element=_FP32) for c in part.kernels.loss.passes)
    casting = cast(elements=layer.width * rows_of_table, part=part, chip=chip)
    return LayerTimes(
        products.forward + forward + casting, products.input_gradient + backward + casting, products.weight_gradient
    )


def optimizer(*, parameters: Number, state: Bytes, gradient: Bytes, weight: Bytes, chip: Chip) -> Seconds:
    """Seconds of an optimizer step over the parameters of a device: bytes per parameter over memory bandwidth.

    State is read and written; the gradient is read for its norm, read for the update, and cleared; the weight is
    written. AdamW in mixed precision: 2 * 12 + 3 * 4 + 2 = 38 bytes. Measured by vTrain: 37 bytes (its runs on 2 A100).

    >>> a100 = Chip(gemm=271.2e12, memory=1.73e12, units=108)
    >>> optimizer(parameters=1e9, state=12, gradient=4, weight=2, chip=a100) * 1e3
    21.965
    """
    found: Seconds = parameters * ((2 * state + 3 * gradient + weight) / chip.memory)
    return found


def kernel_counts(layer: Layer, *, part: DeviceShare) -> tuple[int, int]:
    """Kernels that the framework issues for a layer, forward and backward."""
    kernels = part.kernels
    if isinstance(layer, Linear):
        return _LINEAR
    if isinstance(layer, Norm):
        return norm_cost(layer, kernels).issued
    if isinstance(layer, Activation):
        return activation_cost(layer, kernels).issued
    if isinstance(layer, Embedding):
        return _EMBEDDING
    if isinstance(layer, Head):
        return _summed(_HEAD, kernels.loss.issued)
    issued = _ATTENTION[part.attention]
    issued = _summed(issued, kernels.rotary.issued) if part.rotary else issued
    return _summed(issued, kernels.rms_norm.issued) if layer.query_key_norm else issued


def _summed(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    return first[0] + second[0], first[1] + second[1]


def device_times(layer: Layer, *, part: DeviceShare, chip: Chip, vocabulary: Number = 0) -> LayerTimes:
    """Seconds of one layer of any kind on the device, if the host issues kernels fast enough."""
    if isinstance(layer, Linear):
        return projection(layer, part=part, chip=chip)
    if isinstance(layer, Attention):
        return attention(layer, part=part, chip=chip)
    if isinstance(layer, Norm):
        return norm(layer, part=part, chip=chip)
    if isinstance(layer, Activation):
        return activation(layer, part=part, chip=chip)
    if isinstance(layer, Embedding):
        return embedding(layer, part=part, chip=chip)
    return head(layer, part=part, chip=chip, vocabulary=vocabulary)


def layer_times(layer: Layer, *, part: DeviceShare, chip: Chip, vocabulary: Number = 0) -> LayerTimes:
    """Seconds of one layer of any kind in a micro-step: for each pass the longer of device time and issue time.

    The host takes `chip.host` to issue a kernel, so many short kernels are limited by the host. Here the host does not
    run ahead from layer to layer: against vTrain's 16 cells (tensor degree, micro-batch) that is 7 % off on average; a
    maximum over the whole block would be 10 % off.

    >>> from perfmodel.models.layers import Linear
    >>> a100 = Chip(gemm=258.7e12, memory=1.73e12, units=108, host=42e-6)
    >>> qkv = Linear(name="qkv", inputs=1024, outputs=3072)
    >>> small = layer_times(qkv, part=DeviceShare(rows=1024, sequence=1024), chip=a100)
    >>> float(small.forward * 1e6), float(small.backward * 1e6)
    (84.0, 168.0)
    """
    device = device_times(layer, part=part, chip=chip, vocabulary=vocabulary)
    forward, backward = kernel_counts(layer, part=part)
    split = 0.5 if isinstance(layer, (Linear, Head)) else 1.0 * isinstance(layer, Embedding)
    return LayerTimes(
        np.maximum(device.forward, forward * chip.host),
        np.maximum(device.input_gradient, (1 - split) * backward * chip.host),
        np.maximum(device.weight_gradient, split * backward * chip.host),
    )
