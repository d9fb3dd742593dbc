"""Data-sheet peaks of a device, found in the shipped profiles by the name that the device reports."""

import re
from collections.abc import Mapping

from perfmodel.machines import profiles
from perfmodel.machines.machine import DtypeRates, Machine
from perfmodel.sources import Figure

_MODEL = re.compile(r"\b(?:A|H|B|V|GH|GB|MI|L)\d{2,4}[A-Z]*\b")
_PARTS = ("PCIE", "SXM")


def peaks(name: str) -> tuple[str, Mapping[str, Figure]] | None:
    """The profile and the peaks of the device of this name, if all shipped profiles with it agree; else None.

    >>> peaks("NVIDIA A100-SXM4-40GB")[1]["bf16"].value
    312000000000000.0
    >>> peaks("AMD EPYC") is None
    True
    """
    machines = [profiles.load(shipped) for shipped in profiles.names()]
    same = [machine for machine in machines if _alike(name, machine.device.name)]
    found = [(machine.name, _rates(machine)) for machine in same]
    if not found or len({tuple((dtype, figure.value) for dtype, figure in each.items()) for _, each in found}) > 1:
        return None
    return found[0]


def _alike(name: str, shipped: str) -> bool:
    """Whether two names mean the same model, in the same form (card or module)."""
    model, other = (_MODEL.search(text) for text in (name, shipped))
    if model is None or other is None or model[0] != other[0] or "custom" in shipped:
        return False
    said = [{part for part in _PARTS if part in text.upper()} for text in (name, shipped)]
    return not (said[0] and said[1]) or said[0] == said[1]


def _rates(machine: Machine) -> dict[str, Figure]:
    peak = machine.device.peak
    rates = {dtype: peak.get(dtype) for dtype in DtypeRates.__dataclass_fields__}  # type: ignore[arg-type]
    return {dtype: figure for dtype, figure in rates.items() if figure is not None}
