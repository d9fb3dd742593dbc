"""Records as Rich renderables: pure functions that return, never print."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from perfmodel.machine import Machine
from perfmodel.profile_tables import bandwidth_origins
from perfmodel.search import Ranking
from perfmodel.units import GIBI, parse, show

Record = Mapping[str, Any]

TERMS = {
    "weight_gather": "AG z",
    "gradient_scatter": "RS z",
    "forward_reduce": "AR\nfwd",
    "backward_reduce": "AR\nbwd",
    "data_reduce": "AR\ndata",
    "vocabulary": "vocab",
}
_SHORT = 1 / 10  # seconds: the steps of a ranking that is shown in milliseconds
_LEAST = parse("1 ms", "s")  # of a table's unit, shown as less
_LATENCY_NOTE = (
    "Bandwidth only: neither fidelity counts latency or overlap yet, which flatters large Z and small messages."
)


def ranking(record: Record, found: Ranking) -> Group:
    """The answer of `recommend`."""
    table = table_of(
        "#", "grid\nx,y,z,data", "micro\nbatch", "recom-\npute", "weight\ncache", "step", "compute",
        *TERMS.values(), "memory\nGiB", "MFU\n%", wraps=False,
    )  # fmt: skip
    clock = Clock.of(max(result["step_time_s"] for result in record["results"]))
    for result in record["results"]:
        table.add_row(*_result(result, clock))
    return Group(*heading(record), Text(f"times in {clock.name} a step"), table, *_fate(record, found))


@dataclass(frozen=True, slots=True)
class Clock:
    """The unit that a table's times are shown in, chosen by the longest of them."""

    name: str
    unit: float

    @classmethod
    def of(cls, longest: float) -> "Clock":
        """Milliseconds where seconds would all begin with a zero."""
        return cls("milliseconds", parse("1 ms", "s")) if longest < _SHORT else cls("seconds", 1.0)

    def show(self, value: float | None) -> str:
        """Three digits, thousandths at the least, no wider than a column of a ranking allows."""
        if value is None:
            return "-"
        scaled = value / self.unit
        if 0 < scaled < _LEAST:
            return f"<{_LEAST:g}"
        text = f"{scaled:.3f}".rstrip("0").rstrip(".")
        return f"{scaled:.0f}" if scaled >= 100 else f"{scaled:.1f}" if scaled >= 10 else text


def _result(result: Record, clock: Clock) -> list[str]:
    grid = "x".join(str(size) for size in result["grid"].values())
    return [
        str(result["rank"]), grid, f"{result['micro_batch']}x{result['accumulation_steps']:g}", result["recompute"],
        result["weight_cache"], clock.show(result["step_time_s"]), clock.show(result["compute_time_s"]),
        *(clock.show(result["communication_s"][term]) for term in TERMS),
        f"{result['memory_B'] / GIBI:.1f}", percent(result["model_flops_utilization"]),
    ]  # fmt: skip


def heading(record: Record) -> Iterable[Text]:
    """What was asked."""
    yield Text(f"{record['model']} ({record['parameters']:,} parameters) on {record['machine']}", style="bold")
    yield Text(
        f"{record['gpus']} devices ({record['device']}) = {_nodes(record)}; "
        f"{record['batch_sequences']} sequences of {record['sequence_length']} tokens a step; "
        f"fidelity {record['fidelity']}"
    )


def _nodes(record: Record) -> str:
    count, devices = record["nodes"], record["devices_per_node"]
    return f"{count} node{'s' * (count > 1)} of {devices}"


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


def machine(profile: Machine, figures: Sequence[Record], derived: Sequence[Record]) -> Group:
    """A profile: every figure with its source, what is derived from them, then the sources."""
    table = table_of("figure", "value", "kind", "source")
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
    table = table_of("block", "times", "layer", "kind", "shape", "parameters")
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
    table = table_of(*(key.replace("_", " ") for key in records[0]))
    for record in records:
        table.add_row(
            *(
                "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
                for value in record.values()
            )
        )
    return table


def table_of(*columns: str, wraps: bool = True) -> Table:
    """A plain table; in one that does not wrap, a window too small cuts columns short."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0) if wraps else 0)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=not wraps)
    return table


def percent(value: float | None) -> str:
    """A share in percent, one decimal."""
    return "-" if value is None else f"{100 * value:.1f}"
