"""Scaling over counts of devices as a table."""

from collections.abc import Iterable

from rich.console import Group
from rich.text import Text

from perfmodel.search.results import columns, result_columns, sweep_columns
from perfmodel.search.results.columns import Context
from perfmodel_cli.terminal.cells import Clock, Record, line
from perfmodel_cli.terminal.declared_columns import ABBREVIATIONS, DeclaredTable


def sweep(record: Record) -> Group:
    """The answer of `sweep`: one row per count, then the reasons of those without an answer."""
    clock = Clock.of(max(row["step_time_s"] for row in record["points"] if "grid" in row))
    context = Context(record["fidelity"])
    declared = (*sweep_columns.POINT, *result_columns.RESULT)
    table = DeclaredTable(columns.places(declared, "sweep", context), context, clock)
    title = line(f"{record['model']} ({record['parameters']:,} parameters) on {record['machine']}", style="bold")
    asked = (
        f"{record['scaling']} scaling; {record['sequence_length']} tokens per sequence; fidelity {record['fidelity']}"
    )
    filled = table.filled(record["points"], wraps=True)
    return Group(title, line(f"{asked}; times in {clock.name} per step"), filled, *_notes(record, table))


def _notes(record: Record, table: DeclaredTable) -> Iterable[Text]:
    for row in record["points"]:
        if row["reason"]:
            yield line(f"{row['gpus']} devices: {row['reason']}")
    yield line("; ".join([*table.legends(), ABBREVIATIONS]), style="dim")
