"""Scores of published steps as a table: a line per set, then figures over all sets."""

from collections.abc import Iterable

from rich.console import Group
from rich.text import Text

from perfmodel_cli.terminal.cells import Record, add_row, line, table_of

_SHARES = ("mean_error", "bias", "worst")


def scores(record: Record) -> Group:
    """Sets with anything to score, a line each."""
    table = table_of(
        "set", "rows", "error\n%", "bias\n%", "worst\n%", "order", "regret", "memory\n%", "ran\n%", "out\n%"
    )
    shown = [one for one in record["sets"] if one["rows"] or one["memory_rows"]]
    for one in shown:
        add_row(
            table,
            one["set"],
            str(one["rows"]),
            *(_percent(one[name]) for name in _SHARES),
            _plain(one["spearman"]),
            _plain(one["regret"]),
            *(_percent(one[name]) for name in ("memory_error", "ran_called_right", "ran_out_called_right")),
        )
    return Group(table, *_below(record))


def _below(record: Record) -> Iterable[Text]:
    if record["mean_error"] is not None:
        yield line(f"Mean over sets: error {_percent(record['mean_error'])} %, bias {_percent(record['bias'])} %")
    if record["coverage"] is not None:
        yield line(
            f"Likely ranges, each set left out: {_percent(record['coverage'])} % of runs inside (nominal 90 %), "
            f"median width {record['median_width']:.2f}"
        )
    for name, reasons in record["refused"].items():
        told = "; ".join(f"{count} x {reason}" for reason, count in reasons.items())
        yield line(f"{name}, not predicted: {told}", style="dim")


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
