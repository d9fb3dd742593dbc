"""The tables of docs/profiles.md, made from the code and the profiles: fields, and machines that are shipped.

Run as `python tools/machines_page.py` to compare, as `python tools/machines_page.py --write` to put them in place.
"""

import dataclasses
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from page_tables import run, table
from perfmodel.logs.timings_csv import COLUMNS
from perfmodel.machines import profiles, template
from perfmodel.machines.machine import Machine, Network
from perfmodel.sources import PLAUSIBLE, Figure
from perfmodel.units import show

PAGE = Path(__file__).parents[1] / "docs" / "profiles.md"


def records(kind: Any = Machine) -> Iterator[type]:
    """The records of a profile, outermost first, each once."""
    seen: dict[type, None] = {}
    waiting = [kind]
    while waiting:
        hint = waiting.pop(0)
        if dataclasses.is_dataclass(hint) and hint is not Figure:
            seen.setdefault(typing.cast("type", hint))
            waiting += typing.get_type_hints(hint, include_extras=True).values()
        elif typing.get_origin(hint) is not typing.Annotated:
            waiting += [argument for argument in typing.get_args(hint) if argument is not Ellipsis]
    yield from seen


def fields() -> str:
    """A table for each record: field, type, whether it is needed, meaning."""
    parts = []
    for kind in records():
        hints = typing.get_type_hints(kind, include_extras=True)
        rows = [
            [f"`{field.name}`", template.words(hints[field.name]), _needed(field), _help(kind, field.name)]
            for field in dataclasses.fields(kind)
        ]
        parts.append(f"**{kind.__name__}**\n\n{table(['field', 'is', 'needed', 'meaning'], rows)}")
    return "\n\n".join(parts)


def _needed(field: "dataclasses.Field[Any]") -> str:
    given = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    return "yes" if given else ""


def _help(kind: type, name: str) -> str:
    return template.HELP[f"{kind.__name__}.{name}"].replace("|", "\\|")


def machines() -> str:
    """One line a shipped machine."""
    rows = [_machine(profiles.load(name)) for name in profiles.names()]
    return table(
        ["name", "device", "dense bf16", "memory", "devices per node", "fabric", "NICs per node", "bandwidths"], rows
    )


def _machine(machine: Machine) -> list[str]:
    device, fabric, network = machine.device, machine.fabric, machine.network
    peak = next((f"{show(rate.value, 'flop/s')}{note}" for rate, note in _peaks(machine) if rate), "")
    pair = f" {show(fabric.pair_bandwidth.value, 'B/s')} per pair" if fabric.pair_bandwidth else ""
    nics = _nics(network)
    devices = str(machine.node_devices) + (
        f" ({machine.domain} joined)" if machine.domain > machine.node_devices else ""
    )
    memory = show(device.memory.value, "B")
    return [f"`{machine.name}`", device.name, peak, memory, devices, f"{fabric.topology}{pair}", nics, _known(machine)]


def _nics(network: Network) -> str:
    if network.nics is None or network.nic_bandwidth is None:
        return "none"
    return f"{network.nics.value:g} × {show(network.nic_bandwidth.value, 'B/s')}"


def _peaks(machine: Machine) -> list[tuple[Figure | None, str]]:
    peak = machine.device.peak
    return [(peak.bf16, ""), (peak.fp16, " (fp16)"), (peak.fp32, " (fp32)")]


def _known(machine: Machine) -> str:
    """What somebody measured, and where: the rest is derived."""
    parts = []
    kinds = sorted({entry.bandwidth.source.kind for entry in machine.bandwidth.inside})
    if kinds:
        number = len(machine.bandwidth.inside)
        parts.append(f"{number} group shape{'s' * (number > 1)} {' and '.join(kinds)}")
    if machine.bandwidth.between:
        parts.append(f"between nodes {machine.bandwidth.between.source.kind}")
    return ", ".join(parts) or "derived"


def ranges() -> str:
    """What a figure of each unit may be."""
    names = {"1": "(a pure number)"}
    return table(["unit", "least", "most"], [[names.get(unit, unit), *ends] for unit, ends in PLAUSIBLE.items()])


def csv_columns() -> str:
    """The columns of a CSV file of timings."""
    return table(["column", "holds"], [[f"`{name}`", text] for name, text in COLUMNS.items()])


TABLES = {"fields": fields, "machines": machines, "ranges": ranges, "csv": csv_columns}

if __name__ == "__main__":
    run(PAGE, TABLES, __doc__)
