"""Machine profiles as plain records: every figure with unit and source, measured or derived."""

import typing
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from perfmodel.machines.machine import GroupBandwidth, Machine
from perfmodel.records import Record
from perfmodel.sources import Figure
from perfmodel.units import show


def machine_summary(machine: Machine) -> Record:
    """One line of `machines list`."""
    injection = machine.network.injection
    return {
        "name": machine.name,
        "device": machine.device.name,
        "devices_per_node": machine.node_devices,
        "memory": show(machine.device.memory.value, "B"),
        "injection_per_node": show(injection.value, "B/s") if injection else None,
        "network": machine.network.topology,
        "bandwidths": _known(machine),
        "scheduler": machine.scheduler.kind,
    }


def _known(machine: Machine) -> str:
    """The kind of sources of the group bandwidths inside and between nodes; derived where the profile has none."""
    inside = _kinds([entry.bandwidth for entry in machine.bandwidth.inside])
    between = _kinds([machine.bandwidth.between] if machine.bandwidth.between else [])
    if inside == between or machine.network.topology == "none":
        return inside
    return f"{inside} inside, {between} between"


def _kinds(figures: list[Figure]) -> str:
    return " and ".join(sorted({figure.source.kind for figure in figures})) or "derived"


def machine_figures(machine: Machine) -> list[Record]:
    """Every figure of a profile in the order of its fields."""
    return [
        {"figure": name, "value": figure.value, "unit": unit, "kind": figure.source.kind, "source": figure.key}
        for name, figure, unit in _figures(machine, type(machine), "")
    ]


def timing_figures(machine: Machine) -> list[Record]:
    """Every measured time of a collective, named by operation, (stride, ranks per node), nodes and size."""
    return [
        {
            "figure": f"collectives.{table.operation}({table.inner},{table.ranks}).{row.nodes}.{_exact(size)}",
            "value": time,
            "unit": "s",
            "kind": machine.sources[table.source].kind,
            "source": table.source,
        }
        for table in machine.collectives
        for row in table.rows
        for size, time in zip(table.sizes, row.times, strict=True)
    ]


def _exact(size: float) -> str:
    return show(size, "B", digits=6)


def _figures(value: Any, hint: Any, name: str) -> Iterator[tuple[str, Figure, str]]:
    """Figures below `value` with their names and the units that their declared types carry."""
    if isinstance(value, Figure):
        yield name, value, _unit(hint)
    elif hasattr(value, "__dataclass_fields__"):
        hints = typing.get_type_hints(type(value), include_extras=True)
        for field in fields(value):
            yield from _figures(getattr(value, field.name), hints[field.name], f"{name}.{field.name}".lstrip("."))
    elif isinstance(value, tuple):
        for item in value:
            if isinstance(item, GroupBandwidth):
                yield from _figures(item, None, f"{name}({item.inner},{item.size})")


def _unit(hint: Any) -> str:
    """The unit in Annotated[Figure, unit], optional or not."""
    if typing.get_origin(hint) is typing.Annotated:
        return str(typing.get_args(hint)[1])
    return next((unit for part in typing.get_args(hint) if (unit := _unit(part))), "")
