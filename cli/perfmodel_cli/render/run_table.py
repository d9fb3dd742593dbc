"""Runs as a table."""

from collections.abc import Iterator, Sequence

from rich.console import Group
from rich.text import Text

from perfmodel.launch.processes.results import loss_text
from perfmodel.parallel.axes import AXES, LISTED
from perfmodel.search.terms import by_column
from perfmodel.units import GIBI
from perfmodel_cli.terminal.cells import Clock, Record, add_row, line, percent, table_of

# Where a step's collectives are: headings of a ranking's columns, those of one kind alone, with operation and axis.
_COLUMNS = {
    heading: tuple((terms[0].operation, group) for group in terms[0].groups)
    for heading, terms in by_column().items()
    if terms[0].operation
}


def runs(rows: Sequence[Record]) -> Group:
    """The answer of `run`: one row per grid, then why some have none."""
    good = [row for row in rows if row["status"] == "ok"]
    clock = Clock.of(max((row["step_time_s"] for row in good), default=1.0))
    table = table_of(
        f"grid\n{LISTED}", "micro\nbatch", "recom-\npute", "weight\ncache", "step", "least", "tokens/s", "MFU\n%",
        *_COLUMNS, "other", "GiB", "loss",
        wraps=False,
    )  # fmt: skip
    for row in rows:
        add_row(table, *_cells(row, clock))
    return Group(*_heading(rows[0], good), line(f"times in {clock.name} per step"), table, *_notes(rows, good))


def _heading(first: Record, good: list[Record]) -> Iterator[Text]:
    scaled = [f"layers {first['scale_layers']}"] if first["scale_layers"] else []
    scaled += [f"widths times {first['scale_hidden']}"] if first["scale_hidden"] else []
    yield line(", ".join([first["model"], *scaled]), style="bold")
    for text in dict.fromkeys(f"{row['backend']}, {row['dtype']}; {row['hardware']}" for row in good):
        yield line(text)
    yield line(f"{first['batch_sequences']} sequences of {first['sequence_length']} tokens per step")


def _cells(row: Record, clock: Clock) -> list[str]:
    asked = [_grid(row), str(row["micro_batch"]), row["recompute"], row["weight_cache"]]
    if row["status"] != "ok":
        return [*asked, row["status"], *["-"] * (6 + len(_COLUMNS))]
    spent = {
        (name, axis): figures["seconds"] for name, of in row["communication"].items() for axis, figures in of.items()
    }
    named = [sum(spent.pop(key, 0.0) for key in keys) for keys in _COLUMNS.values()]
    return [
        *asked, clock.show(row["step_time_s"], digits=4), clock.show(row["step_time_min_s"], digits=4),
        f"{row['tokens_per_s']:,.0f}", percent(row["model_flops_utilization"]),
        *(clock.show(seconds) for seconds in (*named, sum(spent.values()))),
        f"{row['memory_B'] / GIBI:.2f}", f"{loss_text(row['losses'][0])} to {loss_text(row['losses'][-1])}",
    ]  # fmt: skip


def _grid(row: Record) -> str:
    return "x".join(str(row[axis]) for axis in AXES)


def _notes(rows: Sequence[Record], good: list[Record]) -> Iterator[Text]:
    for row in rows:
        if row["status"] != "ok":
            yield line(f"{_grid(row)}: {row['message']}")
    if good:
        memory = "the resident set of a process" if good[0]["backend"] == "gloo" else "tensors"
        yield line(
            "step = median, least = fastest of the measured steps; collectives timed alone, afterwards; AG = "
            f"all-gather, RS = reduce-scatter, AR = all-reduce; GiB = peak of {memory}, of the rank that needs most; "
            "loss of the first and the last step",
            style="dim",
        )
