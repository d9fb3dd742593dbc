"""Files written whole or not at all."""

import os
import secrets
import stat
from pathlib import Path

from perfmodel.errors import PerfmodelError


def write_whole(path: Path, text: str) -> None:
    """Write `text` to `path` in one go: a reader, or an interruption, never meets half a file.

    A file that exists keeps its mode, a link stays a link. Only what is no file (a pipe, a device) is written in place.
    """
    try:
        target = path.resolve()
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and not stat.S_ISREG(mode):
            with target.open("w", encoding="utf-8") as file:
                file.write(text)
            return
        scratch = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            with scratch.open("x", encoding="utf-8") as file:
                if mode is not None:
                    os.fchmod(file.fileno(), stat.S_IMODE(mode))
                file.write(text)
            scratch.replace(target)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise
    except (OSError, ValueError, RuntimeError) as error:  # ValueError: a name with NUL; RuntimeError: links in a circle
        raise PerfmodelError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}") from None
