"""When there is no answer: which rule leaves nothing, and what would work instead."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from perfmodel.constraints import MEMORY
from perfmodel.errors import NoGridError
from perfmodel.job import Job
from perfmodel.layout import AXES, Layout
from perfmodel.machine import Machine
from perfmodel.memory import capacity
from perfmodel.search import Ranking, Space, rank
from perfmodel.units import show

_TRIES = 128  # neighbouring counts looked at on each side before doubling
_DOUBLINGS = 12
_EVERYTHING = 1 << 40


def count_problem(machine: Machine, gpus: int) -> str:
    """Why this machine cannot give a job that many devices (no whole nodes, or more than it has); empty if it can."""
    devices, total = machine.node_devices, device_total(machine)
    if gpus > devices and gpus % devices:
        near = [count for count in (gpus // devices * devices, -(-gpus // devices) * devices) if count]
        return (
            f"{gpus} devices are not whole nodes of {devices} on {machine.name} (a device is a {machine.device.kind}); "
            f"nearest counts: {' or '.join(map(str, near))}"
        )
    if total is not None and gpus > total:
        return f"{machine.name} has {total} devices ({total // devices} nodes of {devices}), asked for {gpus}"
    return ""


def device_total(machine: Machine) -> int | None:
    """Devices of the whole machine, or None where its size is not known."""
    if machine.network.topology == "none":
        return machine.domain
    nodes = machine.network.nodes
    return int(nodes.value) * machine.node_devices if nodes else None


def recommend(job: Job, space: Space) -> Ranking:
    """Search, and raise NoGridError with the reason and what would work when nothing is left."""
    if problem := count_problem(job.machine, space.gpus):
        raise NoGridError(problem)
    ranking = rank(job, space)
    if not len(ranking):
        raise NoGridError(f"{why_nothing(ranking)}{_instead(job, space)}")
    return ranking


def why_nothing(ranking: Ranking) -> str:
    """One sentence: the rule that empties the set, what went before it, and how near the nearest grid was."""
    counts = ", ".join(f"{reason} {count}" for reason, count in ranking.rejected.items())
    last = list(ranking.rejected)[-1]
    text = (
        f"no grid of {ranking.space.gpus} fits {ranking.job.model.name} on {ranking.job.machine.name}: "
        f"of {ranking.searched} grids, rejected by {counts}; {last} leaves none"
    )
    short = ranking.shortfall
    if last == MEMORY and short is not None:
        text += (
            f" (nearest: {short.layout.text()} lacks {show(short.missing, 'B')} "
            f"of {show(capacity(ranking.job) + short.missing, 'B')})"
        )
    return text


def nearest_grid(job: Job, space: Space, wanted: Layout) -> Layout | None:
    """The grid that fits and differs least from `wanted`, by the factors that the axes change."""
    unbound = replace(job, settings=replace(job.settings, fixed={}, maximum={}))
    fitting = rank(unbound, replace(space, top=_EVERYTHING)).layouts
    if not np.size(fitting.x):
        return None
    distance = sum(np.abs(np.log2(fitting.size(axis) / wanted.size(axis))) for axis in AXES)
    return fitting.take(int(np.argmin(distance)))


def _instead(job: Job, space: Space) -> str:
    """The nearest counts at which some grid fits, as the end of the sentence."""
    found = [count for step in (-1, 1) if (count := _first_that_fits(job, space, step)) is not None]
    if found:
        return f"; nearest counts that work: {' and '.join(map(str, sorted(found)))}"
    return "; no other count nearby works either"


def _first_that_fits(job: Job, space: Space, direction: int) -> int | None:
    for gpus in _counts(job.machine, space.gpus, direction):
        if len(rank(job, replace(space, gpus=gpus, top=1))):
            return gpus
    return None


def _counts(machine: Machine, gpus: int, direction: int) -> Iterator[int]:
    """Counts of whole nodes on one side: neighbours first, then twice or half as many again and again."""
    unit, total = machine.node_devices, device_total(machine) or _EVERYTHING
    nodes = gpus // unit
    neighbours = (unit * (nodes + direction * step) for step in range(1, _TRIES + 1))
    powers = (unit * 2 ** max(0, _exponent(nodes) + direction * step) for step in range(1, _DOUBLINGS + 1))
    small = range(1, min(gpus, unit)) if direction < 0 else ()
    for count in (*neighbours, *powers, *reversed(small)):
        if 0 < count <= total and (count - gpus) * direction > 0:
            yield count


def _exponent(number: int) -> int:
    return max(1, number).bit_length() - 1
