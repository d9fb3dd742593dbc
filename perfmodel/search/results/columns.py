"""The type of an answer's columns: key, unit and meaning, how the value is computed, and the tables that show it.

The columns themselves are declared in `layout_columns`, `result_columns` and `sweep_columns`. JSON, CSV, the tables of
the terminal, those of the report and docs/columns.md are all made from the declarations, so that a new column is one
entry there.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.records import Record
from perfmodel.search.scaling import Point
from perfmodel.step.prediction import Prediction
from perfmodel.step.throughput import Throughput, TrainingRun

Table: TypeAlias = Literal["ranking", "sweep", "report", "report of scaling"]
Kind: TypeAlias = Literal[
    "number",
    "count",
    "word",
    "grid",
    "order",
    "micro-batches",
    "time",
    "step",
    "memory",
    "share",
    "of capacity",
    "limit",
    "term",
]
"""How a cell is written: the terminal and the report each have one function for each of these."""

_KIND_OF_UNIT: Mapping[str, Kind] = {"s": "time", "B": "memory"}


@dataclass(frozen=True, slots=True)
class Context:
    """The properties of a whole table that its columns depend on.

    `orders`: how many orders of the ranks were searched; `capacity`: bytes of a device, where the table compares with
    them.
    """

    fidelity: str
    orders: int = 1
    capacity: float | None = None


def _always(_: Context) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a table shows a column: columns are in ascending order of `at`.

    `heading` and `kind` are the column's own unless given. `{capacity}` in a heading stands for that of a device in
    GiB. `parts`: keys of a column that holds several values, of which the cell shows the sum. `legend`: a sentence
    below the table. `when`: which tables show it.
    """

    table: Table
    at: float
    heading: str = ""
    kind: Kind | None = None
    parts: tuple[str, ...] = ()
    legend: str = ""
    when: Callable[[Context], bool] = _always


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: `value` takes the record of what it is computed from, an `ResultRow`, a `LayoutRow` or a `SweepRow`.

    The key ends in the unit, where there is one. `present`: whether a row has the key at all.
    """

    key: str
    heading: str
    unit: str = ""
    meaning: str
    value: Callable[[Any], Any]
    present: Callable[[Any], bool] = lambda _: True
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutRow:
    """A grid and how it is run."""

    job: Job
    layout: Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow(LayoutRow):
    """What the columns of a result are computed from.

    `prediction` and `throughput` are of one layout, or of many of which this is number `row`. `throughput` is None at
    paper fidelity; `training` is None where no number of tokens was given.
    """

    prediction: Prediction
    throughput: Throughput | None
    row: int | None = None
    training: TrainingRun | None = None

    def at(self, values: Any) -> float | None:
        """The figure of this row."""
        return at(values, self.row)

    @property
    def step(self) -> float | None:
        """Seconds of a step."""
        return self.at(self.prediction.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRow:
    """What the columns of one count of devices are computed from.

    `result`: its best grid as a record. `first`: tokens/s of a device at the first count that has an answer.
    """

    job: Job
    point: Point
    result: Record | None
    first: float | None = None

    @property
    def tokens_per_device(self) -> float | None:
        """Tokens/s of one device."""
        step = self.result["step_time_s"] if self.result else None
        return (self.point.batch or 0) * self.job.sequence / self.point.gpus / step if step else None


def at(values: Any, row: int | None) -> float | None:
    """The figure of one row, or the only one."""
    if values is None:
        return None
    return float(values[row]) if row is not None and np.ndim(values) else float(values)


def record_of(columns: Iterable[Column], source: Any) -> Record:
    """The values of all columns that are present, by key."""
    return {column.key: column.value(source) for column in columns if column.present(source)}


def places(columns: Iterable[Column], table: Table, context: Context) -> list[tuple[Column, Place]]:
    """The columns that a table shows, in order."""
    found = [
        (column, place) for column in columns for place in column.places if place.table == table and place.when(context)
    ]
    return sorted(found, key=lambda pair: pair[1].at)


def heading(column: Column, place: Place) -> str:
    """The heading of a column."""
    return place.heading or column.heading


def kind(column: Column, place: Place) -> Kind:
    """How a cell of a column is written."""
    return place.kind or _KIND_OF_UNIT.get(column.unit, "number")


def value(column: Column, place: Place, row: Mapping[str, Any]) -> Any:
    """What a cell shows of a row; None where the row has no such value."""
    found = row.get(column.key)
    return sum(found[part] for part in place.parts) if place.parts and found is not None else found
