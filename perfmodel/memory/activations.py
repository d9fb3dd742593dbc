"""Activation memory per token: kept from the forward to the backward pass, and in flight through the current layer.

Stored tensors follow Korthikanti et al. 2022 (arXiv 2205.05198, section 4). X replaces their tensor degree t for what a
layer keeps between its two products; Y replaces it for the hidden states between layers. Both are split over Z with
the batch. Flash attention keeps no scores. The tensors in flight are those that the launch code allocates.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from perfmodel.models.model import Activation, Attention, Block, Head, Layer, Linear, Norm
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.settings import ResolvedSettings
from perfmodel.units import Number

_MASK = 1  # bytes per element of a dropout mask; also per token, for whether a rank holds it
_TOKEN = 8  # bytes of a token id
_FP32 = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesPerToken:
    """Bytes per token of the sequence: `over_y` is split over Y, `over_x` over X, `scores` (attention) over X too."""

    over_y: Number = 0.0
    over_x: Number = 0.0
    scores: Number = 0.0
    whole: Number = 0.0

    def __add__(self, other: "BytesPerToken") -> "BytesPerToken":
        """Term by term."""
        return BytesPerToken(
            over_y=self.over_y + other.over_y,
            over_x=self.over_x + other.over_x,
            scores=self.scores + other.scores,
            whole=self.whole + other.whole,
        )

    def __sub__(self, other: "BytesPerToken") -> "BytesPerToken":
        """Term by term."""
        return BytesPerToken(
            over_y=self.over_y - other.over_y,
            over_x=self.over_x - other.over_x,
            scores=self.scores - other.scores,
            whole=self.whole - other.whole,
        )

    def on(self, layout: Layout, *, between: Number = 1.0, scores: bool = True) -> Number:
        """Bytes per token on one device; `between`: parts of the sequence that X splits between layers."""
        over_x = self.over_x + (self.scores if scores else 0.0)
        return self.whole + self.over_y / (between * layout.y) + over_x / (1.0 * layout.x)


def block_activations(block: Block, settings: ResolvedSettings, sequence: int) -> BytesPerToken:
    """Bytes per token that one block keeps for its backward pass when nothing is recomputed."""
    total = BytesPerToken()
    for layer, before in block.split():
        total = total + stored(layer, before, settings, sequence)
    return total


def stored(layer: Layer, before: str, settings: ResolvedSettings, sequence: int) -> BytesPerToken:  # noqa: PLR0911 - one return per kind
    """Every product keeps its input; norm and activation keep theirs; attention keeps queries, keys, values.

    Norms also keep their statistics, and the embedding keeps its tokens. Norms of queries and keys keep their inputs.
    """
    size = settings.activation_bytes
    if isinstance(layer, Linear):
        if layer.shared:
            return BytesPerToken()
        inputs = layer.positions * layer.inputs * size
        mask = layer.positions * layer.outputs * _MASK if settings.dropout and layer.transposed else 0.0
        return BytesPerToken(over_x=inputs, over_y=mask) if layer.transposed else BytesPerToken(over_y=inputs)
    if isinstance(layer, Norm):
        numbers = 0 if layer.grouped else 2 if layer.bias else 1
        return BytesPerToken(
            **{f"over_{before}": layer.positions * layer.width * size}, whole=layer.positions * numbers * _FP32
        )
    if isinstance(layer, Activation):
        return BytesPerToken(**{f"over_{before}": layer.positions * layer.width * (2 if layer.gated else 1) * size})
    if isinstance(layer, Attention):
        projected = (layer.heads + 2 * layer.kv_heads) * layer.head_dim * size
        if layer.query_key_norm:
            projected += (layer.heads + layer.kv_heads) * (layer.head_dim * size + _FP32)
        return BytesPerToken(over_x=projected, scores=_scores(layer, settings, sequence))
    if isinstance(layer, Head):
        return BytesPerToken(whole=layer.width * size)
    return BytesPerToken(whole=_TOKEN + _MASK)


def _scores(layer: Attention, settings: ResolvedSettings, sequence: int) -> float:
    """Per token: softmax output, with dropout also its mask and result; flash attention keeps one sum per head."""
    if settings.flash_attention:
        return layer.heads * _FP32
    size = settings.activation_bytes
    return layer.heads * sequence * (2 * size + _MASK if settings.dropout else size)


def block_input(block: Block, settings: ResolvedSettings) -> BytesPerToken:
    """Bytes per token of the hidden states that enter a block; full recomputation keeps nothing else of it."""
    first = block.layers[0]
    width = first.inputs if isinstance(first, Linear) else getattr(first, "width", 0)
    size = getattr(first, "positions", 1.0) * width * settings.activation_bytes
    return BytesPerToken(over_x=size) if isinstance(first, Linear) and first.transposed else BytesPerToken(over_y=size)


def operations_kept(block: Block, settings: ResolvedSettings) -> BytesPerToken:
    """Bytes per token that recomputation of operations keeps of a block: results of attention and every second product.

    A kept result is split as the product leaves it: over X after a normal linear layer, over Y after a transposed one.
    """
    total, size = BytesPerToken(), settings.activation_bytes
    for layer, _ in block.split():
        if isinstance(layer, Linear):
            half = 0.5 * layer.positions * layer.outputs * size
            total = total + (BytesPerToken(over_y=half) if layer.transposed else BytesPerToken(over_x=half))
        elif isinstance(layer, Attention):
            total = total + BytesPerToken(over_x=layer.heads * (layer.head_dim * size + _FP32))
    return total


def in_flight(layer: Layer, before: str, setting: "InFlightSettings") -> Iterator[BytesPerToken]:
    """Bytes per token at the peaks of a layer's backward pass, besides what is kept and the residual's gradient.

    The gradients of output and input, and the layer's temporaries. Linear: both gradients; the output gradient of a
    transposed layer is that of the residual. Norm, in fp32: the normalised input, the output gradient, the same scaled,
    and three intermediates (two for RMSNorm). GELU: both gradients. Gated: the output gradient, the sigmoid, two
    parts of the result, and the result. Attention: see `_attention`.
    """
    size = setting.element
    if isinstance(layer, Linear):
        one = layer.positions * size
        if layer.transposed:
            yield BytesPerToken(over_x=one * layer.inputs)
        else:
            yield BytesPerToken(over_x=one * layer.outputs, over_y=one * layer.inputs)
    elif isinstance(layer, Norm):
        made = size + (setting.copies + 4 + layer.bias) * _FP32
        yield BytesPerToken(**{f"over_{before}": layer.positions * layer.width * made})
    elif isinstance(layer, Activation):
        yield BytesPerToken(**{f"over_{before}": layer.positions * layer.width * (6 if layer.gated else 2) * size})
    elif isinstance(layer, Attention):
        yield from _attention(layer, setting)


def attention_forward_in_flight(layer: Attention, setting: "InFlightSettings") -> BytesPerToken:
    """The same for the forward pass of attention (in other layers the forward pass needs no more than the backward).

    The tensor that queries, keys and values were split from, and the queries after rotary embedding. Without flash also
    copies per head (views if there is one sequence), the mask, scores beside softmax output, and the output twice.
    """
    size, queries, joined, scores = _sizes(layer, setting)
    if setting.flash:
        return BytesPerToken(over_x=setting.split * (joined + 2.0 * setting.rotary * queries * _FP32))
    masked = size * setting.sequence * (layer.heads // layer.kv_heads) / setting.sequences
    copied = joined * (1.0 * (setting.sequences > 1))
    return BytesPerToken(over_x=setting.split * joined + copied + 2 * size * queries, scores=scores, whole=masked)


def _attention(layer: Attention, setting: "InFlightSettings") -> Iterator[BytesPerToken]:
    """During the kernel and after it.

    During: the output, its gradient, and the gradients of queries, keys and values. Without flash: the gradients of
    values, softmax output and scores; if only the kernel was recomputed, also copies of queries and keys per head.
    After: queries, keys and values are freed. Their gradients are rotated back (halves in fp32), pass the norms of
    queries and keys, and are joined.
    """
    size, queries, joined, scores = _sizes(layer, setting)
    if setting.flash:
        yield BytesPerToken(over_x=joined + 2 * size * queries)
    else:
        keys = layer.kv_heads * layer.head_dim
        copied = (1.0 - setting.split) * (setting.sequences > 1) * (queries + keys)
        yield BytesPerToken(over_x=size * (keys + copied), scores=2 * scores)
    turned = 2.0 * setting.rotary * queries * _FP32
    normed = (4.0 + setting.copies) * layer.query_key_norm * queries * _FP32
    kept_no_longer = joined + (layer.heads * _FP32 if setting.flash else scores)
    yield BytesPerToken(over_x=joined + max(joined, turned, normed) - kept_no_longer)


def _sizes(layer: Attention, setting: "InFlightSettings") -> tuple[float, int, float, float]:
    """(bytes per element, query features, bytes per token of queries, keys and values, bytes per token of scores)."""
    size, queries = setting.element, layer.heads * layer.head_dim
    return size, queries, size * (queries + 2 * layer.kv_heads * layer.head_dim), size * layer.heads * setting.sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlightSettings:
    """What the memory in flight depends on: bytes per element, kernel, sequences and their length, rotary positions.

    `split`: 1 if queries, keys and values were just split from one tensor, 0 if only the kernel is recomputed.
    """

    element: float
    flash: bool
    sequences: Number
    sequence: int
    rotary: bool
    split: Number

    @property
    def copies(self) -> bool:
        """Whether computing in fp32 makes a copy."""
        return self.element != _FP32
