"""Seconds of each collective of a step, repeated by itself after the measured steps, which are so left undisturbed."""

import statistics
import time

import torch
import torch.distributed as dist

from perfmodel.launch.devices import Device
from perfmodel.launch.groups import Axis, Grid, Pending
from perfmodel.launch.ledger import Call, Ledger

_WARM_UP, _RUNS = 1, 5


def communication(grid: Grid, ledger: Ledger, device: Device) -> dict[str, dict[str, dict[str, float]]]:
    """Calls, bytes and seconds of a step by operation, then axis; every rank calls this with the same ledger.

    `seconds` is what the calls take one after another with nothing beside them: the slowest rank's median each.
    """
    calls = list(ledger)
    alone = torch.tensor([_alone(grid, call, device) for call, _ in calls], dtype=torch.float64, device=device.device)
    if calls:
        dist.all_reduce(alone, op=dist.ReduceOp.MAX)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for (call, times), seconds in zip(calls, alone.tolist(), strict=True):
        row = found.setdefault(call.operation, {}).setdefault(call.axis, {"calls": 0, "bytes": 0, "seconds": 0.0})
        row["calls"] += times
        row["bytes"] += times * call.buffer
        row["seconds"] += times * seconds
    return found


def _alone(grid: Grid, call: Call, device: Device) -> float:
    """Median seconds of one call; all groups of an axis are at it together, as in a step."""
    axis: Axis = getattr(grid, call.axis)
    part = call.elements if call.operation != "all-gather" else call.elements // axis.size
    buffer = torch.zeros(part, dtype=call.dtype, device=device.device)
    found = []
    for run in range(_WARM_UP + _RUNS):
        device.wait()
        dist.barrier()
        device.wait()
        start = time.perf_counter()
        _send(axis, call, buffer).wait()
        device.wait()
        if run >= _WARM_UP:
            found.append(time.perf_counter() - start)
    return statistics.median(found)


def _send(axis: Axis, call: Call, buffer: torch.Tensor) -> Pending:
    if call.operation == "all-reduce":
        return axis.all_reduce(buffer)
    return (axis.all_gather if call.operation == "all-gather" else axis.reduce_scatter)(buffer)[1]
