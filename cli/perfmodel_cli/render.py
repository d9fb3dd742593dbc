"""Records as Rich renderables: pure functions that return, never print."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from perfmodel.machine import Machine
from perfmodel.search import Ranking
from perfmodel.timings import Timings
from perfmodel.units import GIBI, parse, show
from perfmodel_cli.cells import add_row, line, percent, table_of
from perfmodel_cli.render_beside import beside

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
_SHORT = 1 / 10  # seconds: the steps of a ranking that is shown in milliseconds
_LEAST = parse("1 ms", "s")  # of a table's unit, shown as less
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


@dataclass(frozen=True, slots=True)
class Clock:
    """The unit that a table's times are shown in, chosen by the longest of them."""

    name: str
    unit: float

    @classmethod
    def of(cls, longest: float) -> "Clock":
        """Milliseconds where seconds would all begin with a zero."""
        return cls("milliseconds", parse("1 ms", "s")) if longest < _SHORT else cls("seconds", 1.0)

    def show(self, value: float | None, *, digits: int = 3) -> str:
        """So many digits, thousandths at the least, no wider than a column of a ranking allows."""
        if value is None:
            return "-"
        scaled = value / self.unit
        if 0 < scaled < _LEAST:
            return f"<{_LEAST:g}"
        places = max(0, digits - 1 - int(math.log10(scaled))) if scaled >= 1 else 3
        return f"{scaled:.{min(places, 3)}f}" if scaled else "0"


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


def machine(profile: Machine, figures: Sequence[Record], derived: Sequence[Record]) -> Group:
    """A profile: every figure with its source, what is derived from them, measured times, then the sources."""
    table = table_of("figure", "value", "kind", "source")
    for figure in figures:
        add_row(table, figure["figure"], _quantity(figure["value"], figure["unit"]), figure["kind"], figure["source"])
    for entry in derived:
        add_row(table, f"bandwidth.{entry['bandwidth']}", show(entry["value_B_per_s"], "B/s"), "derived", entry["rule"])
    sources = [
        line(f"  {key}: {source.kind}; {', '.join(filter(None, (source.address, source.date, source.note)))}")
        for key, source in profile.sources.items()
    ]
    notes = [line(f"Note: {note}") for note in profile.notes]
    timings = [part for each in profile.collectives for part in _timings(profile, each)]
    return Group(line(profile.title, style="bold"), table, *timings, line("Sources", style="bold"), *sources, *notes)


def _timings(profile: Machine, timings: Timings) -> Iterable[Text | Table]:
    """Measured times of one collective: a line for each size, a column for each number of nodes."""
    source = f"{profile.sources[timings.source].kind} [{timings.source}]"
    yield line(f"Times of {timings.operation}, {timings.shape}: {source}", style="bold")
    table = table_of("size", *(f"{row.nodes} nodes" if row.nodes > 1 else "1 node" for row in timings.rows))
    for place, size in enumerate(timings.sizes):
        times = (show(row.times[place], "s", digits=_EXACT) for row in timings.rows)
        add_row(table, show(size, "B", digits=_EXACT), *times)
    yield table


def _quantity(value: float, unit: str) -> str:
    return f"{value:g}" if unit == "1" else show(value, unit, digits=_EXACT)


def model(record: Record) -> Group:
    """A model: counts, then its layers."""
    closed = record["closed_form_parameters"]
    against = f" (closed form: {closed:,.0f})" if closed else ""
    flops = record["closed_form_step_flop_per_sequence"]
    trained = f" (closed form: {show(flops, 'flop', digits=_EXACT)})" if flops else ""
    lines = [
        line(f"{record['model']}: {record['parameters']:,} parameters{against}", style="bold"),
        line(
            f"{show(record['forward_flop_per_sequence'], 'flop', digits=_EXACT)} forward, "
            f"{show(record['step_flop_per_sequence'], 'flop', digits=_EXACT)} a training step{trained}, "
            f"for a sequence of {record['sequence_length']} tokens"
        ),
    ]
    table = table_of("block", "times", "layer", "kind", "shape", "parameters", "forward")
    for layer in record["layers"]:
        shape = ", ".join(
            f"{key} {value}"
            for key, value in layer.items()
            if key not in ("block", "repeat", "name", "kind", "parameters", "forward_flop")
        )
        add_row(
            table,
            layer["block"],
            str(layer["repeat"]),
            layer["name"],
            layer["kind"],
            shape,
            f"{layer['parameters']:,}",
            show(layer["forward_flop"], "flop"),
        )
    return Group(*lines, table)


def rows(records: Sequence[Record]) -> Table:
    """Records with the same keys as a table."""
    table = table_of(*(key.replace("_", " ") for key in records[0]))
    for record in records:
        add_row(
            table,
            *(
                "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
                for value in record.values()
            ),
        )
    return table
