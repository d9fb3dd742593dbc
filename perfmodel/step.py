"""One training step on one layout or many: the terms put together, no physics of its own.

Paper fidelity knows communication only. Flat fidelity adds arithmetic at a flat GEMM rate, nothing overlapped. Full
fidelity has kernels, latency, protocols and overlap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from perfmodel.communication import Communication, communicate, ring_latency
from perfmodel.compute import GemmRate, compute_time, utilization
from perfmodel.gemm import FLASH_1, FLASH_2, Chip
from perfmodel.job import Job
from perfmodel.kernels import optimizer
from perfmodel.layout import Layout
from perfmodel.memory import Memory, occupy, replicated_parameters, sharded_parameters
from perfmodel.overlap import Mode, data_reduce, micro_step
from perfmodel.stages import computation, segments
from perfmodel.units import Number, Seconds


@dataclass(frozen=True, slots=True)
class Prediction:
    """What one step takes and holds; `ring_latency` is in no sum below full fidelity (see `communication`)."""

    communication: Communication
    compute: Seconds | None
    exposed_communication: Seconds
    memory: Memory
    utilization: Number | None
    ring_latency: Seconds

    @property
    def step(self) -> Seconds:
        """Seconds a step: what grids are ranked by."""
        return self.exposed_communication if self.compute is None else self.compute + self.exposed_communication


def step_time(job: Job, layout: Layout, rate: GemmRate | None) -> Seconds:
    """Seconds a step, without the terms; `rate` is None at paper fidelity."""
    if rate is None:
        return communicate(job, layout).total
    if job.settings.fidelity == "full":
        return _full(job, layout, rate)[0]
    return communicate(job, layout).total + compute_time(job, layout, rate)


def predict(job: Job, layout: Layout, rate: GemmRate | None) -> Prediction:
    """Every term of a step."""
    communication, memory, latency = communicate(job, layout), occupy(job, layout), ring_latency(job, layout)
    if rate is None:
        return Prediction(communication, None, communication.total, memory, None, latency)
    if job.settings.fidelity == "full":
        step, compute = _full(job, layout, rate)
        return Prediction(communication, compute, step - compute, memory, utilization(job, layout, step), latency)
    compute = compute_time(job, layout, rate)
    used = utilization(job, layout, compute + communication.total)
    return Prediction(communication, compute, communication.total, memory, used, latency)


def chip(job: Job, rate: GemmRate) -> Chip:
    """The device as kernels see it."""
    attention = FLASH_1 if job.settings.flash_version == 1 else FLASH_2
    device = Chip.of(job.machine.device, gemm=rate.value, host=job.settings.host_time, attention=attention)
    return replace(device, memory=device.memory * rate.memory)


def _full(job: Job, layout: Layout, rate: GemmRate) -> tuple[Seconds, Seconds]:
    """(step, computation in it) at full fidelity: micro-steps, the all-reduce over data, the optimizer."""
    device = chip(job, rate)
    parts, mode = segments(job, layout, device), Mode.of(layout, job.settings)
    updated = _update(job, layout, device)
    steps = job.accumulation(layout)
    computed = steps * computation(parts, full=mode.full, selective=mode.selective) + updated
    return steps * micro_step(parts, mode) + data_reduce(parts, mode) + updated, computed


def _update(job: Job, layout: Layout, device: Chip) -> Seconds:
    """The optimizer's own time: its bytes over the memory bandwidth."""
    settings = job.settings
    return optimizer(
        parameters=sharded_parameters(job, layout) + replicated_parameters(job.model, layout),
        state=settings.optimizer_bytes,
        gradient=settings.kept_gradient_bytes,
        weight=settings.weight_bytes,
        chip=device,
    )
