"""Values of options, given as text (the command line) or as Python values: both are read alike, or refused.

`name` is how the asker calls the option, so that a message names what was typed. No numpy: --help must be quick.
"""

import numbers
import operator
import re
from collections.abc import Iterable, Mapping
from typing import Any

from perfmodel.errors import PerfmodelError, UsageError
from perfmodel.parallel.axes import MAX_DEVICES
from perfmodel.parallel.choices import MAX_COUNT, OVERLAPS
from perfmodel.units import count, parse

_THOUSANDS = {"": 0, "k": 1, "M": 2, "B": 3, "G": 3, "T": 4}
_COUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,12})?)\s?([kMBGT]?)", re.ASCII)
_MOST_TOKENS = 10**18


def whole(value: Any, name: str) -> int:
    """A whole number; floats and text are refused, whatever they hold.

    >>> whole(256, "gpus")
    256
    """
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise UsageError(f"{name} is {value!r}, wanted a whole number")


def number(value: Any, name: str) -> float:
    """A number, never a text that holds one.

    >>> number(1, "contention")
    1.0
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise UsageError(f"{name} is {value!r}, wanted a number")
    return float(value)


def choice(value: Any, allowed: Iterable[str], name: str) -> str:
    """One of the names allowed.

    >>> choice("full", ("flat", "full"), "fidelity")
    'full'
    """
    known = list(allowed)
    if value not in known:
        raise UsageError(f"{name} is {value!r}, none of {', '.join(known)}")
    return str(value)


def names(given: str | Iterable[str]) -> list[str]:
    """Names, as text separated by commas.

    >>> names("gemm, contention")
    ['gemm', 'contention']
    """
    parts = given.split(",") if isinstance(given, str) else given
    return [part.strip() for part in parts if part.strip()]


def assignments(given: str | Mapping[str, int], allowed: tuple[str, ...], name: str) -> dict[str, int]:
    """Read `x=4,z=8`, or a mapping: names of `allowed`, whole numbers from 1 to MAX_COUNT.

    >>> assignments("x=4,z=8", ("x", "y", "z", "data"), "--fix")
    {'x': 4, 'z': 8}
    """
    text = given if isinstance(given, str) else ",".join(f"{key}={size}" for key, size in given.items())
    found: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, _, number = (piece.strip() for piece in part.partition("="))
        size = count(number, MAX_COUNT)
        if key not in allowed or size is None:
            raise UsageError(
                f"{name} {part!r}: wanted NAME=COUNT with a name of {', '.join(allowed)} "
                f"and a count of 1 to {MAX_COUNT}"
            )
        if key in found:
            raise UsageError(f"{name} gives {key} twice")
        found[key] = size
    return found


def seconds(given: str | float, name: str) -> float:
    """Read a time with its unit; a plain number is in seconds.

    >>> seconds("42 us", "--host-time")
    4.2e-05
    """
    try:
        return parse(given, "s") if isinstance(given, str) else float(given)
    except (PerfmodelError, TypeError, ValueError) as error:
        raise UsageError(f"{name}: {error}") from None


def overlaps(given: str | Iterable[str], name: str) -> frozenset[Any]:
    """Read `none`, or names of what overlaps.

    >>> sorted(overlaps("all-gather,data", "--overlap"))
    ['all-gather', 'data']
    """
    text = given if isinstance(given, str) else ",".join(given) or "none"
    kinds = names(text)
    if kinds == ["none"]:
        return frozenset()
    if not kinds or any(one not in OVERLAPS for one in kinds):
        raise UsageError(f"{name} {text!r}: wanted none, or some of {', '.join(OVERLAPS)}")
    return frozenset(kinds)


def count_or_any(given: str | int, name: str) -> int | None:
    """Read a whole number from 1 to MAX_COUNT, or `any` (None)."""
    if given == "any":
        return None
    found = count(str(given), MAX_COUNT)
    if found is None:
        raise UsageError(f"{name} {given!r}: wanted any, or a whole number from 1 to {MAX_COUNT}")
    return found


def tokens(given: str | int, name: str) -> int:
    """Read a number of tokens, as text with a decimal prefix: k, M, B (or G), T.

    >>> tokens("2T", "--tokens"), tokens("1.5M", "--tokens")
    (2000000000000, 1500000)
    """
    match = _COUNT.fullmatch(str(given).strip())
    value = round(float(match[1]) * 1000 ** _THOUSANDS[match[2]]) if match else 0
    if not 1 <= value <= _MOST_TOKENS:
        raise UsageError(f"{name} {given!r}: wanted a count of at least 1, such as 300B or 2T (k, M, B or T)")
    return value


def devices(given: str | Iterable[int], name: str) -> list[int]:
    """Read counts of devices, as text separated by commas, each once, in the order given.

    >>> devices("64, 128,256", "--gpus")
    [64, 128, 256]
    """
    text = given if isinstance(given, str) else ",".join(map(str, given))
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 1 <= int(part[:12]) <= MAX_DEVICES for part in parts):
        raise UsageError(f"{name} {text!r}: wanted counts of 1 to {MAX_DEVICES} separated by commas, as in 64,128")
    return list(dict.fromkeys(int(part) for part in parts))
