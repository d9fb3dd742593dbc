"""The declared columns of an answer as a table of the terminal: one function per kind of cell, none per column."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from perfmodel.search.results import columns
from perfmodel.search.results.columns import Column, Context, Kind, Place
from perfmodel.search.terms import TERMS
from perfmodel.units import GIBI
from perfmodel_cli.terminal.cells import Clock, Record, add_row, percent, table_of
from perfmodel_cli.texts import grid_text

ABBREVIATIONS = "AG = all-gather, RS = reduce-scatter, AR = all-reduce"
_NAMES = {"compute": "compute"} | {term.key: term.heading for term in TERMS}


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """The columns that one table shows, in order, and what its cells depend on besides their row."""

    shown: Sequence[tuple[Column, Place]]
    context: Context
    clock: Clock

    def filled(self, rows: Iterable[Record], *, wraps: bool) -> Table:
        """The table with all rows."""
        capacity = f"{(self.context.capacity or 0) / GIBI:.4g}"
        heads = [columns.heading(*pair).format(capacity=capacity) for pair in self.shown]
        table = table_of(*heads, wraps=wraps)
        for row in rows:
            add_row(table, *(self._cell(*pair, row) for pair in self.shown))
        return table

    def legends(self) -> list[str]:
        """Sentences that explain headings, in the order of the columns."""
        return [place.legend for _, place in self.shown if place.legend]

    def _cell(self, column: Column, place: Place, row: Record) -> str:
        kind, value = columns.kind(column, place), columns.value(column, place, row)
        if value is None:
            return "no answer" if kind == "limit" else "-"
        return _WRITTEN[kind](value, row, self)


def _number(value: Any, _: Record, __: DeclaredTable) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _memory(value: float, _: Record, table: DeclaredTable) -> str:
    capacity = table.context.capacity
    return f"{value / GIBI:.1f}{'!' if capacity is not None and value > capacity else ''}"


_WRITTEN: Mapping[Kind, Callable[[Any, Record, DeclaredTable], str]] = {
    "number": _number,
    "count": _number,
    "word": _number,
    "grid": lambda _, row, __: grid_text(row),
    "order": lambda value, _, __: " ".join(axis[0] for axis in value),
    "micro-batches": lambda value, row, _: f"{value}x{row['accumulation_steps']}",
    "time": lambda value, _, table: table.clock.show(value),
    "step": lambda value, _, table: table.clock.show(value, digits=4),
    "memory": _memory,
    "share": lambda value, _, __: percent(value),
    "of capacity": lambda value, _, table: percent(value / (table.context.capacity or value)),
    "limit": lambda value, _, __: _NAMES[value],
    "term": lambda value, _, __: _NAMES[value],
}
