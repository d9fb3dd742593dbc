"""Runs grids one after another, each in new processes, so that a failed run does not affect the next.

Alone, the runner starts all ranks on this host. Inside a launch (torchrun, srun, mpirun) each rank has its own runner:
the runner of rank 0 decides what is run when, and each runner starts one process per run.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perfmodel import __version__
from perfmodel.errors import PerfmodelError
from perfmodel.launch.processes.children import CRASHED, TIMEOUT, Children, End, cause
from perfmodel.launch.processes.environment import Place
from perfmodel.launch.processes.experiment import Assignment, Seat, digest
from perfmodel.launch.processes.peers import Connection, Hub, Message, call, free_port
from perfmodel.launch.processes.results import SCHEMA
from perfmodel.records import OK, Record

_POLL = 0.05  # seconds between checks of the processes
_GRACE = 0.5  # seconds that other ranks have to report their failures after the first one


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Carries out runs. `threads_given`: the environment sets the number of threads per process."""

    experiments: tuple[Assignment, ...]
    place: Place | None
    timeout: float
    threads_given: bool

    def run(self, wanted: list[int], started: Callable[[int], None]) -> Iterator[tuple[int, Record]]:
        """The records of these runs, each as soon as it has ended; called by a process started alone and by rank 0."""
        hub = Hub(self.place, digest(self.experiments), self.timeout) if self.place else None
        try:
            for number in wanted:
                started(number)
                yield number, self._record(number, hub)
                if hub and hub.gone:
                    raise PerfmodelError(f"the perfmodel of rank {min(hub.gone)} has ended: no further grid can be run")
        finally:
            if hub:
                hub.tell({"end": True})
                hub.close()

    def follow(self) -> None:
        """Take part in the runs that rank 0 starts, until it reports that there are no more."""
        assert self.place is not None  # noqa: S101 - only a rank of a launch follows
        connection = call(self.place, digest(self.experiments), self.timeout)
        part: _Part | None = None
        try:
            while (messages := connection.receive(_POLL if part else None)) is not None:
                for message in messages:
                    if "end" in message:
                        return
                    part = self._obey(message, part)
                if part is not None:
                    part.report(connection)
            raise PerfmodelError(f"rank {self.place.rank}: the perfmodel of rank 0 has gone")
        finally:
            if part is not None:
                part.close()
            connection.close()

    def _obey(self, message: Message, part: "_Part | None") -> "_Part | None":
        """Begin or end this rank's part in a run."""
        if "refused" in message:
            raise PerfmodelError(message["refused"])
        if part is not None:
            part.close()
        return _Part(self, message["start"], message["store"]) if "start" in message else None

    def seats(self, experiment: Assignment, store: str, folder: str) -> list[Seat]:
        """The seats of the ranks that this runner starts: all ranks of the grid, or its own rank."""
        place = self.place
        ranks = range(experiment.ranks) if place is None else [place.rank]
        local_world = experiment.ranks if place is None else place.local_world
        return [
            Seat(
                rank=rank,
                world=experiment.ranks,
                local_rank=rank if place is None else place.local_rank,
                local_world=local_world,
                store=store,
                folder=folder,
                timeout=self.timeout,
                threads=None if self.threads_given else max(1, processors() // local_world),
                own_devices=place is not None,
            )
            for rank in ranks
        ]

    def _record(self, number: int, hub: Hub | None) -> Record:
        experiment, start = self.experiments[number], time.monotonic()
        asked = {"status": OK, "schema": SCHEMA, "message": "", **asdict(experiment), "gpus": experiment.ranks}
        stamp = {"started": datetime.now(UTC).isoformat(timespec="seconds"), "perfmodel_version": __version__}
        try:
            with tempfile.TemporaryDirectory(prefix="perfmodel-run-") as folder:
                found = self._attempt(number, hub, folder)
        except OSError as error:  # no space for a folder, or too many processes or files
            found = {"status": CRASHED, "message": f"the ranks could not be started: {error}"}
        found |= experiment.derived(found)
        return asked | stamp | {"wall_s": round(time.monotonic() - start, 3)} | found

    def _attempt(self, number: int, hub: Hub | None, folder: str) -> dict[str, Any]:
        """The record that rank 0 reports, or the reason why the run failed."""
        experiment = self.experiments[number]
        store = f"tcp://{self.place.address}:{free_port()}" if self.place else Path(folder, "store").as_uri()
        if hub:
            hub.tell({"start": number, "store": store})
        children = Children(experiment, self.seats(experiment, store, folder))
        try:
            ends = _watch(children, hub, number, experiment.ranks, self.timeout)
        finally:
            children.stop()
            if hub:
                hub.tell({"stop": number})
        if any(end.status != OK for end in ends):
            worst = cause(ends)
            return {"status": worst.status, "message": worst.message}
        if len(ends) < experiment.ranks:
            missing = sorted(set(range(experiment.ranks)) - {end.rank for end in ends})
            message = f"after {self.timeout:g} s {len(missing)} of {experiment.ranks} ranks had not ended"
            return {"status": TIMEOUT, "message": message}
        return next(end.record for end in ends if end.rank == 0) or {}


def _watch(children: Children, hub: Hub | None, number: int, ranks: int, timeout: float) -> list[End]:
    """How ranks have ended: all of them, or those that ended until shortly after a failure or the time limit."""
    deadline = time.monotonic() + timeout
    ends: dict[int, End] = {}
    failed = False
    while len(ends) < ranks and time.monotonic() < deadline:
        for end in (*children.ended(), *(_heard(hub, number) if hub else ())):
            ends.setdefault(end.rank, end)
        if not failed and any(end.status != OK for end in ends.values()):
            failed, deadline = True, min(deadline, time.monotonic() + _GRACE)
        if hub is None:
            time.sleep(_POLL)
    return list(ends.values())


def _heard(hub: Hub, number: int) -> Iterator[End]:
    for message in hub.heard(_POLL):
        if message.get("ended") == number:
            yield End(**message["end"] | {"rank": message["rank"]})
    for rank in hub.gone:
        yield End(
            rank=rank, status=CRASHED, message=f"the perfmodel of rank {rank} has gone", at=time.time(), by_signal=True
        )


class _Part:
    """This rank's part in a run that rank 0 has started."""

    def __init__(self, runner: Runner, number: int, store: str) -> None:
        self.number = number
        self.folder = tempfile.TemporaryDirectory(prefix="perfmodel-run-")
        experiment = runner.experiments[number]
        self.children = Children(experiment, runner.seats(experiment, store, self.folder.name))

    def report(self, connection: Connection) -> None:
        """If this rank has ended, tell rank 0 how."""
        for end in self.children.ended():
            connection.send({"ended": self.number, "end": asdict(replace(end, record=None))})

    def close(self) -> None:
        """End the process if it still runs."""
        self.children.stop()
        self.folder.cleanup()


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
