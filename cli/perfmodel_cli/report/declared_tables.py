"""The declared columns of an answer as a table of the report: one function per kind of cell, none per column."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from perfmodel.search.results import columns
from perfmodel.search.results.columns import Column, Context, Kind, Table
from perfmodel_cli.report.figures import Record, memory_text, seconds, share
from perfmodel_cli.report.html import Cell, Markup, table
from perfmodel_cli.texts import grid_text


def declared_table(
    caption: str, declared: Sequence[Column], name: Table, context: Context, rows: Iterable[Record]
) -> Markup:
    """The columns that the table of that name shows, with all rows."""
    shown = columns.places(declared, name, context)
    cells = [[_cell(columns.kind(*pair), columns.value(*pair, row), row, context) for pair in shown] for row in rows]
    return table(caption, [columns.heading(*pair) for pair in shown], cells)


def _cell(kind: Kind, value: Any, row: Record, context: Context) -> Cell:
    return Cell("-") if value is None else _CELLS[kind](value, row, context)


def _number(value: Any, _: Record, __: Context) -> Cell:
    return Cell(f"{value:.4g}" if isinstance(value, float) else value, value)


_CELLS: Mapping[Kind, Callable[[Any, Record, Context], Cell]] = {
    "number": _number,
    "count": lambda value, _, __: Cell(f"{value:,}", value),
    "word": lambda value, _, __: Cell(value),
    "grid": lambda _, row, __: Cell(grid_text(row)),
    "order": lambda value, _, __: Cell(", ".join(value)),
    "micro-batches": lambda value, row, _: Cell(f"{value} x {row['accumulation_steps']}", value),
    "time": lambda value, _, __: seconds(value),
    "step": lambda value, _, __: seconds(value),
    "memory": lambda value, _, __: Cell(memory_text(value), value),
    "share": lambda value, _, __: share(value),
    "of capacity": lambda value, _, context: share(value / (context.capacity or value)),
    "limit": lambda value, _, __: Cell(value.replace("_", " ")),
    "term": lambda value, _, __: Cell(value.replace("_", " ")),
}
