"""Answers as plain records for programs: SI numbers under keys that carry the unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from perfmodel import __version__
from perfmodel.costs.bandwidth import bandwidth_origins
from perfmodel.memory.per_device import capacity
from perfmodel.parallel.job import Job
from perfmodel.parallel.settings import ResolvedSettings
from perfmodel.records import Record
from perfmodel.search.likely import likely_of
from perfmodel.search.results import layout_columns, result_columns, sweep_columns
from perfmodel.search.results.columns import LayoutRow, ResultRow, SweepRow, at, record_of
from perfmodel.search.scaling import Batch, Point
from perfmodel.search.search import Ranking
from perfmodel.step.flops import model_flops
from perfmodel.step.throughput import throughput, training_run

if TYPE_CHECKING:
    from perfmodel.parallel.layout import Layout
    from perfmodel.search.baselines import Baseline
    from perfmodel.search.explain import Explanation
    from perfmodel.search.uncertainty import Uncertainty
    from perfmodel.step.timeline import TraceEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The parts of an answer besides the ranking: other strategies, training on `tokens` tokens, uncertainty.

    `shown`: how many rows of the ranking are printed, if more were searched.
    """

    baselines: tuple[Baseline, ...] = ()
    tokens: int | None = None
    uncertainty: Uncertainty | None = None
    shown: int | None = None


def ranking_record(ranking: Ranking, beside: Beside | None = None) -> Record:
    """The whole answer of a search."""
    asked = beside or Beside()
    shown = min(asked.shown or len(ranking), len(ranking))
    return _job_record(ranking.job, ranking.space.gpus) | {
        "memory_capacity_B": capacity(ranking.job),
        "compute_source": ranking.job.product_rate.origin if ranking.job.product_rate else "not in the paper's model",
        "bandwidth_source": bandwidth_origins(ranking.job.machine),
        "likely": _likely_record(ranking.job),
        "searched": ranking.searched,
        "feasible": ranking.feasible,
        "evaluated": ranking.evaluated,
        "rejected": dict(ranking.rejected),
        "results": [record_of(result_columns.RESULT, answer) for answer in _answers(ranking, asked.tokens, shown)],
        "baselines": [_baseline_record(ranking, baseline) for baseline in asked.baselines],
        **({"uncertainty": _uncertainty_record(asked.uncertainty)} if asked.uncertainty else {}),
    }


def _answers(ranking: Ranking, tokens: int | None, shown: int) -> Iterator[ResultRow]:
    """The first rows of a ranking, as sources of the columns."""
    job, layouts, prediction = ranking.job, ranking.layouts, ranking.prediction
    rates = throughput(job, layouts, prediction, job.product_rate) if job.product_rate else None
    for row in range(shown):
        step, training = at(prediction.step, row) or 0.0, None
        if tokens is not None:
            training = training_run(job, gpus=ranking.space.gpus, tokens=tokens, step=step)
        yield ResultRow(
            job=job,
            layout=layouts.take(row),
            prediction=prediction,
            throughput=rates,
            row=row,
            training=training,
        )


def _baseline_record(ranking: Ranking, baseline: Baseline) -> Record:
    layout = baseline.layout
    return {
        "name": baseline.name,
        **(_layout_record(ranking.job, layout) if layout else {}),
        "step_time_s": baseline.step,
        "slower_than_best": baseline.gain(at(ranking.prediction.step, 0) or 0.0),
        "reason": baseline.reason,
    }


def _uncertainty_record(found: Uncertainty) -> Record:
    """Intervals and probabilities of the grids worth trying."""
    chances = found.chances()
    return {
        "samples": len(found.steps),
        "grids": int(np.size(found.layouts.x)),
        "best_step_time_interval_s": list(found.interval(0)),
        "worth_a_try": [
            {
                "rank": row + 1,
                "grid": found.layouts.take(row).sizes(),
                "step_time_interval_s": list(found.interval(row)),
                "chance_of_being_fastest": float(chances[row]),
            }
            for row in found.contenders()
        ],
    }


