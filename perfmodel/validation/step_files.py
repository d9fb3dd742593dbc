"""Files of measured steps: CSV or Parquet with the columns of `measured_steps`, or JSON lines of `perfmodel run`."""

import csv
import io
import json
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from perfmodel import frames
from perfmodel.errors import FileProblems, PerfmodelError
from perfmodel.machines.collective_times import Operation
from perfmodel.records import OK, Record, json_lines
from perfmodel.validation.measured_steps import COLUMNS, MeasuredStep, Reading, Timed, row_of, rows_of

_FRAME = "DataFrame"
_OPERATIONS: tuple[Operation, ...] = get_args(Operation)
_MARK = b"\xef\xbb\xbf"  # which some editors put before UTF-8 text
_MOST = sys.float_info.max
_RAN = ("backend", "hardware", "tune")  # settings that distinguish runs but have no column
_SWITCH = {True: "yes", False: "no"}


def read(path: Path, *, machine: str = "", model: str = "") -> Reading:
    """Read a file, runs that were repeated as one row each; raises where no row is good.

    `machine` and `model`, if given, stand for the columns of that name.
    """
    try:
        content = path.read_bytes().removeprefix(_MARK)
        given = {name: value for name, value in (("machine", machine), ("model", model)) if value}
        if content.startswith(frames.PARQUET):
            reading = rows_of(str(path), *frames.read_parquet(path), given=given)
        else:
            reader = _records if content.lstrip().startswith(b"{") else _table
            reading = reader(str(path), content, given)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise FileProblems(str(path), [f"{path} cannot be read: {reason}"]) from None
    return _joined_runs(reading)


def read_frame(frame: frames.Frame, *, machine: str = "", model: str = "") -> Reading:
    """Read a data frame with the columns of a file; a row's line is the one it would have as CSV."""
    given = {name: value for name, value in (("machine", machine), ("model", model)) if value}
    return _joined_runs(rows_of(_FRAME, *frames.cells(frame), given=given))


def _joined_runs(reading: Reading) -> Reading:
    """Runs that were repeated as one row each; raises where no row is good."""
    if not reading.rows:
        path = reading.path
        told = [f"{path}:{line}: {text}" for line, text in reading.problems]
        raise FileProblems(path, [*told, f"{path}: no row to compare"])
    return replace(reading, rows=medians(reading.rows))


def _table(path: str, content: bytes, given: Mapping[str, str]) -> Reading:
    lines = csv.reader(io.StringIO(content.decode(), newline=""))
    heads = [head.strip() for head in next(lines, [])]
    table = [(lines.line_num, cells) for cells in lines if any(cell.strip() for cell in cells)]
    return rows_of(path, heads, table, given=given)


def _records(path: str, content: bytes, given: Mapping[str, str]) -> Reading:
    """One JSON object per line; lines that are no result, or of a failed run, are reported and left out."""
    rows: list[MeasuredStep] = []
    problems: list[tuple[int, str]] = []
    seen: dict[str, int] = {}
    lines = list(json_lines(content))
    for line, text, found in lines:
        try:
            record = _good(text, found)
            first = seen.setdefault(json.dumps(record, sort_keys=True), line)
            timed = tuple(sorted(_timed(record.get("communication") or {}), key=lambda one: (one.operation, one.axis)))
            row = row_of(line, {**_cells(record), **given}, same_as=first, timed=timed)
            rows.append(replace(row, ran=tuple(f"{name} {record[name]}" for name in _RAN if name in record)))
        except PerfmodelError as error:
            problems.append((line, str(error)))
    return Reading(path=path, rows=tuple(rows), problems=tuple(problems), dropped=len(lines) - len(rows))


def _good(text: bytes, record: Record | None) -> Record:
    """The record, if its run succeeded."""
    if record is None:
        if text.lstrip().startswith(b"{"):
            raise PerfmodelError("no JSON object: cut off as it was written, or two in one line")
        raise PerfmodelError("no JSON object; wanted one per line, as perfmodel run writes them")
    status = record.get("status", OK)
    if status != OK:
        raise PerfmodelError(f"the run did not end well: {status}: {record.get('message', '')}")
    return record


def _cells(record: Mapping[str, Any]) -> dict[str, str]:
    """The columns that a record has, as text."""
    return {name: _text(name, record[name]) for name in COLUMNS if record.get(name) is not None}


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return _SWITCH[value]
    if not isinstance(value, (str, int, float)):
        raise PerfmodelError(f"{name} is {json.dumps(value)[:40]}, wanted text or a number")
    return value.strip() if isinstance(value, str) else repr(value)


def _timed(communication: Any) -> Iterator[Timed]:
    """The timed calls of a step by operation and axis."""
    for operation, axes in _entries(communication):
        if operation not in _OPERATIONS:
            raise PerfmodelError(f"communication names {operation!r}, none of {', '.join(_OPERATIONS)}")
        for axis, figures in _entries(axes):
            found = dict(_entries(figures))
            calls, buffers, seconds = (_positive(found, name, axis) for name in ("calls", "bytes", "seconds"))
            yield Timed(operation=cast(Operation, operation), axis=axis, calls=calls, buffers=buffers, seconds=seconds)


def _entries(value: Any) -> Any:
    if not isinstance(value, dict):
        raise PerfmodelError(f"communication holds {json.dumps(value)[:40]}, wanted calls, bytes and seconds")
    return value.items()


def _positive(figures: Mapping[str, Any], name: str, axis: str) -> float:
    value = figures.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= _MOST:
        raise PerfmodelError(f"communication over {axis} has {name} {value!r}, wanted a number greater than 0")
    return float(value)


def medians(rows: Iterable[MeasuredStep]) -> tuple[MeasuredStep, ...]:
    """One row for each run, where the first of its repetitions stood."""
    found: dict[MeasuredStep, list[MeasuredStep]] = {}
    for row in rows:
        found.setdefault(_run(row), []).append(row)
    return tuple(one[0] if len(one) == 1 else _joined(one) for one in found.values())


def _run(row: MeasuredStep) -> MeasuredStep:
    """All that a row states about its run, including the timed calls, and which figures it has."""
    return replace(
        row,
        line=0,
        step=row.step and 1.0,
        tokens_per_s_per_gpu=row.tokens_per_s_per_gpu and 1.0,
        memory=row.memory and 1.0,
        timed=tuple(replace(each, seconds=1.0) for each in row.timed),
    )


def _joined(rows: Sequence[MeasuredStep]) -> MeasuredStep:
    return replace(
        rows[0],
        step=_median([row.step for row in rows]),
        tokens_per_s_per_gpu=_median([row.tokens_per_s_per_gpu for row in rows]),
        memory=_median([row.memory for row in rows]),
        timed=tuple(map(_typical, *(row.timed for row in rows))),
        repetitions=len(rows),
    )


def _typical(*same: Timed) -> Timed:
    return replace(same[0], seconds=statistics.median(each.seconds for each in same))


def _median(values: Sequence[float | None]) -> float | None:
    """Median over rows that all have the figure, or all lack it."""
    given = [value for value in values if value is not None]
    return statistics.median(given) if given else None
