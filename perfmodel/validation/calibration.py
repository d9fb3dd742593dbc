"""A few figures of a profile fitted to measured steps, robustly and within bounds, and scored on steps left out.

The residual of a row is log(predicted / measured), so that a step of a second and one of an hour weigh the same. Where
the launcher timed collectives, each operation and axis adds such a residual, weighted by sqrt(its seconds / the
step's), so that a negligible one has no influence. The unknowns are the logarithms of the factors of `adjustments`.
soft_l1 (scipy.optimize.least_squares) limits the influence of gross outliers. A parameter whose
standard error would be too large stays as it is (`determined`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from perfmodel.costs.costs import Factors
from perfmodel.errors import PerfmodelError, UsageError, nearest
from perfmodel.machines.machine import Machine
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.step.predict import step_time
from perfmodel.traffic.per_step import traffic
from perfmodel.units import Array
from perfmodel.validation.collectives import predicted_and_timed
from perfmodel.validation.compare import Compared, Comparison
from perfmodel.validation.fit_parameters import NAMES, Adjustment, Change, adjustments
from perfmodel.validation.identifiability import standard_errors, weakest
from perfmodel.validation.measured_steps import Reading
from perfmodel.validation.scores import Sizes

_STEP = 0.005  # step of the differences, in logarithms: wide enough to smooth the kinks of the formulas
_STEADY = 0.01  # least scatter assumed of steps
_LOOSE = 0.1  # beyond which a residual is an outlier, before the scatter is known
_NORMAL = 1.4826  # standard deviation over median absolute deviation
_OUTLYING = 4.0
_FOLDS = 8
_FEW = 12  # most rows for which each is left out by itself
_MOST_STEPS = 60  # of a fit; good data need a dozen, bad data oscillate between kinks of the formulas
_AT_BOUND = 1.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A parameter with its factor, the factor's relative standard error, and whether it ended at a bound."""

    adjustment: Adjustment
    factor: float
    error: float
    at_bound: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What was fitted to which rows, what was kept and why, and the errors before, after and on rows left out."""

    machine: Machine
    rows: tuple[Compared, ...]
    fitted: tuple[Fitted, ...]
    left_alone: tuple[tuple[str, str], ...]
    before: Sizes
    after: Sizes
    held_out: Sizes
    folds: int
    outliers: tuple[tuple[int, float], ...]

    @property
    def helps(self) -> bool:
        """Whether rows that were left out are predicted better than before."""
        return self.held_out.mape < self.before.mape

    def changes(self) -> tuple[Change, ...]:
        """The figures that change."""
        return tuple(change for one in self.fitted for change in one.adjustment.changed(one.factor))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Batch:
    """Rows of one job, evaluated together."""

    job: Job
    layouts: Layout
    timed: tuple[tuple[int, str, str], ...]

    def seconds(self, factors: dict[str, Array]) -> tuple[Array, Array]:
        """Seconds of steps by [sample, row] and of collectives by [sample, place in `timed`]; factors are columns."""
        columns: dict[str, Any] = {each.name: factors.get(each.name, np.ones((1, 1))) for each in fields(Factors)}
        given = Factors(**columns)
        own, costs = self.job.costs.constants, self.job.costs.scaled(given)
        # Rates that no fitted figure determines stay as they are.
        constants = replace(costs.constants, channels=own.channels, tapered=own.tapered)
        there = replace(self.job, costs=replace(costs, constants=constants))
        samples = max(len(column) for column in (np.ones((1, 1)), *factors.values()))
        shape = samples, np.size(self.layouts.x)
        return np.broadcast_to(np.asarray(step_time(there, self.layouts)), shape), self._sent(there, shape)

    def _sent(self, there: Job, shape: tuple[int, int]) -> Array:
        """Seconds of the timed collectives on a machine."""
        found: dict[tuple[str, str], Array] = {}
        for each in traffic(there, self.layouts) if self.timed else ():
            key = each.operation, each.link.axis
            found[key] = found.get(key, np.zeros(shape)) + each.total
        sums = [found[operation, axis][:, row] for row, operation, axis in self.timed]
        return np.array(sums).T.reshape(shape[0], len(sums))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Problem:
    """All rows and the parameters to adjust; a point is a row of logarithms, one for each of `among`."""

    batches: tuple[_Batch, ...]
    among: tuple[Adjustment, ...]
    measured: Array
    weights: Array
    owners: Array

    def residuals(self, points: Array) -> Array:
        """Weighted log(predicted / measured) by [point, observation]: steps of all rows, then what was timed."""
        columns = {one.scales: np.exp(points[:, [place]]) for place, one in enumerate(self.among)}
        steps, sent = zip(*(batch.seconds(columns) for batch in self.batches), strict=True)
        found = np.concatenate([*steps, *sent], axis=1)
        return self.weights * np.log(np.broadcast_to(found, (len(points), found.shape[1])) / self.measured)

    def jacobian(self, point: Array) -> Array:
        """The residuals' derivatives by [observation, parameter]: central differences, within the bounds."""
        low, high = self.bounds()
        shift = _STEP * np.eye(len(point))
        above, below = np.minimum(point + shift, high), np.maximum(point - shift, low)
        found = self.residuals(np.concatenate([above, below]))
        width = np.diagonal(above - below)
        slopes: Array = (found[: len(point)] - found[len(point) :]).T / width
        return slopes

    def bounds(self) -> tuple[Array, Array]:
        """Of the logarithms."""
        ends = np.log([[one.low, one.high] for one in self.among]).reshape(-1, 2)
        return ends[:, 0], ends[:, 1]

    def only(self, kept: Sequence[Adjustment]) -> "_Problem":
        """With some of the parameters."""
        return replace(self, among=tuple(kept))

    def fit(self, rows: Array, scale: float) -> Array:
        """The point that fits some rows best; `scale`: residuals beyond it have less and less weight."""
        from scipy.optimize import least_squares  # noqa: PLC0415 - half a second, and an extra of its own

        if not self.among:
            return np.zeros(0)
        kept = np.isin(self.owners, rows)

        def residuals(point: Array) -> Array:
            found: Array = self.residuals(point[None, :])[0, kept]
            return found

        def jacobian(point: Array) -> Array:
            found: Array = self.jacobian(point)[kept]
            return found

        start = np.zeros(len(self.among))
        found = least_squares(
            residuals, start, jac=jacobian, bounds=self.bounds(), x_scale="jac", loss="soft_l1", f_scale=scale,
            max_nfev=_MOST_STEPS,
        )  # fmt: skip
        return np.asarray(found.x)


