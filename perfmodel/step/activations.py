"""What a micro-step's tokens take: kept from forward to backward, and in flight through the layer at work.

Stored tensors follow Korthikanti et al. 2022 (arXiv 2205.05198, section 4), with their tensor degree t replaced by X
for what a layer keeps between its two products and by Y for the hidden states between layers; both are split over Z
with the batch. With flash attention no scores are kept. What is in flight is what the launch code allocates.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from perfmodel.models.model import Activation, Attention, Block, Head, Layer, Linear, Norm
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.settings import ResolvedSettings
from perfmodel.units import Number

_MASK = 1  # bytes an element of a dropout mask, or a token of whether a rank holds it
_TOKEN = 8  # bytes of a token's number
_FP32 = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesPerToken:
    """Bytes a token of the sequence: `over_y` is split over Y, `over_x` over X, `scores` (attention) over X too."""

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

    def on(self, layout: Layout, *, scores: bool = True) -> Number:
        """Bytes a token on one device."""
        over_x = self.over_x + (self.scores if scores else 0.0)
        return self.whole + self.over_y / (1.0 * layout.y) + over_x / (1.0 * layout.x)


def block_activations(block: Block, settings: ResolvedSettings, sequence: int) -> BytesPerToken:
    """Bytes a token that one block keeps for its backward pass when nothing is recomputed."""
    total = BytesPerToken()
    for layer, before in block.split():
        total = total + stored(layer, before, settings, sequence)
    return total


def stored(layer: Layer, before: str, settings: ResolvedSettings, sequence: int) -> BytesPerToken:  # noqa: PLR0911 - a kind, a return
    """Every product keeps its input; norm and activation keep theirs; attention keeps queries, keys, values.

    Norms keep their statistics too, and the embedding its tokens. Norms of queries and keys keep these as they were.
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
    """Softmax output, and with dropout its mask and result, a token; flash attention keeps a sum a head instead."""
    if settings.flash_attention:
        return layer.heads * _FP32
    size = settings.activation_bytes
    return layer.heads * sequence * (2 * size + _MASK if settings.dropout else size)


def block_input(block: Block, settings: ResolvedSettings) -> BytesPerToken:
    """Bytes a token of the hidden states that enter a block, all that full recomputation keeps of it."""
    first = block.layers[0]
    width = first.inputs if isinstance(first, Linear) else getattr(first, "width", 0)
    size = getattr(first, "positions", 1.0) * width * settings.activation_bytes
    return BytesPerToken(over_x=size) if isinstance(first, Linear) and first.transposed else BytesPerToken(over_y=size)


def in_flight(layer: Layer, before: str, setting: "InFlightSettings") -> Iterator[BytesPerToken]:
    """Bytes a token at the fullest moments of a layer's backward pass, beside what is kept and the residual's gradient.

    Gradients that arrive and leave, and what the layer makes on the way. Linear: both gradients, of which that of a
    transposed layer's output is the residual's own. Norm: in fp32 the normalised input, what arrives, the same scaled,
    and three steps of the result (RMSNorm two). GELU: both; gated: what arrives, the sigmoid, two parts of the result,
    the result. Attention: see `_attention`.
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
    """The same for attention's forward pass, beside what it keeps (other layers' needs no more than their backward).

    What queries, keys and values were split from, and queries turned by their positions; without flash copies head by
    head (of one sequence these are views), the mask, scores beside shares, and the output twice.
    """
    size, queries, joined, scores = _sizes(layer, setting)
    if setting.flash:
        return BytesPerToken(over_x=setting.split * (joined + 2.0 * setting.rotary * queries * _FP32))
    masked = size * setting.sequence * (layer.heads // layer.kv_heads) / setting.sequences
    copied = joined * (1.0 * (setting.sequences > 1))
    return BytesPerToken(over_x=setting.split * joined + copied + 2 * size * queries, scores=scores, whole=masked)


def _attention(layer: Attention, setting: "InFlightSettings") -> Iterator[BytesPerToken]:
    """At the kernel and after it.

    At it: output, its gradient, those of queries, keys and values; without flash those of values, shares and scores,
    and where the kernel alone has run again, copies of queries and keys head by head. After it, queries, keys and
    values are kept no longer; their gradients are turned back (halves in fp32), pass the norms of queries and keys, and
    are joined.
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
    """(bytes an element, features of queries, bytes a token of queries, keys and values, and of scores)."""
    size, queries = setting.element, layer.heads * layer.head_dim
    return size, queries, size * (queries + 2 * layer.kv_heads * layer.head_dim), size * layer.heads * setting.sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlightSettings:
    """What decides on a pass's own memory: bytes an element, kernel, sequences and their length, rotary positions.

    `split`: 1 where queries, keys and values are split from one tensor before, 0 where the kernel alone runs again.
    """

    element: float
    flash: bool
    sequences: Number
    sequence: int
    rotary: bool
    split: Number

    @property
    def copies(self) -> bool:
        """Whether what is computed in fp32 is a copy."""
        return self.element != _FP32
