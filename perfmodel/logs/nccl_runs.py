"""The runs in the text of nccl-tests and rccl-tests: the ranks, the columns, and the places of the rows.

A run begins with a line that names its program or its settings (`# nThread ...`, `# Using devices`), goes on with a
line for each rank and a heading, and ends with `# Out of bounds values` and `# Avg bus bandwidth`. Logs of all versions
have these parts; `nccl_tests` describes the differences.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from perfmodel.errors import PerfmodelError
from perfmodel.logs.samples import Place, RankGroup
from perfmodel.logs.text import launched

TYPES = "int8|uint8|int32|uint32|int64|uint64|half|float|double|bfloat16|f?fp?8_?e4m3|f?fp?8_?e5m2|char|int"
_SETTINGS = re.compile(r"#\s*nThreads?\s+\d+\s+nGpus\s+\d+")
_STARTING = re.compile(r"#\s*Collective test starting:\s*(\w+?)_perf")
_PROGRAMS = "all_reduce|all_gather|reduce_scatter|broadcast|reduce|alltoallv?|sendrecv|gather|scatter|hypercube"
_COMMAND = re.compile(rf"(?:^|[\s/])({_PROGRAMS})(?:_perf(?:_mpi)?[\"']?\s+-[A-Za-z-]|_test\s+\d)")
_MEMBER = re.compile(
    r"#\s*Rank\s+(\d{1,7})\s+(?:Group\s+(\d{1,7})\s+)?(?:Pid\s+\d+\s+)?on\s+(\S+)\s+device\s+\d+\s*(?:\[[^\]]*\])?(.*)"
)
_USED = re.compile(r"#\s*(?:Rank|Device)\s+(\d{1,7})\s+(?:uses device|->)\s+\d+\s*(?:\[[^\]]*\])?(.*)")
_PLACED = re.compile(r"#\s*(out-of-place|in-place)\b.*")
_HEADING = re.compile(r"#?\s*(size|bytes)\s+(count|N)\s+type\s+(.*)")
_UNITS = re.compile(r"#\s*\(B\)\s+\(elements\)\s+.*?\((us|ms|s)\)")
_ROW = re.compile(rf"(?:^|\s)\d+\s+\d+\s+(?:{TYPES})\s")
_VERSION = re.compile(r"(?:NCCL|RCCL) version \S+|[nr]ccl-tests version \S+|rccl-tests: Version \S+")
_END = re.compile(r"#\s*Out of bounds values\s*:\s*\d+\s*(\S*)")
_BOTH: tuple[Place, ...] = ("out-of-place", "in-place")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A rank of a run."""

    rank: int
    group: int
    host: str
    device: str


@dataclass(slots=True, kw_only=True)
class Run:
    """One run as far as it has been read; `ends` counts the closing lines found before the next run began."""

    line: int
    name: str = ""
    members: list[Member] = field(default_factory=list)
    group: RankGroup | None = None
    places: tuple[Place, ...] = _BOTH
    heading: str = ""
    unit: str = ""
    rows: list[tuple[int, str]] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    ends: int = 0
    failed: bool = False

    @property
    def columns(self) -> list[str]:
        """Names of the columns, from the first time column on."""
        words = self.heading.split()
        return words[words.index("time") :] if "time" in words else []


@dataclass(slots=True, kw_only=True)
class _Reader:
    runs: list[Run] = field(default_factory=list)
    facts: dict[str, None] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    group: RankGroup | None = None

    def run(self, line: int) -> Run:
        """The run to which a header line belongs: the current one until it has rows, then a new one."""
        if not self.runs or self.runs[-1].heading or self.runs[-1].ends:
            name = next(iter(self.names)) if len(self.names) == 1 else ""
            self.runs.append(Run(line=line, name=name, group=self.group))
            self.names = set()
            self.group = None
        return self.runs[-1]

    def take(self, place: int, line: str) -> None:
        for pattern, what in _TAKES.items():
            found = pattern.match(line) if line.startswith("#") else pattern.search(line)
            if found is not None:
                what(self, place, found)
                return
        self.other(place, line)

    def other(self, place: int, line: str) -> None:
        """Any other line: a row, damaged or whole, or other output."""
        for version in _VERSION.findall(line):
            self.facts[version] = None
        self.group = launched(line) or self.group
        row = _ROW.search(line)
        if row is None:
            digits = re.match(r"[+-]?\d+\s+[+-]?[\d.]+\s", f"{line} ")
            if digits and self.runs and self.runs[-1].heading and not self.runs[-1].ends:
                self.runs[-1].damaged.append(place)
            return
        run = self.runs[-1] if self.runs else self.run(place)
        if row.start() == 0:
            run.rows.append((place, line))
        else:
            run.damaged.append(place)

    def starting(self, line: int, found: re.Match[str]) -> None:
        run = self.run(line)
        run.name = found[1]

    def settings(self, line: int, _found: re.Match[str]) -> None:
        self.run(line)

    def command(self, line: int, found: re.Match[str]) -> None:
        group = launched(found.string)
        if self.runs and not self.runs[-1].heading:  # an echo after the header of its own run
            run = self.run(line)
            run.name, run.group = run.name or found[1], group or run.group
        else:
            self.names.add(found[1])
            self.group = group or self.group

    def member(self, line: int, found: re.Match[str]) -> None:
        rank, group, host, device = found.groups()
        self.run(line).members.append(Member(rank=int(rank), group=int(group or 0), host=host, device=device.strip()))
        self.facts[device.strip()] = None

    def used(self, line: int, found: re.Match[str]) -> None:
        self.run(line).members.append(Member(rank=int(found[1]), group=0, host="", device=found[2].strip()))
        self.facts[found[2].strip()] = None

    def table(self, line: int) -> Run:
        """The run to which a line above the rows belongs; a run that has not ended repeats its heading."""
        again = self.runs and self.runs[-1].heading and not self.runs[-1].ends
        return self.runs[-1] if again else self.run(line)

    def placed(self, line: int, found: re.Match[str]) -> None:
        self.table(line).places = ("in-place",) if found[1] == "in-place" else _BOTH

    def heading(self, line: int, found: re.Match[str]) -> None:
        run = self.table(line)
        run.heading = found.string
        run.unit = "ms" if found[1] == "bytes" else "us"  # of NCCL 1, which printed no line of units

    def units(self, _line: int, found: re.Match[str]) -> None:
        if self.runs:
            self.runs[-1].unit = found[1]

    def end(self, _line: int, found: re.Match[str]) -> None:
        if self.runs:
            self.runs[-1].ends += 1
            self.runs[-1].failed |= found[1] == "FAILED"


