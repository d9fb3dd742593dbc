"""Text of nccl-tests and rccl-tests as samples: every layout from NCCL 1 to nccl-tests 2.18.

A row is size, count, type, then the reduction and root where there are any, then time, algbw, busbw and the errors,
once out of place and once in place. The heading may have more columns, none of which is needed: the spread of the
iterations (-I), bits that differ, a second clock, algorithm and protocol (-M), the time of day (-S). The size is that
of the whole array: what an all-gather ends with, what a reduction begins with (doc/PERFORMANCE.md), so for all-gather
and reduce-scatter the count is that of one rank's elements. By definition algbw = size / time and busbw = traffic /
time; a row whose columns contradict each other is dropped.
"""

import re

from perfmodel.errors import PerfmodelError
from perfmodel.logs.nccl_rows import CPU_TIMES, check_reduction, group_with, operation_of, time_of
from perfmodel.logs.nccl_runs import TYPES, Run, group_of, mingled, runs
from perfmodel.logs.samples import Log, Place, Problem, RankGroup, Sample, Told
from perfmodel.logs.text import lines
from perfmodel.machines.collective_times import Operation

_ROW = re.compile(
    rf"(?P<size>\d{{1,20}})\s+(?P<count>\d{{1,20}})\s+(?:{TYPES})\s+(?:(?P<redop>[a-z]+)\s+)?(?P<results>.*)"
)
_ERRORS = ("#wrong", "error", "res")


def read(text: str, file: str, told: Told) -> Log:
    """Every sample of a log's text; what is dropped is named with its line."""
    found, facts = runs(lines(text))
    samples: list[Sample] = []
    problems: list[Problem] = []
    mixed = {run.line for run in mingled(found)}
    whole: dict[tuple[str, ...], int] = {}
    for run in found:
        try:
            _check(run, mixed=run.line in mixed)
            _refuse_copy(run, whole.setdefault(tuple(row for _, row in run.rows), run.line))
            _take(run, file, told, samples, problems)
        except PerfmodelError as error:
            problems.append(Problem(file=file, line=run.line, text=str(error), rows=len(run.rows) + len(run.damaged)))
    return Log(tuple(samples), tuple(sorted(problems, key=lambda problem: problem.line)), facts)


def _take(run: Run, file: str, told: Told, samples: list[Sample], problems: list[Problem]) -> None:
    operation = _operation(run, told)
    group = group_with(group_of(run.members) if run.members else run.group, told)
    problems += [
        Problem(file=file, line=line, text="a row that is damaged or mixed with other output") for line in run.damaged
    ]
    seen: dict[str, int] = {}
    for line, row in run.rows:
        if seen.setdefault(row, line) != line:
            problems.append(Problem(file=file, line=line, text=f"the same row as in line {seen[row]}"))
            continue
        try:
            results = _results(row, run, operation, group)
        except PerfmodelError as error:
            problems.append(Problem(file=file, line=line, text=str(error)))
        else:
            samples += [
                Sample(operation=operation, group=group, size=size, time=time, file=file, line=line, place=place)
                for size, time, place in results
            ]
    if not run.ends:
        problems.append(Problem(file=file, line=run.line, text="the run has no end; its rows so far are used", rows=0))


def _check(run: Run, *, mixed: bool) -> None:
    """Refuse a run whose rows cannot be interpreted."""
    if mixed:
        raise PerfmodelError("this run and the one before it wrote at once, so its rows may be either's")
    if not run.heading:
        raise PerfmodelError("rows without a heading, so their columns are unknown")
    if "cputime" in run.heading:
        raise PerfmodelError(CPU_TIMES)
    if run.failed and "#wrong" not in run.heading:
        raise PerfmodelError("the run found wrong results, and does not say in which rows")


def _refuse_copy(run: Run, first: int) -> None:
    """Refuse rows that an earlier run had: only copies agree in every digit of their times."""
    if run.rows and first != run.line:
        raise PerfmodelError(f"the same rows as those of the run in line {first}")


def _operation(run: Run, told: Told) -> Operation:
    operation = operation_of(run.name, told)
    if run.heading.startswith("#") and "bytes" in run.heading.split() and operation != "all-reduce":
        raise PerfmodelError(f"tests of NCCL 1 say nowhere what the size of their {operation} counts")
    return operation


def _results(row: str, run: Run, operation: Operation, group: RankGroup) -> list[tuple[float, float, Place]]:
    """Size, time and place of each result of a row."""
    match, columns = _ROW.fullmatch(row), run.columns
    words = match["results"].split() if match else []
    wanted = len(columns) + ("timestamp" in columns)  # a date and a time
    if len(words) == wanted + 1 and re.fullmatch(r"-?\d{1,7}", words[0]):
        words = words[1:]  # the root
    if match is None or not words or len(words) != wanted:
        told = f"{len(words)} numbers after its kind, wanted {wanted}, or one more with a root"
        raise PerfmodelError(f"the row is cut or mixed: {told}")
    check_reduction(match["redop"] or "none", operation)
    found: list[tuple[float, float, Place]] = []
    starts = [place for place, name in enumerate(columns) if name == "time"]
    for place, start in zip(run.places, starts, strict=False):
        figures = _figures(columns[start:], words[start:])
        counted = "#wrong" in columns
        time = time_of(figures, float(match["size"]), (operation, group), run.unit, counted=counted)
        if time is not None:
            found.append((float(match["size"]), time, place))
    if not found:
        raise PerfmodelError("the row has no time")
    return found


def _figures(columns: list[str], words: list[str]) -> list[str]:
    """Time, algbw, busbw and errors of the result that begins here: the first column of each name."""
    named = dict(reversed(list(zip(columns, words, strict=False))))
    errors = next((named[name] for name in _ERRORS if name in named), "")
    return [*(named.get(name, "") for name in ("time", "algbw", "busbw")), errors]
