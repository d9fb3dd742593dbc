"""Published figures and their predictions as records for tables, JSON and CSV."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.layout import PLACEMENTS
from perfmodel.parallel.settings import CONTENTION
from perfmodel.validation.blame import verdict
from perfmodel.validation.calibration import Calibration, Fitted
from perfmodel.validation.collectives import Key, Term, parts, terms
from perfmodel.validation.compare import Compared, Comparison
from perfmodel.validation.measured_steps import Timed
from perfmodel.validation.published import UNITS, ContentionFit, Published
from perfmodel.validation.scores import Sizes, mean_error


def published_record(
    found: Sequence[Published],
    bound: float,
    *,
    fits: Sequence[ContentionFit] = (),
    refitted: Sequence[Published | None] = (),
) -> dict[str, Any]:
    """The whole answer: rows, then figures by check and over all, as shipped and (`refitted`) after the fits."""
    after = refitted or [None] * len(found)
    total = Sizes.of([one.error for one in found])
    return {
        "rows": [_row_record(one, other) for one, other in zip(found, after, strict=True)],
        "checks": _checks([(one.row["check"], one.error) for one in found]),
        "summary": asdict(total) | {"bound": bound, "within_bound": total.mape <= bound},
        "fits": [_fit_record(fit) for fit in fits],
        "checks_after_fits": _checks([(one.row["check"], one.error) for one in after if one]),
    }


def _checks(errors: Sequence[tuple[str, float]]) -> list[dict[str, Any]]:
    names = dict.fromkeys(name for name, _ in errors)
    return [{"check": name} | asdict(Sizes.of([error for at, error in errors if at == name])) for name in names]


def _fit_record(fit: ContentionFit) -> dict[str, Any]:
    row = fit.row
    return {
        "machine": row["machine"],
        "setting": row["fit"],
        "shipped": CONTENTION,
        "fitted": fit.contention,
        "check": row["check"],
        "model": row["model"],
        "gpus": int(row["gpus"]),
        "published": float(row["published"]),
    }


def _row_record(one: Published, after: Published | None) -> dict[str, Any]:
    row = one.row
    return {
        "check": row["check"],
        "machine": row["machine"],
        "model": row["model"],
        "gpus": int(row["gpus"]),
        "quantity": row["quantity"],
        "overlap": row["overlap"] or "all",
        "recompute": row["recompute"],
        "grid": one.layout.sizes(),
        "micro_batch": int(one.layout.micro_batch),
        "predicted": one.predicted,
        "published": one.published,
        "unit": UNITS[row["quantity"]],
        "error": one.error,
        "predicted_after_fit": after.predicted if after else None,
        "error_after_fit": after.error if after else None,
        "source": row["source"],
    }


def calibration_record(found: Calibration) -> dict[str, Any]:
    """What was fitted, what was kept, and the errors."""
    return {
        "machine": found.machine.name,
        "rows": len(found.rows),
        "parameters": [_fitted_record(one) for one in found.fitted],
        "left_alone": [{"parameter": name, "reason": reason} for name, reason in found.left_alone],
        "errors": {name: asdict(getattr(found, name)) for name in ("before", "after", "held_out")},
        "folds": found.folds,
        "held_out_error_fell": found.helps,
        "outliers": [{"line": line, "measured_over_fitted": ratio} for line, ratio in found.outliers],
        "sentence": sentence(found),
    }


def _fitted_record(one: Fitted) -> dict[str, Any]:
    before, (after, *_) = one.adjustment.figures[0], one.adjustment.changed(one.factor)
    return {
        "parameter": one.adjustment.name,
        "field": one.adjustment.place,
        "before": before.value,
        "after": after.value,
        "unit": after.unit,
        "factor": one.factor,
        "standard_error": one.error,
        "at_bound": one.at_bound,
    }


def sentence(found: Calibration) -> str:
    """Whether rows that were left out are predicted better than before."""
    if not found.fitted:
        return "Nothing was fitted: the rows determine no parameter."
    errors = f"from {mean_error(found.before)} to {mean_error(found.held_out)} on steps that were left out of the fit"
    if found.helps:
        return f"The mean error fell {errors}."
    return f"The mean error did not fall: {errors}. Keep the profile that you have."


def record(comparison: Comparison) -> dict[str, Any]:
    """The answer of `compare`: rows and summary, then the collectives of all rows, and which assumption fails most."""
    found = [(one, terms(one)) for one in comparison.rows]
    shares = [parts(one, of).shares() for one, of in found if of]
    every = [term for _, of in found for term in of]
    return comparison_record(comparison) | {
        "collectives": [_summed(key, every) for key in dict.fromkeys((term.operation, term.axis) for term in every)],
        "terms": [_term_record(term) for term in every],
        "verdict": asdict(verdict(shares, error=comparison.sizes.bias)),
    }


def _summed(key: Key, every: Sequence[Term]) -> dict[str, Any]:
    """One operation on one axis over all rows: mean seconds per call, and the median error of rows that have both."""
    mine = [term for term in every if (term.operation, term.axis) == key]
    errors = [term.predicted.seconds / term.measured.seconds - 1 for term in mine if term.predicted and term.measured]
    sides = {name: [each for term in mine if (each := getattr(term, name))] for name in ("predicted", "measured")}
    return {
        "operation": key[0],
        "axis": key[1],
        "rows": len(mine),
        **{f"{name}_calls": sum(each.calls for each in of) for name, of in sides.items()},
        **{f"{name}_bytes": sum(each.buffers for each in of) for name, of in sides.items()},
        **{f"{name}_s_a_call": _a_call(of) for name, of in sides.items()},
        "error": statistics.median(errors) if errors else None,
    }


def _a_call(of: Sequence[Timed]) -> float | None:
    return sum(each.seconds for each in of) / sum(each.calls for each in of) if of else None


def _term_record(term: Term) -> Mapping[str, Any]:
    figures: dict[str, float | None] = {}
    for name, each in (("predicted", term.predicted), ("measured", term.measured)):
        for figure, unit in (("calls", "calls"), ("buffers", "bytes"), ("seconds", "s")):
            figures[f"{name}_{unit}"] = getattr(each, figure) if each else None
    return {"line": term.line, "operation": term.operation, "axis": term.axis} | figures


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    """The whole answer: rows, then the summary (shares, not percent)."""
    memory = comparison.memory
    return {
        "rows": [_compared_record(one) for one in comparison.rows],
        "dropped": comparison.dropped,
        "summary": asdict(comparison.sizes)
        | asdict(comparison.order)
        | {"memory_mape": memory.mape if memory else None, "memory_worst": memory.worst if memory else None},
    }


def _compared_record(one: Compared) -> dict[str, Any]:
    row, layout = one.row, one.layout
    return {
        "line": row.line,
        "repetitions": row.repetitions,
        "group": one.group,
        "grid": layout.sizes(),
        "placement": ",".join(PLACEMENTS[int(layout.placement)]),
        "micro_batch": int(layout.micro_batch),
        "recompute": RECOMPUTES[int(layout.recompute)],
        "weight_cache": WEIGHT_CACHES[int(layout.weight_cache)],
        "best_predicted_grid": row.grid is None,
        "predicted_s": one.predicted,
        "measured_s": one.measured,
        "error": one.error,
        "predicted_memory_B": one.memory,
        "measured_memory_B": row.memory,
        "source": row.source,
    }
