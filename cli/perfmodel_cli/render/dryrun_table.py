"""A dry run compared with the model, as tables."""

from rich.console import Group
from rich.table import Table

from perfmodel.parallel.axes import LISTED
from perfmodel.units import show
from perfmodel_cli.terminal.cells import Record, add_row, line, table_of
from perfmodel_cli.texts import grid_text

_DIGITS = 6  # so that a difference is visible


def dry_run(record: Record) -> Group:
    """The answer of `dryrun`."""
    return Group(
        line(f"{record['model']} on {record['machine']}, {record['dtype']}", style="bold"),
        line(
            f"grid {grid_text(record)} ({LISTED}) = {record['gpus']} ranks, neighbours first: "
            f"{','.join(record['placement'])}; rank {record['rank']}"
        ),
        line(
            f"micro-batch {record['micro_batch']} x {record['accumulation_steps']} steps, "
            f"recompute {record['recompute']}, weight cache {record['weight_cache']}"
        ),
        _collectives(record),
        _totals(record),
        line("At the peak, dry run: " + _terms(record["memory_kinds_B"])),
        line("At the peak, model: " + _terms(record["model_memory_terms_B"])),
        line(
            "bytes = buffers, gathered or not yet reduced; where several buckets are sent over data, the model counts "
            "parts of them; peak memory is without slack, communicators and reserve",
            style="dim",
        ),
    )


def _collectives(record: Record) -> Table:
    table = table_of("operation", "axis", "ranks", "calls", "model's calls", "bytes", "model's bytes")
    for entry in record["collectives"]:
        add_row(
            table, entry["operation"], entry["axis"], str(entry["group_size"]),
            f"{entry['calls']:,}", f"{entry['model_calls']:,.0f}",
            f"{entry['sent_B']:,}", f"{entry['model_sent_B']:,.0f}",
        )  # fmt: skip
    return table


def _totals(record: Record) -> Table:
    table = table_of("one rank, one step", "dry run", "model", "model / dry run")
    for name, key, unit in (("products with weights", "product_flop", "flop"), ("peak memory", "memory_B", "B")):
        ran, counted = record[key], record[f"model_{key}"]
        ratio = f"{counted / ran:.4f}" if ran else "-"
        add_row(table, name, show(ran, unit, digits=_DIGITS), show(counted, unit, digits=_DIGITS), ratio)
    add_row(table, "attention", show(record["attention_flop"], "flop", digits=_DIGITS), "-", "-")
    return table


def _terms(sizes: Record) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {show(size, 'B')}" for name, size in sizes.items())
