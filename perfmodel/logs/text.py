"""Lines of logs without what launchers and terminals put around them."""

import math
import re
from pathlib import Path

from perfmodel.errors import PerfmodelError

_LARGEST = 1 << 28  # bytes of a log: 256 MiB, a million rows
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# mpirun --tag-output, srun --label, `> ` of quoted text, and what job systems put in front of these.
_PREFIX = re.compile(r"^(?:.*<std(?:out|err)>:?|\s*(?:\d+|[A-Za-z][\w.-]*):(?=\s)|\s*>(?=\s))")
_NUMBER = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?")


def read_log(path: Path) -> str:
    """The text of a log, whatever bytes are in it."""
    try:
        if path.stat().st_size > _LARGEST:
            raise PerfmodelError(f"{path} has {path.stat().st_size} bytes; a log of at most {_LARGEST} is read")
        return path.read_bytes().decode("utf-8-sig", errors="replace")
    except (OSError, ValueError) as error:
        raise PerfmodelError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def lines(text: str) -> list[str]:
    r"""Each line without colours, prefix and blanks at its ends; the first has number 1.

    >>> lines("[1,0]<stdout>:#  Rank 0\n 0:   8  2\nplain: text")
    ['#  Rank 0', '8  2', 'text']
    """
    return [_PREFIX.sub("", _COLOUR.sub("", line)).strip() for line in text.split("\n")]


def number(text: str) -> float | None:
    """A decimal number in plain digits; None for anything else, nan and inf among it.

    >>> number("1.07e+05"), number("nan"), number("N/A")
    (107000.0, None, None)
    """
    if not text.isascii() or not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None
