"""One training step on one layout or many: the terms put together, no physics of its own.

Paper fidelity knows communication only. Flat fidelity adds arithmetic at a flat GEMM rate, nothing overlapped.
"""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.communication import Communication, communicate, ring_latency
from perfmodel.compute import GemmRate, compute_time, utilization
from perfmodel.job import Job
from perfmodel.layout import Layout
from perfmodel.memory import Memory, occupy
from perfmodel.units import Number, Seconds


@dataclass(frozen=True, slots=True)
class Prediction:
    """What one step takes and holds; `ring_latency` is not in any sum (see `communication.ring_latency`)."""

    communication: Communication
    compute: Seconds | None
    memory: Memory
    utilization: Number | None
    ring_latency: Seconds

    @property
    def exposed_communication(self) -> Seconds:
        """Communication that computation does not hide; without overlap, all of it."""
        return self.communication.total

    @property
    def step(self) -> Seconds:
        """Seconds a step: what grids are ranked by."""
        return self.exposed_communication if self.compute is None else self.compute + self.exposed_communication


def step_time(job: Job, layout: Layout, rate: GemmRate | None) -> Seconds:
    """Seconds a step, without the terms; `rate` is None at paper fidelity."""
    communication = communicate(job, layout).total
    return communication if rate is None else communication + compute_time(job, layout, rate)


def predict(job: Job, layout: Layout, rate: GemmRate | None) -> Prediction:
    """Every term of a step."""
    communication, memory, latency = communicate(job, layout), occupy(job, layout), ring_latency(job, layout)
    if rate is None:
        return Prediction(communication, None, memory, None, latency)
    compute = compute_time(job, layout, rate)
    return Prediction(communication, compute, memory, utilization(job, layout, compute + communication.total), latency)
