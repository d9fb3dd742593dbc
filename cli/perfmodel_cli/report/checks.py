"""Scaling over counts of devices, and predictions beside measured steps."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perfmodel.units import show
from perfmodel_cli.report.answer import Record, grid_text, memory_text, seconds, share
from perfmodel_cli.report.html import Cell, Markup, element, joined, notes, table
from perfmodel_cli.report.plots import Axes, Axis, Curve, Point, plot, scatter
from perfmodel_cli.report.scales import around, ascending, from_zero
from perfmodel_cli.report.svg import Series, legend

_WORST = 100  # rows of a comparison that the table holds
_TOLD = 20  # problems of a file that are told one by one
_BOUNDS = (0.75, 1.25)
_STEP, _IDEAL = Series("step", "predicted", "c0"), Series("ideal", "if twice the devices took half the time", "c5")


def scaling(record: Record) -> Markup:
    """Step time and efficiency of the best grid of each count."""
    rows = [row for row in record["points"] if row.get("step_time_s")]
    parts = [_curves(rows)] if len(rows) > 1 else [element("p", "A curve needs two counts that have an answer.")]
    heads = ["devices", "nodes", "grid x,y,z,data", "micro-batch x steps", "recomputation", "step", "exposed",
             "efficiency", "MFU", "memory", "largest part"]  # fmt: skip
    cells = [_point(row) for row in record["points"]]
    line = (
        f"{record['scaling']} scaling: {_batches(record)}; efficiency: tokens a second and device, against the first."
    )
    reasons = (f"{row['gpus']:,} devices: {row['reason']}" for row in record["points"] if row["reason"])
    return joined([*parts, table("The best grid of each count of devices", heads, cells), notes([line, *reasons])])


def _batches(record: Record) -> str:
    found = list(dict.fromkeys(row["batch_sequences"] for row in record["points"]))
    return f"{', '.join(map(str, found))} sequences a step"


def _curves(rows: Sequence[Record]) -> Markup:
    counts, times = [row["gpus"] for row in rows], [row["step_time_s"] for row in rows]
    first = rows[0]
    ideal = [Point(count, times[0] * counts[0] / count, "") for count in counts]
    found = [Point(row["gpus"], row["step_time_s"], _told(row)) for row in rows]
    devices = Axis(ascending(counts), lambda count: f"{count:,.0f}", counts)
    step = Axes(devices, Axis(around([*times, ideal[-1].y]), lambda value: show(value, "s")))
    told = "; ".join(_told(row) for row in rows)
    shares = [Point(row["gpus"], 100 * row["efficiency"], _told(row)) for row in rows]
    up = Axis(from_zero([100, *(one.y for one in shares)]), lambda value: f"{value:.0f} %")
    efficiency = Axes(devices, up)
    steps = plot("Seconds of a step over devices", told, step, [Curve(ideal, "c5", marked=False), Curve(found, "c0")])
    shown = plot(
        "Efficiency over devices", f"against {first['gpus']} devices; {told}", efficiency, [Curve(shares, "c0")]
    )
    of_efficiency = Series("efficiency", f"tokens a second and device, against {first['gpus']:,} devices", "c0")
    return element(
        "div",
        element("figure", element("figcaption", "Seconds of a step"), legend((_STEP, _IDEAL)), steps),
        element("figure", element("figcaption", "Efficiency"), legend((of_efficiency,)), shown),
        class_="beside",
    )


def _told(row: Record) -> str:
    return (
        f"{row['gpus']:,} devices: {show(row['step_time_s'], 's')}, {grid_text(row)}, {100 * row['efficiency']:.1f} %"
    )


def _point(row: Record) -> list[Cell]:
    asked = [Cell(f"{row['gpus']:,}", row["gpus"]), Cell(f"{row['nodes']:,}", row["nodes"])]
    if "grid" not in row:
        return [*asked, *[Cell("-")] * 9]
    return [
        *asked, Cell(grid_text(row)), Cell(f"{row['micro_batch']} x {row['accumulation_steps']:g}", row["micro_batch"]),
        Cell(row["recompute"]), seconds(row["step_time_s"]), seconds(row["exposed_communication_time_s"]),
        share(row["efficiency"]), share(row["model_flops_utilization"]),
        Cell(memory_text(row["memory_B"]), row["memory_B"]), Cell((row["limited_by"] or "-").replace("_", " ")),
    ]  # fmt: skip


def measured(record: Mapping[str, Any], problems: Sequence[str]) -> Markup:
    """Every measured step beside its prediction, what became of the other rows, and how far off the model is."""
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
    heads = ["line", "group", "grid x,y,z,data", "predicted", "measured", "error", "source"]
    told_problems = [*problems[:_TOLD], *([f"and {len(problems) - _TOLD} more"] if len(problems) > _TOLD else [])]
    return joined([
        element("p", *_errors(summary)), element("p", record["verdict"]["sentence"]), picture,
        *([_collectives(record["collectives"])] if record["collectives"] else []),
        table(caption, heads, [_row(row) for row in worst], tall=True),
        notes(["The line is where both agree; dotted: a quarter off.", *_left_out(record), *told_problems]),
    ])  # fmt: skip


def _collectives(found: Sequence[Record]) -> Markup:
    """Every collective that `perfmodel run` has timed alone, over all rows."""
    heads = ["collective", "axis", "calls predicted", "calls measured", "a call, predicted", "a call, measured",
             "error (median)"]  # fmt: skip
    rows = [
        [
            Cell(one["operation"]), Cell(one["axis"]),
            *(Cell(f"{one[name]:g}", one[name]) for name in ("predicted_calls", "measured_calls")),
            seconds(one["predicted_s_a_call"]), seconds(one["measured_s_a_call"]), _signed(one["error"]),
        ]
        for one in found
    ]  # fmt: skip
    return table("Collectives of a step, each timed alone", heads, rows)


def _signed(error: float | None) -> Cell:
    return Cell("-") if error is None else Cell(f"{100 * error:+.1f} %", error)


def _left_out(record: Mapping[str, Any]) -> Iterable[str]:
    if record["dropped"]:
        yield f"{record['dropped']} of {len(record['rows']) + record['dropped']} rows left out:"


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
        seconds(row["measured_s"]), _signed(row["error"]), Cell(row["source"]),
    ]  # fmt: skip
