"""The one place that prints: a record as JSON, its rows as CSV, or a picture of it for people."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_WIDTH = 132  # of a table that goes to a file or a pipe, where there is no window to fit
_NARROWEST = 104  # a ranking needs as much; in a smaller window lines wrap, which beats cut numbers


def show(record: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], output: str, picture: Callable[[], Any]) -> None:
    """Print an answer to standard output in the form asked for."""
    if output == "json":
        import json

        sys.stdout.write(json.dumps(record, indent=2, allow_nan=False, default=str) + "\n")
    elif output == "csv":
        _csv(rows)
    else:
        _console().print(picture(), soft_wrap=False)


def _csv(rows: Sequence[Mapping[str, Any]]) -> None:
    import csv

    from perfmodel.tables import flat

    flattened = [dict(flat(row)) for row in rows]
    columns = list(dict.fromkeys(column for row in flattened for column in row))
    writer = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flattened)


def _console() -> Any:
    import os

    from rich.console import Console

    console = Console(highlight=False)
    fits_a_window = sys.stdout.isatty() or "COLUMNS" in os.environ
    console.width = max(console.width, _NARROWEST) if fits_a_window else _WIDTH
    return console
