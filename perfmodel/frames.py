"""Tables as pandas data frames: the one module that imports pandas, inside its functions, since few answers need it.

Nothing is left to pandas' guesses: what comes out of a frame is text, and has the same checks as the cells of a file.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from perfmodel.errors import FileProblems, PerfmodelError
from perfmodel.records import table

if TYPE_CHECKING:
    import pandas as pd

PARQUET = b"PAR1"
"""What every Parquet file begins with."""

Cells: TypeAlias = list[tuple[int, list[str]]]
Frame: TypeAlias = "pd.DataFrame"
_SWITCH = {True: "yes", False: "no"}


def frame(rows: Iterable[Mapping[str, Any]]) -> Frame:
    """Records as rows: nested keys joined with _, as in CSV."""
    columns, flat = table(rows)
    return _pandas("a data frame").DataFrame(flat, columns=columns)


def read_parquet(path: Path) -> tuple[list[str], Cells]:
    """The heads and rows of a Parquet file."""
    pandas = _pandas("a Parquet file")
    try:
        return cells(pandas.read_parquet(path))
    except ImportError:
        raise _missing("a Parquet file") from None
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        first = str(error).partition("\n")[0]
        raise FileProblems(str(path), [f"{path} cannot be read as Parquet: {first}"]) from None


def is_frame(given: Any) -> bool:
    """Whether this is a data frame, which it cannot be without pandas."""
    try:
        return isinstance(given, _pandas("a data frame").DataFrame)
    except PerfmodelError:
        return False


def cells(given: Frame) -> tuple[list[str], Cells]:
    """Heads, and rows of text with the line that each has in a CSV file of the frame: the heads are line 1."""
    isna = _pandas("a data frame").isna
    heads = [str(head).strip() for head in given.columns]
    rows = given.itertuples(index=False, name=None)
    return heads, [(line, [_text(value, isna) for value in row]) for line, row in enumerate(rows, start=2)]


def _text(value: Any, isna: Any) -> str:
    """As it would stand in a file: nothing where it is missing."""
    plain = value.item() if hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0 else value
    if isinstance(plain, bool):
        return _SWITCH[plain]
    if isinstance(plain, str):
        return plain.strip()
    missing = isna(plain)
    return "" if isinstance(missing, bool) and missing else str(plain)


def _pandas(purpose: str) -> ModuleType:
    try:
        import pandas as pd  # noqa: PLC0415 - half a second, and an extra of its own
    except ImportError:
        raise _missing(purpose) from None
    module: ModuleType = pd
    return module


def _missing(purpose: str) -> PerfmodelError:
    return PerfmodelError(f"{purpose} needs pandas and pyarrow: pip install 'perfmodel[frames]'")
