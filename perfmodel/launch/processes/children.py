"""The processes of one run on this host, one per rank: started, watched, and ended together.

Each process leads its own session, so that Ctrl-C reaches only the runner, which then ends the processes. Each also
watches its standard input, so that none outlives a runner that was killed.
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from perfmodel.launch.processes.experiment import Assignment, Seat
from perfmodel.records import OK, Record

CRASHED, OUT_OF_MEMORY, TIMEOUT, REFUSED = "crashed", "out of memory", "timeout", "refused"
_LONGEST = 600  # characters of a message


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How one rank ended: its record, or the `status` and `message` of a failure and its time `at`, in Unix seconds."""

    rank: int
    status: str
    message: str = ""
    at: float = 0.0
    by_signal: bool = False
    record: Record | None = None


def report_path(folder: str, rank: int) -> Path:
    """The file in which a rank reports how it ended."""
    return Path(folder, f"rank-{rank}.json")


class Children:
    """The ranks of one run that this runner has started."""

    def __init__(self, assignment: Assignment, seats: list[Seat]) -> None:
        """Start one process per seat."""
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._seats = {seat.rank: seat for seat in seats}
        try:
            for seat in seats:
                self._processes[seat.rank] = _start(assignment, seat)
        except BaseException:
            self.stop()
            raise

    def ended(self) -> list[End]:
        """The ranks that have ended since the last call."""
        codes = {rank: process.poll() for rank, process in self._processes.items()}
        found = {rank: code for rank, code in codes.items() if code is not None}
        for rank in found:
            _close(self._processes.pop(rank))
        return [_end(self._seats[rank], code) for rank, code in found.items()]

    def stop(self) -> None:
        """End the processes that still run, and all that they have started."""
        for process in self._processes.values():
            _kill(process)
        for process in self._processes.values():
            process.wait()
            _close(process)
        self._processes.clear()


def _start(assignment: Assignment, seat: Seat) -> subprocess.Popen[bytes]:
    request = Path(seat.folder, f"request-{seat.rank}.json")
    request.write_text(json.dumps({"assignment": asdict(assignment), "seat": asdict(seat)}), encoding="utf-8")
    with _talk(seat).open("wb") as talk:
        return subprocess.Popen(  # noqa: S603 - this Python, on a module of this package
            [sys.executable, "-m", assignment.worker, str(request)],
            stdin=subprocess.PIPE,
            stdout=talk,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _talk(seat: Seat) -> Path:
    """The output of a rank, which is read if the rank leaves no report."""
    return Path(seat.folder, f"talk-{seat.rank}.txt")


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.poll()


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()


def _end(seat: Seat, code: int) -> End:
    """How a rank ended, from its own report, from the signal that ended it, or from the last line that it printed.

    The report comes first: a rank that has reported a failure may still be ended by a signal, for example when gloo's
    threads outlive the interpreter.
    """
    path = report_path(seat.folder, seat.rank)
    report = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if report and report["status"] == OK:
        return End(rank=seat.rank, status=OK, record=report)
    if report:
        message = f"rank {seat.rank}: {report['message']}"[:_LONGEST]
        return End(rank=seat.rank, status=report["status"], message=message, at=report["at"])
    if code < 0:
        name = signal.Signals(-code).name
        hint = ", which is also how a host that runs out of memory ends a process" if name == "SIGKILL" else ""
        message = f"rank {seat.rank} was ended by {name}{hint}{_last_said(seat)}"[:_LONGEST]
        return End(rank=seat.rank, status=CRASHED, message=message, at=time.time(), by_signal=True)
    message = f"rank {seat.rank} ended with exit code {code}{_last_said(seat)}"[:_LONGEST]
    return End(rank=seat.rank, status=CRASHED, message=message, at=time.time())


def _last_said(seat: Seat) -> str:
    said = _talk(seat).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f": {said[-1].strip()}" if said else ""


def cause(ends: list[End]) -> End:
    """Of several ranks that failed, the one that most likely made the others fail.

    A rank that was ended by a signal comes first, then one that ran out of memory, because neither follows from the
    failure of another rank. Otherwise it is the first that failed.
    """
    bad = [end for end in ends if end.status != OK]
    return min(bad, key=lambda end: (not end.by_signal, end.status != OUT_OF_MEMORY, end.at))
