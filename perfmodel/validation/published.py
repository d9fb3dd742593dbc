"""Predictions against figures from papers, which `data/published.csv` holds with their citations."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, cast

import numpy as np

from perfmodel.errors import PerfmodelError, UsageError
from perfmodel.frameworks import loading
from perfmodel.machines import profiles
from perfmodel.models.model import Transformer, closed_form_flops
from perfmodel.parallel.axes import AXES
from perfmodel.parallel.choices import AXONN_OVERLAPS, RECOMPUTES, WEIGHT_CACHES, Overlap, Recompute, WeightCache
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.settings import CONTENTION, Settings
from perfmodel.search.search import Space, rank
from perfmodel.step.predict import predict
from perfmodel.step.prediction import Prediction
from perfmodel.units import GIBI, parse
from perfmodel.validation.compare import model_of

_LADDER = "overlap ladder"
_FILE = "validation/data/published.csv"
# What ran, where that is not AxoNN in Megatron-LM; Narayanan's and Korthikanti's runs state all that differs from it.
_AS_RUN = ("batch time", _LADDER)  # whole steps, which ran with the framework's own micro-batch
_FRAMEWORKS: Mapping[str, str] = {"nanoGPT": "axonn-nanogpt"}
# For tables: what the error of each quantity refers to.
UNITS: Mapping[str, str] = {
    "step_s": "s",
    "compute_s": "s",
    "gain": "times",
    "tflops": "s",
    "state_GiB": "GiB",
    "activations_GiB": "GiB",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One figure with its question, its prediction, and the predicted layout."""

    row: Mapping[str, str]
    layout: Layout
    predicted: float
    published: float

    @property
    def error(self) -> float:
        """Predicted over published, less 1."""
        return self.predicted / self.published - 1


def rows() -> list[dict[str, str]]:
    """The shipped figures."""
    text = files("perfmodel").joinpath(_FILE).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def validate(check: str = "") -> tuple[Published, ...]:
    """Predict every shipped figure, or those of one check."""
    found = [row for row in rows() if check in ("", row["check"])]
    if not found:
        raise UsageError(f"no check is called {check!r} (known: {', '.join(checks())})")
    return tuple(predicted(row) for row in found)


def checks() -> list[str]:
    """Kinds of figures, in order."""
    return list(dict.fromkeys(row["check"] for row in rows()))


def predicted(row: Mapping[str, str], contention: float = CONTENTION) -> Published:
    """Predict a row on its own grid, or on the best; for the ladder, on the best with everything overlapped."""
    fixed = {name: int(size) for name, size in (part.split("=") for part in row["grid"].split())}
    everything = " ".join(sorted(AXONN_OVERLAPS))
    job = _job(row, row["overlap"] or everything, contention)
    gain = row["quantity"] == "gain"
    chosen_for = _job(row, everything, contention) if row["check"].startswith(_LADDER) else job
    layout, _ = _best(chosen_for, row, () if gain else tuple(fixed.items()))
    prediction = predict(job, layout)
    published = float(row["published"])
    if gain:
        _, slower = _best(job, row, tuple(fixed.items()))
        return Published(row=row, layout=layout, predicted=slower / float(prediction.step), published=published)
    if row["quantity"] == "tflops":
        published = _seconds(job, layout, published * parse("1 Tflop/s", "flop/s"))
    return Published(row=row, layout=layout, predicted=_quantity(row["quantity"], job, prediction), published=published)


@cache
def _job_of(
    machine: str, model: str, sequence: int, batch: int, framework: str, settings: tuple[tuple[str, Any], ...]
) -> Job:
    given = Settings(fidelity="full", framework=loading.load(framework), **dict(settings))
    return Job.of(
        model_of(model, sequence=sequence), profiles.load(machine), batch=batch, sequence=sequence, settings=given
    )


def _job(row: Mapping[str, str], overlap: str, contention: float) -> Job:
    names = frozenset(cast("Overlap", name) for name in overlap.split() if name != "none")
    settings = (
        ("overlap", names),
        ("contention", contention),
        ("flash_attention", row["attention"] != "materialized"),
        ("dropout", row["dropout"] == "yes"),
        ("bucket", 0.0),  # AxoNN sends each gradient by itself (axonn 0.2.0, sync_gradients: `vectorize` is not there)
        ("weight_bytes", float(row["weight_bytes"] or 2)),
    )
    framework = _FRAMEWORKS.get(row["check"], "axonn")
    sequence, batch = int(row["sequence_length"]), int(row["batch_sequences"])
    return _job_of(row["machine"], row["model"], sequence, batch, framework, settings)


