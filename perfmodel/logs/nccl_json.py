"""The JSON file of nccl-tests (-J, also of rccl-tests) as samples.

One object per run, without line breaks: `args` (the program first), `nccl_version`, `config` with `nthreads`, `ngpus`
and `devices`, and `results`. A result has the size of the whole array in bytes, `redop`, `out_of_place` and `in_place`.
The latter two have `time` (us; `cpu_time` with -C 1), `alg_bw` and `bus_bw` (GB/s, 10^9), all with six decimals, and
`nwrong`, which is null if nothing was checked. `devices` has one entry per process, its first rank, not one per rank. A
completed run has `out_of_bounds`. Source: NVIDIA/nccl-tests, src/util.cu at 0fdb00a (file version 2; the same in
versions 1 and 3) and src/common.cu; ROCm/rocm-systems, projects/rccl-tests/src/util.cu at fe174e5.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from perfmodel.errors import PerfmodelError
from perfmodel.logs.damaged_json import Lines, Piece, objects, values
from perfmodel.logs.nccl_rows import CPU_TIMES, check_reduction, group_with, operation_of, time_of
from perfmodel.logs.nccl_runs import Member, group_of
from perfmodel.logs.samples import Log, Place, Problem, RankGroup, Sample, Told, operation_named
from perfmodel.logs.text import number
from perfmodel.machines.collective_times import Operation

_RUN = re.compile(r'\{\s*"(?:version|args)"\s*:')  # the first name, as written or in the order of the alphabet
_RESULT = re.compile(r'\{\s*"(?:size|actual_iterations)"\s*:')
_RESULTS = re.compile(r'"results"\s*:\s*\[')
_AFTER_RESULTS = re.compile(r'\]\s*,\s*"(?:out_of_bounds|start_time)"\s*:')
_END = re.compile(r'"out_of_bounds"\s*:')
_PROGRAM = re.compile(r"(?:.*[/\\])?(\w+?)_perf(?:_mpi)?(?:\.exe)?")
_PLACES: Mapping[Place, str] = {"out-of-place": "out_of_place", "in-place": "in_place"}
_WHOLE = re.compile(r"\d{1,7}")
_LEAST_CODE = 999  # of NCCL 1.0
_OLD_CODE = 4  # digits; from NCCL 2.9 on, minor version and patch have two each
_MOST = 1 << 20  # ranks


def read(text: str, file: str, told: Told) -> Log:
    """Every sample of a file's runs; what is dropped is named with its line and the number of the result."""
    starts = [found.start() for found in _RUN.finditer(text)]
    if not starts or text[: starts[0]].strip():
        starts.insert(0, 0)
    lines = Lines(text)
    logs = [_Run(text[start:end], file, lines.at(start)).log(told) for start, end in pairwise([*starts, len(text)])]
    return Log(
        tuple(sample for log in logs for sample in log.samples),
        tuple(problem for log in logs for problem in log.problems),
        tuple(fact for log in logs for fact in log.facts),
    )


class _Run:
    """One object of the file, and the line where it begins."""

    def __init__(self, text: str, file: str, line: int) -> None:
        self._text, self._file, self._line = text, file, line
        self._results = _RESULTS.search(text)
        self._head = values(text[: self._results.start()] if self._results else text)

    def log(self, told: Told) -> Log:
        """Samples, problems and facts of the run."""
        pieces = self._pieces()
        try:
            of = self._of(pieces, told)
        except PerfmodelError as error:
            return Log((), (Problem(file=self._file, line=self._line, text=str(error), rows=len(pieces)),))
        samples: list[Sample] = []
        problems: list[Problem] = []
        if not _END.search(self._text):
            problems.append(
                Problem(
                    file=self._file, line=self._line, text="the run has no end; its results so far are used", rows=0
                )
            )
        lines, seen = Lines(self._text), dict[str, int]()
        for place, piece in enumerate(pieces, start=1):
            line = self._line + lines.at(piece.start) - 1
            twin = seen.setdefault(self._text[piece.start : piece.end], place)
            try:
                found = _results(piece, twin if twin != place else None, of)
            except PerfmodelError as error:
                problems.append(Problem(file=self._file, line=line, text=f"result {place}: {error}"))
            else:
                samples += [self._sample(of, line, *each) for each in found]
        return Log(tuple(samples), tuple(problems), self._facts())

    def _sample(self, of: tuple[Operation, RankGroup], line: int, size: float, time: float, place: Place) -> Sample:
        operation, group = of
        return Sample(operation=operation, group=group, size=size, time=time, file=self._file, line=line, place=place)

    def _pieces(self) -> list[Piece]:
        if self._results is None:
            return []
        shift = self._results.end()
        after = _AFTER_RESULTS.search(self._text, shift)
        found = objects(self._text[shift : after.start() if after else None], _RESULT)
        return [Piece(piece.start + shift, piece.end + shift, piece.holds) for piece in found]

    def _of(self, pieces: Sequence[Piece], told: Told) -> tuple[Operation, RankGroup]:
        """Operation and group of the run."""
        if not pieces:
            raise PerfmodelError("there are no results in this JSON; wanted what nccl-tests writes with -J")
        if any("cpu_time" in _place(piece, key) for piece in pieces for key in _PLACES.values()):
            raise PerfmodelError(CPU_TIMES)
        ranks = _ranks(self._config())
        return operation_of(self._name(pieces), told), group_with(group_of(ranks) if ranks else None, told)

    def _name(self, pieces: Sequence[Piece]) -> str:
        """The collective in the program's name, or else in those of the experiments; they must agree."""
        arguments = self._head.get("args")
        first = arguments[0] if isinstance(arguments, list) and arguments else ""
        program = _PROGRAM.fullmatch(first) if isinstance(first, str) else None
        told = [piece.holds.get("experiment_name") for piece in pieces if piece.holds]
        names = [*([program[1]] if program else []), *(name for name in told if isinstance(name, str) and name)]
        if len({operation_named(name) or name for name in names}) > 1:
            raise PerfmodelError(f"its results are of {', '.join(dict.fromkeys(names))}: which is which is not known")
        return names[0] if names else ""

    def _facts(self) -> tuple[str, ...]:
        """The version of NCCL and the devices."""
        code = _whole(self._head.get("nccl_version"))
        devices = [device.get("device_info") for device in _devices(self._config())]
        named = [_version(code)] if code and code > _LEAST_CODE else []
        return (*named, *dict.fromkeys(device for device in devices if isinstance(device, str) and device))

    def _config(self) -> Mapping[str, Any]:
        held = self._head.get("config")
        return held if isinstance(held, dict) else {}


