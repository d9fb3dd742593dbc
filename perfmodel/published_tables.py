"""Published figures beside their predictions as records for tables, JSON and CSV."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from perfmodel.fitting import Fit
from perfmodel.layout import AXES
from perfmodel.published import UNITS, Published
from perfmodel.scores import Sizes
from perfmodel.settings import CONTENTION


def published_record(
    found: Sequence[Published], bound: float, *, fits: Sequence[Fit] = (), refitted: Sequence[Published | None] = ()
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


def _fit_record(fit: Fit) -> dict[str, Any]:
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
        "grid": {axis: int(getattr(one.layout, axis)) for axis in AXES},
        "micro_batch": int(one.layout.micro_batch),
        "predicted": one.predicted,
        "published": one.published,
        "unit": UNITS[row["quantity"]],
        "error": one.error,
        "predicted_after_fit": after.predicted if after else None,
        "error_after_fit": after.error if after else None,
        "source": row["source"],
    }
