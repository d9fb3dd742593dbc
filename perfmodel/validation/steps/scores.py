"""Published steps predicted and scored by set: size, one common factor, order, memory, what ran out."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from perfmodel.errors import PerfmodelError
from perfmodel.memory.per_device import capacity, memory_per_device
from perfmodel.parallel.axes import AXES
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.rules import complaints, grid_rules
from perfmodel.search.search import Space, rank
from perfmodel.step.predict import step_time
from perfmodel.validation.scores import Order, Sizes
from perfmodel.validation.steps import rows as step_rows
from perfmodel.validation.steps.rows import Case

_GROUP = 3  # least rows of a group whose order counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One row with its prediction, seconds and bytes; `fits`: whether it is called to fit."""

    case: Case
    layout: Layout
    predicted: float
    memory: float
    fits: bool

    @property
    def error(self) -> float | None:
        """Predicted over measured, less 1, where a step was measured."""
        return self.predicted / self.case.step - 1 if self.case.step else None

    @property
    def group(self) -> tuple[object, ...]:
        """Rows that differ only in how they are spread."""
        job = self.case.job
        return self.case.set, job.model.name, job.batch, job.sequence, int(self.case.grid.gpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetScore:
    """The scores of one set; None where nothing was measured. `ratio`: geometric mean of measured over predicted."""

    name: str
    sizes: Sizes | None
    ratio: float | None
    with_factor: float | None
    order: Order | None
    memory: Sizes | None
    ran_right: float | None
    ran_out_right: float | None
    refused: Mapping[str, int]


def files(paths: Iterable[str]) -> list[Path]:
    """The files named, and those of folders named that have the columns of published steps."""
    found: list[Path] = []
    for path in map(Path, paths):
        if not path.exists():
            raise PerfmodelError(f"{path} is not there; wanted a .csv file or a folder of them")
        if path.is_dir():
            found += [each for each in sorted(path.glob("*.csv")) if step_rows.has_columns(each)]
        else:
            found.append(path)
    if not found:
        raise PerfmodelError(f"no file with the columns {', '.join(step_rows.NEEDED)} is in {', '.join(paths)}")
    return found


def scored(paths: Iterable[Path], framework: str = "") -> tuple[list[Scored], dict[str, Counter[str]]]:
    """Every row of the files that can be predicted, and by set the reasons why others cannot."""
    found: list[Scored] = []
    refused: dict[str, Counter[str]] = {}
    for path in paths:
        told = refused.setdefault(path.stem, Counter())
        for each in step_rows.read(path, framework):
            if isinstance(each, Case):
                try:
                    found.append(predicted(each))
                except PerfmodelError as error:
                    told[str(error)] += 1
            else:
                told[each[1]] += 1
    return found, refused


def predicted(case: Case) -> Scored:
    """The prediction of a row, on the fastest micro-batch and recomputation that fit where it names none."""
    layout = _layout(case)
    if broken := complaints(grid_rules(case.job), layout):
        raise PerfmodelError(broken[0][1])
    memory = float(np.asarray(memory_per_device(case.job, layout).total))
    return Scored(
        case=case,
        layout=layout,
        predicted=float(np.asarray(step_time(case.job, layout))),
        memory=memory,
        fits=memory <= capacity(case.job),
    )


def _layout(case: Case) -> Layout:
    grid = case.grid.sizes()
    if case.micro_batch and case.recompute:
        cache = WEIGHT_CACHES.index("forward" if case.recompute == "full" else "none")
        return Layout(
            **grid, micro_batch=case.micro_batch, recompute=RECOMPUTES.index(case.recompute), weight_cache=cache
        )
    space = Space(gpus=int(case.grid.gpus), micro_batch=case.micro_batch, recompute=case.recompute, top=1)  # type: ignore[arg-type]
    job = replace(case.job, settings=replace(case.job.settings, ignore_memory=False))
    among = Layout.of([np.array([grid[axis]]) for axis in AXES])
    for asked in (job, case.job):
        best = rank(asked, space, among=among)
        if len(best):
            return best.layouts.take(0)
    raise PerfmodelError("no micro-batch and recomputation suits its grid")


def by_set(rows: Sequence[Scored], refused: Mapping[str, Counter[str]]) -> list[SetScore]:
    """Scores of each set, in the order of the files."""
    return [_score(name, [one for one in rows if one.case.set == name], refused[name]) for name in refused]


def _score(name: str, rows: Sequence[Scored], refused: Counter[str]) -> SetScore:
    timed = [one for one in rows if one.case.step]
    ratios = np.array([(one.case.step or 0.0) / one.predicted for one in timed])
    measured = [one for one in rows if one.case.memory]
    errors = [one.memory / (one.case.memory or 1.0) - 1 for one in measured]
    return SetScore(
        name=name,
        sizes=Sizes.of([one.error or 0.0 for one in timed]) if timed else None,
        ratio=float(np.exp(np.log(ratios).mean())) if timed else None,
        with_factor=_with_factor(ratios) if timed else None,
        order=_order(timed),
        memory=Sizes.of(errors) if errors else None,
        ran_right=_share([one.fits for one in rows if one.case.status == "ok"]),
        ran_out_right=_share([not one.fits for one in rows if one.case.status == "oom"]),
        refused=refused,
    )


def _with_factor(ratios: "np.typing.NDArray[np.float64]") -> float:
    """Mean error where all predictions of a set are multiplied by its geometric mean ratio."""
    factor = np.exp(np.log(ratios).mean())
    return float(np.mean(np.abs(factor / ratios - 1)))


def _order(rows: Sequence[Scored]) -> Order | None:
    groups: Counter[object] = Counter(one.group for one in rows)
    kept = [one for one in rows if groups[one.group] >= _GROUP]
    if not kept:
        return None
    return Order.of(
        [one.predicted for one in kept], [one.case.step or 0.0 for one in kept], [one.group for one in kept]
    )


def _share(right: Sequence[bool]) -> float | None:
    return sum(right) / len(right) if right else None
