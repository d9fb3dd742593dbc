"""The answer of a report: the best grids in figures, in a table, and in bars of time and memory."""

from collections.abc import Iterable, Mapping, Sequence

from perfmodel.parallel.axes import KINDS
from perfmodel.search.results import result_columns
from perfmodel.search.results.columns import Context
from perfmodel.search.terms import MEMORY_TERMS, TERMS
from perfmodel.units import GIBI, parse, show
from perfmodel_cli.report.bars import Bar, Limit, Range, ranges, stacked
from perfmodel_cli.report.declared_tables import declared_table
from perfmodel_cli.report.figures import Record, memory_text, seconds
from perfmodel_cli.report.html import Cell, Markup, element, joined, notes, table
from perfmodel_cli.report.svg import Series
from perfmodel_cli.texts import grid_text

CHARTED = 10  # grids in a chart
_DAY = parse("24 h", "s")
_COLOURS = ("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8")
_SENT = {term.key: term.meaning for term in TERMS}
_COMPUTE = Series("compute", "computation", "c0")
_WAITS = {
    "gathers": "waits for weights gathered over Z",
    "scatters": "waits for gradients scattered over Z",
    "collectives": "waits for blocking communication: all-reduces over X and Y, vocabulary, norms",
    "data": "waits for gradients reduced over data",
    "slowed": "computation slowed by communication beside it",
    "exposed": "communication that computation does not hide",
}
SERIES = (
    _COMPUTE,
    *(Series(key, label, colour) for (key, label), colour in zip(_SENT.items(), _COLOURS, strict=False)),
    *(Series(key, label, colour) for (key, label), colour in zip(_WAITS.items(), _COLOURS, strict=False)),
)
_KEPT = {
    "none": "for its product alone",
    "forward": "from its forward to its backward pass",
    "all": "for the whole micro-step",
}
_LEGEND = (
    "exposed = communication that computation does not hide; columns named by a collective: all of it, hidden or not. "
    "Weight cache: how long a weight gathered over Z is kept."
)
_MEMORY_COLOURS = ("c0", "c1", "c2", "c3", "c4", "c9", "c5", "c6", "c7", "c8", "c10")
_MEMORY_SERIES = [
    Series(key, meaning, colour) for (key, meaning), colour in zip(MEMORY_TERMS.items(), _MEMORY_COLOURS, strict=True)
]


def headline(record: Record) -> Markup:
    """The best grid in one sentence, and its figures."""
    best = record["results"][0]
    axes = ", ".join(f"{KINDS[axis].title} {size}" for axis, size in best["grid"].items())
    sentence = element(
        "p", f"The fastest of {record['feasible']:,} grids {record['kept']} is ", element("strong", grid_text(best)),
        f" ({axes}): a step of ", element("strong", show(best["step_time_s"], "s")),
        f" on {record['gpus']:,} x {record['device']}, with {best['micro_batch']} sequences per device in each of "
        f"{best['accumulation_steps']} micro-steps, recomputation: "
        f"{best['recompute']}; a weight gathered over Z is kept {_KEPT[best['weight_cache']]}.",
        class_="lead",
    )  # fmt: skip
    tiles = [element("div", element("dt", name), element("dd", value)) for name, value in _tiles(record, best)]
    return joined([sentence, element("dl", *tiles, class_="tiles")])


def _tiles(record: Record, best: Record) -> Iterable[tuple[str, str]]:
    yield "step", show(best["step_time_s"], "s")
    if best["tokens_per_s"]:
        yield "tokens per second", f"{best['tokens_per_s']:,.0f}"
        yield "of the peak (MFU)", f"{100 * best['model_flops_utilization']:.1f} %"
        yield "communication not hidden", f"{100 * best['exposed_communication_time_s'] / best['step_time_s']:.1f} %"
    capacity = record["memory_capacity_B"]
    yield "GiB per device", f"{best['memory_B'] / GIBI:.3g} of {capacity / GIBI:.3g}"
    if best.get("training_time_s"):
        yield f"time for {best['training_tokens']:,} tokens", f"{best['training_time_s'] / _DAY:,.2f} days"
        yield "node-hours", f"{best['training_node_hours']:,.0f}"


