"""Records for machines: plain values under keys that carry the unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

Record = dict[str, Any]


def flat(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """A record's entries as columns: nested keys joined with _, lists joined with spaces."""
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flat(value, f"{name}_")
        else:
            yield name, " ".join(map(str, value)) if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """Dataclasses and mappings as dicts, tuples as lists."""
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple) else value
