"""Where a number comes from, kept beside the number."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from perfmodel import units
from perfmodel.errors import PerfmodelError, nearest

Kind = Literal["vendor", "measured", "paper", "assumed"]
KINDS: tuple[Kind, ...] = ("vendor", "measured", "paper", "assumed")

_FIGURE = re.compile(r"(.*\S)\s*\[([A-Za-z0-9_.+-]+)\]\s*")


@dataclass(frozen=True, slots=True)
class Source:
    """Who says so: a vendor's page, a measurement, a paper, or ourselves (assumed); where and when it was read."""

    kind: Kind
    address: str = ""
    date: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse a source that nobody could look up."""
        if self.kind == "assumed" and not self.note:
            raise PerfmodelError("a source of kind assumed needs a note that says why the figure is believed")
        if self.kind != "assumed" and not (self.address and self.date):
            raise PerfmodelError(f"a source of kind {self.kind} needs an address and the date it was read or measured")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number in SI with the key and record of its source."""

    value: float
    key: str
    source: Source

    @property
    def origin(self) -> str:
        """The source in a few words, for people.

        >>> Figure(1.0, "GKL", Source("vendor", address="a page", date="2024-10-22")).origin
        'vendor [GKL]'
        """
        return f"{self.source.kind} [{self.key}]"


def figure(text: str, unit: str, sources: Mapping[str, Source]) -> Figure:
    """Read `312 Tflop/s [GKL]`: a positive number with a unit and the key of a source listed in the same file.

    >>> figure("25 GB/s [OWN]", "B/s", {"OWN": Source("assumed", note="for this example")}).value
    25000000000.0
    """
    match = _FIGURE.fullmatch(text)
    if match is None:
        raise PerfmodelError(f"{text!r} names no source; write the key of one in brackets after it, as in '{text} [KEY]'")
    number, key = match.groups()
    if key not in sources:
        raise PerfmodelError(f"{text!r} names the source {key}, which the file does not list ({nearest(key, list(sources))})")
    value = units.parse(number, unit)
    if value <= 0:
        raise PerfmodelError(f"{text!r} must be greater than 0")
    return Figure(value, key, sources[key])
