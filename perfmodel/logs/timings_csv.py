"""Times of collectives from a CSV file of documented columns."""

import csv
import re
from collections.abc import Mapping
from types import MappingProxyType

from perfmodel.errors import FileProblems, PerfmodelError, nearest
from perfmodel.logs.samples import (
    Log,
    Problem,
    RankGroup,
    Sample,
    Told,
    check_amounts,
    operation_named,
    time_from_bandwidth,
    traffic,
)
from perfmodel.machines.collective_times import Operation
from perfmodel.units import count, parse, show

COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "operation": "all-gather, reduce-scatter or all-reduce, also spelled all_gather or AllGather",
        "nodes": "nodes that the group spans",
        "ranks": "members of the group, all nodes together",
        "ranks_per_node": "instead: members in each node",
        "inner": "stride of the group where all such groups talked at once; empty: 1",
        "size": "bytes that an all-gather ends with, or a reduction begins with",
        "time": "time of one call",
        "algbw": "instead of time, or beside it: size / time",
        "busbw": "instead of time, or beside it: (n-1)/n size / time, twice that for an all-reduce",
    }
)
_UNITS = {"size": "B", "time": "s", "algbw": "B/s", "busbw": "B/s"}
_HEADED = re.compile(r"\s*([A-Za-z_]+?)\s*(?:[(\[]\s*([A-Za-zµ/]+)\s*[)\]]|_(us|ms|s|B|KiB|MiB|GiB|kB|MB|GB))?\s*")
_MOST = 1 << 20
_AGREE = 0.02  # by which a row's time and bandwidth may differ through rounding


def read(text: str, file: str, told: Told) -> Log:
    """Every sample of the text; what is dropped is named with its line."""
    rows = csv.reader(text.split("\n"), strict=False)
    samples: list[Sample] = []
    problems: list[Problem] = []
    headed: dict[str, tuple[int, str]] | None = None
    seen: dict[tuple[str, ...], int] = {}
    try:
        for row in rows:
            cells = tuple(cell.strip() for cell in row)
            if not any(cells) or cells[0].startswith("#"):
                continue
            if headed is None:
                headed = _headed(cells, f"{file}:{rows.line_num}")
                continue
            if seen.setdefault(cells, rows.line_num) != rows.line_num:
                problems.append(Problem(file=file, line=rows.line_num, text=f"the same row as in line {seen[cells]}"))
                continue
            try:
                samples.append(_sample(_Row(headed, cells), file, rows.line_num, told))
            except PerfmodelError as error:
                problems.append(Problem(file=file, line=rows.line_num, text=str(error)))
    except csv.Error as error:
        problems.append(Problem(file=file, line=rows.line_num, text=f"the rest is no CSV: {error}"))
    return Log(tuple(samples), tuple(problems))


def _headed(cells: tuple[str, ...], where: str) -> dict[str, tuple[int, str]]:
    """Place and unit of each column; raises where columns that a row needs are missing."""
    found: dict[str, tuple[int, str]] = {}
    for place, cell in enumerate(cells):
        match = _HEADED.fullmatch(cell)
        name = match[1].lower() if match else cell
        if name not in COLUMNS or match is None:
            raise FileProblems(where, [f"{where}: the column {cell!r} is unknown ({nearest(name, list(COLUMNS))})"])
        if name in found:
            raise FileProblems(where, [f"{where}: the column {name} is there twice"])
        unit = match[2] or match[3] or ""
        if unit:
            parse(f"1 {unit}", _UNITS.get(name, "1"))
        found[name] = place, unit
    for names in (("size",), ("ranks", "ranks_per_node"), ("time", "busbw", "algbw")):
        if not set(names) & set(found):
            raise FileProblems(where, [f"{where}: no column {' or '.join(names)}"])
    return found


