"""Records for machines: plain values under keys that carry the unit, and lines of JSON that hold them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

Record = dict[str, Any]
OK = "ok"  # the status of a run that came to its end


def json_lines(content: bytes) -> Iterator[tuple[int, bytes, Record | None]]:
    """Each line that is not blank: its number, its text, and the object of JSON that it is, None where it is none.

    >>> list(json_lines(bytes([*b'{"x": 1}', 10, 10, *b'{"x": '])))
    [(1, b'{"x": 1}', {'x': 1}), (3, b'{"x": ', None)]
    """
    for number, text in enumerate(content.splitlines(), start=1):
        if text.strip():
            yield number, text, _json_object(text)


def _json_object(text: bytes) -> Record | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def flat(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """A record's entries as columns: nested keys joined with _, lists joined with spaces."""
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flat(value, f"{name}_")
        else:
            yield name, " ".join(map(str, value)) if isinstance(value, list) else value


def table(rows: Iterable[Mapping[str, Any]]) -> tuple[list[str], list[Record]]:
    """Records as rows of one table: the columns in the order in which they first come, and each row flat.

    >>> table([{"rank": 1, "grid": {"x": 2}}, {"rank": 2, "reason": "none"}])
    (['rank', 'grid_x', 'reason'], [{'rank': 1, 'grid_x': 2}, {'rank': 2, 'reason': 'none'}])
    """
    flattened = [dict(flat(row)) for row in rows]
    return list(dict.fromkeys(column for row in flattened for column in row)), flattened


def plain(value: Any) -> Any:
    """Dataclasses and mappings as dicts, tuples as lists."""
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple) else value
