"""Records as Rich renderables: pure functions that return, never print."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Group
from rich.text import Text

from perfmodel.search.search import Ranking
from perfmodel.units import GIBI
from perfmodel_cli.render.cells import Clock, add_row, line, percent, table_of
from perfmodel_cli.render.notes import beside

Record = Mapping[str, Any]

TERMS = {
    "weight_gather": "AG z",
    "gradient_scatter": "RS z",
    "forward_reduce": "AR forward",
    "backward_reduce": "AR backward",
    "data_reduce": "AR data",
    "vocabulary": "vocab",
    "small": "small",
}
# Columns of a ranking: heading and the terms that it adds up.
_COLUMNS = {
    "AG z": ("weight_gather",),
    "RS z": ("gradient_scatter",),
    "AR\nx,y": ("forward_reduce", "backward_reduce"),
    "AR\ndata": ("data_reduce",),
    "vocab": ("vocabulary",),
    "small": ("small",),
}
_EXACT = 6  # digits of a figure, so that it can be compared with its source
_LEGEND = (
    "AG = all-gather, RS = reduce-scatter, AR = all-reduce; vocab = all of embedding and head; small = statistics "
    "of norms, gradients of biases and norms, the loss; micro batch = sequences "
    "a device x steps; weight cache = how long a weight gathered over Z is kept (forward: until its backward pass); "
)
_BESIDE = {
    True: (
        "ex-\nposed",
        "exposed_communication_time_s",
        "exposed = what of the communication computation does not hide",
    ),
    False: (
        "(lat-\nency)",
        "latency_not_counted_s",
        "(latency) = ring hops x the profile's latency, NOT in the step: no latency and no overlap at this fidelity",
    ),
}
"""A ranking's last column of times, at full fidelity and below: heading, key of the record, explanation."""


def ranking(record: Record, found: Ranking) -> Group:
    """The answer of `recommend`."""
    ordered = len(found.space.placements) > 1
    capacity = record["memory_capacity_B"]
    heading_beside, key, _ = _BESIDE[record["fidelity"] == "full"]
    table = table_of(
        "#", "grid\nx,y,z,data", *(["ranks\norder"] if ordered else []), "micro\nbatch", "recom-\npute",
        "weight\ncache", "step", "compute", *_COLUMNS, heading_beside, f"GiB of\n{capacity / GIBI:.4g}", "MFU\n%",
        wraps=False,
    )  # fmt: skip
    clock = Clock.of(max(result["step_time_s"] for result in record["results"]))
    for result in record["results"]:
        add_row(table, *_result(result, clock, capacity, result[key], ordered=ordered))
    return Group(*heading(record), line(f"times in {clock.name} a step"), table, *_fate(record, found))


def _result(result: Record, clock: Clock, capacity: float, beside: float, *, ordered: bool) -> list[str]:
    grid = "x".join(str(size) for size in result["grid"].values())
    terms = result["communication_s"]
    over = "!" if result["memory_B"] > capacity else ""
    return [
        str(result["rank"]), grid, *([" ".join(axis[0] for axis in result["placement"])] if ordered else []),
        f"{result['micro_batch']}x{result['accumulation_steps']}", result["recompute"], result["weight_cache"],
        clock.show(result["step_time_s"], digits=4), clock.show(result["compute_time_s"]),
        *(clock.show(sum(terms[term] for term in column)) for column in _COLUMNS.values()),
        clock.show(beside),
        f"{result['memory_B'] / GIBI:.1f}{over}", percent(result["model_flops_utilization"]),
    ]  # fmt: skip


def heading(record: Record) -> Iterable[Text]:
    """What was asked."""
    yield line(f"{record['model']} ({record['parameters']:,} parameters) on {record['machine']}", style="bold")
    yield line(
        f"{record['gpus']} devices ({record['device']}) = {_nodes(record)}; "
        f"{record['batch_sequences']} sequences of {record['sequence_length']} tokens a step; "
        f"fidelity {record['fidelity']}"
    )


def _nodes(record: Record) -> str:
    count, devices = record["nodes"], record["devices_per_node"]
    return f"{count} node{'s' * (count > 1)} of {devices}"


def _fate(record: Record, found: Ranking) -> Iterable[Text]:
    """What became of the grids that are not shown, and what the numbers rest on."""
    turned_down = ", ".join(f"{reason} {count:,}" for reason, count in record["rejected"].items()) or "no rule"
    kept = "keep the rules, memory ignored (! = does not fit)" if found.job.settings.ignore_memory else "fit"
    yield line(
        f"{record['searched']:,} grids searched, {record['feasible']:,} {kept} ({record['evaluated']:,} with all "
        f"micro-batches and recomputation modes); turned down by: {turned_down}"
    )
    placements = {tuple(result["placement"]) for result in record["results"]}
    if len(found.space.placements) == 1:
        yield line(f"Ranks order, neighbours first: {', '.join(placements.pop())}")
    yield from beside(record)
    yield line(f"Compute: {record['compute_source']}")
    yield line(f"Bandwidths: {record['bandwidth_source']}")
    yield line(f"Sources in brackets: perfmodel machines show {record['machine']}")
    yield line(_LEGEND + _BESIDE[record["fidelity"] == "full"][2], style="dim")
