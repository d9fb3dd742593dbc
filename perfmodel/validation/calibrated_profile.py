"""A calibration as a record, and as a profile that overlays the one it started from."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfmodel import __version__
from perfmodel.errors import PerfmodelError, UsageError
from perfmodel.files import check_writable
from perfmodel.machines import overlay, profile_text
from perfmodel.machines.machine import Machine
from perfmodel.sources import Source
from perfmodel.validation.calibration import Calibration
from perfmodel.validation.fit_parameters import Change, adjusted
from perfmodel.validation.scores import mean_error

_TITLE = "; calibrated"
_KEY, _FRAME = "FIT", "a pandas DataFrame"


def profile(found: Calibration, base: str, file: Path, measured: Sequence[str]) -> str:
    """The text of a profile over `base`, to be written to `file`: each fitted figure with its source."""
    if not found.fitted:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in found.left_alone)
        raise PerfmodelError(
            f"the rows determine no parameter, so there is no profile to write ({reasons}); more grids, or more "
            "--rounds of perfmodel run, determine more"
        )
    key = overlay.source_key(found.machine, _KEY)
    named = machine(found, file.stem, measured)
    return profile_text.text(overlay.head(named, base, key, file) | blocks(found.changes(), key))


def machine(found: Calibration, name: str, measured: Sequence[str]) -> Machine:
    """The machine with the fitted figures; `measured`: the files they were fitted to, none for a frame in memory."""
    written = overlay.written_on(measured) if measured else dt.datetime.now(dt.UTC).date().isoformat()
    source = Source(kind="measured", address=", ".join(measured) or _FRAME, date=written, note=_note(found))
    changed = adjusted(found.machine, found.changes(), overlay.source_key(found.machine, _KEY), source)
    return replace(changed, name=name, title=f"{changed.title.removesuffix(_TITLE)}{_TITLE}")


def free(out: str | Path, name: str) -> Path:
    """The name of a new profile; `name`: the one that the user asked for."""
    path = Path(out)
    if path.suffix not in (".yaml", ".yml"):
        raise UsageError(f"{name} {str(out)!r} does not end in .yaml, by which --machine knows a profile of your own")
    if path.exists():
        raise PerfmodelError(f"{out} already exists; give another name, or move it away first")
    check_writable(path)
    return path


def _note(found: Calibration) -> str:
    names = ", ".join(one.adjustment.name for one in found.fitted)
    before, after, held_out = (mean_error(sizes) for sizes in (found.before, found.after, found.held_out))
    errors = f"{before} before, {after} after, {held_out} on steps left out"
    return f"fitted to {len(found.rows)} steps by perfmodel calibrate {__version__}: {names}; mean error {errors}"


def blocks(changes: Sequence[Change], key: str) -> dict[str, dict[str, Any]]:
    """The figures by block, in the order in which they came."""
    found: dict[str, dict[str, Any]] = {}
    for change in changes:
        block, figure = found.setdefault(change.block, {}), profile_text.figure(change.value, change.unit, key)
        if change.shape is None:
            block[change.field] = figure
        else:
            inner, size = change.shape
            block.setdefault(change.field, []).append({"inner": inner, "size": size, "bandwidth": figure})
    return found
