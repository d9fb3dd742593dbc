"""Enumerate grids, drop those that break a rule (with the reason), rank the rest by predicted step time.

Each grid is tried with every micro-batch, recomputation and weight cache requested, and is ranked with its best. Order:
step time; then less memory; larger data, z, y; placement; larger micro-batch; less recomputation. Times and memory are
compared rounded to 30 binary digits (`rounded`), so that rounding errors decide nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from perfmodel.errors import UsageError
from perfmodel.frameworks import loading
from perfmodel.memory.per_device import capacity, memory_per_device
from perfmodel.numerics import divisors
from perfmodel.parallel.axes import AXES, BATCH_GROUP, WEIGHT_GROUP
from perfmodel.parallel.choices import MAX_COUNT, RECOMPUTES, WEIGHT_CACHES, Recompute, WeightCache
from perfmodel.parallel.enumeration import each_placed, orders, shapes
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.rules import MEMORY, first_broken, grid_rules, micro_batch_rule
from perfmodel.parallel.settings import Settings
from perfmodel.search.roomier import EXAMINED, roomier
from perfmodel.step.predict import predict, step_time
from perfmodel.step.prediction import Prediction
from perfmodel.units import Array

BLOCK_ROWS = 1 << 16  # rows evaluated at once: layouts share computations, and columns still fit in the cache
_DIGITS = 30  # binary digits to which times and memory are compared, about nine decimal digits
_COLUMNS = tuple(Layout.__dataclass_fields__)  # of a row of _Best.kept, after time and memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The search space. None = any: the fastest that fits.

    `only`: the pairs of recomputation and weight cache that the framework supports; empty = all. `tolerance`: grids
    whose times differ by less than this share are put in order of memory (see `roomier`).
    """

    gpus: int
    placements: tuple[int, ...] = (0,)
    micro_batch: int | None = None
    recompute: Recompute | None = None
    weight_cache: WeightCache | None = None
    only: tuple[tuple[Recompute, WeightCache], ...] = ()
    top: int = 10
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        """Counts are counts."""
        for name, value in (("number of GPUs", self.gpus), ("micro-batch", self.micro_batch), ("top", self.top)):
            if value is not None and not 1 <= value <= MAX_COUNT:
                raise UsageError(f"the {name} is {value}, wanted 1 to {MAX_COUNT}")

    def modes(self, settings: Settings) -> list[tuple[int, int]]:
        """(recompute, weight cache) pairs worth trying.

        Left out unless asked for: selective recomputation with flash attention (it keeps no scores to drop), and
        keeping all gathered weights if keeping those of the last forward pass needs no more gathers.
        """
        recomputes = [self.recompute] if self.recompute else [r for r in RECOMPUTES if _worthwhile(r, settings)]
        caches = [self.weight_cache] if self.weight_cache else list(WEIGHT_CACHES)
        pairs = [(r, c) for r in recomputes for c in caches]
        if self.weight_cache is None:
            pairs = [(r, c) for r, c in pairs if r == "full" or c != "all"]
        kernels = (settings.framework or loading.load()).kernels
        pairs = [(r, c) for r, c in pairs if r in kernels.recomputes]
        pairs = [(r, c) for r, c in pairs if not kernels.weight_caches or c in kernels.weight_caches]
        known = [pair for pair in pairs if not self.only or pair in self.only]
        return [(RECOMPUTES.index(r), WEIGHT_CACHES.index(c)) for r, c in known]


def _worthwhile(recompute: Recompute, settings: Settings) -> bool:
    return recompute != "selective" or not settings.flash_attention


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The grid that comes nearest to fitting in memory, and the bytes it lacks."""

    layout: Layout
    missing: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The best layouts in order with their predictions, and why the others were rejected.

    `example`: one grid that the last rule rejected, as a sentence.
    """

    job: Job
    space: Space
    searched: int
    feasible: int
    evaluated: int
    rejected: Mapping[str, int]
    layouts: Layout
    prediction: Prediction
    shortfall: Shortfall | None
    example: str

    def __len__(self) -> int:
        """Layouts ranked."""
        return int(np.size(self.layouts.x))


