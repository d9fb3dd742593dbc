"""When no grid is left: which rule rejected the last ones, and what would work instead."""

import math
from dataclasses import replace

import numpy as np

from perfmodel.errors import NoGridError
from perfmodel.machines.allocation import count_problem, device_total
from perfmodel.memory.per_device import capacity
from perfmodel.numerics import divisors
from perfmodel.parallel.axes import AXES, BATCH_AXES, BATCH_GROUP, MAX_DEVICES, TENSOR_AXES
from perfmodel.parallel.choices import MAX_COUNT
from perfmodel.parallel.enumeration import shapes
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.rules import BATCH, FIXED, MEMORY, MICRO_BATCH, Bound, Divides, Rule, first_broken, grid_rules
from perfmodel.parallel.sharding import sharded_parameters
from perfmodel.search.search import Ranking, Space, rank
from perfmodel.units import Array, Number, show

_TRIES = 100  # counts tried on each side, nearest first
_BATCH_TRIES = 8


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
    """One sentence: the rule that rejects the last grids, the rules before it, and how close the nearest grid was."""
    counts = ", ".join(f"{reason} {count}" for reason, count in ranking.rejected.items())
    last = list(ranking.rejected)[-1]
    text = (
        f"no grid of {ranking.space.gpus} fits {ranking.job.model.name} on {ranking.job.machine.name}: "
        f"of {ranking.searched} grids, rejected by {counts}; {last} leaves none"
    )
    short = ranking.shortfall
    if last == MICRO_BATCH:
        share = f"{ranking.job.batch} sequences shared by {' * '.join(BATCH_AXES)} devices"
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
    """The grid that fits and differs least from `wanted`, by the factors between their axes.

    It has the same number of devices, unless no such grid fits: then one of the nearest counts that work.
    """
    found = _nearest_of(job, space, wanted) if not count_problem(job.machine, space.gpus) else None
    if found is not None:
        return found
    others = [_nearest_of(job, replace(space, gpus=count), wanted) for count in _counts_that_work(job, space)]
    return min((grid for grid in others if grid is not None), key=lambda grid: distance(grid, wanted), default=None)


def _nearest_of(job: Job, space: Space, wanted: Layout) -> Layout | None:
    fitting = rank(job, replace(space, top=MAX_COUNT)).layouts
    return fitting.take(int(np.argmin(distance(fitting, wanted)))) if np.size(fitting.x) else None


def distance(layouts: Layout, wanted: Layout) -> Number:
    """Number of doublings and halvings of axes between two grids."""
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
    """The nearest batch below and the nearest above at which some grid with the same number of devices fits."""
    grids = shapes(space.gpus)
    others = tuple(rule for rule in grid_rules(job) if rule.name != BATCH)
    share = np.unique(grids.size(BATCH_GROUP)[first_broken(others, grids) == len(others)])  # type: ignore[index]
    below = job.batch // share * share
    candidates = np.unique(np.concatenate([below, below + share]))
    sides = (candidates[(candidates < job.batch) & (candidates > 0)][::-1], candidates[candidates > job.batch])
    found = (_first_batch_that_fits(job, space, side[:_BATCH_TRIES].tolist()) for side in sides)
    return [batch for batch in found if batch is not None]


def _first_batch_that_fits(job: Job, space: Space, batches: list[int]) -> int | None:
    return next((batch for batch in batches if _some_grid_fits(replace(job, batch=batch), space)), None)


def _some_grid_fits(job: Job, space: Space) -> bool:
    """Whether any grid of that count fits; a micro-batch of 1 needs least memory, with any placement."""
    least = replace(space, micro_batch=space.micro_batch or 1, placements=space.placements[:1], top=1)
    return len(rank(job, least)) > 0


def _counts_that_work(job: Job, space: Space) -> list[int]:
    """The nearest count below and the nearest above at which some grid fits, if there are any."""
    found = (_first_that_fits(job, space, direction) for direction in (-1, 1))
    return [count for count in found if count is not None]


def _first_that_fits(job: Job, space: Space, direction: int) -> int | None:
    counts = _counts(job, space)
    side = counts[counts < space.gpus][::-1] if direction < 0 else counts[counts > space.gpus]
    return next((gpus for gpus in side[:_TRIES].tolist() if _some_grid_fits(job, replace(space, gpus=gpus))), None)


def _counts(job: Job, space: Space) -> Array:
    """All counts that may have a grid, ascending: tensor degrees that the model allows times shares of the batch.

    Without counts that the machine cannot provide, and those too small to hold the state of the weights.
    """
    machine, s = job.machine, job.settings
    total = device_total(machine) or MAX_DEVICES
    tensor, shares = _tensor_degrees(job), _shares(job, space)
    counts = np.unique(np.outer(tensor[tensor <= total], shares[shares <= total]))
    counts = counts[(counts <= total) & ((counts <= machine.node_devices) | (counts % machine.node_devices == 0))]
    state = s.weight_bytes + s.kept_gradient_bytes + s.optimizer_bytes
    held = sharded_parameters(job, Layout(z=counts)) * state
    possible: Array = counts[(held <= capacity(job)) | s.ignore_memory]
    return possible


def _tensor_degrees(job: Job) -> Array:
    """Products of the tensor axes that break no rule if all other axes are 1."""
    rules = tuple(rule for rule in grid_rules(job) if not isinstance(rule, Bound) or rule.axis in TENSOR_AXES)
    sizes = np.meshgrid(*(_common_divisors(rules, axis) for axis in TENSOR_AXES))
    grids = Layout(**{axis: each.ravel() for axis, each in zip(TENSOR_AXES, sizes, strict=True)})
    return np.unique(np.asarray(grids.gpus)[first_broken(rules, grids) == len(rules)])


def _common_divisors(rules: tuple[Rule, ...], axis: str) -> list[int]:
    """Common divisors of everything that only this axis splits."""
    split = (rule for rule in rules if isinstance(rule, Divides) and rule.axes == (axis,))
    return divisors(math.gcd(*(number for rule in split for number, _ in rule.numbers)))


def _shares(job: Job, space: Space) -> Array:
    """Products of the batch axes that the batch, and what the user fixed, allow."""
    whole, rest = divmod(job.batch, space.micro_batch or 1)
    if rest:
        return np.array([], dtype=np.int64)
    fixed, most = job.settings.fixed, job.settings.maximum
    sizes = np.array(divisors(whole))
    bounded = [axis for axis in BATCH_AXES if axis in fixed or axis in most]
    allowed = [sizes[(sizes == fixed.get(axis, sizes)) & (sizes <= most.get(axis, whole))] for axis in bounded]
    if len(bounded) < len(BATCH_AXES):  # a free axis can supply any remaining factor
        allowed = [*(each[:1] for each in allowed), sizes]
    shared: Array = np.array([1])
    for each in allowed:
        products = np.unique(np.outer(shared, each))
        shared = products[whole % products == 0]
    return shared
