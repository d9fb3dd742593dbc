"""Text of nccl-tests and rccl-tests as samples: every layout from NCCL 1 to nccl-tests 2.18.

A row is size, count, type, then the reduction and root where there are any, then time, algbw, busbw and the errors,
once out of place and once in place. The size is that of the whole array: what an all-gather ends with, what a reduction
begins with (doc/PERFORMANCE.md), so a count is of elements of one rank for all-gather and reduce-scatter. By
definition algbw = size / time and busbw = traffic / time; a row whose columns contradict each other is dropped.
"""

import re

from perfmodel.errors import PerfmodelError
from perfmodel.logs.members import group_of
from perfmodel.logs.nccl_runs import TYPES, Run, mingled, runs
from perfmodel.logs.samples import (
    Group,
    Log,
    Place,
    Printed,
    Problem,
    Sample,
    Told,
    check_amounts,
    contradiction,
    operation_named,
    traffic,
)
from perfmodel.logs.text import lines, number
from perfmodel.timings import Operation
from perfmodel.units import parse

_ROW = re.compile(
    rf"(?P<size>\d{{1,20}})\s+(?P<count>\d{{1,20}})\s+(?:{TYPES})\s+(?:(?P<redop>[a-z]+)\s+)?(?P<results>.*)"
)
_PLACES: tuple[Place, Place] = ("out-of-place", "in-place")
_GIGABYTE = parse("1 GB/s", "B/s")
_RESULTS = 4  # time, algbw, busbw, errors


def read(text: str, file: str, told: Told) -> Log:
    """Every sample of a log's text; what is dropped is named with its line."""
    found, facts = runs(lines(text))
    samples: list[Sample] = []
    problems: list[Problem] = []
    mixed = {run.line for run in mingled(found)}
    for run in found:
        try:
            _check(run, mixed=run.line in mixed)
            _take(run, file, told, samples, problems)
        except PerfmodelError as error:
            problems.append(Problem(file, run.line, str(error), len(run.rows) + len(run.damaged)))
    return Log(tuple(samples), tuple(sorted(problems, key=lambda problem: problem.line)), facts)


def _take(run: Run, file: str, told: Told, samples: list[Sample], problems: list[Problem]) -> None:
    operation, group = _operation(run, told), _group(run, told)
    problems += [Problem(file, line, "a row that is damaged or mixed with other output") for line in run.damaged]
    seen: dict[str, int] = {}
    for line, row in run.rows:
        if seen.setdefault(row, line) != line:
            problems.append(Problem(file, line, f"the same row as in line {seen[row]}"))
            continue
        try:
            results = _results(row, run, operation, group)
        except PerfmodelError as error:
            problems.append(Problem(file, line, str(error)))
        else:
            samples += [Sample(operation, group, size, time, file, line, place) for size, time, place in results]
    if not run.ends:
        problems.append(Problem(file, run.line, "the run has no end; its rows so far are used", 0))


def _check(run: Run, *, mixed: bool) -> None:
    """Refuse a run of whose rows nothing is known."""
    if mixed:
        raise PerfmodelError("this run and the one before it wrote at once, so its rows may be either's")
    if not run.heading:
        raise PerfmodelError("rows without a heading, so their columns are unknown")
    if "cputime" in run.heading:
        raise PerfmodelError("the times are of the CPU (-C 1), not of the call")
    if run.failed and "#wrong" not in run.heading:
        raise PerfmodelError("the run found wrong results, and does not say in which rows")


def _operation(run: Run, told: Told) -> Operation:
    """The operation that the log names, or else the user."""
    named = operation_named(run.name)
    if run.name and named is None:
        raise PerfmodelError(f"the run is of {run.name}; tables are of all-gather, reduce-scatter and all-reduce")
    if named and told.operation and named != told.operation:
        raise PerfmodelError(f"the run is of {named}, not of {told.operation} as --operation says")
    operation = named or told.operation
    if operation is None:
        raise PerfmodelError("the log does not say which operation ran; say so with --operation")
    if run.heading.startswith("#") and "bytes" in run.heading.split() and operation != "all-reduce":
        raise PerfmodelError(f"tests of NCCL 1 say nowhere what the size of their {operation} counts")
    return operation


def _group(run: Run, told: Told) -> Group:
    """The group that the log lists, or else its launcher's line, or else the user."""
    said, listed = told.group(), group_of(run.members) if run.members else run.group
    if said and listed and (said.nodes, said.ranks) != (listed.nodes, listed.ranks):
        raise PerfmodelError(f"the run is of {listed.words}, not of {said.words} as the options say")
    group = listed or said
    if group is None:
        raise PerfmodelError("the log lists no ranks; say how many with --nodes and --ranks-per-node")
    return group


def _results(row: str, run: Run, operation: Operation, group: Group) -> list[tuple[float, float, Place]]:
    """Size, time and place of each result of a row."""
    match = _ROW.fullmatch(row)
    words = match["results"].split() if match else []
    if len(words) == _RESULTS * run.repeats + 1 and re.fullmatch(r"-?\d{1,7}", words[0]):
        words = words[1:]  # the root
    if match is None or not words or len(words) != _RESULTS * run.repeats:
        raise PerfmodelError(f"the row has {len(words)} results, wanted {_RESULTS * run.repeats}: it is cut or mixed")
    reduces = (match["redop"] or "none") != "none"
    if reduces != (operation != "all-gather"):
        raise PerfmodelError(f"a row of {operation} {'with' if reduces else 'without'} a reduction")
    found: list[tuple[float, float, Place]] = []
    for place in range(run.repeats):
        time = _time(words[_RESULTS * place : _RESULTS * (place + 1)], float(match["size"]), run, (operation, group))
        if time is not None:
            found.append((float(match["size"]), time, _PLACES[place]))
    if not found:
        raise PerfmodelError("the row has no time")
    return found


def _time(words: list[str], size: float, run: Run, of: tuple[Operation, Group]) -> float | None:
    """The time of one result in s, checked against its bandwidths; None where there is none (N/A)."""
    operation, group = of
    if words[0] == "N/A":
        return None
    for name, word in zip(("time", "algbw", "busbw"), words, strict=False):
        if number(word) is None:
            raise PerfmodelError(f"the {name} {word!r} is no number")
    wrong = number(words[3])
    if words[3] != "N/A" and (wrong is None or ("#wrong" in run.heading and wrong > 0)):
        raise PerfmodelError(f"the results were wrong ({words[3]})")
    time = Printed.of(words[0], parse(f"1 {run.unit}", "s"))
    check_amounts(size, time.value)
    amounts = {"algbw": size, "busbw": float(traffic(operation, size, group.size))}
    for (name, amount), word in zip(amounts.items(), words[1:3], strict=True):
        told = contradiction(name, Printed.of(word, _GIGABYTE), amount, time)
        if told:
            raise PerfmodelError(f"{told} ({operation} of {group.size} ranks)" if name == "busbw" else told)
    return time.value
