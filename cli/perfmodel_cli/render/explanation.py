"""The record of `explain` as a Rich renderable."""

import math
from collections.abc import Iterable

from rich.console import Group
from rich.table import Table
from rich.text import Text

from perfmodel.parallel.axes import LISTED
from perfmodel.search.terms import TERMS
from perfmodel.units import show
from perfmodel_cli.render.ranking_table import heading
from perfmodel_cli.terminal.cells import Record, add_row, line, percent, table_of
from perfmodel_cli.texts import grid_text

_SHOWN_EVENTS = 20  # at the beginning and at the end of a timeline
_BAR = 40


def explanation(record: Record) -> Group:
    """The answer of `explain`."""
    return Group(
        *heading(record),
        *_layout(record),
        *_verdict(record),
        _collectives(record),
        *_equations(record),
        *_times(record),
        _step(record),
        _memory(record),
    )


def _layout(record: Record) -> Iterable[Text]:
    """The grid and how it is run."""
    yield line(f"grid {grid_text(record)} ({LISTED}), ranks, neighbours first: {','.join(record['placement'])}")
    yield line(
        f"micro-batch {record['micro_batch']} x {record['accumulation_steps']} steps, "
        f"recompute {record['recompute']}, weight cache {record['weight_cache']}"
    )


def _verdict(record: Record) -> Iterable[Text]:
    """Why the grid cannot run, if it cannot."""
    for rejection in record["rejected"]:
        yield line(f"rejected by {rejection['rule']}: {rejection['reason']}", style="bold red")
    if record["rejected"]:
        yield line("the figures below are for the setting that needs the least memory, not for the fastest")
    if record["nearest_grid"]:
        nearest = "x".join(str(size) for size in record["nearest_grid"].values())
        devices = math.prod(record["nearest_grid"].values())
        yield line(f"nearest grid that fits: {nearest} ({devices} devices)", style="bold")


def _collectives(record: Record) -> Table:
    table = table_of(
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
        add_row(
            table, entry["layer"], entry["operation"], entry["axis"], str(entry["group_size"]), str(entry["stride"]),
            entry["ranks"],
            entry["link"] if entry["group_size"] > 1 else "-", show(entry["buffer_B"], "B"), f"{entry['calls']:g}",
            show(entry["bandwidth_B_per_s"], "B/s") if entry["group_size"] > 1 else "-",
            show(entry["time_per_call_s"], "s"), show(entry["time_s"], "s"),
        )  # fmt: skip
    return table


def _equations(record: Record) -> Iterable[Text]:
    """The equations with their numbers, and the source of each bandwidth."""
    form = "way: bytes at bandwidth = time" if record["fidelity"] == "full" else "ring factor * bytes / bandwidth"
    yield line(f"Equations, {form}:", style="bold")
    for entry in record["collectives"]:
        if entry["group_size"] > 1:
            yield line(f"  {entry['layer']}: {entry['equation']}")
    yield line("Bandwidths:", style="bold")
    sources = {
        (e["axis"], e["group_size"], e["stride"]): e["bandwidth_source"]
        for e in record["collectives"]
        if e["group_size"] > 1
    }
    for (axis, size, stride), source in sources.items():
        yield line(f"  {axis}: {size} ranks, stride {stride}: {source}")
    yield line(f"Compute: {record['compute_equation']}")


def _times(record: Record) -> Iterable[Text]:
    """Which times are measured, and why others are not; only if the profile has measured times."""
    told = {(e["operation"], e["axis"], e["group_size"], e["time_source"]): None for e in record["collectives"]}
    if any("table" in source for *_, source in told):
        yield line("Times:", style="bold")
        for operation, axis, size, source in told:
            if size > 1:
                yield line(f"  {axis}: {operation} of {size} ranks: {source}")


def _step(record: Record) -> Text:
    parts = ", ".join(f"{term.heading} {show(record['communication_s'][term.key], 's')}" for term in TERMS)
    if record["fidelity"] == "full":
        return line(
            f"Step {show(record['step_time_s'], 's')} = compute {show(record['compute_time_s'], 's')} + exposed "
            f"{show(record['exposed_communication_time_s'], 's')} of communication "
            f"{show(record['communication_time_s'], 's')} ({parts}); "
            f"MFU {percent(record['model_flops_utilization'])} %",
            style="bold",
        )
    compute = f"compute {show(record['compute_time_s'], 's')} + " if record["compute_time_s"] is not None else ""
    return line(
        f"Step {show(record['step_time_s'], 's')} = {compute}"
        f"communication {show(record['communication_time_s'], 's')} ({parts}); "
        f"MFU {percent(record['model_flops_utilization'])} %",
        style="bold",
    )


def _memory(record: Record) -> Text:
    terms = ", ".join(f"{name.replace('_', ' ')} {show(size, 'B')}" for name, size in record["memory_terms_B"].items())
    return line(f"Memory {show(record['memory_B'], 'B')} of {show(record['memory_capacity_B'], 'B')}: {terms}")


def timeline(record: Record) -> Group:
    """The beginning and the end of a micro-step as bars on one time axis."""
    events = record["events"]
    shown = [*events[:_SHOWN_EVENTS], *events[max(_SHOWN_EVENTS, len(events) - _SHOWN_EVENTS) :]]
    table = table_of("stream", "what", "start", "seconds", "0 ... micro-step")
    for index, event in enumerate(shown):
        if index == _SHOWN_EVENTS:
            add_row(table, "...", f"{len(events) - len(shown):,} more", "", "", "")
        seconds = show(event["end"] - event["start"], "s")
        add_row(table, event["stream"], event["name"], show(event["start"], "s"), seconds, _bar(event, record))
    length = line(f"micro-step of {show(record['micro_step_s'], 's')}, {len(events):,} events")
    return Group(*heading(record), *_layout(record), length, table)


def _bar(event: Record, record: Record) -> str:
    scale: float = _BAR / record["micro_step_s"]
    left = min(int(event["start"] * scale), _BAR - 1)
    length = int(max(1, round((event["end"] - event["start"]) * scale)))
    return f"{' ' * left}{'#' * length}"
