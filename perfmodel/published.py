"""Predictions against figures printed in papers, which `data/published.csv` holds with their citations."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, cast

import numpy as np

from perfmodel import profiles
from perfmodel.compute import gemm_rate
from perfmodel.errors import PerfmodelError, UsageError
from perfmodel.job import Job
from perfmodel.layout import AXES, Layout
from perfmodel.search import Space, rank
from perfmodel.settings import (
    AXONN_OVERLAPS,
    CONTENTION,
    RECOMPUTES,
    WEIGHT_CACHES,
    Overlap,
    Recompute,
    Settings,
    WeightCache,
)
from perfmodel.step import Prediction, predict
from perfmodel.units import GIBI, parse
from perfmodel.validate import model_of
from perfmodel.workload import Transformer, closed_form_flops

_LADDER = "overlap ladder"
_FILE = "data/published.csv"
# What the error of each quantity is an error of, for tables.
UNITS: Mapping[str, str] = {
    "step_s": "s",
    "compute_s": "s",
    "gain": "times",
    "tflops": "s",
    "state_GiB": "GiB",
    "activations_GiB": "GiB",
}


@dataclass(frozen=True, slots=True)
class Published:
    """One figure with its question, a prediction of it, and the layout that this is of."""

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
    """The grid is the row's own, or the best; the ladder's is the best with everything overlapped."""
    fixed = {name: int(size) for name, size in (part.split("=") for part in row["grid"].split())}
    everything = " ".join(sorted(AXONN_OVERLAPS))
    job = _job(row, row["overlap"] or everything, contention)
    gain = row["quantity"] == "gain"
    chosen_for = _job(row, everything, contention) if row["check"].startswith(_LADDER) else job
    layout, _ = _best(chosen_for, row, () if gain else tuple(fixed.items()))
    prediction = predict(job, layout, gemm_rate(job))
    published = float(row["published"])
    if gain:
        _, slower = _best(job, row, tuple(fixed.items()))
        return Published(row, layout, slower / float(prediction.step), published)
    if row["quantity"] == "tflops":
        published = _seconds(job, layout, published * parse("1 Tflop/s", "flop/s"))
    return Published(row, layout, _quantity(row["quantity"], job, prediction), published)


@cache
def _job_of(machine: str, model: str, sequence: int, batch: int, settings: tuple[tuple[str, Any], ...]) -> Job:
    given = Settings(fidelity="full", **dict(settings))
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
    return _job_of(row["machine"], row["model"], int(row["sequence_length"]), int(row["batch_sequences"]), settings)


def _best(job: Job, row: Mapping[str, str], fixed: tuple[tuple[str, int], ...]) -> tuple[Layout, float]:
    """The fastest layout with some axes fixed, and its seconds. A whole grid is taken as it is: it ran."""
    micro_batch = int(row["micro_batch"]) if row["micro_batch"] else None
    recompute, cache = cast("Recompute", row["recompute"]), cast("WeightCache | None", row["weight_cache"] or None)
    if len(fixed) == len(AXES) and micro_batch:
        layout = Layout(
            **dict(fixed),
            micro_batch=micro_batch,
            recompute=RECOMPUTES.index(recompute),
            weight_cache=WEIGHT_CACHES.index(cache or "forward"),
        )
        return layout, float(predict(job, layout, gemm_rate(job)).step)
    return _searched(
        job, Space(int(row["gpus"]), micro_batch=micro_batch, recompute=recompute, weight_cache=cache, top=1), fixed
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
    """Seconds of computation as a profiler sees them: alone, and what communication beside it takes from it.

    With h seconds hidden: step = computation + communication - h + contention * h, so that h follows from the step.
    """
    if prediction.compute is None:
        raise PerfmodelError("at paper fidelity there is no computation")
    contention = job.settings.contention
    apart = prediction.compute + prediction.communication.total
    hidden = np.maximum(0.0, apart - prediction.step) / (1 - contention)
    return float(prediction.compute + contention * hidden)


def _seconds(job: Job, layout: Layout, rate: float) -> float:
    """Seconds of a step that ran at `rate` FLOP/s a device by the closed formula of Narayanan et al. 2021."""
    shape = job.model.transformer
    if not isinstance(shape, Transformer):
        raise PerfmodelError(f"{job.model.name} is no decoder that the closed formula counts")
    flops = closed_form_flops(
        batch=job.batch, sequence=job.sequence, layers=shape.layers, hidden=shape.hidden, vocabulary=shape.vocabulary
    )
    return float(flops / (layout.gpus * rate))
