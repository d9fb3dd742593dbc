"""A calibration as a table and lines."""

from collections.abc import Iterator

from rich.console import Group
from rich.text import Text

from perfmodel.units import show
from perfmodel_cli.terminal.cells import Record, add_row, line, percent, table_of


def calibration(record: Record) -> Group:
    """What was fitted, the errors, and what was not fitted and why."""
    table = table_of("parameter", "field", "before", "after", "± %", "")
    for one in record["parameters"]:
        note = "at its bound" if one["at_bound"] else ""
        values = [_value(one[name], one["unit"]) for name in ("before", "after")]
        add_row(table, one["parameter"], one["field"], *values, percent(one["standard_error"]), note)
    return Group(table, *_errors(record), *_notes(record), line(record["sentence"], style="bold"))


def _value(value: float, unit: str) -> str:
    return f"{value:.4g}" if unit == "1" else show(value, unit)


def _errors(record: Record) -> Iterator[Text]:
    names = {"before": "before", "after": "after, on the steps fitted to", "held_out": "on steps left out"}
    yield line(f"{record['rows']} steps; left out in {record['folds']} parts, one at a time")
    for name, words in names.items():
        sizes = record["errors"][name]
        figures = f"mean error {percent(sizes['mape'])} %, median {percent(sizes['median'])} %"
        yield line(f"{words}: {figures}, {percent(sizes['worst'])} % at worst")


def _notes(record: Record) -> Iterator[Text]:
    for one in record["left_alone"]:
        yield line(f"not fitted: {one['parameter']}: {one['reason']}")
    for one in record["outliers"]:
        yield line(f"outlier: line {one['line']}: measured {one['measured_over_fitted']:+.0%} against the fit")
