"""One training step on one layout or many: the terms put together, no physics of its own.

Paper fidelity knows communication only. Flat fidelity adds arithmetic at a flat GEMM rate, nothing overlapped. Full
fidelity has kernels, latency, protocols and overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.step.flops import GemmRate, compute_time, utilization
from perfmodel.step.memory import Memory, occupy
from perfmodel.step.traffic import Communication, communicate, ring_latency
from perfmodel.units import Number, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
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
        from perfmodel.step import full  # noqa: PLC0415 - 15 ms of imports that the other fidelities do without

        return full.step(job, layout, rate)[0]
    return communicate(job, layout).total + compute_time(job, layout, rate)


def predict(job: Job, layout: Layout, rate: GemmRate | None) -> Prediction:
    """Every term of a step."""
    communication, memory, latency = communicate(job, layout), occupy(job, layout), ring_latency(job, layout)
    if rate is None:
        return Prediction(
            communication=communication,
            compute=None,
            exposed_communication=communication.total,
            memory=memory,
            utilization=None,
            ring_latency=latency,
        )
    if job.settings.fidelity == "full":
        from perfmodel.step import full  # noqa: PLC0415 - as above

        step, compute = full.step(job, layout, rate)
        return Prediction(
            communication=communication,
            compute=compute,
            exposed_communication=step - compute,
            memory=memory,
            utilization=utilization(job, layout, step),
            ring_latency=latency,
        )
    compute = compute_time(job, layout, rate)
    used = utilization(job, layout, compute + communication.total)
    return Prediction(
        communication=communication,
        compute=compute,
        exposed_communication=communication.total,
        memory=memory,
        utilization=used,
        ring_latency=latency,
    )
