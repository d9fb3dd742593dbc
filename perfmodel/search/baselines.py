"""What people run without a search: named strategies as restrictions of the grid, each with its best settings.

Micro-batch, recomputation, weight caching and placement are searched as for any other grid, so a gain over a baseline
comes from the grid alone. Sizes that the user fixes or bounds do not apply to them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from perfmodel.memory.per_device import capacity, memory_per_device
from perfmodel.numerics import divisors
from perfmodel.parallel.axes import AXES
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.rules import complaints, first_broken, grid_rules, micro_batch_rule
from perfmodel.search.search import Ranking, Space, rank
from perfmodel.units import show

Grid: TypeAlias = tuple[int, ...]
"""Sizes in the order of AXES."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The best layout of one strategy and its seconds per step, or the reason why it has none."""

    name: str
    layout: Layout | None
    step: float | None
    reason: str = ""

    def gain(self, best: float) -> float | None:
        """How many times longer the strategy takes than a step of `best` seconds."""
        return self.step / best if self.step and best else None


@dataclass(frozen=True, slots=True)
class Strategy:
    """The grids of one strategy, from (devices, devices per node, tensor degrees).

    `widest`: use the grid with the largest X rather than the fastest. Axes that a grid does not name have size 1.
    """

    grids: Callable[[int, int, list[int]], list[dict[str, int]]]
    widest: bool = False


def _hybrid(gpus: int, _node: int, degrees: list[int]) -> list[dict[str, int]]:
    """The largest tensor degree, and every way to share the rest between Z and data."""
    return [{"x": x, "z": z, "data": gpus // x // z} for x in degrees[:1] for z in divisors(gpus // x)]


# arXiv 2502.08145, section IV: special cases of the four dimensions; its Frontier baseline is megatron-hsdp.
STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        "fsdp": Strategy(lambda gpus, _node, _degrees: [{"z": gpus}]),
        "hsdp": Strategy(lambda gpus, node, _degrees: [{"z": node, "data": gpus // node}]),
        "megatron-tp": Strategy(
            lambda gpus, _node, degrees: [{"x": x, "data": gpus // x} for x in degrees], widest=True
        ),
        "megatron-hsdp": Strategy(_hybrid),
        "ddp": Strategy(lambda gpus, _node, _degrees: [{"data": gpus}]),
    }
)


def baselines(job: Job, space: Space) -> tuple[Baseline, ...]:
    """The best of every strategy on the same number of devices, in one small search."""
    free = replace(job, settings=replace(job.settings, fixed=MappingProxyType({}), maximum=MappingProxyType({})))
    node = min(job.machine.node_devices, space.gpus)
    degrees = tensor_degrees(free, node)
    wanted = {
        name: [_sizes(grid) for grid in strategy.grids(space.gpus, node, degrees) if prod(grid.values()) == space.gpus]
        for name, strategy in STRATEGIES.items()
    }
    grids = list(dict.fromkeys(grid for each in wanted.values() for grid in each))
    found = rank(free, replace(space, top=len(grids)), among=_layouts(grids))
    rows = {grid: row for row, grid in enumerate(_grids(found))}
    return tuple(
        _baseline(name, [(rows[grid], grid) for grid in each if grid in rows], found)
        or Baseline(name=name, layout=None, step=None, reason=_why_not(free, space, each))
        for name, each in wanted.items()
    )


def tensor_degrees(job: Job, node: int) -> list[int]:
    """Sizes above 1 that X may have inside a node of `node` devices, largest first."""
    sizes = np.array(divisors(node)[:0:-1], dtype=np.int64)
    rules = grid_rules(job)
    kept: list[int] = sizes[first_broken(rules, Layout(x=sizes)) == len(rules)].tolist()
    return kept


def _sizes(grid: Mapping[str, int]) -> Grid:
    return tuple(grid.get(axis, 1) for axis in AXES)


def _layouts(grids: list[Grid]) -> Layout:
    return Layout.of(np.array(grids, dtype=np.int64).T)


def _grids(found: Ranking) -> list[Grid]:
    columns = (found.layouts.size(axis) for axis in AXES)
    return list(zip(*(np.atleast_1d(column).tolist() for column in columns), strict=True))


def _baseline(name: str, rows: list[tuple[int, Grid]], found: Ranking) -> Baseline | None:
    """The fastest of a strategy's rows, or the one with the largest X."""
    if not rows:
        return None
    row, _ = max(rows, key=lambda each: each[1]) if STRATEGIES[name].widest else min(rows)
    return Baseline(name=name, layout=found.layouts.take(row), step=float(np.asarray(found.prediction.step)[row]))


def _why_not(job: Job, space: Space, grids: list[Grid]) -> str:
    """The rule that a strategy's grids break, or the memory that the closest of them lacks."""
    if not grids:
        return "no size above 1 divides the devices, those of a node, and the model's heads and widths"
    broken = [complaints(grid_rules(job), Layout.of(grid)) for grid in grids]
    if all(broken):
        return broken[0][0][1]
    rows = _leanest(job, space, [grid for grid, complaint in zip(grids, broken, strict=True) if not complaint])
    if not np.size(rows.x):
        return f"no device's share of the batch is a multiple of micro-batch {space.micro_batch}"
    missing = float(np.min(memory_per_device(job, rows).total)) - capacity(job)
    return f"lacks {show(missing, 'B')} of memory per device"


def _leanest(job: Job, space: Space, grids: list[Grid]) -> Layout:
    """The grids with the smallest micro-batch that divides their share, in every mode."""
    modes = np.array(space.modes(job.settings))
    rows = _layouts([grid for grid in grids for _ in modes])
    recompute, cache = np.tile(modes, (len(grids), 1)).T
    rows = replace(
        rows, micro_batch=np.full_like(rows.x, space.micro_batch or 1), recompute=recompute, weight_cache=cache
    )
    return rows.take(np.logical_not(micro_batch_rule(job).broken(rows)))
