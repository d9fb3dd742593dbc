"""Tables as a profile of their own, laid over the machine that they were measured on."""

import dataclasses
import datetime as dt
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from perfmodel.machines.collective_times import Timings
from perfmodel.machines.machine import Machine
from perfmodel.machines.profiles import names
from perfmodel.sources import Source
from perfmodel.units import parse, show

_DIGITS = 6  # of a time
_NAMED = 6  # files that a source names
_SUFFIX = ".yaml"
_TITLE = "; collectives measured"
_FIXED_BLANK = "\N{NO-BREAK SPACE}"  # keeps a number and its unit on one line


def source_key(machine: Machine, word: str = "LOGS") -> str:
    """A key that the machine's sources do not have.

    >>> from perfmodel.machines.profiles import load
    >>> source_key(load("perlmutter"))
    'LOGS'
    """
    keys = (word, *(f"{word}-{number}" for number in range(2, len(machine.sources) + 3)))
    return next(key for key in keys if key not in machine.sources)


def source(files: Sequence[str], facts: Iterable[str], note: str, date: str) -> Source:
    """Where the tables come from: the logs, when they were written, and the versions that they name."""
    more = [f"and {len(files) - _NAMED} more"] if len(files) > _NAMED else []
    said = "; ".join([*dict.fromkeys(facts), note])
    return Source(kind="measured", address=", ".join([*files[:_NAMED], *more]), date=date, note=said)


def written_on(files: Sequence[str]) -> str:
    """The day on which the newest of the files was written last."""
    newest = max(Path(file).stat().st_mtime for file in files)
    return dt.datetime.fromtimestamp(newest, tz=dt.UTC).date().isoformat()


def over(machine: Machine, tables: Sequence[Timings], name: str, key: str, of: Source) -> Machine:
    """The machine with new tables, those of its own kept where no new one is for the same calls; checked as a whole."""
    new = {(table.operation, table.ranks, table.inner) for table in tables}
    old = [table for table in machine.collectives if (table.operation, table.ranks, table.inner) not in new]
    kept = tuple(sorted((*old, *tables), key=lambda table: (table.operation, table.ranks, table.inner)))
    title = f"{machine.title.removesuffix(_TITLE)}{_TITLE}"
    return dataclasses.replace(machine, name=name, title=title, sources={**machine.sources, key: of}, collectives=kept)


def text(machine: Machine, base: str, key: str, file: Path) -> str:
    """The YAML of what differs from the base."""
    lines = [*head(machine, base, key, file), "collectives:"]
    for table in machine.collectives:
        lines += _table(table)
    return "\n".join(lines) + "\n"


def head(machine: Machine, base: str, key: str, file: Path) -> list[str]:
    """The lines before what differs: name, base, title and the one source."""
    of = machine.sources[key]
    return [
        "format: 1",
        f"name: {_quoted(machine.name)}",
        f"base: {_quoted(_base(base, file))}",
        f"title: {_quoted(machine.title)}",
        "",
        "sources:",
        f"  {key}:",
        f"    kind: {of.kind}",
        f"    address: {_quoted(of.address)}",
        f"    date: {_quoted(of.date)}",
        f"    note: {_quoted(of.note)}",
        "",
    ]


def _base(base: str, file: Path) -> str:
    """How the file names its base from where it is: by name, or by the whole path of a file elsewhere."""
    path = Path(base)
    if base.lower() in names():
        return base.lower()
    if path.suffix == _SUFFIX and path.absolute().parent == file.absolute().parent:
        return path.stem
    return str(path.absolute())


def _table(table: Timings) -> list[str]:
    head = [f"  - operation: {table.operation}", f"    ranks: {table.ranks}"]
    head += [f"    inner: {table.inner}"] if table.inner != 1 else []
    sizes = _wrapped("    sizes: ", [_bytes(size) for size in table.sizes], "")
    rows = [
        line
        for row in table.rows
        for line in _wrapped(
            f"      - {{nodes: {row.nodes}, times: ", [show(time, "s", digits=_DIGITS) for time in row.times], "}"
        )
    ]
    return [*head, f"    source: {table.source}", *sizes, "    rows:", *rows]


def _wrapped(head: str, items: Sequence[str], tail: str) -> list[str]:
    indent = " " * (len(head) - len(head.lstrip()) + 4)
    joined = ", ".join(item.replace(" ", _FIXED_BLANK) for item in items)
    wrapped = textwrap.wrap(f"{head}[{joined}]{tail}", 118, subsequent_indent=indent, break_long_words=False)
    return [line.replace(_FIXED_BLANK, " ") for line in wrapped]


def _bytes(size: float) -> str:
    """A size with the largest prefix that keeps it whole.

    >>> _bytes(2.0**20), _bytes(1536.0), _bytes(1000001.0)
    ('1 MiB', '1.5 KiB', '1000001 B')
    """
    short = show(size, "B")
    return short if parse(short, "B") == size else f"{size:.0f} B"


def _quoted(words: str) -> str:
    return str(yaml.safe_dump(words, default_style='"', allow_unicode=True, width=1 << 30)).strip()
