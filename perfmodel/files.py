"""Files written whole or not at all."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfmodel.errors import PerfmodelError


def write_whole(path: Path, content: str | bytes) -> None:
    """Write `content` to `path` atomically: a reader or an interruption never leaves half a file.

    An existing file keeps its mode, and a link stays a link. Only pipes and devices are written in place.
    """
    written = content.encode() if isinstance(content, str) else content
    with _explained(path):
        target = path.resolve()
        mode = _mode(target)
        if mode is not None and not stat.S_ISREG(mode):
            target.write_bytes(written)
            return
        with _scratch(target) as scratch:
            if mode is not None:
                scratch.chmod(stat.S_IMODE(mode))
            scratch.write_bytes(written)
            scratch.replace(target)


def write_new(path: Path, content: str) -> None:
    """Write a new file atomically; an existing file is refused and kept."""
    with _explained(path), _scratch(path) as scratch:
        scratch.write_text(content, encoding="utf-8")
        try:
            os.link(scratch, path)
        except FileExistsError:
            told = f"{path} already exists; give another name, or move it away first"
            raise PerfmodelError(told) from None


@contextmanager
def exclusive(path: Path, purpose: str) -> Iterator[None]:
    """Raise if another process is in such a block for the same file; without file locks nothing is checked."""
    import fcntl  # noqa: PLC0415 - not on every system that only asks the model

    with _explained(path):
        file = path.open("ab")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PerfmodelError(f"another {purpose} writes to {path} now; wait for it, or give another name") from None
        except OSError:
            pass
        yield


def check_writable(path: Path) -> None:
    """Raise what `write_whole` would raise, as far as that is known without writing; nothing is left behind."""
    with _explained(path):
        target = path.resolve()
        mode = _mode(target)
        if mode is not None and stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if mode is None or stat.S_ISREG(mode):
            with _scratch(target):
                pass


def _mode(target: Path) -> int | None:
    """The kind of the file and its permissions, or None if there is none."""
    return target.stat().st_mode if target.exists() else None


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raise any failure to write as one sentence that names the file."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:  # ValueError: a name with NUL; RuntimeError: links in a circle
        raise PerfmodelError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}") from None


@contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """A new file beside `target`, deleted at the end unless it was moved."""
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        scratch.open("xb").close()
        yield scratch
    finally:
        scratch.unlink(missing_ok=True)
