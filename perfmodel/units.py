"""The only module that knows unit prefixes: it reads text with a unit as SI, and shows SI numbers as text.

Inside the model every quantity is a plain float (or float64 array) in B, s, B/s, flop or flop/s.
"""

import math
import re
from typing import TYPE_CHECKING, TypeAlias

from perfmodel.errors import PerfmodelError

if TYPE_CHECKING:  # numpy costs half of a --help
    from typing import Any

    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
# Documentation, not checks: arithmetic loses a NewType, so the dimension test runs the model on pint quantities.
Count: TypeAlias = "int | Array"
Number: TypeAlias = "float | Array"
Bytes: TypeAlias = "float | Array"
Seconds: TypeAlias = "float | Array"
BytesPerSecond: TypeAlias = "float | Array"
Flops: TypeAlias = "float | Array"

KIBI = 1024
GIBI = KIBI**3

_DECIMAL = {prefix: 1000.0**power for power, prefix in enumerate(("", "k", "M", "G", "T", "P", "E"))}
_SMALL = {prefix: 1000.0**-power for power, prefix in enumerate(("m", "u", "n", "p"), start=1)} | {"µ": 1000.0**-2}
_BINARY = {f"{prefix}i": float(KIBI**power) for power, prefix in enumerate(("K", "M", "G", "T", "P", "E"), start=1)}
_PREFIXES = _DECIMAL | _SMALL | _BINARY
_BASES = {
    "B": ("B", 1.0),
    "bit": ("B", 1 / 8),
    "b": ("B", 1 / 8),
    "flop": ("flop", 1.0),
    "FLOP": ("flop", 1.0),
    "s": ("s", 1.0),
    "min": ("s", 60.0),
    "h": ("s", 3600.0),
}
_LONGEST = 100  # a number is short; the pattern below is slow on long runs of blanks
_TEXT = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?)\s*([A-Za-zµ]*)(/s)?\s*")
_EXAMPLES = {"B": "40 GB or 40 GiB", "s": "2.1 us", "B/s": "25 GB/s or 200 Gbit/s", "flop/s": "312 Tflop/s", "1": "4"}


def parse(text: str, wanted: str) -> float:
    """Read `text`, a number with a unit, as SI in the dimension `wanted` (B, s, B/s, flop/s or 1 for a pure number).

    >>> parse("200 Gbit/s", "B/s")
    25000000000.0
    >>> parse("40 GiB", "B")
    42949672960.0
    >>> parse("25 GB/s", "B")
    Traceback (most recent call last):
    perfmodel.errors.PerfmodelError: '25 GB/s' is in B/s, wanted B (for example 40 GB or 40 GiB)
    """
    match = _TEXT.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise PerfmodelError(f"{text!r} is not a number with a unit, for example {_EXAMPLES[wanted]}")
    number, unit, per_second = match.groups()
    factor, dimension = _factor(unit)
    found = dimension + (per_second or "")
    if factor == 0 or (per_second and not unit):
        raise PerfmodelError(f"{text!r} has the unknown unit '{unit}{per_second or ''}', try {_EXAMPLES[wanted]}")
    if found != wanted:
        raise PerfmodelError(
            f"{text!r} is in {_named(found)}, wanted {_named(wanted)} (for example {_EXAMPLES[wanted]})"
        )
    value = float(number) * factor
    if not math.isfinite(value):
        raise PerfmodelError(f"{text!r} is too large to be meant")
    return value


def count(text: str, most: int) -> int | None:
    """A whole number from 1 to `most` in plain digits, or None; very long texts are never converted.

    >>> count("256", 1000), count("0", 1000), count("1e3", 1000), count("9" * 5000, 1000)
    (256, None, None, None)
    """
    digits = text.lstrip("0")
    plain = text.isascii() and digits.isdigit() and len(digits) <= len(str(most))
    return int(digits) if plain and int(digits) <= most else None


def _named(dimension: str) -> str:
    return "no unit" if dimension == "1" else dimension


def _factor(unit: str) -> tuple[float, str]:
    """The SI factor and dimension of a unit such as Tflop; a factor of 0 says that it is unknown."""
    if not unit:
        return 1.0, "1"
    for base in ("flop", "FLOP", "bit", "min", "B", "b", "s", "h"):
        prefix = unit.removesuffix(base)
        if prefix != unit and prefix in _PREFIXES and (base not in ("min", "h") or not prefix):
            dimension, factor = _BASES[base]
            return _PREFIXES[prefix] * factor, dimension
    return 0.0, unit


def show(value: float, unit: str, *, digits: int = 3) -> str:
    """`value` for people: binary prefixes for memory (B), decimal ones for the rest, `digits` significant digits.

    >>> show(25e9, "B/s"), show(40 * 1024**3, "B"), show(0.00239296, "s"), show(1.914e14, "flop/s")
    ('25 GB/s', '40 GiB', '2.39 ms', '191 Tflop/s')
    """
    if not math.isfinite(value):
        return f"{value} {unit}"
    prefixes = {"": 1.0} | _BINARY if unit == "B" else _SMALL | _DECIMAL
    if unit == "s":  # nobody writes ks or Ms
        prefixes = {prefix: size for prefix, size in prefixes.items() if size <= 1}
    usable = [(size, prefix) for prefix, size in prefixes.items() if prefix != "µ" and abs(value) >= size]
    size, prefix = max(usable, default=(1.0, ""))
    scaled = value / size
    whole = f"{scaled:.0f}"
    text = whole if len(whole.lstrip("-")) >= digits else f"{scaled:.{digits}g}"
    return f"{text} {prefix}{unit}"
