"""The page as one file: style and script are inside, and its security policy lets a browser load nothing else."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfmodel_cli.report import measured_section, scaling_section, sources_section
from perfmodel_cli.report import recommendation_section as recommended
from perfmodel_cli.report.html import Markup, element, joined, notes

Record = Mapping[str, Any]

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Records of what is shown; None for what was not asked for."""

    ranking: Record
    parts: tuple[Mapping[str, float], ...]
    parts_note: str
    scaling: Record
    machine: Record
    settings: Record
    comparison: Record | None = None
    problems: tuple[str, ...] = ()


def page(report: Report) -> str:
    """The whole page."""
    record = report.ranking
    title = f"{record['model']} on {record['machine']}"
    style, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    head = element(
        "head", element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        element("title", f"{title}: the fastest grid"), element("link", rel="icon", href="data:,"),
        element("style", Markup(style)),
    )  # fmt: skip
    body = element("body", _top(record, title), element("main", *_sections(report)), element("script", Markup(script)))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _policy(style: str, script: str) -> str:
    """A policy that allows nothing from elsewhere, and only the style and the script that the program supplies."""
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script))
    of_style, of_script = (f"'sha256-{found}'" for found in hashes)
    allowed = f"img-src data:; style-src {of_style}; script-src {of_script}"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _top(record: Record, title: str) -> Markup:
    asked = (
        f"{record['parameters']:,} parameters; {record['gpus']:,} devices ({record['device']}) = {record['nodes']:,} "
        f"nodes of {record['devices_per_node']}; {record['batch_sequences']:,} sequences of "
        f"{record['sequence_length']:,} tokens per step; fidelity {record['fidelity']}"
    )
    return element("header", element("h1", title), element("p", asked))


def _sections(report: Report) -> list[Markup]:
    record = report.ranking
    sections = [
        _section("answer", "Recommendation", recommended.headline(record), recommended.results(record),
                 recommended.baselines(record)),
        element("div",
            _section("time", "Where the time goes", recommended.times(record, report.parts),
                     notes([report.parts_note])),
            _section("memory", "Memory of a device", recommended.memory(record)),
            class_="beside"),
    ]  # fmt: skip
    if "uncertainty" in record:
        sections.append(_section("sure", "How sure the order is", recommended.uncertainty(record)))
    sections.append(_section("scaling", "Scaling", scaling_section.scaling(report.scaling)))
    if report.comparison:
        checked = measured_section.measured(report.comparison, report.problems)
        sections.append(_section("measured", "Predicted and measured", checked))
    sections.append(_section("machine", "The machine's figures", sources_section.machine(report.machine)))
    sections.append(_section("settings", "Settings", sources_section.settings(report.settings)))
    return sections


def _section(name: str, title: str, *content: Markup) -> Markup:
    heading = element("h2", title, id=f"{name}-title")
    return element("section", heading, joined(content), id=name, aria_labelledby=f"{name}-title")
