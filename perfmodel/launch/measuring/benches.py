"""Measures one point on this rank while all other ranks do the same, so that devices share resources as in a step.

Processes share cores and memory; GPUs share the power and the memory of their host. A device measured alone would
therefore be faster than in any step. The result is the time of the slowest rank, and is the same on all ranks.
"""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from perfmodel import models
from perfmodel.costs import kernels
from perfmodel.launch.layers import decoder
from perfmodel.launch.measuring.points import Beside, Collective, Issue, Point, Product, Stream
from perfmodel.launch.processes import timing
from perfmodel.launch.processes.devices import DTYPES, Device
from perfmodel.launch.training import parameters
from perfmodel.launch.training.groups import Axis, Grid
from perfmodel.launch.training.ledger import Call
from perfmodel.launch.training.plan import Plan
from perfmodel.launch.training.tuner import Products
from perfmodel.models.scaling import scaled
from perfmodel.parallel.layout import Layout
from perfmodel.units import parse

_BURST = parse("50 ms", "s")  # least duration of the calls that are timed together
_MOST_CALLS = 500
_RUNS = 3
_SENT_RUNS = 7
_WIDTH = 256  # of the products beside an all-reduce
_MODEL, _SMALL, _FEW, _MANY, _TOKENS = "gpt-tiny", "1/8", 2, 6, 16  # blocks that only issue kernels
_ROOM = 1 / 4  # share of free memory that a point may use


@dataclass(slots=True, kw_only=True)
class Bench:
    """This rank's device and groups; all ranks create each group when it is first needed, in the same order."""

    device: Device
    rank: int
    world: int
    node: int
    limit: float
    axes: dict[tuple[int, int], Axis] = field(default_factory=dict)
    blocks: "dict[int, Callable[[], object]]" = field(default_factory=dict)

    def needs(self, point: Point) -> float:
        """Approximate memory that a point needs, in bytes."""
        if isinstance(point, Product):
            size = DTYPES[point.dtype].itemsize
            return float((point.m * point.k + point.k * point.n + point.m * point.n) * size) / _ROOM
        if isinstance(point, Issue):
            return 0.0
        return (3 if isinstance(point, (Stream, Collective)) else 1) * point.bytes / _ROOM

    def measure(self, point: Point) -> dict[str, float]:
        """Seconds of one call on the slowest rank, under `seconds`; the same on every rank."""
        match point:
            case Product():
                return {"seconds": self._burst(product(point, self.device))}
            case Stream():
                return {"seconds": self._burst(_stream(point, self.device))}
            case Collective():
                return {"seconds": self._sent(self.axis(point.inner, point.size), self._call(point), _SENT_RUNS)}
            case Issue():
                return {"seconds": self._issue()}
            case Beside():
                return self._beside(point)

    def axis(self, inner: int, size: int) -> Axis:
        """This rank's group of a shape."""
        if (inner, size) not in self.axes:
            self.axes[inner, size] = Axis.strided(rank=self.rank, world=self.world, inner=inner, size=size)
        return self.axes[inner, size]

    def _call(self, point: Collective) -> Call:
        elements = int(point.bytes) // self.device.torch_dtype.itemsize // point.size * point.size
        return Call(operation=point.operation, axis="", elements=elements, dtype=self.device.torch_dtype)

    def _sent(self, axis: Axis, call: Call, runs: int) -> float:
        """Seconds of a collective running alone, on the slowest rank."""
        return timing.slowest([timing.alone(axis, call, self.device, runs=runs)], self.device)[0]

    def _burst(self, call: Callable[[], object]) -> float:
        """Seconds per call, over so many calls that reading the clock is negligible; all ranks make the same number."""
        call()  # the first call includes some set-up
        once = self._timed(call, 1)
        calls = max(1, min(_MOST_CALLS, math.ceil(min(_BURST, self.limit) / max(once, 1 / _MOST_CALLS**2))))
        return self._timed(call, calls) / calls

    def _timed(self, call: Callable[[], object], calls: int) -> float:
        """Seconds of several calls on the slowest rank; the same on every rank."""
        timing.together(self.device)
        start = time.perf_counter()
        for _ in range(calls):
            call()
        self.device.wait()
        return timing.spanned(start, time.perf_counter(), self.device, self.node)

    def _issue(self) -> float:
        """Extra time of many blocks over few, divided by the kernels that the model counts in the difference."""
        for count in (_FEW, _MANY):
            if count not in self.blocks:
                self.blocks[count] = passes(count, self.device)
        times: dict[int, list[float]] = {count: [] for count in self.blocks}
        for _ in range(_RUNS):
            for count, run in self.blocks.items():
                times[count].append(self._burst(run))
        few, many = (statistics.median(times[count]) for count in (_FEW, _MANY))
        return (many - few) / (issued_kernels(_MANY) - issued_kernels(_FEW))

    def _beside(self, point: Beside) -> dict[str, float]:
        """Times of products alone, an all-reduce alone, and both at once, as in a backward pass (OAR)."""
        axis = self.axis(1, self.node)
        call = Call(
            operation="all-reduce",
            axis="",
            elements=int(point.bytes) // self.device.torch_dtype.itemsize,
            dtype=self.device.torch_dtype,
        )
        buffer = torch.zeros(call.elements, dtype=call.dtype, device=self.device.device)
        multiply = product(
            Product(dtype=self.device.dtype, mode="tn", form="square", m=_WIDTH, n=_WIDTH, k=_WIDTH), self.device
        )
        one, sent = self._burst(multiply), self._sent(axis, call, _RUNS)
        products = max(1, min(_MOST_CALLS, round(sent / one)))

        def both() -> None:
            pending = timing.send(axis, call, buffer)
            for _ in range(products):
                multiply()
            pending.wait()

        computed, together = (
            statistics.median(self._timed(run, calls) for _ in range(_RUNS))
            for run, calls in ((multiply, products), (both, 1))
        )
        return {"seconds": together, "compute": computed, "send": sent}


