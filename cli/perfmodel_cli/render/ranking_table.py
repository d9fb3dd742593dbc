"""Records as Rich renderables: pure functions that return, never print."""

from collections.abc import Iterable

from rich.console import Group
from rich.text import Text

from perfmodel.search.results import columns, result_columns
from perfmodel.search.results.columns import Context
from perfmodel.search.search import Ranking
from perfmodel.search.terms import TERMS
from perfmodel_cli.render.below_a_ranking import beside
from perfmodel_cli.terminal.cells import Clock, Record, line
from perfmodel_cli.terminal.declared_columns import ABBREVIATIONS, DeclaredTable


def ranking(record: Record, found: Ranking) -> Group:
    """The answer of `recommend`."""
    context = Context(record["fidelity"], len(found.space.placements), record["memory_capacity_B"])
    clock = Clock.of(max(result["step_time_s"] for result in record["results"]))
    table = DeclaredTable(columns.places(result_columns.RESULT, "ranking", context), context, clock)
    filled = table.filled(record["results"], wraps=False)
    return Group(*heading(record), line(f"times in {clock.name} per step"), filled, *_fate(record, found, table))


def heading(record: Record) -> Iterable[Text]:
    """What was asked."""
    yield line(f"{record['model']} ({record['parameters']:,} parameters) on {record['machine']}", style="bold")
    yield line(
        f"{record['gpus']} devices ({record['device']}) = {_nodes(record)}; "
        f"{record['batch_sequences']} sequences of {record['sequence_length']} tokens per step; "
        f"fidelity {record['fidelity']}; framework {record['framework']}"
    )


def _nodes(record: Record) -> str:
    count, devices = record["nodes"], record["devices_per_node"]
    return f"{count} node{'s' * (count > 1)} of {devices}"


def _fate(record: Record, found: Ranking, table: DeclaredTable) -> Iterable[Text]:
    """What became of the grids that are not shown, and what the numbers are based on."""
    turned_down = ", ".join(f"{reason} {count:,}" for reason, count in record["rejected"].items()) or "no rule"
    kept = "keep the rules, memory ignored (! = does not fit)" if found.job.settings.ignore_memory else "fit"
    yield line(
        f"{record['searched']:,} grids searched, {record['feasible']:,} {kept} ({record['evaluated']:,} with all "
        f"micro-batches and recomputation modes); rejected by: {turned_down}"
    )
    placements = {tuple(result["placement"]) for result in record["results"]}
    if len(found.space.placements) == 1:
        yield line(f"Ranks order, neighbours first: {', '.join(placements.pop())}")
    yield from beside(record)
    yield line(f"Compute: {record['compute_source']}; attention: {record['attention_source']}")
    yield line(f"Bandwidths: {record['bandwidth_source']}")
    yield line(f"Sources in brackets: perfmodel machines show {record['machine']}")
    terms = [f"{term.heading} = {term.legend}" for term in TERMS if term.legend]
    yield line("; ".join([ABBREVIATIONS, *terms, *table.legends()]), style="dim")
