"""An import of logs as a table."""

from collections.abc import Iterable

from rich.console import Group
from rich.text import Text

from perfmodel.units import show
from perfmodel_cli.terminal.cells import Record, add_row, line, percent, table_of
from perfmodel_cli.texts import shortened

_OUTLIERS = 10  # shown


def imported(record: Record) -> Group:
    """What was read for each operation and group, then the outliers of its line."""
    heads = ("operation ", "nodes ", "ranks per\nnode ", "sizes", "times ", "spread\n% ", "start-up", "bus bandwidth")
    table = table_of(*heads, "off the\nline % ", "out-\nliers", wraps=False)
    for part in record["parts"]:
        add_row(table, *_cells(part))
    return Group(table, *_notes(record))


def _cells(part: Record) -> list[str]:
    ranks = str(part["ranks_per_node"]) + (f", stride {part['inner']}" if part["inner"] > 1 else "")
    sizes = f"{part['sizes']}: {show(part['least_B'], 'B')} to {show(part['most_B'], 'B')}  "
    alphas, betas = (part["alpha_low_s"], part["alpha_high_s"]), (part["beta_low_B_per_s"], part["beta_high_B_per_s"])
    return [
        part["operation"], str(part["nodes"]), ranks, sizes, str(part["samples"]), percent(part["spread"]),
        _fitted(part["alpha_s"], "s", *alphas), _fitted(part["beta_B_per_s"], "B/s", *betas), percent(part["error"]),
        str(part["outliers"]),
    ]  # fmt: skip


def _fitted(value: float | None, unit: str, low: float | None, high: float | None) -> str:
    """A parameter of the line, and the distance to the farther end of its 95 % interval."""
    if value is None:
        return "-"
    if low is None or not value:
        return f"{show(value, unit)}  "
    return f"{show(value, unit)} ± {'any' if high is None else percent(max(high - value, value - low) / value)}  "


def _notes(record: Record) -> Iterable[Text]:
    yield line(f"wrote {record['file']}; to see it: perfmodel machines show {record['file']}")
    found = [_outlier(each) for each in record["outliers"]]
    yield from map(line, shortened(found, _OUTLIERS, "and {} more outliers"))
    yield line(
        "The table of the profile holds the median of each size. The fitted line is start-up + bytes / bus "
        "bandwidth, bytes = (n-1)/n of the size, twice that for an all-reduce; spread = (longest - shortest) / median "
        "time of a size, the largest of all sizes; ± = 95 % confidence interval, in percent; "
        "off the line = typical relative distance of a time from the line",
        style="dim",
    )


def _outlier(each: Record) -> str:
    fitted = f"the line has {show(each['line_s'], 's')}"
    amounts = f"{show(each['size_B'], 'B')} in {show(each['time_s'], 's')}; {fitted}"
    return f"{each['file']}:{each['line']}: outlier, {each['operation']} of {amounts}"
