"""Frameworks as plain records: a line for a list, and every trait with its source."""

from dataclasses import fields, is_dataclass
from typing import Any

from perfmodel.frameworks.framework import BLOCKS, Framework
from perfmodel.records import Record
from perfmodel.sources import Figure, Source


def summary(framework: Framework) -> Record:
    """One line of `frameworks list`."""
    spread = framework.spread
    return {
        "name": framework.name,
        "axes": ",".join(spread.axes) or "all",
        "sharded_over_data": spread.shards_over_data,
        "sequence_parallel": "yes" if spread.sequence_parallel else "no",
        "uneven_shards": spread.uneven_shards,
        "kernels": framework.kernels.built,
        "hidden": ", ".join(framework.overlapping.hidden) or "nothing",
    }


def traits(framework: Framework) -> list[Record]:
    """Every trait in the order of the file: its value, and the kind and key of its source."""
    return [
        {"trait": f"{block}.{each.name}", **_trait(framework, getattr(framework, block), each.name)}
        for block in BLOCKS
        for each in fields(getattr(framework, block))
        if each.name != "source"
    ]


def _trait(framework: Framework, block: Any, name: str) -> Record:
    value = getattr(block, name)
    if isinstance(value, Figure):
        return {"value": value.value, "kind": value.source.kind, "source": value.key}
    shown = ", ".join(map(str, value)) or "all" if isinstance(value, tuple) else value
    return {"value": shown, "kind": framework.sources[block.source].kind, "source": block.source}


def record(framework: Framework) -> Record:
    """A framework with all its traits and sources."""
    return {
        "name": framework.name,
        "title": framework.title,
        "release": framework.release,
        "traits": traits(framework),
        "sources": {key: _source(source) for key, source in framework.sources.items()},
        "notes": list(framework.notes),
    }


def _source(source: Source) -> Record:
    assert is_dataclass(source)  # noqa: S101 - for the type checker
    return {each.name: getattr(source, each.name) for each in fields(source)}
