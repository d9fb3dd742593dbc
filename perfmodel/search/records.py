"""Answers as plain records for machines: bare SI numbers under keys that carry the unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel import __version__
from perfmodel.costs.bandwidth import bandwidth_origins
from perfmodel.costs.gemm import GemmRate
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import AXES, PLACEMENTS, Layout
from perfmodel.parallel.settings import RECOMPUTES, WEIGHT_CACHES, Sized
from perfmodel.search.search import Ranking
from perfmodel.step.flops import model_flops
from perfmodel.step.memory import capacity
from perfmodel.step.prediction import Prediction
from perfmodel.step.throughput import derive, train

if TYPE_CHECKING:
    from perfmodel.search.baselines import Baseline
    from perfmodel.search.explain import Explanation
    from perfmodel.search.uncertainty import Uncertainty
    from perfmodel.step.timeline import Event
from collections.abc import Sequence

from perfmodel.records import Record
from perfmodel.search.scaling import Batch, Point

_DERIVED = {
    "sequences_per_s": "sequences_rate",
    "model_flop_per_s": "model_rate",
    "hardware_flop_per_s": "hardware_rate",
    "hardware_flops_utilization": "hardware_of_peak",
    "gemm_rate_utilization": "hardware_of_gemm",
    "lower_bound_s": "least",
    "upper_bound_s": "most",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What an answer says beside the ranking: other strategies, a training of so many tokens, how sure it is.

    `shown`: rows of the ranking that are printed, where it was searched deeper.
    """

    baselines: tuple[Baseline, ...] = ()
    tokens: int | None = None
    uncertainty: Uncertainty | None = None
    shown: int | None = None


def ranking_record(ranking: Ranking, beside: Beside | None = None) -> Record:
    """The whole answer of a search."""
    layouts, prediction, asked = ranking.layouts, ranking.prediction, beside or Beside()
    derived = _derived_columns(ranking.job, layouts, prediction, ranking.rate)
    results = [
        {"rank": row + 1}
        | _layout_record(ranking.job, layouts.take(row))
        | _prediction_record(ranking.job, prediction, row)
        | {name: _at(column, row) for name, column in derived.items()}
        | _training_record(ranking, asked.tokens, row)
        for row in range(min(asked.shown or len(ranking), len(ranking)))
    ]
    return _job_record(ranking.job, ranking.space.gpus) | {
        "memory_capacity_B": capacity(ranking.job),
        "compute_source": ranking.rate.origin if ranking.rate else "not in the paper's model",
        "bandwidth_source": bandwidth_origins(ranking.job.machine),
        "searched": ranking.searched,
        "feasible": ranking.feasible,
        "evaluated": ranking.evaluated,
        "rejected": dict(ranking.rejected),
        "results": results,
        "baselines": [_baseline_record(ranking, baseline) for baseline in asked.baselines],
        **({"uncertainty": _uncertainty_record(asked.uncertainty)} if asked.uncertainty else {}),
    }


def _derived_columns(job: Job, layouts: Layout, prediction: Prediction, rate: GemmRate | None) -> Mapping[str, Any]:
    """Figures that follow from the step time, one a row; None at paper fidelity, which knows no computation."""
    found = derive(job, layouts, prediction, rate) if rate else None
    return {key: getattr(found, name) if found else None for key, name in _DERIVED.items()}


def _training_record(ranking: Ranking, tokens: int | None, row: int) -> Record:
    """Time for a number of tokens, where it was asked for."""
    if tokens is None:
        return {}
    step = _at(ranking.prediction.step, row) or 0.0
    found = train(ranking.job, gpus=ranking.space.gpus, tokens=tokens, step=step)
    return {
        "training_tokens": found.tokens,
        "training_steps": found.steps,
        "training_time_s": found.time,
        "training_node_hours": found.node_hours,
    }


def _baseline_record(ranking: Ranking, baseline: Baseline) -> Record:
    layout = baseline.layout
    return {
        "name": baseline.name,
        **(_layout_record(ranking.job, layout) if layout else {}),
        "step_time_s": baseline.step,
        "slower_than_best": baseline.gain(_at(ranking.prediction.step, 0) or 0.0),
        "reason": baseline.reason,
    }


def _uncertainty_record(found: Uncertainty) -> Record:
    """Intervals and chances of the grids worth a try."""
    chances = found.chances()
    return {
        "samples": len(found.steps),
        "grids": int(np.size(found.layouts.x)),
        "best_step_time_interval_s": list(found.interval(0)),
        "worth_a_try": [
            {
                "rank": row + 1,
                "grid": _grid_record(found.layouts.take(row)),
                "step_time_interval_s": list(found.interval(row)),
                "chance_of_being_fastest": float(chances[row]),
            }
            for row in found.contenders()
        ],
    }


def explanation_record(explanation: Explanation) -> Record:
    """Everything about one grid."""
    job, layout = explanation.job, explanation.layout
    derived = _derived_columns(job, layout, explanation.prediction, explanation.rate)
    return (
        _job_record(job, int(layout.gpus))
        | _layout_record(job, layout)
        | _prediction_record(job, explanation.prediction, None)
        | {name: _at(value, None) for name, value in derived.items()}
        | {
            "memory_capacity_B": explanation.memory_capacity,
            "compute_equation": explanation.compute_equation,
            "collectives": [asdict(collective) for collective in explanation.collectives],
            "rejected": _rejected(explanation),
            "nearest_grid": _grid_record(explanation.nearest) if explanation.nearest else None,
        }
    )