def _best(job: Job, row: Mapping[str, str], fixed: tuple[tuple[str, int], ...]) -> tuple[Layout, float]:
    """The fastest layout with some axes fixed, and its seconds. A whole grid is taken as it is: it ran."""
    own = job.settings.framework.spread.micro_batch if row["check"].startswith(_AS_RUN) else None
    micro_batch = int(row["micro_batch"]) if row["micro_batch"] else own
    recompute, cache = cast("Recompute", row["recompute"]), cast("WeightCache | None", row["weight_cache"] or None)
    if len(fixed) == len(AXES) and micro_batch:
        layout = Layout(
            **dict(fixed),
            micro_batch=micro_batch,
            recompute=RECOMPUTES.index(recompute),
            weight_cache=WEIGHT_CACHES.index(cache or "forward"),
        )
        return layout, float(predict(job, layout).step)
    return _searched(
        job,
        Space(gpus=int(row["gpus"]), micro_batch=micro_batch, recompute=recompute, weight_cache=cache, top=1),
        fixed,
    )


def _searched(job: Job, space: Space, fixed: tuple[tuple[str, int], ...]) -> tuple[Layout, float]:
    ranking = rank(replace(job, settings=replace(job.settings, fixed=dict(fixed))), space)
    if not len(ranking):
        raise PerfmodelError(f"nothing fits {space.gpus} devices of {job.machine.name} for {job.model.name}")
    return ranking.layouts.take(0), float(ranking.prediction.step[0])  # type: ignore[index]


def _quantity(name: str, job: Job, prediction: Prediction) -> float:
    memory = prediction.memory
    quantities: dict[str, Callable[[], Any]] = {
        "step_s": lambda: prediction.step,
        "tflops": lambda: prediction.step,
        "compute_s": lambda: slowed_computation(job, prediction),
        "state_GiB": lambda: (memory.weights + memory.gradients + memory.optimizer) / GIBI,
        "activations_GiB": lambda: memory.activations / GIBI,
    }
    return float(quantities[name]())


def slowed_computation(job: Job, prediction: Prediction) -> float:
    """Seconds of computation as a profiler sees them: alone, plus the slowdown by concurrent communication.

    With h seconds hidden, step = computation + communication - h + contention * h, which gives h.
    """
    if prediction.compute is None:
        raise PerfmodelError("at paper fidelity there is no computation")
    contention = job.settings.contention
    apart = prediction.compute + prediction.communication.total
    hidden = np.maximum(0.0, apart - prediction.step) / (1 - contention)
    return float(prediction.compute + contention * hidden)


def _seconds(job: Job, layout: Layout, rate: float) -> float:
    """Seconds of a step at `rate` FLOP/s per device, by the closed formula of Narayanan et al. 2021."""
    shape = job.model.transformer
    if not isinstance(shape, Transformer):
        raise PerfmodelError(f"{job.model.name} is not a decoder that the closed formula counts")
    flops = closed_form_flops(
        batch=job.batch, sequence=job.sequence, layers=shape.layers, hidden=shape.hidden, vocabulary=shape.vocabulary
    )
    return float(flops / (layout.gpus * rate))


_SAME_RUN = ("machine", "model", "gpus", "published")
_EXACT = 0.0005


@dataclass(frozen=True, slots=True)
class ContentionFit:
    """The contention of a machine at which the prediction of `row` is the published figure."""

    row: Mapping[str, str]
    contention: float

    def same_run(self, row: Mapping[str, str]) -> bool:
        """Whether a row is the fitted one, or the same figure of the same run under another check."""
        return all(row[name] == self.row[name] for name in _SAME_RUN)


def root(rising: Callable[[float], float], low: float, high: float, *, exact: float = _EXACT) -> float:
    """The root of a rising function between `low` and `high`, to within `exact`, by bisection.

    >>> round(root(lambda x: x * x - 2, 0, 2), 3)
    1.414
    """
    if rising(low) > 0 or rising(high) < 0:
        raise PerfmodelError(f"nothing from {low:g} to {high:g} fits: {rising(low):+.3g} to {rising(high):+.3g}")
    while high - low > exact:
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


def fits() -> tuple[ContentionFit, ...]:
    """The fit of every machine for which a shipped figure is marked."""
    return tuple(ContentionFit(row, _contention(row)) for row in rows() if row["fit"])


def _contention(row: Mapping[str, str]) -> float:
    """Between 0 (overlap costs nothing) and 1 (overlap gains nothing); the step time rises with it."""
    return root(lambda contention: predicted(row, contention).error, 0.0, 1.0)


def refitted(found: Sequence[Published], fitted: Sequence[ContentionFit]) -> tuple[Published | None, ...]:
    """The same figures with their machine's fit; None where there is none, and for what is not scored.

    Only step times are scored: contention slows both computation and communication, in unknown proportions.
    """
    of_machine = {fit.row["machine"]: fit for fit in fitted}
    return tuple(_refitted(one.row, of_machine.get(one.row["machine"])) for one in found)


def _refitted(row: Mapping[str, str], fit: ContentionFit | None) -> Published | None:
    if fit is None or row["quantity"] != "step_s" or fit.same_run(row):
        return None
    return predicted(row, fit.contention)
