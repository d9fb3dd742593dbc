"""Pieces of text that messages, tables, pictures and the report share."""

from collections.abc import Mapping, Sequence
from typing import Any


def shortened(lines: Sequence[str], most: int, rest: str) -> list[str]:
    """The first lines, and one more that says how many are left out, if any.

    >>> shortened(["a", "b", "c"], 2, "and {} more"), shortened(["a"], 2, "and {} more")
    (['a', 'b', 'and 1 more'], ['a'])
    """
    return [*lines[:most], *([rest.format(len(lines) - most)] if len(lines) > most else [])]


def spelled(name: str) -> str:
    """An option's name on the command line.

    >>> spelled("host_time")
    '--host-time'
    """
    return f"--{name.replace('_', '-')}"


def grid_text(record: Mapping[str, Any]) -> str:
    """The grid of a record as Gx x Gy x Gz x Gdata."""
    return "x".join(str(size) for size in record["grid"].values())
