"""Files written whole or not at all."""

import os
import tempfile
from pathlib import Path

from perfmodel.errors import PerfmodelError


def write_whole(path: Path, text: str) -> None:
    """Write `text` to `path` in one go: a reader, or an interruption, never meets half a file."""
    try:
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(scratch).replace(path)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        raise PerfmodelError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}") from None
