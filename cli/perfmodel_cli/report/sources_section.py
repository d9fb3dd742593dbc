"""What a report is based on: the profile's figures with sources, every option, and the command to run it again."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perfmodel.units import show
from perfmodel_cli.report.html import Cell, Markup, element, joined, notes, table

Record = Mapping[str, Any]

_EXACT = 6  # digits, so that a figure can be compared with its source
_YES = {"True": "yes", "False": "no"}
_LINKED = ("https://", "http://")  # no other address is made a link: not all of them are addresses


def machine(record: Record) -> Markup:
    """Every figure of the profile and all sources."""
    rows = [_figure(one) for one in record["figures"]]
    rows += [
        [Cell(f"bandwidth.{one['bandwidth']}"), _value(one["value_B_per_s"], "B/s"), Cell("derived"), Cell(one["rule"])]
        for one in record["derived_bandwidths"]
    ]
    sources = [
        [Cell(key), Cell(one["kind"]), Cell(_address(one["address"])), Cell(one["date"]), Cell(one["note"])]
        for key, one in record["sources"].items()
    ]
    return joined([
        table(f"Figures of {record['title']}", ["figure", "value", "kind", "source"], rows, tall=True),
        table("Sources", ["key", "kind", "where", "read", "note"], sources),
        notes(f"Note: {note}" for note in record["notes"]),
    ])  # fmt: skip


def _figure(one: Record) -> list[Cell]:
    return [Cell(one["figure"]), _value(one["value"], one["unit"]), Cell(one["kind"]), Cell(one["source"])]


def _value(value: float, unit: str) -> Cell:
    return Cell(f"{value:g}" if unit == "1" else show(value, unit, digits=_EXACT), value)


def _address(text: str) -> object:
    return element("a", text, href=text, rel="noreferrer") if text.startswith(_LINKED) and " " not in text else text


def settings(record: Record) -> Markup:
    """The command, all options, given or default, and the settings that result."""
    chosen = [
        [Cell(name), Cell(value), Cell("given" if given else "default")] for name, value, given in record["options"]
    ]
    counted = [[Cell(name), Cell(value)] for name, value in _words(record["settings"])]
    return joined([
        element("h3", "To make this page again"),
        element("pre", element("code", record["command"]), class_="scroll", tabindex=0, role="region",
                aria_label="Command"),
        element("div",
            table("Options", ["option", "value", "given?"], chosen),
            table("Resulting settings", ["setting", "value"], counted),
            class_="beside"),
        notes([f"Compute: {record['compute_source']}. Bandwidths: {record['bandwidth_source']}.",
               f"perfmodel {record['version']}"]),
    ])  # fmt: skip


def _words(values: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        shown: Sequence[str] = value if isinstance(value, list) else [_YES.get(str(value), str(value))]
        yield name.replace("_", " "), ", ".join(shown) or "none"