def _place(piece: Piece, key: str) -> Mapping[str, Any]:
    held = (piece.holds or {}).get(key)
    return held if isinstance(held, dict) else {}


def _results(piece: Piece, twin: int | None, of: tuple[Operation, RankGroup]) -> list[tuple[float, float, Place]]:
    """Size, time and place of each time of a result."""
    if piece.holds is None:
        raise PerfmodelError("it is cut or damaged")
    if twin is not None:
        raise PerfmodelError(f"it is the same as result {twin}")
    size = number(_word(piece.holds.get("size")))
    if size is None:
        raise PerfmodelError(f"its size {_word(piece.holds.get('size'))!r} is no number")
    check_reduction(_word(piece.holds.get("redop")), of[0])
    found: list[tuple[float, float, Place]] = []
    for where, key in _PLACES.items():
        time = _time(_place(piece, key), size, of)
        if time is not None:
            found.append((size, time, where))
    if not found:
        raise PerfmodelError("it has no time")
    return found


def _time(told: Mapping[str, Any], size: float, of: tuple[Operation, RankGroup]) -> float | None:
    if not told:
        return None
    if "nwrong" not in told:
        raise PerfmodelError("it is cut or damaged")
    errors = "N/A" if told["nwrong"] is None else _word(told["nwrong"])
    return time_of([*(_word(told.get(name)) for name in ("time", "alg_bw", "bus_bw")), errors], size, of)


def _word(held: object) -> str:
    """The text of a number or a name; "" for anything else."""
    return held if isinstance(held, str) else ""


def _devices(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = config.get("devices")
    return [device for device in listed if isinstance(device, dict)] if isinstance(listed, list) else []


def _ranks(config: Mapping[str, Any]) -> list[Member]:
    """All ranks; where only the first rank of each process is listed, the ranks after it are on its host."""
    each = (_whole(config.get("nthreads")) or 1) * (_whole(config.get("ngpus")) or 1)
    listed: list[Member] = []
    for device in _devices(config):
        rank, group = _whole(device.get("rank")), _whole(device.get("group"))
        host = _word(device.get("hostname"))
        if rank is None or group is None or not host:
            raise PerfmodelError("its list of devices has an entry without rank, group or host")
        listed.append(Member(rank=rank, group=group, host=host, device=_word(device.get("device_info"))))
    if each * len(listed) > _MOST:
        raise PerfmodelError(f"{len(listed)} processes of {each} devices each are more than {_MOST}")
    if any(member.rank % each for member in listed):  # a list of all ranks
        return listed
    return [
        Member(rank=member.rank + more, group=member.group, host=member.host, device=member.device)
        for member in listed
        for more in range(each)
    ]  # fmt: skip


def _whole(held: object) -> int | None:
    return int(held) if isinstance(held, str) and held.isascii() and _WHOLE.fullmatch(held) else None


def _version(code: int) -> str:
    """NCCL's code of a version in words.

    >>> _version(22304), _version(2708)
    ('NCCL version 2.23.4', 'NCCL version 2.7.8')
    """
    digits = str(code)
    minor = -3 if len(digits) <= _OLD_CODE else -4
    return f"NCCL version {digits[:minor]}.{int(digits[minor:-2])}.{int(digits[-2:])}"
