"""The one place that prints: a record as JSON, its rows as CSV, or a picture of it for people."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeVar

from perfmodel.errors import PerfmodelError, printable
from perfmodel_cli.texts import MOST_PROBLEMS, shortened

_WIDTH = 132  # of a table that goes to a file or a pipe, where there is no window to fit
_WIDEST = 10**6  # of what is measured
_PATIENCE = 2.0  # seconds without a word
Item = TypeVar("Item")


def show(record: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], output: str, picture: Callable[[], Any]) -> None:
    """Print an answer to standard output in the form asked for."""
    if output == "json":
        import json

        sys.stdout.write(json.dumps(record, indent=2, allow_nan=False, default=str) + "\n")
    elif output == "csv":
        _csv(rows)
    else:
        _print(picture())


def renderer(name: str) -> ModuleType:
    """A module of render/, loaded when there is a table to make: Rich is slow to import."""
    from importlib import import_module

    return import_module(f"perfmodel_cli.render.{name}")


def tell(text: str) -> None:
    """Say something beside the answer, on standard error."""
    sys.stderr.write(f"perfmodel: {printable(text)}\n")
    sys.stderr.flush()


def progress(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    """The same items, with a word after each on how many are done, once they have taken long."""
    start = time.monotonic()
    for done, item in enumerate(items, start=1):
        if time.monotonic() - start > _PATIENCE and done < total:
            tell(f"{done} of {total} {what} done")
        yield item


def _csv(rows: Sequence[Mapping[str, Any]]) -> None:
    import csv

    from perfmodel.records import flat

    flattened = [
        {key: printable(value) if isinstance(value, str) else value for key, value in flat(row)} for row in rows
    ]
    columns = list(dict.fromkeys(column for row in flattened for column in row))
    writer = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flattened)


def _print(picture: Any) -> None:
    """Text as wide as the window; a table too, unless that would cut its numbers: then its lines wrap."""
    import os

    from rich.console import Console, Group
    from rich.measure import Measurement
    from rich.table import Table

    console = Console(highlight=False)
    fits_a_window = sys.stdout.isatty() or "COLUMNS" in os.environ
    window = console.width if fits_a_window else _WIDTH
    for part in picture.renderables if isinstance(picture, Group) else [picture]:
        console.width = _WIDEST
        needed = Measurement.get(console, console.options, part).minimum if isinstance(part, Table) else 0
        console.width = max(window, needed)
        console.print(part)


def tell_dropped(problems: Sequence[str], dropped: int, total: int) -> None:
    """Say what is wrong, and how many rows are left out."""
    lines = shortened(problems, MOST_PROBLEMS, "and {} more problems")
    if dropped:
        lines.append(f"{dropped} of {total} rows left out")
    for line in lines:
        tell(line.replace("\n", " "))


def nothing_left(problems: Sequence[str], file: str, purpose: str) -> PerfmodelError:
    """The error of a file without a good row."""
    return PerfmodelError("\n".join([*problems[:MOST_PROBLEMS], f"{file}: no row to {purpose}"]))
