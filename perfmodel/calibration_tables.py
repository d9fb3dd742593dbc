"""A calibration as a record, and as a profile laid over the one that it began from."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from perfmodel import __version__
from perfmodel.adjustments import Change, adjusted
from perfmodel.calibration import Calibration, Fitted
from perfmodel.errors import PerfmodelError
from perfmodel.logs import overlay
from perfmodel.scores import Sizes
from perfmodel.sources import Source
from perfmodel.units import show

_DIGITS = 6
_PERCENT = 100
_TITLE = "; calibrated"


def calibration_record(found: Calibration) -> dict[str, Any]:
    """What was fitted, what was left alone, and the errors."""
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
    errors = f"from {_mean(found.before)} to {_mean(found.held_out)} on steps that were left out of the fit"
    if found.helps:
        return f"The mean error fell {errors}."
    return f"The mean error did not fall: {errors}. Keep the profile that you have."


def _mean(sizes: Sizes) -> str:
    return f"{_PERCENT * sizes.mape:.1f} %"


def profile(found: Calibration, base: str, file: Path, measured: Sequence[str]) -> str:
    """The text of a profile over `base`, to be written to `file`: each figure that was fitted, and where it is from."""
    if not found.fitted:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in found.left_alone)
        raise PerfmodelError(
            f"the rows determine no parameter, so there is no profile to write ({reasons}); more grids, or more "
            "--rounds of perfmodel run, determine more"
        )
    key = overlay.source_key(found.machine, "FIT")
    source = Source("measured", ", ".join(measured), overlay.written_on(measured), _note(found))
    changes = found.changes()
    machine = adjusted(found.machine, changes, key, source)
    named = replace(machine, name=file.stem, title=f"{machine.title.removesuffix(_TITLE)}{_TITLE}")
    return "\n".join([*overlay.head(named, base, key, file), *_lines(changes, key)]) + "\n"


def _note(found: Calibration) -> str:
    names = ", ".join(one.adjustment.name for one in found.fitted)
    errors = f"{_mean(found.before)} before, {_mean(found.after)} after, {_mean(found.held_out)} on steps left out"
    return f"fitted to {len(found.rows)} steps by perfmodel calibrate {__version__}: {names}; mean error {errors}"


def _lines(changes: Sequence[Change], key: str) -> list[str]:
    """Figures by block, in the order in which they came."""
    lines = []
    for block in dict.fromkeys(change.block for change in changes):
        mine = [change for change in changes if change.block == block]
        lines.append(f"{block}:")
        lines += [f"  {one.field}: {_figure(one, key)}" for one in mine if one.shape is None]
        entries = [(*one.shape, _figure(one, key)) for one in mine if one.shape]
        lines += ["  inside:"] if entries else []
        for inner, size, rate in entries:
            lines += [f"    - inner: {inner}", f"      size: {size}", f"      bandwidth: {rate}"]
    return lines


def _figure(change: Change, key: str) -> str:
    plain = change.unit == "1"
    return f"{f'{change.value:.{_DIGITS}g}' if plain else show(change.value, change.unit, digits=_DIGITS)} [{key}]"
