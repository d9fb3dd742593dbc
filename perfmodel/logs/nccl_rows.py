"""One result of nccl-tests or rccl-tests in any format: operation, group, and time, checked by its bandwidths.

Text, JSON and CSV print the same numbers, so contradictions are found here for all of them.
"""

from collections.abc import Sequence

from perfmodel.errors import PerfmodelError
from perfmodel.logs.samples import (
    Printed,
    RankGroup,
    Told,
    check_amounts,
    contradiction,
    operation_named,
    traffic,
)
from perfmodel.logs.text import number
from perfmodel.machines.collective_times import Operation
from perfmodel.units import parse

_GIGABYTE = parse("1 GB/s", "B/s")
CPU_TIMES = "the times are of the CPU (-C 1), not of the call"


def operation_of(name: str, told: Told) -> Operation:
    """The operation that the file names, or else the one that the user names."""
    named = operation_named(name)
    if name and named is None:
        raise PerfmodelError(f"the run is of {name}; tables are of all-gather, reduce-scatter and all-reduce")
    if named and told.operation and named != told.operation:
        raise PerfmodelError(f"the run is of {named}, not of {told.operation} as --operation says")
    operation = named or told.operation
    if operation is None:
        raise PerfmodelError("the log does not say which operation ran; say so with --operation")
    return operation


def group_with(listed: RankGroup | None, told: Told) -> RankGroup:
    """The group that the file lists, or else the one that the user states; if both do, they must agree."""
    said = told.group()
    if said and listed and (said.nodes, said.ranks) != (listed.nodes, listed.ranks):
        raise PerfmodelError(f"the run is of {listed.words}, not of {said.words} as the options say")
    group = listed or said
    if group is None:
        raise PerfmodelError("the log lists no ranks; say how many with --nodes and --ranks-per-node")
    return group


def check_reduction(reduction: str, operation: Operation) -> None:
    """Refuse a row whose reduction does not belong to its operation."""
    reduces = reduction != "none"
    if reduces != (operation != "all-gather"):
        raise PerfmodelError(f"a row of {operation} {'with' if reduces else 'without'} a reduction")


def time_of(
    words: Sequence[str], size: float, of: tuple[Operation, RankGroup], unit: str = "us", *, counted: bool = True
) -> float | None:
    """The time in s of a result that prints time, algbw, busbw and errors; None where it has no time (N/A).

    `counted`: the errors are a count of wrong elements, not the largest difference.
    """
    operation, group = of
    if words[0] == "N/A":
        return None
    for name, word in zip(("time", "algbw", "busbw"), words, strict=False):
        if number(word) is None:
            raise PerfmodelError(f"the {name} {word!r} is no number")
    wrong = number(words[3])
    if words[3] != "N/A" and (wrong is None or (counted and wrong > 0)):
        raise PerfmodelError(f"the results were wrong ({words[3]})")
    time = Printed.of(words[0], parse(f"1 {unit}", "s"))
    check_amounts(size, time.value)
    amounts = {"algbw": size, "busbw": float(traffic(operation, size, group.size))}
    for (name, amount), word in zip(amounts.items(), words[1:3], strict=True):
        told = contradiction(name, Printed.of(word, _GIGABYTE), amount, time)
        if told:
            raise PerfmodelError(f"{told} ({operation} of {group.size} ranks)" if name == "busbw" else told)
    return time.value
