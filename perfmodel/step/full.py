"""A step at full fidelity: micro-steps of overlapped stages, what is sent once a step, the optimizer."""

from dataclasses import replace

import numpy as np

from perfmodel.costs.gemm import FLASH_1, FLASH_2, Chip
from perfmodel.costs.kernels import optimizer
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.sharding import replicated_parameters, sharded_parameters
from perfmodel.step.flops import GemmRate
from perfmodel.step.overlap import Mode, data_reduce, micro_step
from perfmodel.step.stages import computation, segments
from perfmodel.step.traffic import links, step_traffic
from perfmodel.units import Seconds


def chip(job: Job, rate: GemmRate) -> Chip:
    """The device as kernels see it."""
    attention = FLASH_1 if job.settings.flash_version == 1 else FLASH_2
    device = Chip.of(job.machine.device, gemm=rate.value, host=job.settings.host_time, attention=attention)
    return replace(device, memory=device.memory * rate.memory)


def step(job: Job, layout: Layout, rate: GemmRate) -> tuple[Seconds, Seconds]:
    """Seconds of a step, and of the computation in it, for one layout or many."""
    device = chip(job, rate)
    groups = links(job, layout)
    parts, mode = segments(job, layout, device, groups), Mode.of(layout, job.settings)
    ending = sum(one.time for one in step_traffic(job, layout, groups))
    updated = _update(job, layout, device)
    steps = job.accumulation(layout)
    computed = steps * computation(parts, full=mode.full, selective=mode.selective) + updated
    spent = steps * micro_step(parts, mode) + data_reduce(parts, mode) + ending + updated
    nothing_sent = np.asarray(layout.gpus) == 1  # equal but for rounding
    return np.where(nothing_sent, computed, np.maximum(spent, computed)), computed


def _update(job: Job, layout: Layout, device: Chip) -> Seconds:
    """The optimizer's own time: its bytes over the memory bandwidth."""
    settings = job.settings
    return optimizer(
        parameters=sharded_parameters(job, layout) + replicated_parameters(job, layout),
        state=settings.optimizer_bytes,
        gradient=settings.kept_gradient_bytes,
        weight=settings.weight_bytes,
        chip=device,
    )
