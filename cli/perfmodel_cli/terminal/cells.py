"""Tables and lines of plain text: what every renderer is made of."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from perfmodel.errors import printable
from perfmodel.units import parse

Record = Mapping[str, Any]

EXACT = 6  # digits of a figure, so that it can be compared with its source


def table_of(*columns: str, wraps: bool = True) -> Table:
    """A plain table; one that does not wrap is never narrower than what is in it."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0) if wraps else 0)
    for column in columns:
        kept = not wraps or column == "name"
        table.add_column(column, overflow="fold", no_wrap=kept, min_width=_width(line(column)) if kept else None)
    return table


def add_row(table: Table, *cells: str) -> None:
    """Add a row of plain text: names come from files, and may look like markup."""
    texts = [line(cell) for cell in cells]
    for column, text in zip(table.columns, texts, strict=True):
        if column.no_wrap:
            column.min_width = max(column.min_width or 0, _width(text))
    table.add_row(*texts)


def _width(text: Text) -> int:
    """The width of a text's longest line in the window."""
    return max(part.cell_len for part in text.split())


def line(text: str, style: str = "") -> Text:
    """Text as it is: markup and control characters in names from files have no effect."""
    return Text(printable(text), style=style)


def percent(value: float | None) -> str:
    """A share in percent with one decimal."""
    return "-" if value is None else f"{100 * value:.1f}"


_SHORT = 1 / 10  # seconds: the steps of a ranking that is shown in milliseconds
_LEAST = parse("1 ms", "s")  # of a table's unit, shown as less


@dataclass(frozen=True, slots=True)
class Clock:
    """The unit that a table's times are shown in, chosen by the longest of them."""

    name: str
    unit: float

    @classmethod
    def of(cls, longest: float) -> "Clock":
        """Milliseconds where seconds would all begin with a zero."""
        return cls("milliseconds", parse("1 ms", "s")) if longest < _SHORT else cls("seconds", 1.0)

    def show(self, value: float | None, *, digits: int = 3) -> str:
        """So many digits, thousandths at the least, no wider than a column of a ranking allows."""
        if value is None:
            return "-"
        scaled = value / self.unit
        if 0 < scaled < _LEAST:
            return f"<{_LEAST:g}"
        places = max(0, digits - 1 - int(math.log10(scaled))) if scaled >= 1 else 3
        return f"{scaled:.{min(places, 3)}f}" if scaled else "0"
