"""One rank of a measurement: `python -m perfmodel.launch.measuring.worker REQUEST`, started by `processes.children`.

All ranks measure the same list of points, round by round, and agree on every result, which rank 0 writes at once.
"""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from perfmodel import __version__
from perfmodel.errors import PerfmodelError
from perfmodel.launch.measuring import hardware
from perfmodel.launch.measuring.assignment import MeasurementRequest
from perfmodel.launch.measuring.benches import Bench
from perfmodel.launch.measuring.lines import START, Lines, check_same
from perfmodel.launch.measuring.points import longest, plan, record_of, too_long
from perfmodel.launch.processes import timing
from perfmodel.launch.processes.devices import Device
from perfmodel.launch.processes.experiment import AUTO, Seat
from perfmodel.launch.processes.results import append
from perfmodel.launch.processes.worker import hosts, meet, part, report, take_seat, versions
from perfmodel.records import OK


def main() -> None:
    """Run this rank of a measurement."""
    take_seat(MeasurementRequest, _measure)


def _measure(asked: MeasurementRequest, seat: Seat) -> None:
    began = time.monotonic()
    named = asked.dtypes.split("+")
    device = Device.of(seat, asked.backend, named[0])  # type: ignore[arg-type]
    dtypes = [device.dtype if name == AUTO else name for name in named]
    meet(device, seat)
    node = ranks_a_node(hosts(seat))
    start = _start(asked, seat, device, node) | {"dtypes": "+".join(dtypes)}
    lines = _agreed_lines(asked, seat, start)
    _rounds(
        asked,
        _Clock(device, began, asked.budget),
        lines,
        Bench(device=device, rank=seat.rank, world=seat.world, node=node, limit=0.0),
    )
    report(seat, {"status": OK})
    part()


def ranks_a_node(names: list[str]) -> int:
    """Ranks per host, which must be the same on every host; the ranks of a host must be consecutive.

    >>> ranks_a_node(["a", "a", "b", "b"])
    2
    """
    each = names.count(names[0])
    blocks = [names[first : first + each] for first in range(0, len(names), each)]
    if any(set(block) != {block[0]} or len(block) != each for block in blocks) or len(blocks) != len(set(names)):
        counts = ", ".join(f"{names.count(name)} on {name}" for name in dict.fromkeys(names))
        raise PerfmodelError(f"ranks do not fill one node after another evenly: {counts}; start as many on each")
    return each


def _start(asked: MeasurementRequest, seat: Seat, device: Device, node: int) -> dict[str, Any]:
    """The line that describes the machine and the versions."""
    nccl = torch.cuda.nccl.version() if device.backend == "nccl" else ()  # type: ignore[no-untyped-call]
    return {
        "status": OK,
        "what": START,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "perfmodel_version": __version__,
        **versions(),
        "collectives_version": ".".join(map(str, nccl)),
        "backend": device.backend,
        "ranks": seat.world,
        "devices_per_node": node,
        **hardware.of_device(device, node),
        **hardware.of_node(),
        "scheduler": asked.scheduler,
        "partition": asked.partition,
    }


def _agreed_lines(asked: MeasurementRequest, seat: Seat, start: dict[str, Any]) -> Lines:
    """The lines that rank 0 reads from the file, on every rank; the other ranks need no access to it."""
    box: list[Any] = [None]
    if seat.rank == 0:
        path = Path(asked.lines)
        lines = Lines.read(path)
        check_same(lines, start, path)
        append(path, start)
        lines.starts.append(start)
        box = [lines]
    dist.broadcast_object_list(box)
    found: Lines = box[0]
    return found


class _Clock:
    """Seconds since the start, by the slowest rank's clock."""

    def __init__(self, device: Device, began: float, budget: float) -> None:
        self.device, self.began, self.budget = device, began, budget

    def over(self, free: float) -> tuple[bool, float]:
        """Whether the budget is used up, and the least free memory of any rank: the same on every rank."""
        most = timing.slowest([time.monotonic() - self.began, -free], self.device)
        return most[0] > self.budget, -most[1]


def _rounds(asked: MeasurementRequest, clock: _Clock, lines: Lines, bench: Bench) -> None:
    """All points in one round after another, so that a temporary disturbance affects only one of many rounds."""
    points = plan(bench.world, bench.node, lines.start["dtypes"].split("+"), asked.largest)
    bench.limit = longest(asked.budget, asked.rounds, points)
    smallest = bench.device.torch_dtype.itemsize
    for number in range(asked.rounds):
        for point in points:
            if lines.has(point, number) or getattr(point, "bytes", smallest) < smallest * getattr(point, "size", 1):
                continue
            over, free = clock.over(hardware.free_memory(bench.device, bench.node))
            if over:
                return
            if too_long(point, lines.least(), bench.limit) or bench.needs(point) > free:
                continue
            values = bench.measure(point)
            lines.values.setdefault(point, {})[number] = values
            if bench.rank == 0:
                append(Path(asked.lines), _line(point, number, values))


def _line(point: Any, number: int, values: dict[str, float]) -> dict[str, Any]:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return {"status": OK, **record_of(point), "round": number, "values": values, "at": at}


if __name__ == "__main__":
    main()
