"""The one place that prints: a record as JSON, its rows as CSV, or a picture of it for people."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeVar

from perfmodel.errors import MOST_PROBLEMS, printable
from perfmodel_cli.texts import shortened

_PATIENCE = 2.0  # seconds without a message
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
    """The same items; once they take long, a message after each says how many are done."""
    start = time.monotonic()
    for done, item in enumerate(items, start=1):
        if time.monotonic() - start > _PATIENCE and done < total:
            tell(f"{done} of {total} {what} done")
        yield item


def _csv(rows: Sequence[Mapping[str, Any]]) -> None:
    import csv

    from perfmodel.records import table

    columns, flattened = table(rows)
    writer = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {key: printable(value) if isinstance(value, str) else value for key, value in row.items()} for row in flattened
    )


def _print(picture: Any) -> None:
    from rich.console import Console

    from perfmodel_cli.terminal.windows import put, window

    put(Console(highlight=False), picture, window())


def tell_dropped(problems: Sequence[str], dropped: int, total: int) -> None:
    """Say what is wrong, and how many rows are left out."""
    lines = shortened(problems, MOST_PROBLEMS, "and {} more problems")
    if dropped:
        lines.append(f"{dropped} of {total} rows left out")
    for line in lines:
        tell(line.replace("\n", " "))
