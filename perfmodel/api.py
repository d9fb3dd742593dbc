"""The functions of `import perfmodel`: the questions of the command line, asked from Python.

A model is a name, the path of a file, or a result of `load_model`; so is a machine. Options have the names and defaults
of the command line. Everything wrong with a question is raised as a `PerfmodelError`, never printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

from perfmodel import frames, models
from perfmodel.answers import Answer, FittedProfile, Recommendation
from perfmodel.costs.fidelity import Fidelity
from perfmodel.errors import UsageError, nearest, nothing_left
from perfmodel.frameworks.framework import Framework
from perfmodel.machines import profiles
from perfmodel.machines.machine import Machine
from perfmodel.models.model import Model
from perfmodel.parallel import option_values
from perfmodel.parallel.choices import Recompute, WeightCache
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout, parse_grid
from perfmodel.search import explain as explaining
from perfmodel.search import scaling
from perfmodel.search.question import Question, device_count, machine_of, model_of, scaled_batch
from perfmodel.search.recommend import answer
from perfmodel.search.results import answer_records
from perfmodel.validation import compare as comparing
from perfmodel.validation import level, step_files
from perfmodel.validation import records as measured_records
from perfmodel.validation.measured_steps import Reading

ModelLike: TypeAlias = str | Path | Model
MachineLike: TypeAlias = str | Path | Machine
Measured: TypeAlias = "str | Path | frames.Frame"


class Options(TypedDict, total=False):
    """How a step is run and counted: options of `recommend`, `explain` and `sweep`, as on the command line."""

    seq: int | None
    micro_batch: int | Literal["any"]
    recompute: Recompute | Literal["any"]
    weight_cache: WeightCache | Literal["any"]
    placement: Literal["axonn", "paper", "any"]
    fidelity: Fidelity
    optimizer: str
    flash_attention: bool
    dropout: bool
    bytes: Mapping[str, int] | str
    vocabulary_multiple: int
    overlap: Iterable[str] | str
    framework: str | Path | Framework
    attention_kernel: Literal["flash_1", "flash_2", "flash_3", "cudnn"]
    tuned_products: bool
    host_time: float | str | None
    contention: float | None
    ignore_memory: bool
    memory_margin: float


class SearchOptions(Options, total=False):
    """The same, with fixed or maximum sizes of axes: options of `recommend` and `sweep`."""

    fix: Mapping[str, int] | str
    max: Mapping[str, int] | str


def recommend(
    model: ModelLike,
    machine: MachineLike,
    *,
    batch: int,
    gpus: int | None = None,
    nodes: int | None = None,
    top: int = 10,
    tokens: int | str | None = None,
    uncertainty: bool = False,
    measured: Measured | None = None,
    **options: Unpack[SearchOptions],
) -> Recommendation:
    """Rank all grids of a number of GPUs (or whole nodes) by step time; `batch` is in sequences, for all GPUs together.

    `tokens`: the size of a training, such as "300B". `uncertainty`: how certain the order is. `measured`: steps on the
    same machine, which set the level of predictions.
    """
    question = _question(model, machine, batch, options, SearchOptions)
    wanted = None if tokens is None else option_values.tokens(tokens, "tokens")
    job = _leveled(question.job(), measured)
    space = question.space(device_count(job.machine, gpus, nodes), top)
    ranking, beside = answer(job, space, wanted, uncertain=uncertainty)
    return Recommendation(command="recommend", record=answer_records.ranking_record(ranking, beside), ranking=ranking)


def explain(
    model: ModelLike, machine: MachineLike, *, grid: str | Layout, batch: int, **options: Unpack[Options]
) -> Answer:
    """Every collective, memory term and equation of one grid, even if it cannot run.

    `grid`: "1x2x32x4", or a `Layout`, of which only the sizes are used; the options decide the rest.
    """
    sizes = parse_grid(grid.text() if isinstance(grid, Layout) else str(grid))
    question = _question(model, machine, batch, options, Options)
    found = explaining.explain(question.job(), question.space(int(sizes.gpus), 1), sizes)
    return Answer(command="explain", record=answer_records.explanation_record(found))


def sweep(
    model: ModelLike,
    machine: MachineLike,
    *,
    gpus: Iterable[int] | str,
    batch: int | None = None,
    batch_per_gpu: float | None = None,
    measured: Measured | None = None,
    **options: Unpack[SearchOptions],
) -> Answer:
    """The best grid of each count of GPUs, with the same batch (strong scaling) or the same batch per GPU (weak).

    `measured`: steps on the same machine, which set the level of predictions.
    """
    counts = option_values.devices(gpus, "gpus")
    wanted = scaled_batch(batch, batch_per_gpu)
    question = _question(model, machine, wanted.any_of(counts), options, SearchOptions)
    job = _leveled(question.job(), measured)
    found = scaling.answered(list(scaling.points(job, question.space(counts[0], 1), counts, wanted)))
    return Answer(command="sweep", record=answer_records.sweep_record(job, wanted, found))


def compare(measured: Measured, *, machine: MachineLike | None = None, model: ModelLike | None = None) -> Answer:
    """Predictions compared with measured steps: a file of `perfmodel run`, CSV, Parquet, or a pandas DataFrame.

    `machine`, `model`: for all rows, instead of the columns. `problems` says which rows were left out.
    """
    reading, known = _reading(measured, machine, model)
    found = comparing.compare(reading, **known)
    if not found.rows:
        raise nothing_left(found.problems, reading.path, "compare")
    return Answer(command="compare", record=measured_records.record(found), problems=found.problems)


def calibrate(
    measured: Measured,
    machine: MachineLike,
    *,
    model: ModelLike | None = None,
    fit: Iterable[str] | str = (),
    out: str | Path | None = None,
) -> FittedProfile:
    """Fit a few figures of a machine's profile to measured steps; `out`: a profile to write. Needs scipy.

    `fit`: only these parameters, such as ["gemm", "contention"].
    """
    from perfmodel.validation import calibrated_profile, calibration  # noqa: PLC0415 - only this function needs them

    if out is not None:
        calibrated_profile.free(out, "out")
    calibration.check_installed()
    names = option_values.names(fit)
    reading, known = _reading(measured, machine, model)
    compared = comparing.compare(calibration.stated(reading), **known)
    if not compared.rows:
        raise nothing_left(compared.problems, reading.path, "fit")
    begun = machine_of(machine)
    found = calibration.calibrate(compared, begun, names)
    fitted = FittedProfile(
        command="calibrate",
        record=measured_records.calibration_record(found),
        problems=compared.problems,
        found=found,
        base=_base(machine),
        measured=(str(measured),) if isinstance(measured, (str, Path)) else (),
    )
    if out is not None:
        fitted.write(out)
    return fitted


def _base(machine: MachineLike) -> str:
    """The base of a profile for this machine; empty for a loaded machine that is not shipped."""
    if isinstance(machine, Machine):
        return machine.name if machine.name in profiles.names() else ""
    return str(machine)


def load_model(name: str | Path) -> Model:
    """A model by its name, or by the path of our own YAML or of a Hugging Face config.json."""
    return model_of(name)


def load_machine(name: str | Path) -> Machine:
    """A machine by its name, or by the path of its profile."""
    return machine_of(name)


def model_names() -> list[str]:
    """Names of the models that are known."""
    return models.names()


def machine_names() -> list[str]:
    """Names of the machines whose profiles are shipped."""
    return profiles.names()


def _question(
    model: ModelLike, machine: MachineLike, batch: int, options: Mapping[str, Any], known: type[Options]
) -> Question:
    """The question with its options; an unknown option is refused with the closest name."""
    names = sorted(known.__optional_keys__)  # type: ignore[attr-defined]
    for name in options:
        if name not in names:
            raise UsageError(f"no option is called {name!r} ({nearest(name, names)})")
    return Question(model=model, machine=machine, batch=batch, **options)


def _leveled(job: Job, measured: Measured | None) -> Job:
    """The job at the level of measured steps, if there are any."""
    return job if measured is None else level.at_level(job, _reading(measured, None, None)[0])


def _reading(
    measured: Measured, machine: MachineLike | None, model: ModelLike | None
) -> tuple[Reading, dict[str, Any]]:
    """The measured rows, and the machine and model that stand for their columns, as far as these are loaded records."""
    given, known = {"machine": machine, "model": model}, dict[str, Any]()
    for name, value in given.items():
        if isinstance(value, (Machine, Model)):
            known[name] = value
    names = {name: value.name if name in known else str(value or "") for name, value in given.items()}  # type: ignore[union-attr]
    if isinstance(measured, (str, Path)):
        return step_files.read(Path(measured), **names), known
    if not frames.is_frame(measured):
        raise UsageError(f"measured is a {type(measured).__name__}, wanted a path or a pandas DataFrame")
    return step_files.read_frame(measured, **names), known
