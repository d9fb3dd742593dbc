"""One rank of one run: `python -m perfmodel.launch.processes.worker REQUEST`, started by `children`.

It trains, measures, and times each collective alone. It writes what it found (rank 0) or what went wrong to a file.
"""

import argparse
import json
import math
import os
import platform
import signal
import socket
import statistics
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import torch
import torch.distributed as dist

from perfmodel.errors import PerfmodelError
from perfmodel.files import write_whole
from perfmodel.launch.processes import timing
from perfmodel.launch.processes.assembly import trainer, vocabulary
from perfmodel.launch.processes.children import CRASHED, OUT_OF_MEMORY, REFUSED, report_path
from perfmodel.launch.processes.devices import Device
from perfmodel.launch.processes.experiment import Experiment, Seat
from perfmodel.launch.training import checkpoints, tokens
from perfmodel.launch.training.groups import Grid
from perfmodel.launch.training.ledger import Ledger
from perfmodel.launch.training.training import Outcome, Trainer
from perfmodel.records import OK

T = TypeVar("T")
_FAILED = 1
# What torch says when the memory of the host is used up; for GPU memory it raises a specific error.
_NO_MEMORY = ("can't allocate memory", "not enough memory", "cannot allocate memory")
_OutOfMemory: type[BaseException] = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)


def main() -> None:
    """Run this rank of a training."""
    take_seat(Experiment, _run)


def take_seat(kind: Callable[..., T], carry_out: Callable[[T, Seat], None]) -> None:
    """Read the request of the runner, which holds an assignment of this kind, carry it out, and report a failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("request", type=Path)
    request = json.loads(parser.parse_args().request.read_text(encoding="utf-8"))
    assignment, seat = kind(**request["assignment"]), Seat(**request["seat"])
    threading.Thread(target=_end_with_the_runner, daemon=True).start()
    try:
        carry_out(assignment, seat)
    except BaseException as error:
        report(seat, {"status": _status(error), "message": _sentence(error), "at": time.time()})
        raise SystemExit(_FAILED) from error


def report(seat: Seat, record: Mapping[str, Any]) -> None:
    """Write this rank's record for the runner."""
    write_whole(report_path(seat.folder, seat.rank), json.dumps(record, allow_nan=False))


def _end_with_the_runner() -> None:
    """End this process when its standard input is closed, which happens whenever and however the runner ends."""
    while os.read(0, 1):
        continue
    os.kill(os.getpid(), signal.SIGKILL)


def _status(error: BaseException) -> str:
    if isinstance(error, PerfmodelError):
        return REFUSED
    text = str(error).lower()
    full = isinstance(error, (_OutOfMemory, MemoryError)) or any(words in text for words in _NO_MEMORY)
    return OUT_OF_MEMORY if full else CRASHED


def _sentence(error: BaseException) -> str:
    """The first line of an error; messages of torch may be pages long."""
    text = str(error).strip().partition("\n")[0]
    return text if isinstance(error, PerfmodelError) else f"{type(error).__name__}: {text}"


def _run(experiment: Experiment, seat: Seat) -> None:
    """Run this rank; all ranks report before any of them disconnects, so that errors of disconnecting do not matter."""
    device = Device.of(seat, experiment.backend, experiment.dtype)
    meet(device, seat)
    measured = _Measured(experiment, Grid.of(experiment.layout(), seat.rank), device)
    found = {"status": OK} | measured.steps() | {"communication": measured.collectives()}
    report(seat, found | versions() | {"hardware": device.name(), "hosts": len(set(hosts(seat)))})
    part()


def meet(device: Device, seat: Seat) -> None:
    """Set up torch.distributed, and return when all ranks have connected."""
    patience = timedelta(seconds=seat.timeout)
    store = _store(seat, patience)
    dist.init_process_group(device.backend, store=store, rank=seat.rank, world_size=seat.world, timeout=patience)


def part() -> None:
    """Disconnect together with all other ranks."""
    dist.barrier()
    dist.destroy_process_group()


def _store(seat: Seat, patience: timedelta) -> Any:
    """A file if all ranks are on this host, else a server in rank 0, which is not that of torchrun's agent."""
    place = urlsplit(seat.store)
    if place.scheme == "file":
        return dist.FileStore(unquote(place.path), seat.world)  # type: ignore[attr-defined]
    host, port = place.hostname or "", place.port or 0
    return dist.TCPStore(host, port, seat.world, is_master=seat.rank == 0, timeout=patience)  # type: ignore[attr-defined]


