"""Enumerate grids, drop those that break a rule (with the reason), rank the rest by predicted step time.

Each grid is tried with every micro-batch, recomputation and weight-caching mode asked for, and stands in the ranking
with its best. Order: step time; then less memory; larger data, z, y; placement; larger micro-batch; less recomputation.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from perfmodel.compute import GemmRate, gemm_rate
from perfmodel.constraints import MEMORY, first_broken, grid_rules, micro_batch_rule
from perfmodel.errors import UsageError
from perfmodel.job import Job
from perfmodel.layout import Layout, divisors, placed
from perfmodel.memory import capacity, occupy
from perfmodel.settings import RECOMPUTES, WEIGHT_CACHES, Recompute, Settings, WeightCache
from perfmodel.step import Prediction, predict, step_time
from perfmodel.units import Array

_BLOCK_ROWS = 1 << 15  # rows evaluated at once: all columns stay in the cache
_MOST = 1 << 62
_SIZES = slice(2, 6)  # x, y, z, data in a row of _Best.kept


@dataclass(frozen=True, slots=True)
class Space:
    """What is searched. None = any: what is fastest among what fits."""

    gpus: int
    placements: tuple[int, ...] = (0,)
    micro_batch: int | None = None
    recompute: Recompute | None = None
    weight_cache: WeightCache | None = None
    top: int = 10

    def __post_init__(self) -> None:
        """Counts are counts."""
        for name, value in (("number of GPUs", self.gpus), ("micro-batch", self.micro_batch), ("top", self.top)):
            if value is not None and not 1 <= value < _MOST:
                raise UsageError(f"the {name} is {value}, wanted at least 1")

    def modes(self, settings: Settings) -> list[tuple[int, int]]:
        """(recompute, weight cache) pairs worth trying.

        Left out unless asked for: selective recomputation with flash attention (it keeps no scores to drop), and
        gathering a third time under full recomputation (it saves one layer's weight at most).
        """
        recomputes = [self.recompute] if self.recompute else [r for r in RECOMPUTES if _worthwhile(r, settings)]
        caches = [self.weight_cache] if self.weight_cache else list(WEIGHT_CACHES)
        pairs = [(r, c) for r in recomputes for c in caches]
        if self.weight_cache is None:
            pairs = [(r, c) for r, c in pairs if (c != "all" if r != "full" else c != "none")]
        return [(RECOMPUTES.index(r), WEIGHT_CACHES.index(c)) for r, c in pairs]


def _worthwhile(recompute: Recompute, settings: Settings) -> bool:
    return recompute != "selective" or not settings.flash_attention


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The grid that comes nearest to fitting in memory, and the bytes that it lacks."""

    layout: Layout
    missing: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best layouts in order with their predictions, and what became of the others."""

    job: Job
    space: Space
    rate: GemmRate | None
    searched: int
    feasible: int
    evaluated: int
    rejected: Mapping[str, int]
    layouts: Layout
    prediction: Prediction
    shortfall: Shortfall | None

    def __len__(self) -> int:
        """Layouts ranked."""
        return int(np.size(self.layouts.x))


def rank(job: Job, space: Space) -> Ranking:
    """Search `space`; an empty ranking is an answer too (the caller explains it)."""
    grids = placed(space.gpus, space.placements)
    rules = grid_rules(job)
    reasons = first_broken(rules, grids)
    rate = None if job.settings.fidelity == "paper" else gemm_rate(job)
    best = _Best(job, space, rate)
    best.search(grids.take(reasons == len(rules)))
    rejected = {rule.name: 0 for rule in rules}
    for rule, count in zip(rules, np.bincount(reasons, minlength=len(rules)), strict=False):
        rejected[rule.name] += int(count)
    rejected |= {micro_batch_rule(job).name: best.unbatched, MEMORY: best.unfitting}
    layouts = best.layouts()
    return Ranking(
        job=job,
        space=space,
        rate=rate,
        searched=int(np.size(grids.x)),
        feasible=best.feasible,
        evaluated=best.evaluated,
        rejected={reason: count for reason, count in rejected.items() if count},
        layouts=layouts,
        prediction=predict(job, layouts, rate),
        shortfall=best.shortfall,
    )


class _Best:
    """The best layouts so far, block by block, so that memory does not grow with the search."""

    def __init__(self, job: Job, space: Space, rate: GemmRate | None) -> None:
        self.job, self.space, self.rate = job, space, rate
        self.micro_batches = np.array([space.micro_batch] if space.micro_batch else divisors(job.batch))
        self.modes = np.array(space.modes(job.settings))
        self.kept: Array = np.zeros((0, 10))
        self.unbatched = self.unfitting = self.feasible = self.evaluated = 0
        self.shortfall: Shortfall | None = None

    def layouts(self) -> Layout:
        """What was kept, best first."""
        columns = self.kept[:, 2:].astype(np.int64)
        return Layout(*columns.T)

    def search(self, grids: Layout) -> None:
        """Try every block of grids."""
        for block in self._blocks(grids):
            self._try(block)

    def _blocks(self, grids: Layout) -> Iterator[Layout]:
        size = max(1, _BLOCK_ROWS // (len(self.micro_batches) * len(self.modes)))
        for start in range(0, int(np.size(grids.x)), size):
            yield grids.take(slice(start, start + size))

    def _try(self, grids: Layout) -> None:
        grid, rows = self._expand(grids)
        count = int(np.size(grids.x))
        self.unbatched += count - _distinct(grid)
        self.evaluated += len(grid)
        if not len(grid):
            return
        memory = occupy(self.job, rows).total
        excess = memory - capacity(self.job)
        fits = np.ones(len(grid), dtype=bool) if self.job.settings.ignore_memory else excess <= 0
        self._note_shortfall(rows, np.where(fits, np.inf, excess))
        fitting = np.flatnonzero(fits)
        self._note_counts(grid, grid[fitting])
        if len(fitting):
            self._keep(grid[fitting], rows.take(fitting), memory[fitting])  # type: ignore[index]

    def _expand(self, grids: Layout) -> tuple[Array, Layout]:
        """Every grid with every micro-batch that divides its share of the batch, in every mode."""
        share = self.job.batch // (grids.z * grids.data)
        grid, micro = np.nonzero(share[:, None] % self.micro_batches == 0)  # type: ignore[index]
        modes = len(self.modes)
        grid, micro = np.repeat(grid, modes), np.repeat(self.micro_batches[micro], modes)
        recompute, cache = np.tile(self.modes, (len(grid) // modes, 1)).T
        g = grids.take(grid)
        return grid, Layout(g.x, g.y, g.z, g.data, g.placement, micro, recompute, cache)

    def _note_shortfall(self, rows: Layout, excess: Array) -> None:
        nearest = int(np.argmin(excess))
        missing = float(excess[nearest])
        if missing < (self.shortfall.missing if self.shortfall else np.inf):
            self.shortfall = Shortfall(rows.take(nearest), missing)

    def _note_counts(self, grid: Array, fitting: Array) -> None:
        fitted = _distinct(fitting)
        self.feasible += fitted
        self.unfitting += _distinct(grid) - fitted

    def _keep(self, grid: Array, rows: Layout, memory: Array) -> None:
        """Merge each grid's best row into the best of all; placements of equal sizes compete for one place."""
        time = np.broadcast_to(step_time(self.job, rows, self.rate), np.shape(grid))
        starts = np.flatnonzero(np.diff(grid, prepend=-1))
        fastest = np.minimum.reduceat(time, starts)
        tied = np.flatnonzero(time == np.repeat(fastest, np.diff(starts, append=len(grid))))
        table = np.stack([time, memory, rows.x, rows.y, rows.z, rows.data, rows.placement, rows.micro_batch,
                          rows.recompute, rows.weight_cache], axis=1)[tied]  # fmt: skip
        table = np.concatenate([self.kept, table])
        table = table[_order(table)]
        _, first = np.unique(table[:, _SIZES], axis=0, return_index=True)
        self.kept = table[np.sort(first)[: self.space.top]]


def _distinct(ascending: Array) -> int:
    """Different values in an ascending array."""
    return int(np.count_nonzero(np.diff(ascending))) + 1 if len(ascending) else 0


def _order(table: Array) -> Array:
    """The documented order of rows (time, memory, x, y, z, data, placement, micro-batch, recompute, cache)."""
    time, memory, _, y, z, data, placement, micro, recompute, cache = table.T
    return np.lexsort((cache, recompute, -micro, placement, -y, -z, -data, memory, time))