def calibrate(comparison: Comparison, machine: Machine, names: Sequence[str] = ()) -> Calibration:
    """Fit the parameters called `names` (all, if none are named) to the rows of one machine that state what ran."""
    check_installed()
    rows = _usable(comparison)
    problem = _problem(rows, _chosen(machine, names))
    everything = np.arange(len(rows))
    kept, point, left = _settled(problem, everything)
    fitted = problem.only(kept)
    residuals = fitted.residuals(point[None, :])[0, everything]
    sigma = _scatter(residuals, len(kept))
    errors = standard_errors(fitted.jacobian(point), sigma) if kept else np.zeros(0)
    folds = _folds(rows)
    apart = np.empty(len(rows))
    for fold in folds:
        there = fitted.fit(np.setdiff1d(everything, fold), _soft(sigma))
        apart[fold] = fitted.residuals(there[None, :])[0, fold]
    untouched = problem.only(()).residuals(np.zeros((1, 0)))[0, everything]
    before, after, held_out = (Sizes.of(np.expm1(each).tolist()) for each in (untouched, residuals, apart))
    return Calibration(
        machine=machine,
        rows=rows,
        fitted=tuple(_fitted(*one) for one in zip(kept, point, errors, strict=True)),
        left_alone=tuple(left),
        before=before,
        after=after,
        held_out=held_out,
        folds=len(folds),
        outliers=tuple(_outliers(rows, residuals, sigma)),
    )


def stated(reading: Reading) -> Reading:
    """The rows that state what ran; on a row whose layout has to be guessed, a fit would fit the guess."""
    wanted = ("grid", "micro_batch", "recompute")
    missing = {row.line: [name for name in wanted if not getattr(row, name)] for row in reading.rows}
    told = [
        (line, f"says nothing of {', '.join(names)}, so what ran is not known")
        for line, names in missing.items()
        if names
    ]
    kept = tuple(row for row in reading.rows if not missing[row.line])
    return replace(reading, rows=kept, problems=(*reading.problems, *told), dropped=reading.dropped + len(told))


def check_installed() -> None:
    """Raise an error with instructions where scipy is not installed."""
    try:
        import scipy.optimize  # noqa: F401, PLC0415 - as above
    except ImportError:
        raise PerfmodelError("calibrate needs scipy: pip install 'perfmodel[calibrate]'") from None


