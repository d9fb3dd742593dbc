"""When there is no answer: which rule leaves nothing, and what would work instead."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from perfmodel.constraints import BATCH, FIXED, MEMORY, MICRO_BATCH, first_broken, grid_rules
from perfmodel.errors import NoGridError
from perfmodel.job import Job
from perfmodel.layout import AXES, Layout, shapes
from perfmodel.machine import Machine
from perfmodel.memory import capacity
from perfmodel.search import Ranking, Space, rank
from perfmodel.units import Number, show

_TRIES = 128  # neighbouring counts looked at on each side before doubling
_DOUBLINGS = 12
_BATCH_TRIES = 8
_EVERYTHING = 1 << 40


def count_problem(machine: Machine, gpus: int) -> str:
    """Why this machine cannot give a job that many devices (no whole nodes, or more than it has); empty if it can."""
    devices, total = machine.node_devices, device_total(machine)
    if total is not None and gpus > total:
        return f"{machine.name} has {total} devices ({total // devices} nodes of {devices}), asked for {gpus}"
    if gpus > devices and gpus % devices:
        return (
            f"{gpus} devices are not whole nodes of {devices} on {machine.name} (a device is a {machine.device.kind})"
        )
    return ""


def device_total(machine: Machine) -> int | None:
    """Devices of the whole machine, or None where its size is not known."""
    if machine.network.topology == "none":
        return machine.domain
    nodes = machine.network.nodes
    return int(nodes.value) * machine.node_devices if nodes else None


def recommend(job: Job, space: Space) -> Ranking:
    """Search, and raise NoGridError with the reason and what would work when nothing is left."""
    refuse_count(job, space)
    ranking = rank(job, space)
    if not len(ranking):
        batches = _batches_that_work(job, space) if BATCH in ranking.rejected else []
        raise NoGridError(f"{why_nothing(ranking)}{_instead(job, space, batches)}")
    return ranking


def refuse_count(job: Job, space: Space) -> None:
    """Raise NoGridError, with the counts that would work, when the machine cannot give a job that many devices."""
    if problem := count_problem(job.machine, space.gpus):
        raise NoGridError(f"{problem}{_instead(job, space, [])}")


def why_nothing(ranking: Ranking) -> str:
    """One sentence: the rule that empties the set, what went before it, and how near the nearest grid was."""
    counts = ", ".join(f"{reason} {count}" for reason, count in ranking.rejected.items())
    last = list(ranking.rejected)[-1]
    text = (
        f"no grid of {ranking.space.gpus} fits {ranking.job.model.name} on {ranking.job.machine.name}: "
        f"of {ranking.searched} grids, rejected by {counts}; {last} leaves none"
    )
    short = ranking.shortfall
    if last == MICRO_BATCH:
        share = f"{ranking.job.batch} sequences shared by z * data devices"
        return f"{text} (no share of {share} is a multiple of micro-batch {ranking.space.micro_batch})"
    if last == FIXED and (other := _does_not_divide(ranking)):
        return f"{text} ({other})"
    if last not in (MEMORY, FIXED):
        return f"{text} (for example, {ranking.example})"
    if last == MEMORY and short is not None:
        has = capacity(ranking.job)
        text += (
            f" (nearest: {short.layout.text()} needs {show(has + short.missing, 'B')}, "
            f"a device has {show(has, 'B')}: {show(short.missing, 'B')} are missing)"
        )
    return text


def _does_not_divide(ranking: Ranking) -> str:
    """The sizes that the user fixed, when no grid of that many devices has them."""
    fixed = ranking.job.settings.fixed
    product = math.prod(fixed.values())
    named = " * ".join(f"{axis} {size}" for axis, size in fixed.items())
    return f"{ranking.space.gpus} is no multiple of {named}" if ranking.space.gpus % product else ""


def nearest_grid(job: Job, space: Space, wanted: Layout) -> Layout | None:
    """The grid that fits and differs least from `wanted`, by the factors that the axes change.

    It has as many devices, unless no grid of that count fits: then one of the nearest counts that work.
    """
    found = _nearest_of(job, space, wanted) if not count_problem(job.machine, space.gpus) else None
    if found is not None:
        return found
    others = [_nearest_of(job, replace(space, gpus=count), wanted) for count in _counts_that_work(job, space)]
    return min((grid for grid in others if grid is not None), key=lambda grid: _distance(grid, wanted), default=None)


def _nearest_of(job: Job, space: Space, wanted: Layout) -> Layout | None:
    fitting = rank(job, replace(space, top=_EVERYTHING)).layouts
    return fitting.take(int(np.argmin(_distance(fitting, wanted)))) if np.size(fitting.x) else None


def _distance(layouts: Layout, wanted: Layout) -> Number:
    """Doublings and halvings of axes that lead from one grid to the other."""
    return sum(np.abs(np.log2(layouts.size(axis) / wanted.size(axis))) for axis in AXES)


def _instead(job: Job, space: Space, batches: list[int]) -> str:
    """The nearest counts, and batches, at which some grid fits, as the end of the sentence."""
    counts = _counts_that_work(job, space)
    ways = []
    if counts:
        ways.append(f"nearest counts that work: {' and '.join(map(str, counts))}")
    if batches:
        ways.append(f"with {space.gpus} the nearest batches that work: {' and '.join(map(str, batches))}")
    return f"; {'; '.join(ways)}" if ways else "; no other count nearby works either"


def _batches_that_work(job: Job, space: Space) -> list[int]:
    """The nearest batch below and the nearest above at which some grid of as many devices fits."""
    grids = shapes(space.gpus)
    others = tuple(rule for rule in grid_rules(job) if rule.name != BATCH)
    share = np.unique((grids.z * grids.data)[first_broken(others, grids) == len(others)])  # type: ignore[index]
    below = job.batch // share * share
    candidates = np.unique(np.concatenate([below, below + share]))
    sides = (candidates[(candidates < job.batch) & (candidates > 0)][::-1], candidates[candidates > job.batch])
    found = (_first_batch_that_fits(job, space, side[:_BATCH_TRIES].tolist()) for side in sides)
    return [batch for batch in found if batch is not None]


def _first_batch_that_fits(job: Job, space: Space, batches: list[int]) -> int | None:
    one = replace(space, top=1)
    return next((batch for batch in batches if len(rank(replace(job, batch=batch), one))), None)


def _counts_that_work(job: Job, space: Space) -> list[int]:
    """The nearest count below and the nearest above at which some grid fits, as far as there are any."""
    found = (_first_that_fits(job, space, direction) for direction in (-1, 1))
    return [count for count in found if count is not None]


def _first_that_fits(job: Job, space: Space, direction: int) -> int | None:
    for gpus in _counts(job.machine, space.gpus, direction):
        if len(rank(job, replace(space, gpus=gpus, top=1))):
            return gpus
    return None


def _counts(machine: Machine, gpus: int, direction: int) -> Iterator[int]:
    """Counts that a job may have on one side: neighbours first, then twice or half as many again and again."""
    unit, total = machine.node_devices, device_total(machine) or _EVERYTHING
    nodes = min(gpus, total) // unit
    neighbours = (unit * (nodes + direction * step) for step in range(_TRIES + 1))
    powers = (unit * 2 ** max(0, _exponent(nodes) + direction * step) for step in range(_DOUBLINGS + 1))
    parts = range(1, unit)  # of a single node
    for count in (*parts, *neighbours, *powers) if direction > 0 else (*neighbours, *powers, *reversed(parts)):
        if 0 < count <= total and (count - gpus) * direction > 0:
            yield count


def _exponent(number: int) -> int:
    return max(1, number).bit_length() - 1
