"""Figures of a report as text and as cells that its reader can sort."""

from collections.abc import Mapping
from typing import Any

from perfmodel.units import GIBI, show
from perfmodel_cli.report.html import Cell

Record = Mapping[str, Any]


def share(value: float | None) -> Cell:
    """A share as a cell in percent."""
    return Cell("-") if value is None else Cell(f"{100 * value:.1f} %", value)


def signed_share(value: float | None) -> Cell:
    """A share that may be below zero as a cell in percent."""
    return Cell("-") if value is None else Cell(f"{100 * value:+.1f} %", value)


def seconds(value: float | None) -> Cell:
    """A time as a cell."""
    return Cell("-") if value is None else Cell(show(value, "s", digits=4) if value else "0", value)


def memory_text(value: float) -> str:
    """Bytes in GiB whatever their size, so that all can be compared at a glance."""
    return f"{value / GIBI:.3g} GiB"
