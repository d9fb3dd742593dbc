"""The source of a number, kept with the number."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from perfmodel import units
from perfmodel.errors import PerfmodelError, nearest

Kind = Literal["vendor", "measured", "paper", "assumed"]

PLAUSIBLE = {
    "flop/s": ("1 Gflop/s", "20 Pflop/s"),
    "B": ("1 MiB", "100 TiB"),
    "B/s": ("1 kB/s", "1 PB/s"),
    "s": ("1 ps", "1 s"),
    "1": ("0.001", "1e7"),
}
"""The plausible range of a figure in each unit; anything outside is taken for a typing error."""

_LONGEST = 100
_DATE = re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?")
_FIGURE = re.compile(r"(.*\S)\s*\[([A-Za-z0-9_.+-]+)\]\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A vendor's page, a measurement, a paper, or our own assumption; with the address and the date it was read."""

    kind: Kind
    address: str = ""
    date: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse a source that cannot be looked up."""
        if self.kind == "assumed" and not self.note:
            raise PerfmodelError("a source of kind assumed needs a note that says why the figure is believed")
        if self.kind != "assumed" and not (self.address and self.date):
            raise PerfmodelError(f"a source of kind {self.kind} needs an address and the date it was read or measured")
        if self.date and not _DATE.fullmatch(self.date):
            raise PerfmodelError(f"the date {self.date!r} is not like 2026, 2026-08 or 2026-08-22")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number in SI units with the key and record of its source."""

    value: float
    key: str
    source: Source

    @property
    def origin(self) -> str:
        """The source in a few words, for people.

        >>> Figure(1.0, "GKL", Source(kind="vendor", address="a page", date="2024-10-22")).origin
        'vendor [GKL]'
        """
        return f"{self.source.kind} [{self.key}]"


def figure(text: str, unit: str, sources: Mapping[str, Source], lowest: str = "") -> Figure:
    """Read `312 Tflop/s [GKL]`: a positive number with a unit and the key of a source listed in the same file.

    `lowest`: the least plausible value, if it is below that of other figures in the unit.

    >>> figure("25 GB/s [OWN]", "B/s", {"OWN": Source(kind="assumed", note="for this example")}).value
    25000000000.0
    """
    match = _FIGURE.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise PerfmodelError(
            f"{text!r} names no source; write the key of one in brackets after it, as in '{text} [KEY]'"
        )
    number, key = match.groups()
    if key not in sources:
        raise PerfmodelError(
            f"{text!r} names the source {key}, which the file does not list ({nearest(key, list(sources))})"
        )
    value = units.parse(number, unit)
    least, most = PLAUSIBLE[unit]
    _check_plausible(text, value, unit, lowest or least, most)
    return Figure(value, key, sources[key])


def quantity(text: str, unit: str, least: str, most: str) -> float:
    """Read a positive number with a unit; its source is named elsewhere, once for many numbers.

    >>> quantity("2 ms", "s", "1 us", "1 s")
    0.002
    """
    value = units.parse(text, unit)
    _check_plausible(text, value, unit, least, most)
    return value


def _check_plausible(text: str, value: float, unit: str, least: str, most: str) -> None:
    if value <= 0:
        raise PerfmodelError(f"{text!r} must be greater than 0")
    if not units.parse(least, unit) <= value <= units.parse(most, unit):
        raise PerfmodelError(f"{text!r} is not between {least} and {most}, so the number or its unit is wrong")


def whole(number: Figure, what: str, *, most: float = math.inf) -> int:
    """A count as an int; `what` names it in the error about a fraction or a number above `most`."""
    if number.value != int(number.value):
        raise PerfmodelError(f"{what} is {number.value:g}, wanted a whole number")
    if number.value > most:
        raise PerfmodelError(f"{what} is {number.value:g}, wanted at most {most}")
    return int(number.value)


def at_most_one(efficiency: Figure | None, what: str) -> None:
    """Refuse an efficiency above 1."""
    if efficiency is not None and efficiency.value > 1:
        raise PerfmodelError(f"{what} is {efficiency.value:g}, wanted more than 0 and at most 1")


def need(record: object, names: Sequence[str], what: str) -> None:
    """Refuse a record in which one of the fields `names` is empty."""
    absent = [name for name in names if not getattr(record, name)]
    if absent:
        raise PerfmodelError(f"{what} needs {', '.join(absent)}")


def refuse(record: object, names: Sequence[str], what: str) -> None:
    """Refuse a record in which one of the fields `names` is given."""
    given = [name for name in names if getattr(record, name)]
    if given:
        raise PerfmodelError(f"{what} has no {', '.join(given)}; leave it out, or write ~ where a base gives it")
