"""An import of logs as a table."""

from collections.abc import Iterable

from rich.console import Group
from rich.text import Text

from perfmodel.timings import ranks_apart
from perfmodel.units import show
from perfmodel_cli.cells import add_row, line, percent, table_of
from perfmodel_cli.render import Record

_OUTLIERS = 10  # that are shown


def imported(record: Record) -> Group:
    """What was read for each operation and group, then the samples that its line left out."""
    table = table_of(
        "operation", "nodes", "group", "sizes", "from", "to", "times", "spread\n%", "start-up", "95 %",
        "bus\nbandwidth", "95 %", "off the\nline %", "out-\nliers",
    )  # fmt: skip
    for part in record["parts"]:
        add_row(table, *_cells(part))
    return Group(table, *_notes(record))


def _cells(part: Record) -> list[str]:
    return [
        part["operation"], str(part["nodes"]), ranks_apart(part["ranks_per_node"], part["inner"]), str(part["sizes"]),
        show(part["least_B"], "B"), show(part["most_B"], "B"), str(part["samples"]), percent(part["spread"]),
        _amount(part["alpha_s"], "s"), _interval(part["alpha_low_s"], part["alpha_high_s"], "s"),
        _amount(part["beta_B_per_s"], "B/s"), _interval(part["beta_low_B_per_s"], part["beta_high_B_per_s"], "B/s"),
        percent(part["error"]), str(part["outliers"]),
    ]  # fmt: skip


def _amount(value: float | None, unit: str) -> str:
    return "-" if value is None else show(value, unit)


def _interval(low: float | None, high: float | None, unit: str) -> str:
    if low is None:
        return "-"
    return f"{show(low, unit)} to {'any' if high is None else show(high, unit)}"


def _notes(record: Record) -> Iterable[Text]:
    outliers = record["outliers"]
    for each in outliers[:_OUTLIERS]:
        fitted = f"the line has {show(each['line_s'], 's')}"
        amounts = f"{show(each['size_B'], 'B')} in {show(each['time_s'], 's')}; {fitted}"
        yield line(f"{each['file']}:{each['line']}: outlier, {each['operation']} of {amounts}")
    if len(outliers) > _OUTLIERS:
        yield line(f"and {len(outliers) - _OUTLIERS} more outliers")
    yield line(
        "The table of the profile holds the median of each size. The line beside it is start-up + bytes / bus "
        "bandwidth, bytes = (n-1)/n of the size, twice that for an all-reduce; spread = greatest less least time of "
        "a size over its median, the widest; off the line = a typical relative distance of a time from it",
        style="dim",
    )