class _Measured:
    """A model in training on this rank."""

    def __init__(self, experiment: Experiment, grid: Grid, device: Device) -> None:
        self.experiment, self.grid, self.device = experiment, grid, device
        if experiment.save:
            checkpoints.prepare(experiment.save)
        self.job = experiment.workload()
        self.trainer: Trainer | None = trainer(
            self.job, grid, device=device.device, dtype=device.torch_dtype, seed=experiment.seed, tune=experiment.tune
        )
        self.accumulation = self.trainer.accumulation
        self.made = (
            checkpoints.load(experiment.load, self.trainer.flat, self.trainer.optimizer, grid) if experiment.load else 0
        )
        self.ledger = Ledger()

    def steps(self) -> dict[str, Any]:
        """Train; a step is timed until the device is idle."""
        experiment, device = self.experiment, self.device
        source = _source(experiment, vocabulary(self.job))
        outcomes: list[Outcome] = []
        times = []
        for step in range(experiment.warmup + experiment.steps):
            at = self.made + step
            mine = tokens.batches(
                source, self.grid, batch=experiment.batch_sequences, accumulation=self.accumulation, step=at
            )
            if step == experiment.warmup:
                device.start_peak()
            before = self.grid.ledger.calls.copy()
            device.wait()
            start = time.perf_counter()
            outcomes.append(self._step(at, mine))
            device.wait()
            times.append(time.perf_counter() - start)
            self.ledger = self.grid.ledger.since(before)
        peak = device.peak()
        self._save()
        return self._summary(times[experiment.warmup :]) | self._memory(peak) | _losses(outcomes)

    def _step(self, step: int, mine: list[tuple[torch.Tensor, torch.Tensor]]) -> Outcome:
        assert self.trainer is not None  # noqa: S101 - until the collectives are timed
        return self.trainer.step(step, mine)

    def _save(self) -> None:
        assert self.trainer is not None  # noqa: S101 - as above
        if folder := self.experiment.save:
            checkpoints.save(folder, self.trainer.flat, self.trainer.optimizer, self.grid)

    def collectives(self) -> dict[str, dict[str, dict[str, float]]]:
        """The collectives of the last step, each timed alone after the model's memory has been released."""
        self.trainer = None
        return timing.communication(self.grid, self.ledger, self.device)

    def _summary(self, mine: list[float]) -> dict[str, Any]:
        """The times of the measured steps; a step ends when the slowest rank has finished."""
        times = timing.slowest(mine, self.device)
        return {
            "backend": self.device.backend,
            "dtype": self.device.dtype,
            "optimizer": "adamw",
            "step_time_s": statistics.median(times),
            "step_time_min_s": min(times),
            "step_times_s": times,
        }

    def _memory(self, peak: tuple[int, int]) -> dict[str, Any]:
        """Peak memory of the rank that used most."""
        allocated, reserved = (int(most) for most in timing.slowest([float(size) for size in peak], self.device))
        return {"memory_B": allocated, "memory_reserved_B": reserved}


def _source(experiment: Experiment, known: int) -> tokens.TokenSource:
    length = experiment.sequence_length
    if experiment.tokens:
        return tokens.TokenFile(experiment.tokens, vocabulary=known, length=length)
    return tokens.Drawn(known, length, experiment.seed)


def _losses(outcomes: list[Outcome]) -> dict[str, Any]:
    """Losses and norms of all steps, including the warm-up; the timing of a training that diverges is valid, too."""
    return {
        "losses": [_finite(outcome.loss) for outcome in outcomes],
        "gradient_norms": [_finite(outcome.gradient_norm) for outcome in outcomes],
    }


def _finite(number: torch.Tensor) -> float | None:
    """The number; None if it is not finite, since JSON cannot express that."""
    return float(number) if math.isfinite(number) else None


def versions() -> dict[str, Any]:
    """The versions of torch and Python."""
    return {"torch_version": torch.__version__, "python_version": platform.python_version()}


def hosts(seat: Seat) -> list[str]:
    """The host of each rank."""
    names: list[Any] = [None] * seat.world
    dist.all_gather_object(names, socket.gethostname())
    return names


if __name__ == "__main__":
    main()
