"""Samples of any number of logs as the tables of a machine's profile: medians, spread, fitted lines."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from perfmodel.logs.line_fit import FittedLine, fit
from perfmodel.logs.samples import Log, Place, Problem, RankGroup, Sample, traffic
from perfmodel.machines.collective_times import Operation, TimingRow, Timings
from perfmodel.machines.domains import contained
from perfmodel.machines.machine import Machine
from perfmodel.units import show

Buffers = Literal["as-called", "out-of-place", "in-place", "both"]
# As AxoNN and perfmodel's launcher call them: an all-reduce in place, the others into a new buffer.
AS_CALLED: Mapping[Operation, Place] = MappingProxyType(
    {"all-gather": "out-of-place", "reduce-scatter": "out-of-place", "all-reduce": "in-place"}
)
_DISJOINT = ("mesh", "switch")  # fabrics on which the groups within a node share no links
_Key = tuple[Operation, int, int]  # operation, ranks per node, stride


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What is known about one operation in one group: medians by size, the widest spread, and the fitted line."""

    operation: Operation
    group: RankGroup
    medians: Mapping[float, float]
    samples: tuple[Sample, ...]
    spread: float
    line: FittedLine | None

    @property
    def outliers(self) -> tuple[Sample, ...]:
        """The samples that have no weight in the fit."""
        return tuple(self.samples[place] for place in self.line.outliers) if self.line else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """All parts, the tables made of them, and what was left out."""

    parts: tuple[Part, ...]
    tables: tuple[Timings, ...]
    problems: tuple[Problem, ...]
    used: int


def _twice(log: Log, seen: dict[tuple[object, ...], str]) -> str:
    """The earlier file with exactly these results, or "": only copies agree in every digit of their times."""
    results = tuple((one.operation, one.group, one.size, one.time, one.place) for one in log.samples)
    first = seen.get(results, "")
    if results:
        seen[results] = first or log.samples[0].file
    return first


def combine(logs: Iterable[Log], machine: Machine, source: str, buffers: Buffers = "as-called") -> Combined:
    """Tables of the machine from logs; `source` is the key that they cite."""
    problems: list[Problem] = []
    by_part: dict[tuple[_Key, RankGroup], list[Sample]] = {}
    seen: dict[tuple[object, ...], str] = {}
    for log in logs:
        problems += log.problems
        if first := _twice(log, seen):
            told = f"the same {len(log.samples)} results as in {first}"
            problems.append(
                Problem(file=log.samples[0].file, line=log.samples[0].line, text=told, rows=len(log.samples))
            )
            continue
        for sample in log.samples:
            if not _wanted(sample, buffers):
                continue
            group, reason = _on(sample.group, machine)
            if reason:
                problems.append(Problem(file=sample.file, line=sample.line, text=reason))
                continue
            key = (sample.operation, group.ranks, group.inner)
            by_part.setdefault((key, group), []).append(sample)
    parts = [_part(key[0], group, samples) for (key, group), samples in by_part.items()]
    parts.sort(key=lambda part: (part.operation, part.group.ranks, part.group.inner, part.group.nodes))
    tables = []
    for key in dict.fromkeys((part.operation, part.group.ranks, part.group.inner) for part in parts):
        mine = [part for part in parts if (part.operation, part.group.ranks, part.group.inner) == key]
        kept, left_out = _together(mine)
        problems += left_out
        if kept:
            tables.append(_table(kept, source))
    return Combined(
        parts=tuple(parts),
        tables=tuple(tables),
        problems=tuple(problems),
        used=sum(len(part.samples) for part in parts),
    )


def _wanted(sample: Sample, buffers: Buffers) -> bool:
    if not sample.place or buffers == "both":
        return True
    return sample.place == (AS_CALLED[sample.operation] if buffers == "as-called" else buffers)


def _on(group: RankGroup, machine: Machine) -> tuple[RankGroup, str]:
    """The group as the machine's tables count it, and why they cannot hold it ("" if they can)."""
    domain, devices = machine.domain, machine.node_devices
    if domain > devices:  # nodes of one fabric count as one; the nodes of a log are assumed to be neighbours
        if group.nodes * devices > domain:
            return group, f"{group.words}: which of them share a fabric of {domain} devices, the log does not say"
        group = dataclasses.replace(group, nodes=1, ranks=group.size)
    group = dataclasses.replace(group, idle=group.idle and group.ranks * group.inner < domain)
    fills = group.ranks * group.inner == domain or (group.ranks == 1 and group.inner % domain == 0)
    if group.nodes > 1 and not fills:
        return group, f"{group.words}: {machine.name} has {domain} devices per node, and no step leaves some idle"
    if group.nodes == 1 and not contained(inner=group.inner, size=group.ranks, domain=domain):
        return group, f"{group.words}: such a group does not divide the {domain} devices of {machine.name}"
    if group.idle and machine.fabric.topology not in _DISJOINT:
        shared = f"the {machine.fabric.topology} fabric of {machine.name} is shared"
        return group, f"{group.words}: the other devices of the node idled, and {shared}"
    return dataclasses.replace(group, idle=False), ""