class _Row:
    """The cells of a row by the names of their columns."""

    def __init__(self, headed: Mapping[str, tuple[int, str]], cells: tuple[str, ...]) -> None:
        if len(cells) > 1 + max(place for place, _unit in headed.values()):
            raise PerfmodelError(f"the row has {len(cells)} cells, its heading {len(headed)}")
        self._headed, self._cells = headed, cells

    def text(self, name: str) -> str:
        place = self._headed[name][0] if name in self._headed else len(self._cells)
        return self._cells[place] if place < len(self._cells) else ""

    def whole(self, name: str, otherwise: int | None) -> int | None:
        text = self.text(name)
        value = count(text, _MOST) if text else otherwise
        if text and value is None:
            raise PerfmodelError(f"{name} is {text!r}, wanted a whole number from 1 to {_MOST}")
        return value

    def amount(self, name: str) -> float | None:
        """A number in SI, with its unit in the cell, the heading, or both alike; None where the cell is empty."""
        text = self.text(name)
        if not text:
            return None
        unit = self._headed[name][1]
        bare = re.fullmatch(r"[\d.eE+-]+", text)
        if bare and not unit:
            raise PerfmodelError(f"{name} {text!r} has no unit; write it behind the number, or as {name} (unit) on top")
        if unit and not bare and text.lstrip("+-.eE0123456789 ") != unit:
            raise PerfmodelError(f"{name} {text!r} is not in {unit}, as its column says")
        return parse(f"{text} {unit}" if bare else text, _UNITS[name])


def _sample(row: _Row, file: str, line: int, told: Told) -> Sample:
    named = operation_named(row.text("operation"))
    operation = named or told.operation
    if row.text("operation") and named is None:
        raise PerfmodelError(
            f"operation is {row.text('operation')!r}; tables are of all-gather, reduce-scatter, all-reduce"
        )
    if operation is None:
        raise PerfmodelError("the row names no operation; add a column, or say it with --operation")
    group, size = _group(row, told), row.amount("size")
    if size is None:
        raise PerfmodelError("the row has no size")
    time = _time(row, operation, group, size)
    check_amounts(size, time)
    return Sample(operation=operation, group=group, size=size, time=time, file=file, line=line)


def _group(row: _Row, told: Told) -> RankGroup:
    nodes = row.whole("nodes", told.nodes) or 1
    each, ranks = row.whole("ranks_per_node", told.ranks), row.whole("ranks", None)
    if each is None:
        if ranks is None or ranks % nodes:
            raise PerfmodelError(f"{ranks or 'no'} ranks on {nodes} nodes: wanted the same number on each")
        each = ranks // nodes
    if ranks not in (None, nodes * each):
        raise PerfmodelError(f"{ranks} ranks are not {each} on each of {nodes} nodes")
    inner = row.whole("inner", None)
    return RankGroup(nodes=nodes, ranks=each, inner=inner or 1, idle=inner is None)


def _time(row: _Row, operation: Operation, group: RankGroup, size: float) -> float:
    """The time of a row, from its time or its bandwidths, which must agree."""
    times = {"time": row.amount("time")}
    algorithm, bus = row.amount("algbw"), row.amount("busbw")
    for name, rate in (("algbw", algorithm), ("busbw", bus)):
        if rate is not None and not rate > 0:
            raise PerfmodelError(f"{name} {row.text(name)!r} must be greater than 0")
    times["algbw"] = size / algorithm if algorithm else None
    times["busbw"] = float(time_from_bandwidth(operation, size, group.size, bus)) if bus else None
    given = {name: time for name, time in times.items() if time is not None}
    if not given:
        raise PerfmodelError("the row has neither time nor bandwidth")
    first, *others = given.items()
    for name, time in others:
        if not first[1] * (1 - _AGREE) <= time <= first[1] * (1 + _AGREE):
            sent = show(float(traffic(operation, size, group.size)), "B")
            told = f"{first[0]} means {show(first[1], 's')}, {name} {show(time, 's')}"
            raise PerfmodelError(f"{told} for {sent} through each link; they do not agree")
    return first[1]