def results(record: Record) -> Markup:
    """All grids shown, with every term of the communication, hidden or not."""
    turned_down = ", ".join(f"{reason} {count:,}" for reason, count in record["rejected"].items()) or "no rule"
    fate = (
        f"{record['searched']:,} grids searched, {record['feasible']:,} can run ({record['evaluated']:,} with all "
        f"micro-batches and recomputation modes); rejected by: {turned_down}."
    )
    context = Context(record["fidelity"], capacity=record["memory_capacity_B"])
    caption = "The fastest grids (select a heading to sort)"
    made = declared_table(caption, result_columns.RESULT, "report", context, record["results"])
    return joined([made, notes([fate, _LEGEND])])


def baselines(record: Record) -> Markup:
    """Step times of other strategies."""
    rows = [
        [
            Cell(one["name"]), Cell(grid_text(one) if "grid" in one else "-"), seconds(one["step_time_s"]),
            Cell(f"{one['slower_than_best']:.2f}", one["slower_than_best"]) if one["slower_than_best"] else Cell("-"),
            Cell(one["reason"]),
        ]
        for one in record["baselines"]
    ]  # fmt: skip
    heads = ["strategy", "its best grid", "step", "times the best", "why not"]
    return table("Compared with other strategies, each with its best grid", heads, rows)


def times(record: Record, parts: Sequence[Mapping[str, float]]) -> Markup:
    """The step of each of the best grids, split into its parts."""
    found = [
        Bar(f"{result['rank']}. {grid_text(result)}", show(result["step_time_s"], "s", digits=4), _filled(values))
        for result, values in zip(record["results"], parts, strict=False)
    ]
    return stacked(
        "Seconds of a step, the fastest grids", SERIES, found, lambda value: show(value, "s") if value else "0"
    )


def _filled(values: Mapping[str, float]) -> dict[str, float]:
    return {one.key: values.get(one.key, 0.0) for one in SERIES}


def memory(record: Record) -> Markup:
    """What a device holds, compared with its capacity."""
    capacity = record["memory_capacity_B"]
    bars = [
        Bar(f"{result['rank']}. {grid_text(result)}", memory_text(result["memory_B"]),
            {term: value / GIBI for term, value in result["memory_terms_B"].items()})
        for result in record["results"][:CHARTED]
    ]  # fmt: skip
    limit = Limit(capacity / GIBI, f"a device has {memory_text(capacity)}")
    return stacked(
        "Memory of a device, the fastest grids", _MEMORY_SERIES, bars, lambda value: f"{value:.3g} GiB", limit
    )


def uncertainty(record: Record) -> Markup:
    """How sure the order is: intervals of the grids that are worth a try."""
    found = record["uncertainty"]
    steps = {result["rank"]: result["step_time_s"] for result in record["all_results"]}
    rows = [
        Range(
            name=f"{one['rank']}. {grid_text(one)}", amount=f"{100 * one['chance_of_being_fastest']:.0f} % fastest",
            low=one["step_time_interval_s"][0], middle=steps[one["rank"]], high=one["step_time_interval_s"][1],
        )
        for one in found["worth_a_try"]
    ]  # fmt: skip
    how = (
        f"{found['samples']} machines whose figures differ from the profile's as far as their sources allow, "
        f"{found['grids']} grids on each. A line reaches from 5 to 95 % of them, the dot is the prediction. With a "
        f"probability of 90 % the fastest is among the {len(rows)} shown."
    )
    return joined([ranges("Seconds of a step, grids worth a try", rows, lambda value: show(value, "s")), notes([how])])