def _part(operation: Operation, group: RankGroup, samples: Sequence[Sample]) -> Part:
    times: dict[float, list[float]] = {}
    for sample in samples:
        times.setdefault(sample.size, []).append(sample.time)
    medians = {size: median(times[size]) for size in sorted(times)}
    spread = max((max(each) - min(each)) / medians[size] for size, each in times.items())
    sent = np.array([float(traffic(operation, sample.size, group.size)) for sample in samples])
    line = fit(sent, np.array([sample.time for sample in samples]))
    return Part(operation=operation, group=group, medians=medians, samples=tuple(samples), spread=spread, line=line)


def _together(parts: Sequence[Part]) -> tuple[list[Part], list[Problem]]:
    """The parts that share two sizes or more, after leaving out the part with the fewest as often as needed."""
    kept, left_out = list(parts), []
    while kept and len(_sizes(kept)) < 2:
        fewest = min(kept, key=lambda part: len(part.medians))
        kept.remove(fewest)
        first = fewest.samples[0]
        told = f"{fewest.operation} of {fewest.group.words}: {len(fewest.medians)} sizes, of which the other numbers of"
        left_out.append(
            Problem(
                file=first.file, line=first.line, text=f"{told} nodes share fewer than two", rows=len(fewest.samples)
            )
        )
    shared = _sizes(kept) if kept else set()
    for part in kept:
        lost = [size for size in part.medians if size not in shared]
        if lost:
            first = next(sample for sample in part.samples if sample.size == lost[0])
            rows = sum(sample.size in lost for sample in part.samples)
            ends = f"the size {show(lost[0], 'B')} is"
            if len(lost) > 1:
                ends = f"{len(lost)} sizes from {show(lost[0], 'B')} to {show(lost[-1], 'B')} are"
            text = f"{ends} not in the table, since not all numbers of nodes have them"
            left_out.append(Problem(file=first.file, line=first.line, text=text, rows=rows))
    return kept, left_out


def _sizes(parts: Sequence[Part]) -> set[float]:
    return set.intersection(*(set(part.medians) for part in parts))


def _table(parts: Sequence[Part], source: str) -> Timings:
    first, sizes = parts[0], sorted(_sizes(parts))
    rows = tuple(TimingRow(part.group.nodes, tuple(part.medians[size] for size in sizes)) for part in parts)
    return Timings(
        operation=first.operation,
        ranks=first.group.ranks,
        source=source,
        sizes=tuple(sizes),
        rows=rows,
        inner=first.group.inner,
    )


def import_record(found: Combined, file: str) -> dict[str, Any]:
    """Everything of an import: a row for each operation and group, the outliers, and what was dropped."""
    return {
        "file": file,
        "parts": [part_record(part) for part in found.parts],
        "outliers": [
            {"file": sample.file, "line": sample.line, "operation": sample.operation, "size_B": sample.size,
             "time_s": sample.time, "line_s": line_time(part, sample.size)}
            for part in found.parts
            for sample in part.outliers
        ],
        "used": found.used,
        "dropped": sum(problem.rows for problem in found.problems),
        "problems": [{"file": each.file, "line": each.line, "text": each.text} for each in found.problems],
    }  # fmt: skip


def line_time(part: Part, size: float) -> float | None:
    """The time that the fitted line gives for a size."""
    line = part.line
    if line is None:
        return None
    return float(line.alpha + traffic(part.operation, size, part.group.size) / line.beta)


def part_record(part: Part) -> dict[str, Any]:
    """One operation in one group: how much is known, and the fitted line."""
    sizes, line = list(part.medians), part.line
    alphas, betas = (line.alpha_interval, line.beta_interval) if line else (None, None)
    return {
        "operation": part.operation,
        "nodes": part.group.nodes,
        "ranks_per_node": part.group.ranks,
        "inner": part.group.inner,
        "sizes": len(sizes),
        "least_B": sizes[0],
        "most_B": sizes[-1],
        "samples": len(part.samples),
        "spread": part.spread,
        "alpha_s": line.alpha if line else None,
        "alpha_low_s": alphas[0] if alphas else None,
        "alpha_high_s": alphas[1] if alphas else None,
        "beta_B_per_s": line.beta if line else None,
        "beta_low_B_per_s": betas[0] if betas else None,
        "beta_high_B_per_s": betas[1] if betas and betas[1] != float("inf") else None,
        "error": line.error if line else None,
        "outliers": len(part.outliers),
    }
