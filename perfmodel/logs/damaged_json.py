"""JSON that may be truncated or damaged: intact pieces are read, the others are reported with their place.

Numbers stay the text that the file has, so that their rounding is known.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str, strict=False)
_KEY = re.compile(r'[{,]\s*"(\w{1,40})"\s*:\s*')
_BETWEEN = " \t\r\n,[]}"  # what may stand between the objects of a list, and after them


@dataclass(frozen=True, slots=True)
class Piece:
    """An object of a list: where its text begins and ends, and what it holds; None where truncated or damaged."""

    start: int
    end: int
    holds: dict[str, Any] | None


def values(text: str) -> dict[str, Any]:
    """Values by name of the object at the start of the text; after damage, reading resumes at the next name.

    >>> values('{"a": [1.50, 2], "b": ?, "c": {"d": 3}}')
    {'a': ['1.50', '2'], 'c': {'d': '3'}}
    """
    found: dict[str, Any] = {}
    key = _KEY.search(text)
    while key is not None:
        value, end = _value(text, key.end())
        if end:
            found.setdefault(key[1], value)
        key = _KEY.search(text, max(end, key.end()))
    return found


def objects(text: str, opening: re.Pattern[str]) -> Iterator[Piece]:
    """Each object of a list, none of which contains one that opens alike; anything between two objects is damaged.

    >>> [piece.holds for piece in objects('[{"n": 1}, {"n": 2, {"n": 3}, 4}]', re.compile(r'{"n"'))]
    [{'n': '1'}, None, {'n': '3'}, None]
    """
    starts = [found.start() for found in opening.finditer(text)]
    yield from _stray(text, 0, starts[0] if starts else len(text))
    for start, end in pairwise([*starts, len(text)]):
        value, length = _value(text[start:end], 0)  # a text of its own, since a JSON error counts the lines before it
        if isinstance(value, dict):
            yield Piece(start, start + length, value)
            yield from _stray(text, start + length, end)
        else:
            yield Piece(start, end, None)


def _stray(text: str, start: int, end: int) -> Iterator[Piece]:
    """What is left of an object that lost its beginning."""
    rest = text[start:end].lstrip(_BETWEEN)
    if rest:
        yield Piece(end - len(rest), end, None)


class Lines:
    """Line numbers of a text."""

    def __init__(self, text: str) -> None:
        """Find the ends of the lines once."""
        self._ends = [found.start() for found in re.finditer("\n", text)]

    def at(self, place: int) -> int:
        """The line, from 1, of a place in the text."""
        return bisect_right(self._ends, place - 1) + 1


def _value(text: str, start: int) -> tuple[Any, int]:
    """The value that begins at a place, and where it ends; 0 where none is whole."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, 0