def product(point: Product, device: Device) -> Callable[[], object]:
    """A product as the launcher computes it, with random operands."""
    rows = (point.k, point.m) if point.mode == "tn" else (point.m, point.k)
    columns = (point.n, point.k) if point.mode == "nt" else (point.k, point.n)
    a, b = (torch.randn(shape, device=device.device).to(DTYPES[point.dtype]) for shape in (rows, columns))
    run = getattr(Products(), point.mode)
    return lambda: run(a, b)


def _stream(point: Stream, device: Device) -> Callable[[], object]:
    elements = int(point.bytes) // DTYPES["fp32"].itemsize
    first, second, third = (torch.ones(elements, device=device.device) for _ in range(3))
    if point.kernel == "copy":
        return lambda: first.copy_(second)
    return lambda: torch.add(second, third, alpha=3.0, out=first)


def issued_kernels(count: int) -> int:
    """Kernels of forward and backward passes through `count` blocks, as the model counts them."""
    model = scaled(models.load(_MODEL), layers=count, hidden=_SMALL)
    return sum(
        block.repeat * sum(kernels.kernel_counts(layer, part=kernels.DeviceShare(rows=1, sequence=1)))
        for block in model.blocks
        if block.checkpointed
        for layer in block.layers
    )


def passes(count: int, device: Device) -> Callable[[], object]:
    """Forward and backward passes of the launcher through `count` blocks, on this rank alone."""
    plan = Plan.of(Grid.of(Layout(x=1, y=1, z=1, data=1)))
    model = scaled(models.load(_MODEL), layers=count, hidden=_SMALL)
    transformer = model.transformer
    vocabulary = transformer.vocabulary if transformer else 1
    made = decoder.build(model, plan, padded_vocabulary=vocabulary)
    flat = parameters.hold(made, device=device.device, dtype=device.torch_dtype)
    tokens = torch.zeros((1, _TOKENS), dtype=torch.int64, device=device.device)

    def run() -> None:
        flat.clear()
        plan.schedule.begin()
        made(tokens, tokens, scale=1.0).backward()
        plan.schedule.finish()

    return run
