"""Predictions compared with measured steps."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perfmodel.errors import MOST_PROBLEMS
from perfmodel.parallel.axes import LISTED
from perfmodel.units import show
from perfmodel_cli.report.curves import Axes, Axis, Point, scatter
from perfmodel_cli.report.figures import Record, seconds, signed_share
from perfmodel_cli.report.html import Cell, Markup, element, joined, notes, table
from perfmodel_cli.report.scales import around
from perfmodel_cli.texts import grid_text, shortened

_WORST = 100  # rows of a comparison that the table holds
_BOUNDS = (0.75, 1.25)


def measured(record: Mapping[str, Any], problems: Sequence[str]) -> Markup:
    """Every measured step with its prediction, why other rows are left out, and how far off the model is."""
    rows, summary = record["rows"], record["summary"]
    values = [row[key] for row in rows for key in ("measured_s", "predicted_s")]
    both = Axis(around(values), lambda value: show(value, "s"))
    axes = Axes(both, both, height=360)
    points = [Point(row["measured_s"], row["predicted_s"], _compared(row)) for row in rows]
    told = f"{len(rows)} rows, mean error {100 * summary['mape']:.1f} %"
    picture = element(
        "figure", element("figcaption", "Predicted (up) over measured (across) seconds of a step"),
        scatter("Predicted over measured seconds of a step", told, axes, points, _BOUNDS), class_="square",
    )  # fmt: skip
    worst = sorted(rows, key=lambda row: -abs(row["error"]))[:_WORST]
    caption = (
        "Measured steps" if len(worst) == len(rows) else f"The {_WORST} rows of {len(rows):,} that are furthest off"
    )
    heads = ["line", "group", f"grid {LISTED}", "predicted", "measured", "error", "source"]
    return joined([
        element("p", *_errors(summary)), element("p", record["verdict"]["sentence"]), picture,
        *([_collectives(record["collectives"])] if record["collectives"] else []),
        table(caption, heads, [_row(row) for row in worst], tall=True),
        notes(["Line: both agree; dotted: 25 % off.", *_left_out(record, problems)]),
    ])  # fmt: skip


def _collectives(found: Sequence[Record]) -> Markup:
    """Every collective that `perfmodel run` has timed alone, over all rows."""
    heads = ["collective", "axis", "calls predicted", "calls measured", "per call, predicted", "per call, measured",
             "error (median)"]  # fmt: skip
    rows = [
        [
            Cell(one["operation"]), Cell(one["axis"]),
            *(Cell(f"{one[name]:g}", one[name]) for name in ("predicted_calls", "measured_calls")),
            seconds(one["predicted_s_a_call"]), seconds(one["measured_s_a_call"]), signed_share(one["error"]),
        ]
        for one in found
    ]  # fmt: skip
    return table("Collectives of a step, each timed alone", heads, rows)


def _left_out(record: Mapping[str, Any], problems: Sequence[str]) -> Iterable[str]:
    if record["dropped"]:
        yield f"{record['dropped']} of {len(record['rows']) + record['dropped']} rows left out:"
    yield from shortened(problems, MOST_PROBLEMS, "and {} more")


def _errors(summary: Mapping[str, Any]) -> Iterable[str]:
    yield (
        f"{summary['rows']:,} measured steps: mean error {100 * summary['mape']:.1f} %, "
        f"median {100 * summary['median']:.1f} %, bias {100 * summary['bias']:+.1f} %, "
        f"{100 * summary['worst']:.1f} % at worst."
    )
    if summary["regret"] is not None:
        spearman = "" if summary["spearman"] is None else f"Spearman {summary['spearman']:.3f} (median), "
        yield (
            f" Order within {summary['groups']} group{'s' * (summary['groups'] > 1)}: {spearman}the fastest predicted "
            f"first in {100 * summary['top1']:.0f} %, among the first five in {100 * summary['top5']:.0f} %; the grid "
            f"predicted to be fastest takes {summary['regret']:.3f} times the fastest."
        )


def _compared(row: Mapping[str, Any]) -> str:
    return (
        f"line {row['line']}, {grid_text(row)}: predicted {show(row['predicted_s'], 's')}, "
        f"measured {show(row['measured_s'], 's')}"
    )


def _row(row: Mapping[str, Any]) -> list[Cell]:
    return [
        Cell(row["line"], row["line"]), Cell(row["group"]), Cell(grid_text(row)), seconds(row["predicted_s"]),
        seconds(row["measured_s"]), signed_share(row["error"]), Cell(row["source"]),
    ]  # fmt: skip