def rank(job: Job, space: Space, among: Layout | None = None) -> Ranking:
    """Search `space`, or only its grids in `among`; the ranking may be empty (the caller explains why)."""
    grids = shapes(space.gpus) if among is None else among
    placements = orders(grids, space.placements).sum(axis=1)
    rules = grid_rules(job)
    reasons = first_broken(rules, grids)
    best = _Best(job, replace(space, top=max(space.top, EXAMINED)) if space.tolerance else space)
    best.search(grids.take(reasons == len(rules)))
    rejected = {rule.name: 0 for rule in rules}
    for rule, count in zip(rules, np.bincount(reasons, weights=placements, minlength=len(rules)), strict=False):
        rejected[rule.name] += int(count)
    rejected |= {micro_batch_rule(job).name: best.unbatched, MEMORY: best.unfitting}
    last = int(reasons[reasons < len(rules)].max(initial=-1))
    layouts = best.layouts()
    if space.tolerance:
        layouts = roomier(job, layouts, best.every_setting, tolerance=space.tolerance).take(slice(0, space.top))
    return Ranking(
        job=job,
        space=space,
        searched=int(placements.sum()),
        feasible=best.feasible,
        evaluated=best.evaluated,
        rejected={reason: count for reason, count in rejected.items() if count},
        layouts=layouts,
        prediction=predict(job, layouts),
        shortfall=best.shortfall,
        example=rules[last].sentence(grids.take(int(np.argmax(reasons == last)))) if last >= 0 else "",
    )


