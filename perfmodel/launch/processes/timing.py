"""Seconds of each collective of a step, repeated alone after the measured steps, in order not to disturb them."""

import statistics
import time

import torch
import torch.distributed as dist

from perfmodel.launch.processes.devices import Device
from perfmodel.launch.training.groups import Axis, Grid, Pending
from perfmodel.launch.training.ledger import Call, Ledger

_WARM_UP = 1
RUNS = 5


def communication(grid: Grid, ledger: Ledger, device: Device) -> dict[str, dict[str, dict[str, float]]]:
    """Calls, bytes and seconds of a step by operation, then axis; every rank calls this with the same ledger.

    `seconds` is the time of the calls one after another with nothing else running: for each, the median of the slowest
    rank.
    """
    calls = list(ledger)
    mine = [alone(grid.sent_over(call.axis), call, device) for call, _ in calls]
    seconds_each = slowest(mine, device) if calls else []
    found: dict[str, dict[str, dict[str, float]]] = {}
    for (call, times), seconds in zip(calls, seconds_each, strict=True):
        row = found.setdefault(call.operation, {}).setdefault(call.axis, {"calls": 0, "bytes": 0, "seconds": 0.0})
        row["calls"] += times
        row["bytes"] += times * call.buffer
        row["seconds"] += times * seconds
    return found


def slowest(mine: list[float], device: Device) -> list[float]:
    """The maximum over all ranks, number by number."""
    most = torch.tensor(mine, dtype=torch.float64, device=device.device)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    found: list[float] = most.tolist()
    return found


def spanned(start: float, end: float, device: Device, node: int) -> float:
    """Seconds of work that started and ended on every rank, on the slowest host; a host has `node` ranks.

    Processes share processors, and one that has to wait before it reads its clock appears to be faster than it was. So
    with gloo the work of a host lasts from the first start to the last end. GPUs are not shared.
    """
    if device.backend != "gloo":
        return slowest([end - start], device)[0]
    mine = torch.tensor([start, end], dtype=torch.float64, device=device.device)
    every = mine.new_empty(dist.get_world_size(), 2)
    dist.all_gather(list(every.unbind()), mine)
    hosts = every.view(-1, node, 2)
    return float((hosts[:, :, 1].amax(1) - hosts[:, :, 0].amin(1)).max())


def alone(axis: Axis, call: Call, device: Device, *, runs: int = RUNS) -> float:
    """Median seconds of one call; all groups of an axis communicate at once, as in a step."""
    part = call.elements if call.operation != "all-gather" else call.elements // axis.size
    buffer = torch.zeros(part, dtype=call.dtype, device=device.device)
    found = []
    for run in range(_WARM_UP + runs):
        together(device)
        start = time.perf_counter()
        send(axis, call, buffer).wait()
        device.wait()
        if run >= _WARM_UP:
            found.append(time.perf_counter() - start)
    return statistics.median(found)


def together(device: Device) -> None:
    """Return on all ranks at the same time, when their devices are idle."""
    device.wait()
    dist.barrier()
    device.wait()


def send(axis: Axis, call: Call, buffer: torch.Tensor) -> Pending:
    """Begin the call; `buffer` is what this rank contributes."""
    if call.operation == "all-reduce":
        return axis.all_reduce(buffer)
    return (axis.all_gather if call.operation == "all-gather" else axis.reduce_scatter)(buffer)[1]
