"""Lines of logs, without what launchers and terminals add to them."""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfmodel.errors import PerfmodelError
from perfmodel.logs.samples import RankGroup
from perfmodel.units import count

_LARGEST = 1 << 28  # bytes of a log: 256 MiB, a million rows
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# mpirun --tag-output, srun --label, `> ` of quoted text, and what job systems put before these.
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
    r"""Each line without colours, prefix, and leading or trailing blanks; the first has number 1.

    >>> lines("[1,0]<stdout>:#  Rank 0\n 0:   8  2\nplain: text")
    ['#  Rank 0', '8  2', 'text']
    """
    return [_PREFIX.sub("", _COLOUR.sub("", line)).strip() for line in text.split("\n")]


def number(text: str) -> float | None:
    """A decimal number in plain digits; None for anything else, including nan and inf.

    >>> number("1.07e+05"), number("nan"), number("N/A")
    (107000.0, None, None)
    """
    if not text.isascii() or not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


_LAUNCHER = re.compile(r"(?:^|[\s/$])(mpirun|mpiexec|srun)\s")
_PROGRAM = re.compile(r"osu_|_perf")  # followed by options of its own
_MOST = 1 << 20
_NAMES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "mpirun": {
        "all": ("-n", "-np", "--np", "--n"),
        "each": ("-N", "-npernode", "--npernode", "-ppn", "--ppn", "-perhost"),
        "nodes": (),
    },
    "srun": {
        "all": ("-n", "--ntasks"),
        "each": ("--ntasks-per-node", "--tasks-per-node"),
        "nodes": ("-N", "--nodes"),
    },
}


def launched(line: str) -> RankGroup | None:
    """The group of a line with mpirun or srun, if it states both the number of ranks and the ranks per node.

    >>> launched("$ srun -N4 -n16 --tasks-per-node 4 osu_allgather")
    RankGroup(nodes=4, ranks=4, inner=1, idle=True)
    >>> launched("mpirun -np 144 osu_allreduce") is None
    True
    """
    found = _LAUNCHER.search(line)
    if found is None:
        return None
    try:
        words = shlex.split(line[found.end() :])
    except ValueError:  # an unclosed quotation
        return None
    own = next((place for place, word in enumerate(words) if _PROGRAM.search(word)), len(words))
    words = words[:own]
    names = _NAMES["srun" if found[1] == "srun" else "mpirun"]
    said = {name: _value(words, options) for name, options in names.items()}
    return _group(said["nodes"], said["all"], said["each"])


def _group(nodes: int | None, ranks: int | None, each: int | None) -> RankGroup | None:
    if each is None and nodes and ranks and ranks % nodes == 0:
        each = ranks // nodes
    if nodes is None and each and ranks and ranks % each == 0:
        nodes = ranks // each
    fits = nodes and each and nodes * each > 1 and ranks in (None, nodes * each)
    return RankGroup(nodes=nodes, ranks=each) if nodes and each and fits else None


def _value(words: Sequence[str], options: Sequence[str]) -> int | None:
    """The count after one of the options, as in -n 4, -n4 or --ntasks=4."""
    for place, word in enumerate(words):
        for option in options:
            joined = word[len(option) :].removeprefix("=") if word.startswith(option) else None
            if joined is not None:
                text = joined or (words[place + 1] if place + 1 < len(words) else "")
                value = count(text, _MOST)
                if value is not None:
                    return value
    return None
