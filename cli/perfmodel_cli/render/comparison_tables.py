"""Comparisons with measured and published figures, as Rich renderables."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from perfmodel.units import parse
from perfmodel_cli.terminal.cells import Record, add_row, line, table_of
from perfmodel_cli.texts import grid_text

_MEGABYTE = parse("1 MB", "B")
_SHOWN = 40  # rows of a comparison that a table holds; CSV and JSON hold all


def comparison(record: Record) -> Group:
    """Rows, worst first if there are many, and the summary."""
    rows = record["rows"]
    many = len(rows) > _SHOWN
    shown = sorted(rows, key=lambda row: -abs(row["error"]))[:_SHOWN] if many else rows
    table = table_of("line", "group", "grid", "micro\nbatch", "recom-\npute", "predicted s", "measured s", "error %")
    for row in shown:
        star = "*" if row["best_predicted_grid"] else ""
        add_row(table, str(row["line"]), row["group"], grid_text(row) + star, str(row["micro_batch"]), row["recompute"],
            _figure(row["predicted_s"]), _figure(row["measured_s"]), _signed(row["error"]),
        )  # fmt: skip
    notes = [line(f"the {_SHOWN} worst of {len(rows)} rows; --format csv has all")] if many else []
    if any(row["best_predicted_grid"] for row in shown):
        notes.append(line("* the file names no grid: the best predicted one"))
    most = max(row["repetitions"] for row in rows)
    if most > 1:
        least = min(row["repetitions"] for row in rows)
        notes.append(line(f"medians of {f'{least} to ' if least < most else ''}{most} runs each"))
    beside = [_collectives(record["collectives"])] if record["collectives"] else []
    return Group(table, *notes, *beside, *_summary(record["summary"]), line(record["verdict"]["sentence"]))


def _collectives(found: Sequence[Record]) -> Table:
    """Every operation on every axis over all rows."""
    table = table_of(
        "collective", "axis", "rows", "calls\npredicted", "calls\nmeasured", "MB\npredicted", "MB\nmeasured",
        "s per call\npredicted", "s per call\nmeasured", "error %\n(median)",
    )  # fmt: skip
    for one in found:
        sizes = [f"{one[name] / _MEGABYTE:.4g}" for name in ("predicted_bytes", "measured_bytes")]
        calls = [f"{one[name]:g}" for name in ("predicted_calls", "measured_calls")]
        times = [
            "-" if one[name] is None else _figure(one[name]) for name in ("predicted_s_a_call", "measured_s_a_call")
        ]
        error = "-" if one["error"] is None else _signed(one["error"])
        add_row(table, one["operation"], one["axis"], str(one["rows"]), *calls, *sizes, *times, error)
    return table


def _summary(summary: Record) -> Sequence[Text]:
    lines = [line(f"{summary['rows']} rows: {_errors(summary)}", style="bold")]
    if summary["memory_mape"] is not None:
        lines.append(
            line(f"memory: mean error {_share(summary['memory_mape'])}, {_share(summary['memory_worst'])} at worst")
        )
    if summary["regret"] is not None:
        lines.append(
            line(
                f"order within {summary['groups']} group{'s' * (summary['groups'] > 1)}: "
                f"Spearman {_plain(summary['spearman'])} median "
                f"({_plain(summary['spearman_mean'])} mean), Kendall {_plain(summary['kendall'])} "
                f"({_plain(summary['kendall_mean'])}); the fastest is predicted first in {_share(summary['top1'])}, "
                f"among three in {_share(summary['top3'])}, among five in {_share(summary['top5'])}; "
                f"the predicted best takes {summary['regret']:.3f} times the "
                f"fastest ({summary['regret_worst']:.3f} at worst)"
            )
        )
    return lines


def validation(record: Record) -> Group:
    """Published figures with predictions, then errors by check."""
    table = table_of(
        "check", "machine", "model", "GPUs", "grid", "of", "predicted", "published", "", "error %", "after\nfit %"
    )
    for row in record["rows"]:
        overlap = "" if row["overlap"] == "all" else f", overlap {row['overlap']}"
        add_row(
            table, row["check"], row["machine"], row["model"], str(row["gpus"]), grid_text(row),
            f"{row['quantity']}{overlap}",
            _figure(row["predicted"]), _figure(row["published"]), row["unit"], _signed(row["error"]),
            "" if row["error_after_fit"] is None else _signed(row["error_after_fit"]),
        )  # fmt: skip
    summary = record["summary"]
    total = line(f"{summary['rows']} figures: {_errors(summary)}; bound {_share(summary['bound'])}", style="bold")
    parts: list[RenderableType] = [table, _checks(record["checks"]), total]
    if record["checks_after_fits"]:
        fitted = [
            line(
                f"{fit['machine']}: {fit['setting']} {fit['fitted']:.3f} instead of {fit['shipped']:g}, fitted to "
                f"{fit['check']}, {fit['model']} on {fit['gpus']} (not scored)"
            )
            for fit in record["fits"]
        ]
        parts += [line("after the fit of one number per machine", style="bold"), *fitted]
        parts.append(_checks(record["checks_after_fits"]))
    return Group(*parts, line("where each figure is printed: --format csv"))


def _checks(found: Sequence[Record]) -> Table:
    checks = table_of("check", "rows", "mean %", "median %", "bias %", "worst %")
    for one in found:
        figures = (
            f"{100 * one['mape']:.1f}",
            f"{100 * one['median']:.1f}",
            _signed(one["bias"]),
            f"{100 * one['worst']:.1f}",
        )
        checks.add_row(one["check"], str(one["rows"]), *figures)
    return checks


def _errors(summary: Record) -> str:
    return (
        f"mean error {_share(summary['mape'])}, median {_share(summary['median'])}, bias {_signed(summary['bias'])} %, "
        f"{_share(summary['worst'])} at worst"
    )


def _figure(value: float) -> str:
    return f"{value:.4g}"


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}"


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
