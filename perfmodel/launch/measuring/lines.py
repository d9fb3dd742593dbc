"""The file beside the profile: one line per start of the command, which describes the machine, and one per result.

A line is written to disk before the next point is measured, so that an interrupted measurement can be continued.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfmodel.errors import PerfmodelError
from perfmodel.launch.measuring.points import Point, point_of
from perfmodel.launch.processes import results
from perfmodel.records import Record

START = "start"
# What must be the same for measurements to be combined.
_SAME = ("ranks", "devices_per_node", "device", "backend", "dtypes")


def file_beside(profile: Path) -> Path:
    """The file with the results of a profile.

    >>> file_beside(Path("my-cluster.yaml")).name
    'my-cluster.measured.jsonl'
    """
    return profile.with_name(f"{profile.name.removesuffix('.yaml').removesuffix('.yml')}.measured.jsonl")


@dataclass(slots=True)
class Lines:
    """All results of a file: the values of each point by round. `starts` are in the order of the file."""

    starts: list[Record] = field(default_factory=list)
    values: dict[Point, dict[int, dict[str, float]]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> "Lines":
        """Read a file; a missing file has no lines."""
        kept = results.read(path)
        found, problems = cls(), list(kept.problems)
        for line, record in zip(kept.lines, kept.records, strict=True):
            try:
                found.take(record, path)
            except (KeyError, TypeError, ValueError):
                problems.append(f"{path}:{line}: skipped, since it is damaged or not a result of machines measure")
        found.problems = tuple(problems)
        return found

    def take(self, record: Record, path: Path) -> None:
        """Add a line; raises ValueError or similar if it cannot be used."""
        if record.get("what") == START:
            if missing := [name for name in (*_SAME, "started") if name not in record]:
                raise KeyError(missing[0])
            if self.starts and (wrong := _differs(self.starts[0], record)):
                raise PerfmodelError(f"{path} holds measurements {wrong}; give another --out, or move both files away")
            self.starts.append(record)
            return
        point = point_of(record)
        if point is None:
            raise PerfmodelError(f"{path} holds a line of {record.get('what', 'something else')!r}, no measurement")
        values = dict(record["values"])
        if "seconds" not in values or not all(results.is_number(value) and value > 0 for value in values.values()):
            raise ValueError(values)
        self.values.setdefault(point, {})[int(record["round"])] = values

    @property
    def start(self) -> Record:
        """The measured machine, from the latest start."""
        return self.starts[-1]

    @property
    def dates(self) -> list[str]:
        """The days of the starts."""
        return list(dict.fromkeys(start["started"][:10] for start in self.starts))

    @property
    def count(self) -> int:
        """Results of all points in all rounds."""
        return sum(len(rounds) for rounds in self.values.values())

    def has(self, point: Point, number: int) -> bool:
        """Whether a point has been measured in a round."""
        return number in self.values.get(point, {})

    def median(self, point: Point, name: str = "seconds") -> float:
        """The median of a point over the rounds."""
        return statistics.median(values[name] for values in self.values[point].values())

    def least(self) -> dict[Point, float]:
        """The shortest time of one call of each measured point."""
        return {point: min(values["seconds"] for values in rounds.values()) for point, rounds in self.values.items()}


def check_same(lines: Lines, start: Record, path: Path) -> None:
    """Raise if a new measurement cannot be combined with those in the file."""
    if lines.starts and (wrong := _differs(lines.starts[0], start)):
        raise PerfmodelError(f"{path} holds measurements {wrong}; give another --out, or move both files away")


def _differs(first: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Why two starts cannot be combined, or ""."""
    for name in _SAME:
        if first[name] != other[name]:
            return f"with {name.replace('_', ' ')} {first[name]}, and this is {other[name]}"
    return ""
