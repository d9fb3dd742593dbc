"""Pictures of answers in files: checked before anything is computed, written whole; needs matplotlib."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from perfmodel.errors import PerfmodelError, UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Metadata that would make two pictures of the same answer differ.
_UNWANTED = {".png": {"Software": None}, ".svg": {"Date": None}}


def wanted(plot: str) -> Path | None:
    """The file that `--plot` names, after a check that a picture can be written to it; None for no picture."""
    if not plot:
        return None
    path = Path(plot)
    if path.suffix.lower() not in _UNWANTED:
        raise UsageError(f"--plot {plot!r}: wanted a name that ends in {' or '.join(_UNWANTED)}")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise PerfmodelError("--plot needs matplotlib: pip install 'perfmodel[plot]'") from None
    from perfmodel.files import check_writable

    check_writable(path)
    return path


def save(figure: "Figure", path: Path) -> None:
    """Write a figure in the format that the file's name ends in."""
    from perfmodel.files import write_whole

    suffix, drawn = path.suffix.lower(), io.BytesIO()
    figure.savefig(drawn, format=suffix[1:], metadata=_UNWANTED[suffix])
    write_whole(path, drawn.getvalue())