class _Best:
    """The best layouts so far, block by block, so that memory does not grow with the search.

    Memory does not depend on the placement, so it is checked first; only what fits is placed and timed.
    """

    def __init__(self, job: Job, space: Space) -> None:
        self.job, self.space = job, space
        self.micro_batches = np.array([space.micro_batch] if space.micro_batch else divisors(job.batch))
        self.modes = np.array(space.modes(job.settings))
        self.kept: Array = np.zeros((0, 2 + len(_COLUMNS)))
        self.unbatched = self.unfitting = self.feasible = self.evaluated = 0
        self.shortfall: Shortfall | None = None

    def layouts(self) -> Layout:
        """What was kept, best first."""
        return Layout(**dict(zip(_COLUMNS, self.kept[:, 2:].astype(np.int64).T, strict=True)))

    def search(self, grids: Layout) -> None:
        """Try every block of grids."""
        each = len(self.micro_batches) * len(self.modes) * len(self.space.placements)
        size = max(1, BLOCK_ROWS // each)
        for start in range(0, int(np.size(grids.x)), size):
            self._try(grids.take(slice(start, start + size)))

    def every_setting(self, layouts: Layout) -> tuple[Array, Layout]:
        """Every grid, as it is placed, with every micro-batch in every mode."""
        return self._expand(layouts)

    def _try(self, grids: Layout) -> None:
        """Check one block's memory, count rejected and fitting grids, and rank those that fit."""
        grid, rows = self._expand(grids)
        placements = orders(grids, self.space.placements).sum(axis=1)
        memory = memory_per_device(self.job, rows).total
        excess = np.broadcast_to(memory - capacity(self.job), grid.shape)
        fits = (excess <= 0) | self.job.settings.ignore_memory
        self._note_shortfall(rows, np.where(fits, np.inf, excess))
        fitting = np.flatnonzero(fits)
        batched, fitted = (int(placements[rows_of[_starts(rows_of)]].sum()) for rows_of in (grid, grid[fitting]))
        self.unbatched += int(placements.sum()) - batched
        self.unfitting += batched - fitted
        self.feasible += fitted
        self.evaluated += int(placements[grid].sum())
        if not self.job.costs.tables:  # measured times may more than double when the size doubles
            fitting = _undominated(fitting, grid, rows.take(fitting))
        if len(fitting):
            self._keep(grid[fitting], rows.take(fitting), memory[fitting])  # type: ignore[index]

    def _expand(self, grids: Layout) -> tuple[Array, Layout]:
        """Every grid with every micro-batch that divides its share of the batch, in every mode."""
        share = self.job.batch // grids.size(BATCH_GROUP)
        grid, micro = np.nonzero(share[:, None] % self.micro_batches == 0)  # type: ignore[index]
        modes = len(self.modes)
        grid, micro = np.repeat(grid, modes), np.repeat(self.micro_batches[micro], modes)
        recompute, cache = np.tile(self.modes, (len(grid) // modes, 1)).T
        return grid, replace(grids.take(grid), micro_batch=micro, recompute=recompute, weight_cache=cache)

    def _note_shortfall(self, rows: Layout, excess: Array) -> None:
        nearest = int(np.argmin(excess)) if len(excess) else 0
        missing = float(excess[nearest]) if len(excess) else np.inf
        if missing < (self.shortfall.missing if self.shortfall else np.inf):
            self.shortfall = Shortfall(rows.take(nearest), missing)

    def _keep(self, grid: Array, rows: Layout, memory: Array) -> None:
        """Place and time what fits, and merge each grid's best row into the best of all."""
        row, rows = each_placed(rows, self.space.placements)
        grid, memory = grid[row], memory[row]
        time = rounded(np.broadcast_to(step_time(self.job, rows), grid.shape))
        starts = _starts(grid)
        fastest = np.repeat(np.minimum.reduceat(time, starts), np.diff(starts, append=len(grid)))
        tied = np.flatnonzero(time == fastest)
        columns = (getattr(rows, column)[tied] for column in _COLUMNS)
        table = np.stack([time[tied], rounded(memory[tied]), *columns], axis=1)
        order = _order(table)
        by_grid = order[np.argsort(grid[tied][order], kind="stable")]  # of a grid's equal rows, the first in order
        table = np.concatenate([self.kept, table[by_grid[_starts(grid[tied][by_grid])]]])
        self.kept = table[_order(table)[: self.space.top]]


def rounded(values: Array) -> Array:
    """Values to 30 binary digits: equal values stay equal in any order of summation, and the order has no cycles.

    >>> bool(rounded(np.array(0.1 + 0.2)) == rounded(np.array(0.3)))
    True
    """
    mantissa, exponent = np.frexp(values)
    nearest: Array = np.ldexp(np.rint(np.ldexp(mantissa, _DIGITS)), exponent - _DIGITS)
    return nearest


def _undominated(fitting: Array, grid: Array, rows: Layout) -> Array:
    """Rows that may be a grid's best: with Z > 1, the largest micro-batches that fit, each with its longest cache.

    A smaller micro-batch gathers the same weights more often and sends the same activations, and so does a shorter
    cache, over any links: both are slower. With Z = 1 all take the same time, and the one with the least memory should
    win. At full fidelity the last wave of a product's tiles can still make a smaller micro-batch faster: by 0.01 % on
    one of 3,000 grids of eight shipped machines and models, all searched exhaustively.
    """
    at, micro = (grid[fitting], rows.recompute, rows.weight_cache), np.asarray(rows.micro_batch)
    largest = np.zeros((grid[-1] + 1 if len(grid) else 0, len(RECOMPUTES), len(WEIGHT_CACHES) + 1), dtype=np.int64)
    largest[at] = micro  # micro-batches ascend in every grid and mode, so the last assignment is the largest
    with_longer = np.maximum.accumulate(largest[:, :, ::-1], axis=2)[:, :, ::-1]
    best = (micro == largest[at]) & (micro > with_longer[at[0], at[1], at[2] + 1])
    kept: Array = fitting[best | (rows.size(WEIGHT_GROUP) == 1)]
    return kept


def _starts(ascending: Array) -> Array:
    """Where each value of an ascending array of indices begins (np.unique would load numpy.ma, 6 ms)."""
    return np.flatnonzero(np.diff(ascending, prepend=-1))


def _order(table: Array) -> Array:
    """The documented order of rows (time, memory, then the columns of a layout).

    Among the axes the last has priority; the first follows from the others.
    """
    time, memory, *columns = table.T
    at = dict(zip(_COLUMNS, columns, strict=True))
    axes = (-at[axis] for axis in AXES[1:])
    return np.lexsort((at["weight_cache"], at["recompute"], -at["micro_batch"], at["placement"], *axes, memory, time))
