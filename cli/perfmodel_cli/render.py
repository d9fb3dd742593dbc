"""Records as Rich renderables: pure functions that return, never print."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from perfmodel.machine import Machine
from perfmodel.profile_tables import bandwidth_origins
from perfmodel.search import Ranking
from perfmodel.units import GIBI, show

Record = Mapping[str, Any]

_TERMS = {
    "weight_gather": "AG z",
    "gradient_scatter": "RS z",
    "forward_reduce": "AR\nfwd",
    "backward_reduce": "AR\nbwd",
    "data_reduce": "AR\ndata",
    "vocabulary": "vocab",
}
_SHORTEST = 1 / 1000
_LATENCY_NOTE = (
    "Bandwidth only: neither fidelity counts latency or overlap yet, which flatters large Z and small messages."
)


def ranking(record: Record, found: Ranking) -> Group:
    """The answer of `recommend`."""
    table = _table(
        "#", "grid\nx,y,z,data", "micro\nbatch", "recom-\npute", "weight\ncache", "step", "compute",
        *_TERMS.values(), "memory\nGiB", "MFU\n%", wraps=False,
    )  # fmt: skip
    for result in record["results"]:
        table.add_row(*_result(result))
    return Group(*_heading(record), table, *_fate(record, found))


def _result(result: Record) -> list[str]:
    grid = "x".join(str(size) for size in result["grid"].values())
    return [
        str(result["rank"]), grid, f"{result['micro_batch']}x{result['accumulation_steps']:g}", result["recompute"],
        result["weight_cache"], _seconds(result["step_time_s"]), _seconds(result["compute_time_s"]),
        *(_seconds(result["communication_s"][term]) for term in _TERMS),
        f"{result['memory_B'] / GIBI:.1f}", _percent(result["model_flops_utilization"]),
    ]  # fmt: skip


def _heading(record: Record) -> Iterable[Text]:
    """What was asked."""
    yield Text(f"{record['model']} ({record['parameters']:,} parameters) on {record['machine']}", style="bold")
    yield Text(
        f"{record['gpus']} devices ({record['device']}) = {record['nodes']} nodes of {record['devices_per_node']}; "
        f"{record['batch_sequences']} sequences of {record['sequence_length']} tokens a step"
    )
    yield Text(f"fidelity {record['fidelity']}; times in seconds a step")


def _fate(record: Record, found: Ranking) -> Iterable[Text]:
    """What became of the grids that are not shown, and what the numbers rest on."""
    placements = {tuple(result["placement"]) for result in record["results"]}
    orders = "; ".join(",".join(order) for order in sorted(placements))
    turned_down = ", ".join(f"{reason} {count:,}" for reason, count in record["rejected"].items()) or "none"
    yield Text(
        f"{record['searched']:,} grids searched, {record['feasible']:,} fit ({record['evaluated']:,} evaluations "
        f"with all micro-batches and recomputation modes); turned down by: {turned_down}"
    )
    yield Text(
        "AG = all-gather, RS = reduce-scatter, AR = all-reduce; micro = sequences a device x accumulation steps; "
        "vocab = embedding and head"
    )
    yield Text(f"Ranks, neighbours first: {orders}")
    yield Text(f"Compute: {found.rate.origin}" if found.rate else "Compute: not in the paper's model")
    yield Text(f"Bandwidths: {bandwidth_origins(found.job.machine)}")
    yield Text(_LATENCY_NOTE, style="dim")


def explanation(record: Record) -> Group:
    """The answer of `explain`."""
    grid = "x".join(str(size) for size in record["grid"].values())
    lines = [
        Text(f"grid {grid} (x,y,z,data), ranks neighbour first: {','.join(record['placement'])}"),
        Text(
            f"micro-batch {record['micro_batch']} x {record['accumulation_steps']:g} steps, "
            f"recompute {record['recompute']}, weight cache {record['weight_cache']}"
        ),
    ]
    return Group(
        *_heading(record),
        *lines,
        *_verdict(record),
        _collectives(record),
        *_equations(record),
        _step(record),
        _memory(record),
    )


def _verdict(record: Record) -> Iterable[Text]:
    """Why the grid cannot run, if it cannot."""
    for rejection in record["rejected"]:
        yield Text(f"rejected by {rejection['rule']}: {rejection['reason']}", style="bold red")
    if record["nearest_grid"]:
        nearest = "x".join(str(size) for size in record["nearest_grid"].values())
        devices = math.prod(record["nearest_grid"].values())
        yield Text(f"nearest grid that fits: {nearest} ({devices} devices)", style="bold")


def _collectives(record: Record) -> Table:
    table = _table(
        "layer",
        "operation",
        "axis",
        "ranks",
        "stride",
        "first group",
        "link",
        "buffer",
        "calls",
        "bandwidth",
        "each",
        "total",
    )
    for entry in record["collectives"]:
        table.add_row(
            entry["layer"], entry["operation"], entry["axis"], str(entry["group_size"]), str(entry["stride"]),
            entry["ranks"],
            entry["link"] if entry["group_size"] > 1 else "-", show(entry["buffer_B"], "B"), f"{entry['calls']:g}",
            show(entry["bandwidth_B_per_s"], "B/s") if entry["group_size"] > 1 else "-",
            show(entry["time_per_call_s"], "s"), _seconds(entry["time_s"]),
        )  # fmt: skip
    return table


def _equations(record: Record) -> Iterable[Text]:
    """The equations with their numbers, and where each bandwidth comes from."""
    yield Text("Equations, ring factor * bytes / bandwidth:", style="bold")
    for entry in record["collectives"]:
        if entry["group_size"] > 1:
            yield Text(f"  {entry['layer']}: {entry['equation']}")
    yield Text("Bandwidths:", style="bold")
    sources = {
        (e["axis"], e["group_size"], e["stride"]): e["bandwidth_source"]
        for e in record["collectives"]
        if e["group_size"] > 1
    }
    for (axis, size, stride), source in sources.items():
        yield Text(f"  {axis}: {size} ranks, stride {stride}: {source}")
    yield Text(f"Compute: {record['compute_equation']}")


def _step(record: Record) -> Text:
    parts = ", ".join(
        f"{name.replace(chr(10), ' ')} {_seconds(record['communication_s'][term])}" for term, name in _TERMS.items()
    )
    compute = f"compute {_seconds(record['compute_time_s'])} + " if record["compute_time_s"] is not None else ""
    return Text(
        f"Step {_seconds(record['step_time_s'])} s = {compute}"
        f"communication {_seconds(record['communication_time_s'])} ({parts}); "
        f"MFU {_percent(record['model_flops_utilization'])} %",
        style="bold",
    )


def _memory(record: Record) -> Text:
    terms = ", ".join(f"{name.replace('_', ' ')} {show(size, 'B')}" for name, size in record["memory_terms_B"].items())
    return Text(f"Memory {show(record['memory_B'], 'B')} of {show(record['memory_capacity_B'], 'B')}: {terms}")


def machine(profile: Machine, figures: Sequence[Record], derived: Sequence[Record]) -> Group:
    """A profile: every figure with its source, what is derived from them, then the sources."""
    table = _table("figure", "value", "kind", "source")
    for figure in figures:
        table.add_row(figure["figure"], _quantity(figure["value"], figure["unit"]), figure["kind"], figure["source"])
    for entry in derived:
        table.add_row(f"bandwidth.{entry['bandwidth']}", show(entry["value_B_per_s"], "B/s"), "derived", entry["rule"])
    sources = [
        Text(f"  {key}: {source.kind}; {', '.join(filter(None, (source.address, source.date, source.note)))}")
        for key, source in profile.sources.items()
    ]
    notes = [Text(f"Note: {note}") for note in profile.notes]
    return Group(Text(profile.title, style="bold"), table, Text("Sources", style="bold"), *sources, *notes)


def _quantity(value: float, unit: str) -> str:
    return f"{value:g}" if unit == "1" else show(value, unit)


def model(record: Record) -> Group:
    """A model: counts, then its layers."""
    closed = record["closed_form_parameters"]
    against = f" (closed form: {closed:,.0f})" if closed else ""
    lines = [
        Text(f"{record['model']}: {record['parameters']:,} parameters{against}", style="bold"),
        Text(
            f"{show(record['forward_flop_per_sequence'], 'flop')} forward for a sequence of "
            f"{record['sequence_length']} tokens"
        ),
    ]
    table = _table("block", "times", "layer", "kind", "shape", "parameters")
    for layer in record["layers"]:
        shape = ", ".join(
            f"{key} {value}"
            for key, value in layer.items()
            if key not in ("block", "repeat", "name", "kind", "parameters")
        )
        table.add_row(
            layer["block"], str(layer["repeat"]), layer["name"], layer["kind"], shape, f"{layer['parameters']:,}"
        )
    return Group(*lines, table)


def rows(records: Sequence[Record]) -> Table:
    """Records with the same keys as a table."""
    table = _table(*(key.replace("_", " ") for key in records[0]))
    for record in records:
        table.add_row(
            *(
                "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
                for value in record.values()
            )
        )
    return table


def _table(*columns: str, wraps: bool = True) -> Table:
    """A plain table; in one that does not wrap, a window too small cuts columns short."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0) if wraps else 0)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=not wraps)
    return table


def _seconds(value: float | None) -> str:
    """Seconds in three digits, thousandths at the least, as wide as a column of a ranking allows."""
    if value is None:
        return "-"
    if 0 < value < _SHORTEST:
        return f"<{_SHORTEST:g}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3f}".rstrip("0").rstrip(".")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"