def explanation_record(explanation: Explanation) -> Record:
    """Everything about one grid."""
    job, layout, prediction = explanation.job, explanation.layout, explanation.prediction
    rates = throughput(job, layout, prediction, job.product_rate) if job.product_rate else None
    answer = ResultRow(job=job, layout=layout, prediction=prediction, throughput=rates)
    return (
        _job_record(job, int(layout.gpus))
        | record_of(result_columns.RESULT, answer)
        | {
            "memory_capacity_B": explanation.memory_capacity,
            "compute_equation": explanation.compute_equation,
            "collectives": [asdict(collective) for collective in explanation.collectives],
            "rejected": _rejected(explanation),
            "nearest_grid": explanation.nearest.sizes() if explanation.nearest else None,
        }
    )


def question_record(explanation: Explanation) -> Record:
    """The question behind a timeline: job, layout, settings, and why the grid cannot run, if it cannot."""
    job, layout = explanation.job, explanation.layout
    return (
        _job_record(job, int(layout.gpus))
        | _layout_record(job, layout)
        | {"settings": settings_record(job.settings), "rejected": _rejected(explanation)}
    )


def timeline_record(explanation: Explanation, events: list[TraceEvent], end: float) -> Record:
    """The question behind a timeline, and the events of its micro-step in order of time."""
    ordered = sorted(events, key=lambda event: (event.start, event.end))
    return question_record(explanation) | {"micro_step_s": end, "events": [asdict(event) for event in ordered]}


def _rejected(explanation: Explanation) -> list[Record]:
    return [{"rule": rule, "reason": reason} for rule, reason in explanation.rejections]


def _likely_record(job: Job) -> Record | None:
    """How the likely range of a step was found; None below full fidelity."""
    if job.settings.fidelity != "full":
        return None
    found = likely_of(job)
    return {
        "low": found.low,
        "high": found.high,
        "published_sets": found.sets,
        "published_runs": found.rows,
        "of": found.of,
    }


def settings_record(settings: ResolvedSettings) -> Record:
    """The user's choices of how a step is run and counted."""
    return {
        "activation_bytes": settings.activation_bytes,
        "weight_bytes": settings.weight_bytes,
        "gradient_bytes": settings.gradient_bytes,
        "data_gradient_bytes": settings.sent_gradient_bytes,
        "optimizer": settings.optimizer,
        "flash_attention": settings.flash_attention,
        "framework": settings.framework.name,
        "attention_kernels": list(settings.attention_kernels),
        "tuned_products": settings.tuned_products,
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
        "framework": job.settings.framework.name,
        "attention_source": f"{job.costs.attention.kernel}, {job.costs.attention.origin}",
        "model_flop": model_flops(job),
    }


def _layout_record(job: Job, layout: Layout) -> Record:
    return record_of(layout_columns.LAYOUT, LayoutRow(job=job, layout=layout))


def sweep_record(job: Job, batch: Batch, found: Sequence[Point]) -> Record:
    """All counts as a record; efficiency is tokens per second per device relative to the first count with an answer."""
    rows = [SweepRow(job=job, point=point, result=_best(point)) for point in found]
    first = next((row.tokens_per_device for row in rows if row.tokens_per_device), None)
    return {
        "perfmodel_version": __version__,
        "model": job.model.name,
        "parameters": job.model.parameters,
        "machine": job.machine.name,
        "device": job.machine.device.name,
        "devices_per_node": job.machine.node_devices,
        "sequence_length": job.sequence,
        "fidelity": job.settings.fidelity,
        "framework": job.settings.framework.name,
        "scaling": batch.scaling,
        "points": [_point_record(replace(row, first=first)) for row in rows],
    }


def _best(point: Point) -> Record | None:
    """The best grid of a count of devices, without its rank, which is 1."""
    if point.ranking is None:
        return None
    (best,) = ranking_record(point.ranking)["results"]
    return {key: value for key, value in best.items() if key != "rank"}


def _point_record(scaled: SweepRow) -> Record:
    return record_of(sweep_columns.POINT, scaled) | (scaled.result or {})
