"""A decoder scaled down or up, so that a published architecture runs on the hardware at hand."""

from dataclasses import replace
from fractions import Fraction

from perfmodel.errors import UsageError
from perfmodel.models.model import Model, Transformer
from perfmodel.numerics import divisors


def scaled(model: Model, *, layers: int | None = None, hidden: str = "") -> Model:
    """The same decoder with `layers` layers, and all widths times `hidden`, a fraction such as 0.25 or 1/4.

    The number of heads is scaled too, so that a head keeps its width; if that gives no whole number, the heads are
    scaled in width instead. Key-value heads are reduced until they divide the heads. Vocabulary and sequence stay.

    >>> from perfmodel.models import load
    >>> small = scaled(load("llama-3-8b"), layers=2, hidden="1/16").transformer
    >>> small.layers, small.hidden, small.heads, small.kv_heads, small.head_width, small.feed_forward
    (2, 256, 2, 1, 128, 896)
    """
    if layers is None and not hidden:
        return model
    shape = model.transformer
    if shape is None:
        raise UsageError(f"{model.name} is not a decoder, which is what --scale-layers and --scale-hidden are for")
    if layers is not None:
        shape = replace(shape, layers=layers)
    return (_scaled(shape, _factor(hidden), model.name) if hidden else shape).model(model.name)


def _scaled(shape: Transformer, factor: Fraction, name: str) -> Transformer:
    hidden = _whole(shape.hidden * factor, f"{name} has a width of {shape.hidden}", factor)
    feed_forward = shape.feed_forward
    if feed_forward is not None:
        feed_forward = _whole(feed_forward * factor, f"{name} has an MLP width of {feed_forward}", factor)
    heads, width = shape.heads * factor, Fraction(shape.head_width)
    if heads.denominator != 1:
        heads, width = Fraction(shape.heads), width * factor
    return replace(
        shape,
        hidden=hidden,
        feed_forward=feed_forward,
        heads=int(heads),
        head_dim=None if shape.head_dim is None else _whole(width, f"{name} has a head width", factor),
        kv_heads=None if shape.kv_heads is None else _key_value_heads(shape.kv_heads, shape.heads, int(heads)),
    )


def _key_value_heads(before: int, heads_before: int, heads: int) -> int:
    """The same ratio of heads to key-value heads, or the next larger ratio that divides the heads."""
    wanted = max(1, before * heads // heads_before)
    return max(size for size in divisors(heads) if size <= wanted)


def _whole(size: Fraction, what: str, factor: Fraction) -> int:
    if size.denominator != 1 or size < 1:
        raise UsageError(f"{what}, of which {factor} is {float(size):g}; wanted a factor that leaves a whole number")
    return int(size)


def _factor(text: str) -> Fraction:
    try:
        factor = Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        factor = Fraction(0)
    if not 0 < factor <= 2**16:
        raise UsageError(f"--scale-hidden {text!r}: wanted a factor greater than 0, such as 0.25 or 1/4")
    return factor
