"""Predictions against measured steps: rows of one job predicted together, then scored."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import cast

import numpy as np

from perfmodel import models
from perfmodel.errors import PerfmodelError
from perfmodel.frameworks import loading
from perfmodel.machines import profiles
from perfmodel.machines.allocation import count_problem
from perfmodel.machines.machine import Dtype, DtypeRates, Machine
from perfmodel.memory.per_device import memory_per_device
from perfmodel.models.model import Model, Transformer
from perfmodel.models.scaling import scaled
from perfmodel.parallel.axes import AXES
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES, Recompute, WeightCache
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import PLACEMENTS, Layout
from perfmodel.parallel.rules import first_broken, grid_rules, micro_batch_rule
from perfmodel.parallel.settings import Settings
from perfmodel.search.search import Space, rank
from perfmodel.step.predict import step_time
from perfmodel.validation.measured_steps import MeasuredStep, Reading, shape_of
from perfmodel.validation.scores import Order, Sizes

# Weights are gathered once for the forward and once for the backward pass, as FSDP does, for each recomputation mode.
_GATHERED_TWICE: Mapping[str, WeightCache] = {"none": "none", "selective": "none", "full": "forward"}
_HALVES: tuple[Dtype, ...] = ("bf16", "fp16")  # as fast as each other, and of the same size


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A measured step with its prediction; `layout` is the row's own, or the best where it names none."""

    row: MeasuredStep
    job: Job
    group: str
    layout: Layout
    predicted: float
    measured: float
    memory: float

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compared rows in the order of the file, and the problems of the others."""

    rows: tuple[Compared, ...]
    problems: tuple[str, ...]
    dropped: int

    @property
    def sizes(self) -> Sizes:
        """Errors of the step time."""
        return Sizes.of([one.error for one in self.rows])

    @property
    def order(self) -> Order:
        """Agreement in order within groups, over the rows that name their grid."""
        rows = [one for one in self.rows if one.row.grid]
        return Order.of([one.predicted for one in rows], [one.measured for one in rows], [one.group for one in rows])

    @property
    def memory(self) -> Sizes | None:
        """Errors of the memory, over the rows that state it."""
        errors = [one.memory / one.row.memory - 1 for one in self.rows if one.row.memory]
        return Sizes.of(errors) if errors else None


def compare(
    reading: Reading,
    settings: Settings | None = None,
    *,
    machine: Machine | None = None,
    model: Model | None = None,
) -> Comparison:
    """Predict every row; rows that cannot be predicted are dropped with a reason. `settings`: what rows do not state.

    `machine`, `model`: loaded ones that replace those named in the rows.
    """
    base = settings or Settings(fidelity="full")
    load = cache(profiles.load)
    jobs: dict[tuple[object, ...], Job] = {}
    batches: dict[tuple[object, ...], list[MeasuredStep]] = {}
    problems: dict[int, str] = {}
    for row in reading.rows:
        key = _key(row)
        try:
            if key not in jobs:
                on = training_in(row.dtype, machine or load(row.machine))
                jobs[key] = _job(row, on, _model(row, model), base)
            _check_count(jobs[key].machine, row.gpus)
            batches.setdefault(key, []).append(row)
        except PerfmodelError as error:
            problems[row.line] = str(error)
    found: dict[int, Compared] = {}
    for key, rows in batches.items():
        for one in _predicted(jobs[key], rows, problems):
            found[one.row.line] = one
    kept = tuple(found[row.line] for row in reading.rows if row.line in found)
    told = tuple(sorted((*reading.problems, *problems.items())))
    return Comparison(
        kept,
        tuple(f"{reading.path}:{line}: {text}" for line, text in told),
        reading.dropped + sum(row.repetitions for row in reading.rows) - sum(one.row.repetitions for one in kept),
    )


@cache
def model_of(given: str | tuple[int | None, ...], *, sequence: int | None) -> Model:
    """A model by its name, or by its six numbers (as a tuple, or joined by commas): a GPT with biases and a tied head.

    >>> model_of("1024,24,16,,,51200", sequence=1024).parameters
    355788800
    """
    if isinstance(given, str) and "," not in given:
        return models.load(given)
    numbers = shape_of(given) if isinstance(given, str) else given
    if sequence is None:
        raise PerfmodelError("a model given by its numbers has no sequence length of its own: sequence_length")
    hidden, layers, heads, kv_heads, ffn, vocabulary = numbers
    shape = Transformer(
        layers=layers or 0, hidden=hidden or 0, heads=heads or 0, vocabulary=vocabulary or 0, sequence=sequence,
        kv_heads=kv_heads, feed_forward=ffn, learned_positions=sequence,
    )  # fmt: skip
    return shape.model(f"gpt-h{hidden}-l{layers}")


def _model(row: MeasuredStep, model: Model | None) -> Model:
    known = model or model_of(row.model, sequence=row.sequence)
    return scaled(known, layers=row.scale_layers, hidden=row.scale_hidden)


def training_in(dtype: Dtype | None, machine: Machine) -> Machine:
    """The machine with the rates of a row's number format of products; the two 16-bit formats are interchangeable."""
    device = machine.device
    if dtype in (None, device.dtype) or {dtype, device.dtype} <= set(_HALVES):
        return machine
    peak, gemm = device.peak.get(dtype), device.gemm.get(dtype)
    if peak is None:
        raise PerfmodelError(f"the step is in {dtype}, for which {machine.name} has no rate (it has {device.dtype})")
    rates = replace(device, peak=DtypeRates(**{dtype: peak}), gemm=DtypeRates(**{dtype: gemm}))
    return replace(machine, device=rates)


