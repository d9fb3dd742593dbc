"""A profile as YAML text: the one writer for imported, fitted and measured figures, and the format of each value.

Only a template (`machines.template`) is written elsewhere: it goes through the fields and explains each.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from perfmodel import schema
from perfmodel.machines.collective_times import Timings
from perfmodel.units import parse, show

WIDTH = 118
_BARE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9 ./_+()\[\]-]*[A-Za-z0-9./_+()\]-])?")
_FREE_TEXT = ("name", "base", "title", "address", "date", "note")  # free text, always in quotes
_FIXED_BLANK = "\N{NO-BREAK SPACE}"  # keeps a number and its unit on one line
_DIGITS = 6


def text(content: Mapping[str, Any]) -> str:
    """Plain data, nested like the schema of a profile, as YAML; `sources` is set apart."""
    lines: list[str] = []
    for key, value in content.items():
        entry = list(_entry(key, value, ""))
        lines += ["", *entry, ""] if key == "sources" else entry
    return "\n".join(lines) + "\n"


def quoted(words: str, *, always: bool = False) -> str:
    """Words as YAML: bare where that is safe, in double quotes elsewhere.

    >>> quoted("4 x A100"), quoted("yes: no"), quoted("null")
    ('4 x A100', '"yes: no"', '"null"')
    """
    if _BARE.fullmatch(words) and words not in schema.NULLS and not always:
        return words
    return str(yaml.safe_dump(words, default_style='"', allow_unicode=True, width=1 << 30)).strip()


def figure(value: float, unit: str, key: str, *, digits: int = _DIGITS) -> str:
    """A number with its unit and the key of its source.

    >>> figure(25e9, "B/s", "MEASURED"), figure(3.0, "1", "SYSTEM")
    ('25 GB/s [MEASURED]', '3 [SYSTEM]')
    """
    number = f"{value:.{digits}g}" if unit == "1" else show(value, unit, digits=digits)
    return f"{number} [{key}]"


def table(of: Timings, *, digits: int = _DIGITS) -> dict[str, Any]:
    """A measured table as plain data; `digits`: number of digits of its times."""
    stride = {"inner": of.inner} if of.inner != 1 else {}
    rows = [{"nodes": row.nodes, "times": [show(time, "s", digits=digits) for time in row.times]} for row in of.rows]
    head = {"operation": of.operation, "ranks": of.ranks, **stride, "source": of.source}
    return {**head, "sizes": [_bytes(size) for size in of.sizes], "rows": rows}


def _bytes(size: float) -> str:
    """A size with the largest prefix that keeps it whole.

    >>> _bytes(2.0**20), _bytes(1536.0), _bytes(1000001.0)
    ('1 MiB', '1.5 KiB', '1000001 B')
    """
    short = show(size, "B")
    return short if parse(short, "B") == size else f"{size:.0f} B"


def _entry(key: str, value: Any, indent: str) -> Iterator[str]:
    """The lines of a key with its value."""
    here = f"{indent}{quoted(key)}:"
    if isinstance(value, Mapping):
        yield here
        for name, inner in value.items():
            yield from _entry(name, inner, f"{indent}  ")
    elif _is_row(value):
        yield from _wrapped(f"{here} ", value, "")
    elif isinstance(value, list):
        yield here
        for item in value:
            yield from _item(item, f"{indent}  ")
    else:
        yield f"{here} {quoted(str(value), always=key in _FREE_TEXT)}"


def _item(item: Any, indent: str) -> Iterator[str]:
    """The lines of one list item: numbers and a row of figures on one line, else one key per line."""
    if not isinstance(item, Mapping):
        yield f"{indent}- {quoted(str(item))}"
        return
    *first, last = item.items()
    if _is_row(last[1]):
        before = "".join(f"{key}: {value}, " for key, value in first)
        yield from _wrapped(f"{indent}- {{{before}{last[0]}: ", last[1], "}")
        return
    lines = [line for key, value in item.items() for line in _entry(key, value, f"{indent}  ")]
    yield f"{indent}- {lines[0].lstrip()}"
    yield from lines[1:]


def _is_row(value: Any) -> bool:
    """Whether a value is a list of figures."""
    return isinstance(value, list) and all(isinstance(item, str) and item[:1].isdigit() for item in value)


def _wrapped(head: str, items: Sequence[str], tail: str) -> list[str]:
    indent = " " * (len(head) - len(head.lstrip()) + 4)
    joined = ", ".join(quoted(item).replace(" ", _FIXED_BLANK) for item in items)
    wrapped = textwrap.wrap(f"{head}[{joined}]{tail}", WIDTH, subsequent_indent=indent, break_long_words=False)
    return [line.replace(_FIXED_BLANK, " ") for line in wrapped]