def question_record(explanation: Explanation) -> Record:
    """What a timeline is of: the job, the layout, the settings, and why the grid cannot run, if it cannot."""
    job, layout = explanation.job, explanation.layout
    return (
        _job_record(job, int(layout.gpus))
        | _layout_record(job, layout)
        | {"settings": settings_record(job.settings), "rejected": _rejected(explanation)}
    )


def timeline_record(explanation: Explanation, events: list[Event], end: float) -> Record:
    """What a timeline is of, and the events of its micro-step in order of time."""
    ordered = sorted(events, key=lambda event: (event.start, event.end))
    return question_record(explanation) | {"micro_step_s": end, "events": [asdict(event) for event in ordered]}


def _rejected(explanation: Explanation) -> list[Record]:
    return [{"rule": rule, "reason": reason} for rule, reason in explanation.rejections]


def settings_record(settings: Sized) -> Record:
    """What a user may choose of how a step is run and counted."""
    return {
        "activation_bytes": settings.activation_bytes,
        "weight_bytes": settings.weight_bytes,
        "gradient_bytes": settings.gradient_bytes,
        "data_gradient_bytes": settings.sent_gradient_bytes,
        "optimizer": settings.optimizer,
        "flash_attention": settings.flash_attention,
        "flash_version": settings.flash_version,
        "dropout": settings.dropout,
        "vocabulary_multiple": settings.vocabulary_multiple,
        "overlap": sorted(settings.overlap),
        "contention": settings.contention,
        "host_time_s": settings.host_time,
        "ignore_memory": settings.ignore_memory,
    }


def _job_record(job: Job, gpus: int) -> Record:
    machine = job.machine
    return {
        "perfmodel_version": __version__,
        "model": job.model.name,
        "parameters": job.model.parameters,
        "machine": machine.name,
        "device": machine.device.name,
        "gpus": gpus,
        "nodes": -(-gpus // machine.node_devices),
        "devices_per_node": machine.node_devices,
        "batch_sequences": job.batch,
        "sequence_length": job.sequence,
        "fidelity": job.settings.fidelity,
        "model_flop": model_flops(job),
    }


def _grid_record(layout: Layout) -> Record:
    return {axis: int(layout.size(axis)) for axis in AXES}


def _layout_record(job: Job, layout: Layout) -> Record:
    return {
        "grid": _grid_record(layout),
        "placement": list(PLACEMENTS[int(layout.placement)]),
        "micro_batch": int(layout.micro_batch),
        "accumulation_steps": int(job.accumulation(layout)),
        "recompute": RECOMPUTES[int(layout.recompute)],
        "weight_cache": WEIGHT_CACHES[int(layout.weight_cache)],
    }


def _prediction_record(job: Job, prediction: Prediction, row: int | None) -> Record:
    communication, memory, step = prediction.communication, prediction.memory, _at(prediction.step, row)
    return {
        "step_time_s": step,
        "compute_time_s": _at(prediction.compute, row),
        "communication_time_s": _at(communication.total, row),
        "exposed_communication_time_s": _at(prediction.exposed_communication, row),
        "latency_not_counted_s": _at(prediction.ring_latency, row),
        "communication_s": {term.name: _at(getattr(communication, term.name), row) for term in fields(communication)},
        "memory_B": _at(memory.total, row),
        "memory_terms_B": {term.name: _at(getattr(memory, term.name), row) for term in fields(memory)},
        "model_flops_utilization": _at(prediction.utilization, row),
        "tokens_per_s": job.batch * job.sequence / step if step and prediction.compute is not None else None,
    }


def _at(value: Any, row: int | None) -> float | None:
    if value is None:
        return None
    return float(value) if row is None or np.ndim(value) == 0 else float(value[row])


def sweep_record(job: Job, batch: Batch, found: Sequence[Point]) -> Record:
    """All counts as a record; efficiency is tokens a second and device against the first count with an answer."""
    rows = [_row(job, point) for point in found]
    first = next((row["tokens_per_device_s"] for row in rows if row["tokens_per_device_s"]), None)
    for row in rows:
        row["efficiency"] = row["tokens_per_device_s"] / first if row["tokens_per_device_s"] and first else None
    return {
        "perfmodel_version": __version__,
        "model": job.model.name,
        "parameters": job.model.parameters,
        "machine": job.machine.name,
        "device": job.machine.device.name,
        "devices_per_node": job.machine.node_devices,
        "sequence_length": job.sequence,
        "fidelity": job.settings.fidelity,
        "scaling": batch.scaling,
        "points": rows,
    }


def _row(job: Job, point: Point) -> Record:
    asked = {
        "gpus": point.gpus,
        "nodes": -(-point.gpus // job.machine.node_devices),
        "batch_sequences": point.batch,
        "reason": point.reason,
        "efficiency": None,
        "tokens_per_device_s": None,
        "limited_by": None,
        "largest_communication": None,
    }
    if point.ranking is None:
        return asked
    (best,) = ranking_record(point.ranking)["results"]
    step, tokens = best["step_time_s"], (point.batch or 0) * job.sequence
    found = {
        "tokens_per_device_s": tokens / point.gpus / step if step else None,
        "limited_by": limit(best),
        "largest_communication": largest_term(best),
    }
    return asked | found | {key: value for key, value in best.items() if key != "rank"}


def largest_term(result: Record) -> str | None:
    """What is sent for longest, hidden or not; None where nothing is sent."""
    terms: dict[str, float] = result["communication_s"]
    largest = max(terms, key=lambda name: terms[name])
    return largest if terms[largest] else None


def limit(result: Record) -> str:
    """What takes most of a step: computation, or else the largest term of the communication that it does not hide."""
    computed = result["compute_time_s"] or 0.0
    return (result["exposed_communication_time_s"] > computed and largest_term(result)) or "compute"