def _check_count(machine: Machine, gpus: int) -> None:
    if problem := count_problem(machine, gpus):
        raise PerfmodelError(problem)


def _key(row: MeasuredStep) -> tuple[object, ...]:
    """What all rows of a job have in common."""
    shape = row.model, row.scale_layers, row.scale_hidden, row.sequence, row.batch
    return row.machine, *shape, row.dtype, row.framework, row.attention, row.dropout, row.optimizer, row.overlap


def _job(row: MeasuredStep, machine: Machine, model: Model, base: Settings) -> Job:
    settings = replace(
        base,
        framework=loading.load(row.framework) if row.framework else base.framework,
        flash_attention=row.attention != "materialized",
        attention_kernel="flash_1" if row.attention == "flash-1" else base.attention_kernel,
        dropout=row.dropout,
        optimizer=row.optimizer,
        overlap=base.overlap if row.overlap is None else row.overlap,
        ignore_memory=True,
    )
    return Job.of(model, machine, batch=row.batch, sequence=row.sequence, settings=settings)


def _predicted(job: Job, rows: list[MeasuredStep], problems: dict[int, str]) -> Iterable[Compared]:
    """Predict rows that state their whole layout as one array, and each of the others by a search."""
    stated = [row for row in rows if row.grid and row.micro_batch and row.recompute]
    if stated:
        layouts = _layouts(stated)
        rules = (*grid_rules(job), micro_batch_rule(job))
        broken = first_broken(rules, layouts)
        times, memory = step_time(job, layouts), memory_per_device(job, layouts).total
        for number, row in enumerate(stated):
            layout = layouts.take(number)
            if broken[number] < len(rules):
                problems[row.line] = rules[broken[number]].sentence(layout)
            else:
                yield _compared(job, row, layout, np.broadcast_to(times, broken.shape)[number], memory[number])  # type: ignore[index]
    for row in rows:
        if row not in stated:
            try:
                yield _best(job, row)
            except PerfmodelError as error:
                problems[row.line] = str(error)


def _layouts(rows: list[MeasuredStep]) -> Layout:
    caches = [row.weight_cache or _GATHERED_TWICE[row.recompute or "none"] for row in rows]
    return Layout.of(
        np.array([row.grid for row in rows], dtype=np.int64).T,
        placement=np.array([_placed(row) for row in rows]),
        micro_batch=np.array([row.micro_batch for row in rows]),
        recompute=np.array([RECOMPUTES.index(cast("Recompute", row.recompute)) for row in rows]),
        weight_cache=np.array([WEIGHT_CACHES.index(cast("WeightCache", one)) for one in caches]),
    )


def _placed(row: MeasuredStep) -> int:
    return PLACEMENTS.index(row.placement)


def _best(job: Job, row: MeasuredStep) -> Compared:
    """The best layout that the row allows and that fits in memory."""
    fixed: dict[str, int] = dict(zip(AXES, row.grid, strict=True)) if row.grid else {}
    asked = replace(job, settings=replace(job.settings, fixed=fixed, ignore_memory=False))
    space = Space(
        gpus=row.gpus,
        placements=(_placed(row),),
        micro_batch=row.micro_batch,
        recompute=cast("Recompute | None", row.recompute),
        weight_cache=cast("WeightCache | None", row.weight_cache),
        top=1,
    )
    ranking = rank(asked, space)
    if not len(ranking):
        turned_down = ", ".join(f"{reason} {count}" for reason, count in ranking.rejected.items())
        raise PerfmodelError(f"no layout that the row allows can run; turned down by: {turned_down}")
    prediction = ranking.prediction
    return _compared(job, row, ranking.layouts.take(0), prediction.step[0], prediction.memory.total[0])  # type: ignore[index]


def _compared(job: Job, row: MeasuredStep, layout: Layout, predicted: float, memory: float) -> Compared:
    tokens = job.batch * job.sequence
    measured = row.step if row.step is not None else tokens / ((row.tokens_per_s_per_gpu or 1.0) * row.gpus)
    group = row.group or f"{row.machine} {_called(row, job)} s{job.sequence} b{job.batch} g{row.gpus}"
    return Compared(
        row=row,
        job=job,
        group=group,
        layout=layout,
        predicted=float(predicted),
        measured=float(measured),
        memory=float(memory),
    )


def _called(row: MeasuredStep, job: Job) -> str:
    """A model's name, with the changes to its shape."""
    layers = f" l{row.scale_layers}" if row.scale_layers else ""
    return f"{job.model.name}{layers}{f' x{row.scale_hidden}' if row.scale_hidden else ''}"
