"""Scaling over counts of devices as a table."""

from collections.abc import Iterable

from rich.console import Group
from rich.text import Text

from perfmodel.units import GIBI
from perfmodel_cli.render.cells import Clock, add_row, line, percent, table_of
from perfmodel_cli.render.notes import grid_text
from perfmodel_cli.render.ranking import TERMS, Record

_LIMITS = {"compute": "compute"} | TERMS


def sweep(record: Record) -> Group:
    """The answer of `sweep`: a row a count, then the reasons of those without an answer."""
    clock = Clock.of(max(row["step_time_s"] for row in record["points"] if "grid" in row))
    table = table_of(
        "GPUs", "nodes", "batch", "grid\nx,y,z,data", "micro\nbatch", "recom-\npute", "step", "ex-\nposed",
        "effi-\nciency %", "MFU\n%", "GiB", "limited\nby", "most\nsent",
    )  # fmt: skip
    for row in record["points"]:
        add_row(table, *_cells(row, clock))
    title = line(f"{record['model']} ({record['parameters']:,} parameters) on {record['machine']}", style="bold")
    asked = f"{record['scaling']} scaling; {record['sequence_length']} tokens a sequence; fidelity {record['fidelity']}"
    return Group(title, line(f"{asked}; times in {clock.name} a step"), table, *_notes(record))


def _cells(row: Record, clock: Clock) -> list[str]:
    batch = row["batch_sequences"]
    asked = [str(row["gpus"]), str(row["nodes"]), "-" if batch is None else str(batch)]
    if "grid" not in row:
        return [*asked, *["-"] * 8, "no answer", "-"]
    return [
        *asked, grid_text(row), f"{row['micro_batch']}x{row['accumulation_steps']:g}", row["recompute"],
        clock.show(row["step_time_s"], digits=4), clock.show(row["exposed_communication_time_s"]),
        percent(row["efficiency"]), percent(row["model_flops_utilization"]), f"{row['memory_B'] / GIBI:.1f}",
        _limit(row["limited_by"]), _limit(row["largest_communication"]),
    ]  # fmt: skip


def _limit(name: str | None) -> str:
    return "-" if name is None else _LIMITS[name]


def _notes(record: Record) -> Iterable[Text]:
    for row in record["points"]:
        if row["reason"]:
            yield line(f"{row['gpus']} devices: {row['reason']}")
    yield line(
        "efficiency = tokens a second and device against the first count with an answer; exposed = communication that "
        "computation does not hide; limited by = compute, or the largest term of the communication where more of it is "
        "exposed; AG = all-gather, RS = reduce-scatter, AR = all-reduce",
        style="dim",
    )
