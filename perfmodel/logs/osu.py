"""Text of the OSU micro-benchmarks as samples: osu_allreduce, osu_allgather, osu_reduce_scatter and its _block.

Their time is the mean over the ranks; -f also prints the minimum and maximum. Their size is what one rank contributes:
the whole array for the reductions, one rank's part for osu_allgather, which is multiplied by the ranks here. The block
variant of osu_reduce_scatter gives each rank the same number of elements and omits the remainder. A size of which it
omits more than a hundredth is dropped. The text states the number of ranks only if it has a launcher's command line.
All other benchmarks are refused by the name in their title: vectors (Allgatherv), Non-blocking and Neighborhood ones,
Persistent ones, those of Python and Java (OMB in place of OSU). Source: OSU micro-benchmarks 7.5 and its successor of
2025, c/mpi/collective: titles, omb_init_irregular_args.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from perfmodel.errors import PerfmodelError
from perfmodel.logs.samples import Log, Problem, RankGroup, Sample, Told, check_amounts, operation_named
from perfmodel.logs.text import launched, lines, number
from perfmodel.machines.collective_times import Operation
from perfmodel.units import parse

_TITLE = re.compile(r"#?\s*OSU\s+(\S+)\s+(.+?)\s+Latency Test(?:\s+(v\S+))?.*")
_OTHER_TITLE = re.compile(r"#?\s*(?:OSU\s+\S+|OMB\S*)\s+(.+?)\s+Test.*")
_DATATYPE = re.compile(r"#\s*Datatype:\s*(\S+?)\.?")
_HEADING = re.compile(r"#?\s*Size\s+Avg Lat(?:ency)?\s*\((us|ms|s)\)(.*)")
_SPREAD = re.compile(r"\s*Min Lat(?:ency)?\s*\(\w+\)\s+Max Lat(?:ency)?\s*\(\w+\)")
_BLOCK = "Reduce_scatter_block"
_ELEMENT = 4  # bytes of MPI_INT, the default of reductions, and of MPI_FLOAT; MPI_CHAR has one
_LEFT_OVER = 0.01  # remainder of an array over its ranks
_ROUNDING = 0.01  # of the time's last printed digit, so that rounding puts no mean above its maximum


@dataclass(slots=True, kw_only=True)
class _Run:
    line: int
    name: str
    group: RankGroup | None
    unit: str = ""
    spread: bool = False
    element: int = _ELEMENT
    problem: str = ""
    rows: int = 0


def read(text: str, file: str, told: Told) -> Log:
    """Every sample of a log's text; what is dropped is named with its line."""
    run: _Run | None = None
    group: RankGroup | None = None
    samples: list[Sample] = []
    problems: list[Problem] = []
    facts: dict[str, None] = {}
    for place, line in enumerate(lines(text), start=1):
        group = launched(line) or group
        title = _TITLE.fullmatch(line) or _OTHER_TITLE.fullmatch(line)
        if title is not None:
            _close(run, file, problems)
            run = _begin(place, title, group, told)
            group = None
            facts[line.lstrip("# ")] = None
        elif heading := _HEADING.fullmatch(line):
            run = run or _Run(
                line=place, name="", group=group, problem="rows without a title, so their operation is unknown"
            )
            run.unit, run.spread = heading[1], bool(_SPREAD.match(heading[2]))
        elif run is not None and (datatype := _DATATYPE.fullmatch(line)):
            run.element = 1 if datatype[1].endswith("CHAR") else _ELEMENT
        elif run is not None and number(line.split(maxsplit=1)[0] if line else "") is not None:
            _take(run, (place, line), file, told, samples, problems)
    _close(run, file, problems)
    return Log(tuple(samples), tuple(sorted(problems, key=lambda problem: problem.line)), tuple(facts))


def _begin(line: int, title: re.Match[str], group: RankGroup | None, told: Told) -> _Run:
    name = title[2] if title.re is _TITLE else title[1]
    operation, said = _operation(name), told.group()
    problem = ""
    if operation is None or title.re is not _TITLE:
        problem = f"the run is of {name}; tables are of all-gather, reduce-scatter and all-reduce"
    elif told.operation and operation != told.operation:
        problem = f"the run is of {operation}, not of {told.operation} as --operation says"
    elif group and said and group != said:
        problem = f"the run is of {group.words}, not of {said.words} as the options say"
    elif group is None and said is None:
        problem = "the log does not say how many ranks there are; say so with --nodes and --ranks-per-node"
    return _Run(line=line, name=name, group=group or said, problem=problem)


def _operation(name: str) -> Operation | None:
    return "reduce-scatter" if name == _BLOCK else operation_named(name)


def _close(run: _Run | None, file: str, problems: list[Problem]) -> None:
    """Report the rows of a run that cannot be used."""
    if run is not None and run.problem and run.rows:
        problems.append(Problem(file=file, line=run.line, text=run.problem, rows=run.rows))


def _take(
    run: _Run, row: tuple[int, str], file: str, told: Told, samples: list[Sample], problems: list[Problem]
) -> None:
    run.rows += 1
    operation = _operation(run.name) or told.operation
    if run.problem or operation is None or run.group is None:
        return
    line, text = row
    try:
        for size, time in _amounts(text, run, operation, run.group):
            samples.append(Sample(operation=operation, group=run.group, size=size, time=time, file=file, line=line))
    except PerfmodelError as error:
        problems.append(Problem(file=file, line=line, text=str(error)))


def _amounts(text: str, run: _Run, operation: Operation, group: RankGroup) -> Iterator[tuple[float, float]]:
    words = text.split()
    wanted = 4 if run.spread else 2
    if not run.unit:
        raise PerfmodelError("a row before its heading, so its unit is unknown")
    if len(words) < wanted:
        raise PerfmodelError(f"the row has {len(words)} columns, wanted {wanted} or more: it is cut")
    if words[-1].lower() == "fail":
        raise PerfmodelError("the results were wrong (Fail)")
    values = [number(word) for word in words[:wanted]]
    if None in values:
        raise PerfmodelError(f"{words[values.index(None)]!r} is no number")
    size, time, *spread = (value for value in values if value is not None)
    if spread and not spread[0] * (1 - _ROUNDING) <= time <= spread[1] * (1 + _ROUNDING):
        raise PerfmodelError(f"the mean {time:g} is not between least and greatest, {spread[0]:g} and {spread[1]:g}")
    if run.name == _BLOCK:
        _check_blocks(size, run.element, group.size)
    size *= group.size if operation == "all-gather" else 1
    time *= parse(f"1 {run.unit}", "s")
    check_amounts(size, time)
    yield size, time


def _check_blocks(size: float, element: int, ranks: int) -> None:
    """Refuse a size of which equal blocks of whole elements omit too much."""
    sent = size // (element * ranks) * element * ranks
    if sent < size * (1 - _LEFT_OVER):
        raise PerfmodelError(f"{ranks} equal blocks of elements of {element} B are {sent:.0f} of the {size:.0f} B")
