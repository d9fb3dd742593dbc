"""Answers of the Python functions: the records that `--format json` prints, as dicts, data frames, tables and HTML.

Rich draws them, which belongs to the command line. One function of this module loads it when an answer is shown, so a
program that only calculates does not load it.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel import frames
from perfmodel.errors import UsageError
from perfmodel.files import write_new
from perfmodel.machines.machine import Machine
from perfmodel.parallel.layout import Layout
from perfmodel.records import Record
from perfmodel.search.search import Ranking
from perfmodel.validation import calibrated_profile
from perfmodel.validation.calibration import Calibration

if TYPE_CHECKING:
    from types import ModuleType

ROWS = {
    "recommend": "results",
    "explain": "collectives",
    "sweep": "points",
    "compare": "rows",
    "calibrate": "parameters",
}
"""The key of the rows in a record, by command."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Answer:
    """The answer to one question.

    `command`: the equivalent command of the program. `problems`: why rows were left out.
    """

    command: str
    record: Record
    problems: tuple[str, ...] = ()

    @property
    def rows(self) -> list[Record]:
        """The records that are the rows of the table: results, collectives, points, rows or parameters."""
        found: list[Record] = deepcopy(self.record[ROWS[self.command]])
        return found

    def to_dict(self) -> Record:
        """What `--format json` prints: SI numbers under keys that carry the unit."""
        return deepcopy(self.record)

    def to_frame(self) -> frames.Frame:
        """What `--format csv` prints: a row for each result, nested keys joined with _. Needs pandas."""
        return frames.frame(self.rows)

    def __repr__(self) -> str:
        """A short name; `print` shows the table."""
        rows = ROWS[self.command]
        return f"<perfmodel.{self.command}: {len(self.record[rows])} {rows}>"

    def __str__(self) -> str:
        """The table that the program prints, as plain text."""
        text: str = _render().text(self)
        return text

    def __rich__(self) -> Any:
        """The same for `rich.print`."""
        return _render().picture(self)

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        html: str = _render().html(self)
        return html


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Recommendation(Answer):
    """A ranking of grids; `ranking` holds its data as arrays."""

    ranking: Ranking

    @property
    def layouts(self) -> list[Layout]:
        """The grids of the results with their settings, fastest first."""
        return [self.ranking.layouts.take(row) for row in range(len(self.record["results"]))]

    @property
    def best(self) -> Layout:
        """The fastest grid."""
        return self.layouts[0]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class FittedProfile(Answer):
    """A calibration. `base`: the profile that it started from; `measured`: the files, empty for a data frame."""

    found: Calibration
    base: str
    measured: tuple[str, ...]

    @property
    def machine(self) -> Machine:
        """The machine with the figures that were fitted, for the next question."""
        return calibrated_profile.machine(self.found, f"{self.found.machine.name}-calibrated", self.measured)

    def write(self, out: str | Path) -> Path:
        """Write a profile based on the one it started from; an existing file is not overwritten."""
        if not self.base:
            raise UsageError(
                f"{self.found.machine.name} was given as a loaded machine that is not shipped, so the profile cannot "
                "say what it lies over; give the path of its profile"
            )
        path = calibrated_profile.free(out, "out")
        write_new(path, calibrated_profile.profile(self.found, self.base, path, self.measured))
        return path


def _render() -> ModuleType:
    from perfmodel_cli.render import answers  # noqa: PLC0415 - Rich is slow to load, and not part of the library

    return answers
