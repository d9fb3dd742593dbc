"""Scaling over counts of devices."""

from collections.abc import Sequence

from perfmodel.search.results import result_columns, sweep_columns
from perfmodel.search.results.columns import Context
from perfmodel.units import show
from perfmodel_cli.report.curves import Axes, Axis, Curve, Point, plot
from perfmodel_cli.report.declared_tables import declared_table
from perfmodel_cli.report.figures import Record
from perfmodel_cli.report.html import Markup, element, joined, notes
from perfmodel_cli.report.scales import around, ascending, from_zero
from perfmodel_cli.report.svg import Series, legend
from perfmodel_cli.texts import grid_text

_STEP, _IDEAL = Series("step", "predicted", "c0"), Series("ideal", "if twice the devices took half the time", "c5")


def scaling(record: Record) -> Markup:
    """Step time and efficiency of the best grid of each count."""
    rows = [row for row in record["points"] if row.get("step_time_s")]
    parts = [_curves(rows)] if len(rows) > 1 else [element("p", "A curve needs two counts that have an answer.")]
    line = (
        f"{record['scaling']} scaling: {_batches(record)}; efficiency: tokens per second per device, against the first."
    )
    reasons = (f"{row['gpus']:,} devices: {row['reason']}" for row in record["points"] if row["reason"])
    declared = (*sweep_columns.POINT, *result_columns.RESULT)
    caption, context = "The best grid of each count of devices", Context(record["fidelity"])
    made = declared_table(caption, declared, "report of scaling", context, record["points"])
    return joined([*parts, made, notes([line, *reasons])])


def _batches(record: Record) -> str:
    found = list(dict.fromkeys(row["batch_sequences"] for row in record["points"]))
    return f"{', '.join(map(str, found))} sequences per step"


def _curves(rows: Sequence[Record]) -> Markup:
    counts, times = [row["gpus"] for row in rows], [row["step_time_s"] for row in rows]
    first = rows[0]
    ideal = [Point(count, times[0] * counts[0] / count, "") for count in counts]
    found = [Point(row["gpus"], row["step_time_s"], _point_text(row)) for row in rows]
    devices = Axis(ascending(counts), lambda count: f"{count:,.0f}", counts)
    step = Axes(devices, Axis(around([*times, ideal[-1].y]), lambda value: show(value, "s")))
    told = "; ".join(_point_text(row) for row in rows)
    shares = [Point(row["gpus"], 100 * row["efficiency"], _point_text(row)) for row in rows]
    up = Axis(from_zero([100, *(one.y for one in shares)]), lambda value: f"{value:.0f} %")
    efficiency = Axes(devices, up)
    steps = plot("Seconds of a step over devices", told, step, [Curve(ideal, "c5", marked=False), Curve(found, "c0")])
    shown = plot(
        "Efficiency over devices", f"against {first['gpus']} devices; {told}", efficiency, [Curve(shares, "c0")]
    )
    of_efficiency = Series("efficiency", f"tokens per second per device, against {first['gpus']:,} devices", "c0")
    return element(
        "div",
        element("figure", element("figcaption", "Seconds of a step"), legend((_STEP, _IDEAL)), steps),
        element("figure", element("figcaption", "Efficiency"), legend((of_efficiency,)), shown),
        class_="beside",
    )


def _point_text(row: Record) -> str:
    return (
        f"{row['gpus']:,} devices: {show(row['step_time_s'], 's')}, {grid_text(row)}, {100 * row['efficiency']:.1f} %"
    )
