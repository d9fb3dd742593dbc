"""Nodes and ranks from a launcher's command line that a log repeats."""

import re
import shlex
from collections.abc import Mapping, Sequence

from perfmodel.logs.samples import Group
from perfmodel.units import count

_LAUNCHER = re.compile(r"(?:^|[\s/$])(mpirun|mpiexec|srun)\s")
_PROGRAM = re.compile(r"osu_|_perf")  # what follows it are options of its own
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


def launched(line: str) -> Group | None:
    """The group of a line with mpirun or srun, if it says both how many ranks there are and how many on a node.

    >>> launched("$ srun -N4 -n16 --tasks-per-node 4 osu_allgather")
    Group(nodes=4, ranks=4, inner=1, idle=True)
    >>> launched("mpirun -np 144 osu_allreduce") is None
    True
    """
    found = _LAUNCHER.search(line)
    if found is None:
        return None
    try:
        words = shlex.split(line[found.end() :])
    except ValueError:  # a quotation without its end
        return None
    own = next((place for place, word in enumerate(words) if _PROGRAM.search(word)), len(words))
    words = words[:own]
    names = _NAMES["srun" if found[1] == "srun" else "mpirun"]
    said = {name: _value(words, options) for name, options in names.items()}
    return _group(said["nodes"], said["all"], said["each"])


def _group(nodes: int | None, ranks: int | None, each: int | None) -> Group | None:
    if each is None and nodes and ranks and ranks % nodes == 0:
        each = ranks // nodes
    if nodes is None and each and ranks and ranks % each == 0:
        nodes = ranks // each
    fits = nodes and each and nodes * each > 1 and ranks in (None, nodes * each)
    return Group(nodes, each) if nodes and each and fits else None


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