_TAKES: Mapping[re.Pattern[str], Callable[[_Reader, int, re.Match[str]], None]] = {
    _STARTING: _Reader.starting,
    _SETTINGS: _Reader.settings,
    _MEMBER: _Reader.member,
    _USED: _Reader.used,
    _PLACED: _Reader.placed,
    _HEADING: _Reader.heading,
    _UNITS: _Reader.units,
    _END: _Reader.end,
    _COMMAND: _Reader.command,
}


def runs(lines: list[str]) -> tuple[list[Run], tuple[str, ...]]:
    """The runs of a log in their order, and the versions and devices that it names."""
    reader = _Reader()
    for place, line in enumerate(lines, start=1):
        reader.take(place, line)
    facts = tuple(fact for fact in reader.facts if fact)
    return [run for run in reader.runs if run.rows or run.damaged], facts


def mingled(of: list[Run]) -> Iterator[Run]:
    """Runs whose rows may be mixed up: each began before the previous one ended, and both ended afterwards."""
    open_runs = 0
    for run in of:
        open_runs += 1
        if run.ends > 1 and open_runs > 1:
            yield run
        open_runs = max(0, open_runs - run.ends) if run.ends else open_runs


def group_of(members: Sequence[Member]) -> RankGroup:
    """The shape of the groups of a run; all must have the same, and one number of ranks on each host.

    >>> split = {rank: rank % 2 for rank in range(8)}  # NCCL_TESTS_SPLIT="MOD 2"
    >>> ranks = [Member(rank=rank, group=of, host=f"host{rank // 4}", device="") for rank, of in split.items()]
    >>> group_of(ranks)
    RankGroup(nodes=2, ranks=2, inner=2, idle=False)
    """
    ranks = sorted(member.rank for member in members)
    if ranks != list(range(len(ranks))):
        doubled = [rank for rank, times in Counter(ranks).items() if times > 1]
        told = f"rank {doubled[0]} is listed twice" if doubled else f"its {len(ranks)} ranks are not 0 to {ranks[-1]}"
        raise PerfmodelError(f"{told}: lines are lost, or two runs wrote at once")
    parts: dict[int, list[Member]] = {}
    for member in sorted(members, key=lambda member: member.rank):
        parts.setdefault(member.group, []).append(member)
    shapes = {_shape(part) for part in parts.values()}
    if len(shapes) > 1:
        raise PerfmodelError("its groups differ in shape")
    nodes, each, stride = shapes.pop()
    hosts = Counter(member.host for member in members)
    spread = each == 1 and len(parts) > 1
    inner = stride if len(parts) > 1 else 1
    if inner * each > max(hosts.values()) and not spread:
        raise PerfmodelError(f"its groups of {each} ranks per node are not a regular choice of the node's ranks")
    return RankGroup(nodes=nodes, ranks=each, inner=inner, idle=len(parts) == 1)


def _shape(members: Sequence[Member]) -> tuple[int, int, int]:
    hosts = Counter(member.host for member in members)
    if len(set(hosts.values())) > 1:
        shares = ", ".join(str(count) for count in sorted(set(hosts.values())))
        raise PerfmodelError(f"its hosts have different numbers of ranks: {shares}")
    strides = {after.rank - before.rank for before, after in pairwise(members)}
    if len(strides) > 1:
        raise PerfmodelError("the ranks of a group do not follow each other at one distance")
    return len(hosts), next(iter(hosts.values())), next(iter(strides), 1)
