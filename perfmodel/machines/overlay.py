"""Tables as a profile of their own, which overlays the machine on which they were measured."""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from perfmodel.machines import profile_text
from perfmodel.machines.collective_times import Timings
from perfmodel.machines.machine import FORMAT, Machine
from perfmodel.machines.profiles import names
from perfmodel.sources import Source

_NAMED = 6  # files that a source names
_SUFFIX = ".yaml"
_TITLE = "; collectives measured"


def source_key(machine: Machine, word: str = "LOGS") -> str:
    """A key that the machine's sources do not have.

    >>> from perfmodel.machines.profiles import load
    >>> source_key(load("perlmutter"))
    'LOGS'
    """
    keys = (word, *(f"{word}-{number}" for number in range(2, len(machine.sources) + 3)))
    return next(key for key in keys if key not in machine.sources)


def source(files: Sequence[str], facts: Iterable[str], note: str, date: str) -> Source:
    """The source of the tables: the logs, when they were written, and the versions that they name."""
    more = [f"and {len(files) - _NAMED} more"] if len(files) > _NAMED else []
    said = "; ".join([*dict.fromkeys(facts), note])
    return Source(kind="measured", address=", ".join([*files[:_NAMED], *more]), date=date, note=said)


def written_on(files: Sequence[str]) -> str:
    """The day on which the newest of the files was last written."""
    newest = max(Path(file).stat().st_mtime for file in files)
    return dt.datetime.fromtimestamp(newest, tz=dt.UTC).date().isoformat()


def over(machine: Machine, tables: Sequence[Timings], name: str, key: str, of: Source) -> Machine:
    """The machine with new tables, checked as a whole; its own stay where no new one is for the same calls."""
    new = {(table.operation, table.ranks, table.inner) for table in tables}
    old = [table for table in machine.collectives if (table.operation, table.ranks, table.inner) not in new]
    kept = tuple(sorted((*old, *tables), key=lambda table: (table.operation, table.ranks, table.inner)))
    title = f"{machine.title.removesuffix(_TITLE)}{_TITLE}"
    return dataclasses.replace(machine, name=name, title=title, sources={**machine.sources, key: of}, collectives=kept)


def text(machine: Machine, base: str, key: str, file: Path) -> str:
    """The YAML of what differs from the base."""
    tables = [profile_text.table(table) for table in machine.collectives]
    return profile_text.text(head(machine, base, key, file) | {"collectives": tables})


def head(machine: Machine, base: str, key: str, file: Path) -> dict[str, Any]:
    """The head of the profile: name, base, title and the one source."""
    of = machine.sources[key]
    return {
        "format": FORMAT,
        "name": machine.name,
        "base": _base(base, file),
        "title": machine.title,
        "sources": {key: dataclasses.asdict(of)},
    }


def _base(base: str, file: Path) -> str:
    """How the file refers to its base: by name, or by the full path of a file elsewhere."""
    path = Path(base)
    if base.lower() in names():
        return base.lower()
    if path.suffix == _SUFFIX and path.absolute().parent == file.absolute().parent:
        return path.stem
    return str(path.absolute())
