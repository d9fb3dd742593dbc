"""Machines, models and plain rows as tables."""

from collections.abc import Iterable, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from perfmodel.machines.collective_times import Timings
from perfmodel.machines.machine import Machine
from perfmodel.units import show
from perfmodel_cli.terminal.cells import EXACT, Record, add_row, line, table_of


def machine(profile: Machine, figures: Sequence[Record], derived: Sequence[Record]) -> Group:
    """A profile: every figure with its source, what is derived from them, measured times, then the sources."""
    table = table_of("figure", "value", "kind", "source")
    for figure in figures:
        add_row(table, figure["figure"], _quantity(figure["value"], figure["unit"]), figure["kind"], figure["source"])
    for entry in derived:
        add_row(table, f"bandwidth.{entry['bandwidth']}", show(entry["value_B_per_s"], "B/s"), "derived", entry["rule"])
    sources = [
        line(f"  {key}: {source.kind}; {', '.join(filter(None, (source.address, source.date, source.note)))}")
        for key, source in profile.sources.items()
    ]
    notes = [line(f"Note: {note}") for note in profile.notes]
    timings = [part for each in profile.collectives for part in _timings(profile, each)]
    return Group(line(profile.title, style="bold"), table, *timings, line("Sources", style="bold"), *sources, *notes)


def _timings(profile: Machine, timings: Timings) -> Iterable[Text | Table]:
    """Measured times of one collective: a line for each size, a column for each number of nodes."""
    source = f"{profile.sources[timings.source].kind} [{timings.source}]"
    yield line(f"Times of {timings.operation}, {timings.shape}: {source}", style="bold")
    table = table_of("size", *(f"{row.nodes} nodes" if row.nodes > 1 else "1 node" for row in timings.rows))
    for place, size in enumerate(timings.sizes):
        times = (show(row.times[place], "s", digits=EXACT) for row in timings.rows)
        add_row(table, show(size, "B", digits=EXACT), *times)
    yield table


def _quantity(value: float, unit: str) -> str:
    return f"{value:g}" if unit == "1" else show(value, unit, digits=EXACT)


def model(record: Record) -> Group:
    """A model: counts, then its layers."""
    closed = record["closed_form_parameters"]
    against = f" (closed form: {closed:,.0f})" if closed else ""
    flops = record["closed_form_step_flop_per_sequence"]
    trained = f" (closed form: {show(flops, 'flop', digits=EXACT)})" if flops else ""
    lines = [
        line(f"{record['model']}: {record['parameters']:,} parameters{against}", style="bold"),
        line(
            f"{show(record['forward_flop_per_sequence'], 'flop', digits=EXACT)} forward, "
            f"{show(record['step_flop_per_sequence'], 'flop', digits=EXACT)} a training step{trained}, "
            f"for a sequence of {record['sequence_length']} tokens"
        ),
    ]
    table = table_of("block", "times", "layer", "kind", "shape", "parameters", "forward")
    for layer in record["layers"]:
        shape = ", ".join(
            f"{key} {value}"
            for key, value in layer.items()
            if key not in ("block", "repeat", "name", "kind", "parameters", "forward_flop")
        )
        add_row(
            table,
            layer["block"],
            str(layer["repeat"]),
            layer["name"],
            layer["kind"],
            shape,
            f"{layer['parameters']:,}",
            show(layer["forward_flop"], "flop"),
        )
    return Group(*lines, table)


def rows(records: Sequence[Record]) -> Table:
    """Records with the same keys as a table."""
    table = table_of(*(key.replace("_", " ") for key in records[0]))
    for record in records:
        add_row(
            table,
            *(
                "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
                for value in record.values()
            ),
        )
    return table
