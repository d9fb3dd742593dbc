"""Tables and lines of plain text: what every renderer is made of."""

from rich import box
from rich.table import Table
from rich.text import Text

from perfmodel.errors import printable


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
    """Cells of a window that the longest of a text's lines takes."""
    return max(part.cell_len for part in text.split())


def line(text: str, style: str = "") -> Text:
    """Text as it is: neither markup nor control characters of names that come from files mean anything."""
    return Text(printable(text), style=style)


def percent(value: float | None) -> str:
    """A share in percent, one decimal."""
    return "-" if value is None else f"{100 * value:.1f}"
