"""What was measured, as a table."""

from collections.abc import Iterator

from rich.console import Group
from rich.text import Text

from perfmodel.units import show
from perfmodel_cli.terminal.cells import Record, add_row, line, table_of


def measured(record: Record) -> Group:
    """The device's rates, then a row for each operation in each shape of group."""
    table = table_of(
        "operation", "ranks", "stride", "sizes", "times", "start-up", "95 %", "bandwidth", "95 %", "error", wraps=False
    )
    for row in record["collectives"]:
        add_row(
            table, row["operation"], str(row["size"]), str(row["inner"]), str(row["sizes"]), str(row["samples"]),
            show(row["alpha_s"], "s"), _interval(row["alpha_low_s"], row["alpha_high_s"], "s"),
            show(row["beta_B_per_s"], "B/s"), _interval(row["beta_low_B_per_s"], row["beta_high_B_per_s"], "B/s"),
            f"{row['error']:.0%}",
        )  # fmt: skip
    tables = [table] if record["collectives"] else []
    return Group(*_heading(record), *tables, *_notes(record))


def _heading(record: Record) -> Iterator[Text]:
    node = record["devices_per_node"]
    yield line(f"{record['device']}: {record['ranks']} ranks, {node} per node", style="bold")
    told = [f"products in {dtype} {show(rate, 'flop/s')}" for dtype, rate in record["gemm_flop_per_s"].items()]
    told.append(f"memory {show(record['memory_bandwidth_B_per_s'], 'B/s')}")
    if record["host_time_s"]:
        told.append(f"{show(record['host_time_s'], 's')} to issue a kernel")
    if record["contention"]:
        told.append(f"contention {record['contention']:.2f}")
    yield line(f"{', '.join(told)}; of the slowest rank while all work")


def _interval(low: float | None, high: float | None, unit: str) -> str:
    return "-" if low is None or high is None else f"{show(low, unit)} to {show(high, unit)}"


def _notes(record: Record) -> Iterator[Text]:
    for row in record["collectives"]:
        if row["outliers"]:
            named = ", ".join(
                f"{show(one['size_B'], 'B')} in round {one['round']} ({show(one['time_s'], 's')})"
                for one in row["outliers"]
            )
            yield line(f"off the line of {row['operation']}, {row['size']} ranks, stride {row['inner']}: {named}")
    yield line(
        "error = of a time against the line; a bandwidth without interval is that of the largest call",
        style="dim",
    )
    yield line(
        f"{record['measurements']} measurements in {record['results']}, medians of up to {record['rounds']} rounds; "
        f"profile: {record['profile']}",
        style="dim",
    )
