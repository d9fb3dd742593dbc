"""JSON that may be cut or damaged, piece by piece: what is whole is read, what is not is told with its place.

Numbers stay the text that the file has, so that their rounding is known.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str, strict=False)
_KEY = re.compile(r'[{,]\s*"(\w{1,40})"\s*:\s*')
_BETWEEN = " \t\r\n,[]}"  # what may stand between the objects of a list, and behind them


@dataclass(frozen=True, slots=True)
class Piece:
    """An object of a list: where its text begins and ends, and what it holds; None where it is cut or damaged."""

    start: int
    end: int
    holds: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a name: where its text begins and ends, and what it is; `whole` where all of it could be read."""

    start: int
    end: int
    holds: Any
    whole: bool


def values(text: str) -> dict[str, Value]:
    """The values of the object that the text begins with; behind a damaged one reading goes on at the next name.

    >>> found = values('{"a": [1.50, 2], "b": {"c": 3}}')
    >>> found["a"].holds, found["b"].holds
    (['1.50', '2'], {'c': '3'})
    """
    found: dict[str, Value] = {}
    key = _KEY.search(text)
    while key is not None:
        start = key.end()
        value, end = _value(text, start)
        found.setdefault(key[1], Value(start, end or len(text), value, whole=end > 0))
        key = _KEY.search(text, max(start, end))
    return found


def objects(text: str, opening: re.Pattern[str]) -> Iterator[Piece]:
    """Each object of a list; what stands between two and belongs to none is a damaged one.

    >>> [piece.holds for piece in objects('[{"n": 1}, {"n": 2, {"n": 3}]', re.compile(r'{"n"'))]
    [{'n': '1'}, None, {'n': '3'}]
    """
    place, whole = 0, True
    while (found := opening.search(text, place)) is not None:
        start = found.start()
        if whole:
            yield from _stray(text, place, start)
        value, end = _value(text, start)
        whole = isinstance(value, dict)
        place = end if whole else start + 1
        yield Piece(start, place, value if whole else None)
    if whole:
        yield from _stray(text, place, len(text))


def _stray(text: str, start: int, end: int) -> Iterator[Piece]:
    """What is left of an object that lost its beginning."""
    rest = text[start:end].lstrip(_BETWEEN)
    if rest:
        yield Piece(end - len(rest), end, None)


class Lines:
    """Numbers of the lines of a text."""

    def __init__(self, text: str) -> None:
        """Find the ends of the lines once."""
        self._ends = [found.start() for found in re.finditer("\n", text)]

    def at(self, place: int) -> int:
        """The line, from 1, that a place of the text is in."""
        return bisect_right(self._ends, place - 1) + 1


def _value(text: str, start: int) -> tuple[Any, int]:
    """The value that begins at a place, and where it ends; 0 where none is whole."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, 0
