"""The file of rccl-tests (-x, --output_file) as samples: JSON, or CSV with -Z csv.

A row is one result: collective, size of the whole array in bytes, type, reduction, and whether it was in place. Then
follow time (us), algorithm and bus bandwidth (GB/s, 10^9), all with six decimals, and the count of wrong elements,
which is "N/A" if nothing was checked. Without MPI a row has `gpus`, the devices of the one process. With MPI, `ranks`
counts the processes of the job, and `ranksPerNode` those of one group, on whichever nodes they are. `nodes` is the
first divided by the second, so it is the number of concurrent groups (NCCL_TESTS_SPLIT). The number of nodes is not in
the file. In CSV the heading may lack the column `nodes` that its rows have. JSON is one list, or one object per line
without commas. Source: ROCm/rccl-tests, README.md at 07e3a21, src/common.cpp at 233482b, src/common.cu at c0eac93
(older); ROCm/rocm-systems, projects/rccl-tests/src/common.cu at 032d8f6.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perfmodel.errors import PerfmodelError
from perfmodel.logs.damaged_json import Lines, objects
from perfmodel.logs.nccl_rows import check_reduction, group_with, operation_of, time_of
from perfmodel.logs.samples import Log, Place, Problem, RankGroup, Sample, Told
from perfmodel.logs.text import number
from perfmodel.machines.collective_times import Operation
from perfmodel.units import count

_OBJECT = re.compile(r'\{\s*"(?:numCycle|name)"\s*:')
_HEADED = ("numcycle", "collective")  # the first column, in lower case
_PLACES: Mapping[str, Place] = {"0": "out-of-place", "1": "in-place"}
_HEAD = ("name", "ranks", "rankspernode", "gpusperrank", "gpus")  # what is the same in all rows of a run
_MOST = 1 << 20


@dataclass(frozen=True, slots=True)
class _Row:
    """One result by the lower-case names of its columns, or what is wrong with its text."""

    line: int
    holds: Mapping[str, str]
    problem: str = ""

    @property
    def head(self) -> tuple[str, ...]:
        return tuple(self.holds.get(name, "") for name in _HEAD)


def read(text: str, file: str, told: Told) -> Log:
    """Every sample of a file; what is dropped is named with its line."""
    rows = list(_objects(text) if text.lstrip().startswith(("[", "{")) else _cells(text))
    problems = [Problem(file=file, line=row.line, text=row.problem) for row in rows if row.problem]
    if text.lstrip().startswith("[") and not text.rstrip().endswith("]"):
        problems.append(Problem(file=file, line=1, text="the list has no end; its results so far are used", rows=0))
    by_head: dict[tuple[str, ...], list[_Row]] = {}
    for row in rows:
        if not row.problem:
            by_head.setdefault(row.head, []).append(row)
    samples: list[Sample] = []
    for alike in by_head.values():
        try:
            of = operation_of(alike[0].holds.get("name", ""), told), _group(alike[0].holds, told)
        except PerfmodelError as error:
            problems.append(Problem(file=file, line=alike[0].line, text=str(error), rows=len(alike)))
        else:
            _take(alike, of, file, samples, problems)
    samples.sort(key=lambda sample: sample.line)
    return Log(tuple(samples), tuple(sorted(problems, key=lambda problem: problem.line)))


def _objects(text: str) -> Iterator[_Row]:
    """The rows of JSON."""
    lines = Lines(text)
    for piece in objects(text, _OBJECT):
        holds = piece.holds or {}
        words = {name.lower(): word for name, word in holds.items() if isinstance(word, str)}
        yield _Row(lines.at(piece.start), words, "" if piece.holds else "a result that is cut or damaged")


def _cells(text: str) -> Iterator[_Row]:
    """The rows of CSV, each in a line of its own."""
    names: list[str] = []
    for line, row in enumerate(text.split("\n"), start=1):
        try:
            cells = [cell.strip() for cell in next(csv.reader([row], skipinitialspace=True), [])]
        except csv.Error as error:
            yield _Row(line, {}, f"the row is no CSV: {error}")
            continue
        if cells and cells[0].lower() in _HEADED:
            names = [{"collective": "name", "#wrong": "wrong"}.get(cell.lower(), cell.lower()) for cell in cells]
        elif any(cells):
            names = _completed(names, len(cells))
            short = f"the row is cut or mixed: {len(cells)} cells, wanted {len(names)}"
            same = len(cells) == len(names)
            yield _Row(line, dict(zip(names, cells, strict=False)) if same else {}, "" if same else short)


def _completed(names: list[str], cells: int) -> list[str]:
    """The names of the columns, plus `nodes` where a row shows that the heading lacks it."""
    if cells != len(names) + 1 or "ranks" not in names or "nodes" in names:
        return names
    return [*names[: names.index("ranks")], "nodes", *names[names.index("ranks") :]]


def _group(holds: Mapping[str, str], told: Told) -> RankGroup:
    """The group of a run, with its size from the file; its nodes are one for a single process, else the user's."""
    if "gpus" in holds:
        return group_with(RankGroup(nodes=1, ranks=_count(holds, "gpus")), told)
    ranks, together, each = (_count(holds, name) for name in ("ranks", "rankspernode", "gpusperrank"))
    if ranks != together:
        text = f"{ranks} ranks in groups of {together} side by side (NCCL_TESTS_SPLIT)"
        raise PerfmodelError(f"{text}: which of them a group had the file does not say; import the text output")
    group = told.group()
    if group is None:
        text = f"the file says that {together * each} devices took part, but not on how many nodes"
        raise PerfmodelError(f"{text} (its `nodes` counts groups); say so with --nodes and --ranks-per-node")
    if group.size != together * each:
        raise PerfmodelError(f"the run is of {together * each} devices, not of {group.words} as the options say")
    return group


def _count(holds: Mapping[str, str], name: str) -> int:
    value = count(holds.get(name, ""), _MOST)
    if value is None:
        raise PerfmodelError(f"{name} is {holds.get(name, '')!r}, wanted a whole number from 1 to {_MOST}")
    return value


def _take(
    rows: list[_Row], of: tuple[Operation, RankGroup], file: str, samples: list[Sample], problems: list[Problem]
) -> None:
    seen: dict[tuple[str, ...], int] = {}
    for row in rows:
        twin = seen.setdefault(tuple(row.holds.values()), row.line)
        if twin != row.line:
            problems.append(Problem(file=file, line=row.line, text=f"the same row as in line {twin}"))
            continue
        try:
            samples.append(_sample(row, of, file))
        except PerfmodelError as error:
            problems.append(Problem(file=file, line=row.line, text=str(error)))


def _sample(row: _Row, of: tuple[Operation, RankGroup], file: str) -> Sample:
    words = [row.holds.get(name, "") for name in ("time", "algbw", "busbw", "wrong")]
    size, place = number(row.holds.get("size", "")), _PLACES.get(row.holds.get("inplace", ""))
    if size is None or place is None:
        wanted = "wanted a number, and 0 or 1"
        raise PerfmodelError(f"size {row.holds.get('size')!r}, inPlace {row.holds.get('inplace')!r}: {wanted}")
    check_reduction(row.holds.get("redop", ""), of[0])
    time = time_of(words, size, of)
    if time is None:
        raise PerfmodelError("the row has no time")
    operation, group = of
    return Sample(operation=operation, group=group, size=size, time=time, file=file, line=row.line, place=place)
