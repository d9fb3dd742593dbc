"""Results of runs: one JSON object per line, written to disk before the next run starts."""

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from perfmodel.errors import PerfmodelError
from perfmodel.launch.processes.experiment import Experiment
from perfmodel.records import OK, Record, json_lines

SCHEMA = 1


def is_number(value: Any) -> bool:
    """Whether a JSON value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_rate(value: Any) -> bool:
    return value is None or is_number(value)


def _are_losses(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_rate, value))


def _is_communication(value: Any) -> bool:
    """Whether a value is the record of communication: figures by operation, then axis."""
    try:
        figures = [entry for axes in value.values() for entry in axes.values()]
        return all(is_number(entry[name]) for entry in figures for name in ("calls", "bytes", "seconds"))
    except (AttributeError, KeyError, TypeError):
        return False


# What the record of a successful run must contain, besides the settings of the run.
_MEASURED: Mapping[str, Callable[[Any], bool]] = MappingProxyType(
    {
        "backend": _is_text,
        "communication": _is_communication,
        "dtype": _is_text,
        "hardware": _is_text,
        "losses": _are_losses,
        "memory_B": is_number,
        "model_flops_utilization": _is_rate,
        "step_time_min_s": is_number,
        "step_time_s": is_number,
        "tokens_per_s": is_number,
    }
)


@dataclass(frozen=True, slots=True)
class Kept:
    """The content of a file: its records with their line numbers, and a sentence for each truncated line."""

    records: tuple[Record, ...]
    problems: tuple[str, ...]
    lines: tuple[int, ...] = ()

    def answer(self, experiment: Experiment) -> Record | None:
        """The latest successful record of exactly this run."""
        found = (one for one in reversed(self.records) if _is_good(one) and experiment.answered_by(one))
        return next(found, None)


def _is_good(record: Record) -> bool:
    """Whether a run completed, and its record has all that is shown of it."""
    ended = record["status"] == OK and record.get("schema") == SCHEMA
    return ended and all(name in record and good(record[name]) for name, good in _MEASURED.items())


def read(path: Path) -> Kept:
    """The records of a file; none if there is no file. A line that was truncated while it was written is skipped."""
    if path.exists() and not (path.is_file() or path.is_dir()):  # reading a device may never end
        raise PerfmodelError(f"{path} is a device or a pipe; results are kept in a file")
    try:
        content = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise PerfmodelError(f"{path} cannot be read: {error.strerror}") from None
    records, numbers, problems = [], [], []
    for number, line, record in json_lines(content):
        if record is not None and "status" in record:
            records.append(record)
            numbers.append(number)
        elif line.startswith(b"{"):
            problems.append(f"{path}:{number}: a line that was cut off as it was written is skipped")
        else:
            raise PerfmodelError(f"{path}:{number} is no result of perfmodel run; wanted one JSON object per line")
    return Kept(tuple(records), tuple(problems), tuple(numbers))


def loss_text(loss: float | None) -> str:
    """A loss as text; None in JSON stands for a number that is not finite."""
    return "not finite" if loss is None else f"{loss:.4f}"


def append(path: Path, record: Mapping[str, Any]) -> None:
    """Add a line, and return when it is on disk. If the file ends in a truncated line, that line is ended first."""
    text = json.dumps(record, allow_nan=False) + "\n"
    try:
        with path.open("ab+") as file:
            if file.tell() and _last_byte(file.fileno(), file.tell()) != b"\n":
                text = f"\n{text}"
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise PerfmodelError(f"{path} cannot be written: {error.strerror}") from None


def _last_byte(descriptor: int, size: int) -> bytes:
    return os.pread(descriptor, 1, size - 1)


def check_writable(path: Path) -> None:
    """Raise before anything is run if its results could not be written."""
    try:
        with path.open("ab"):
            pass
    except OSError as error:
        raise PerfmodelError(f"{path} cannot be written: {error.strerror}") from None
