"""A step at full fidelity: micro-steps of overlapped layers, the communication at the end of a step, the optimizer."""

import numpy as np

from perfmodel.costs.kernels import optimizer
from perfmodel.memory.per_device import memory_per_device
from perfmodel.numerics import expand_rows
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.sharding import replicated_parameters, sharded_parameters
from perfmodel.step.flops import utilization
from perfmodel.step.layer_units import BlockUnits, block_units, computation, expand_block_rows
from perfmodel.step.overlap import Mode, data_reduce, micro_step, update_gather
from perfmodel.step.prediction import Prediction
from perfmodel.traffic.per_step import ring_latency, traffic
from perfmodel.units import Seconds

_MODES = ("recompute", "weight_cache")  # columns of a layout that no layer's time depends on


def predict(job: Job, layout: Layout) -> Prediction:
    """Every term of a step."""
    sent = traffic(job, layout)
    step, compute = _step(job, layout, block_units(job, layout, sent), sent.ending_time(), sent.update_time())
    return Prediction(
        communication=sent.communication(),
        compute=compute,
        exposed_communication=step - compute,
        memory=memory_per_device(job, layout),
        utilization=utilization(job, layout, step),
        ring_latency=ring_latency(job, sent),
    )


def step_time(job: Job, layout: Layout) -> Seconds:
    """Seconds per step, without the terms.

    Layouts that differ only in their modes share the times of their layers, which are computed once.
    """
    found = layout.equal_rows(_MODES)
    few = layout if found is None else layout.take(found[0])
    sent = traffic(job, few)
    parts, ending, gathered = block_units(job, few, sent), sent.ending_time(), sent.update_time()
    if found is not None:
        count = len(found[0])
        parts = expand_block_rows(parts, found[1], count)
        ending, gathered = (expand_rows(each, found[1], count) for each in (ending, gathered))
    return _step(job, layout, parts, ending, gathered)[0]


def _step(
    job: Job, layout: Layout, parts: tuple[BlockUnits, ...], ending: Seconds, gathered: Seconds
) -> tuple[Seconds, Seconds]:
    """Seconds of a step, and of the computation in it.

    `ending`: what is sent once per step. `gathered`: updated weights over data, which may hide behind the next step's
    first forward pass.
    """
    mode, updated = Mode.of(job, layout), _update(job, layout)
    steps = job.accumulation(layout)
    computed = steps * computation(parts, mode.passes) + updated
    exposed = update_gather(parts, mode, gathered, hidden=job.settings.framework.overlapping.parameter_gather)
    spent = steps * micro_step(parts, mode) + data_reduce(parts, mode) + ending + exposed + updated
    nothing_sent = np.asarray(layout.gpus) == 1  # then both are equal except for rounding
    level = job.settings.level
    return level * np.where(nothing_sent, computed, np.maximum(spent, computed)), level * computed


def _update(job: Job, layout: Layout) -> Seconds:
    """The optimizer's own time: its bytes over the memory bandwidth."""
    settings = job.settings
    return optimizer(
        parameters=(sharded_parameters(job, layout) + replicated_parameters(job, layout)) / job.state_shards(layout),
        state=settings.optimizer_bytes,
        gradient=settings.kept_gradient_bytes,
        weight=settings.weight_bytes,
        chip=job.costs.chip,
    )
