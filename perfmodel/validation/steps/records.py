"""Scores of published steps as records for tables, JSON and CSV."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from perfmodel.parallel.choices import RECOMPUTES
from perfmodel.records import Record
from perfmodel.search.likely import chip, likely
from perfmodel.validation.steps.evidence import coverage, evidence
from perfmodel.validation.steps.scores import Scored, SetScore, by_set


def steps_record(rows: Sequence[Scored], refused: Mapping[str, Counter[str]]) -> Record:
    """Scores by set and over sets, with the coverage of likely ranges, each set left out in turn."""
    scores = by_set(rows, refused)
    timed = [score for score in scores if score.sizes]
    inside, width = coverage(rows, evidence(rows)) if len(timed) > 1 else (None, None)
    sizes = [score.sizes for score in timed if score.sizes]
    return {
        "sets": [_set_record(score) for score in scores],
        "mean_error": float(np.mean([each.mape for each in sizes])) if sizes else None,
        "bias": float(np.mean([each.bias for each in sizes])) if sizes else None,
        "coverage": inside,
        "median_width": width,
        "rows": [_row_record(one) for one in rows],
        "refused": {name: dict(reasons) for name, reasons in refused.items() if reasons},
    }


def _set_record(score: SetScore) -> Record:
    sizes, order, memory = score.sizes, score.order, score.memory
    return {
        "set": score.name,
        "rows": sizes.rows if sizes else 0,
        "refused": sum(score.refused.values()),
        "mean_error": sizes.mape if sizes else None,
        "bias": sizes.bias if sizes else None,
        "worst": sizes.worst if sizes else None,
        "measured_over_predicted": score.ratio,
        "with_one_factor": score.with_factor,
        "spearman": order.spearman if order else None,
        "regret": order.regret if order else None,
        "memory_rows": memory.rows if memory else 0,
        "memory_error": memory.mape if memory else None,
        "memory_bias": memory.bias if memory else None,
        "ran_called_right": score.ran_right,
        "ran_out_called_right": score.ran_out_right,
    }


def _row_record(one: Scored) -> Record:
    case = one.case
    job, framework = case.job, case.job.settings.framework.name
    found = likely(framework, job.machine.device.name)
    return {
        "set": case.set,
        "row": case.row,
        "framework": framework,
        "device": chip(job.machine.device.name),
        "machine": job.machine.name,
        "model": job.model.name,
        "gpus": int(case.grid.gpus),
        "grid": one.layout.text(),
        "micro_batch": int(one.layout.micro_batch),
        "recompute": RECOMPUTES[int(one.layout.recompute)],
        "measured_s": case.step,
        "predicted_s": one.predicted,
        "likely_low_s": one.predicted * found.low,
        "likely_high_s": one.predicted * found.high,
        "error": one.error,
        "measured_memory_B": case.memory,
        "predicted_memory_B": one.memory,
        "status": case.status,
        "fits": one.fits,
    }