def _usable(comparison: Comparison) -> tuple[Compared, ...]:
    """Rows by job."""
    jobs = list(dict.fromkeys(id(one.job) for one in comparison.rows))
    rows = tuple(sorted(comparison.rows, key=lambda one: jobs.index(id(one.job))))
    if len(rows) < 2:
        raise PerfmodelError(f"{len(rows)} rows to fit to, wanted two at least")
    return rows


def _chosen(machine: Machine, names: Sequence[str]) -> tuple[Adjustment, ...]:
    if unknown := [name for name in names if name not in NAMES]:
        raise UsageError(f"no parameter is called {unknown[0]!r} ({nearest(unknown[0], list(NAMES))})")
    return tuple(one for one in adjustments(machine) if not names or one.name in names)


def _problem(rows: Sequence[Compared], among: tuple[Adjustment, ...]) -> _Problem:
    """The problem, with the rows of one job next to each other."""
    batches: list[_Batch] = []
    terms: list[tuple[int, float, float]] = []  # row, seconds, weight
    for mine in _neighbours(rows):
        columns = {each.name: np.array([getattr(one.layout, each.name) for one in mine]) for each in fields(Layout)}
        known = [(place, each) for place, one in enumerate(mine) for each in predicted_and_timed(one)]
        first = sum(int(np.size(batch.layouts.x)) for batch in batches)
        terms += [(first + place, each.seconds, (each.seconds / mine[place].measured) ** 0.5) for place, each in known]
        timed = tuple((place, each.operation, each.axis) for place, each in known)
        batches.append(_Batch(job=mine[0].job, layouts=Layout(**columns), timed=timed))
    owners, seconds, weights = (
        (np.array(column) for column in zip(*terms, strict=True)) if terms else (np.zeros(0),) * 3
    )
    return _Problem(
        batches=tuple(batches),
        among=among,
        measured=np.append([one.measured for one in rows], seconds),
        weights=np.append(np.ones(len(rows)), np.minimum(weights, 1.0)),
        owners=np.append(np.arange(len(rows)), owners),
    )


def _neighbours(rows: Sequence[Compared]) -> Iterator[list[Compared]]:
    mine: list[Compared] = []
    for one in rows:
        if mine and one.job is not mine[0].job:
            yield mine
            mine = []
        mine.append(one)
    yield mine


def _settled(problem: _Problem, rows: Array) -> tuple[list[Adjustment], Array, list[tuple[str, str]]]:
    """The parameters that the rows determine, their best point, and why the others are kept."""
    kept, left, scale = list(problem.among), list[tuple[str, str]](), _LOOSE
    while True:
        now = problem.only(kept)
        point = now.fit(rows, scale)
        sigma = _scatter(now.residuals(point[None, :])[0, rows], len(kept))
        weak = weakest(now.jacobian(point), sigma, [one.name for one in kept]) if kept else None
        if weak is None:
            return kept, now.fit(rows, _soft(sigma)), left
        scale = _soft(sigma)
        left.append((kept.pop(weak[0]).name, weak[1]))


def _scatter(residuals: Array, parameters: int) -> float:
    """Standard deviation estimated from the median, which is robust to outliers."""
    freedom = max(1, len(residuals) - parameters)
    found = _NORMAL * float(np.median(np.abs(residuals))) * (len(residuals) / freedom) ** 0.5
    return float(max(_STEADY, found))


def _soft(sigma: float) -> float:
    return 1.5 * sigma


def _folds(rows: Sequence[Compared]) -> list[Array]:
    """Rows that are left out together: whole groups, dealt to eight folds; each row by itself where there are few."""
    if len(rows) <= _FEW:
        return [np.array([place]) for place in range(len(rows))]
    groups = list(dict.fromkeys(one.group for one in rows))
    several = len(groups) > 1
    dealt = np.array([groups.index(one.group) if several else place for place, one in enumerate(rows)]) % _FOLDS
    return [np.flatnonzero(dealt == fold) for fold in range(_FOLDS) if np.any(dealt == fold)]


def _fitted(adjustment: Adjustment, logarithm: float, error: float) -> Fitted:
    factor = float(np.exp(logarithm))
    stopped = factor * _AT_BOUND >= adjustment.high or factor <= adjustment.low * _AT_BOUND
    return Fitted(adjustment=adjustment, factor=factor, error=float(error), at_bound=bool(stopped))


def _outliers(rows: Sequence[Compared], residuals: Array, sigma: float) -> Iterator[tuple[int, Any]]:
    for one, residual in zip(rows, residuals, strict=True):
        if abs(residual) > _OUTLYING * sigma:
            yield one.row.line, float(np.expm1(-residual))
