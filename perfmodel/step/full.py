"""A step at full fidelity: micro-steps of overlapped layers, the communication at the end of a step, the optimizer."""

from dataclasses import dataclass

import numpy as np

from perfmodel.costs.kernels import optimizer
from perfmodel.memory.per_device import memory_per_device
from perfmodel.numerics import expand_rows
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.passes import Passes
from perfmodel.parallel.sharding import replicated_parameters, sharded_parameters
from perfmodel.step.flops import utilization
from perfmodel.step.layer_units import BlockUnits, block_units, computation, expand_block_rows
from perfmodel.step.overlap import Mode, data_reduce, micro_step, update_gather
from perfmodel.step.prediction import Prediction
from perfmodel.traffic.per_step import ring_latency, traffic
from perfmodel.traffic.wires import LinkLoad, least_time, loads
from perfmodel.units import Array, Seconds

_MODES = ("recompute", "weight_cache")  # columns of a layout that no layer's time depends on


def predict(job: Job, layout: Layout) -> Prediction:
    """Every term of a step."""
    sent = traffic(job, layout)
    shared = _Shared(
        parts=block_units(job, layout, sent),
        ending=sent.ending_time(),
        gathered=sent.update_time(),
        loads=loads(job, sent),
    )
    step, compute = _step(job, layout, shared)
    return Prediction(
        communication=sent.communication(),
        compute=compute,
        exposed_communication=step - compute,
        memory=memory_per_device(job, layout),
        utilization=utilization(job, layout, step),
        ring_latency=ring_latency(job, sent),
        least=job.settings.level * least_time(shared.loads, Passes.of(layout), job.accumulation(layout)),
    )


def step_time(job: Job, layout: Layout) -> Seconds:
    """Seconds per step, without the terms.

    Layouts that differ only in their modes share the times of their layers, which are computed once.
    """
    found = layout.equal_rows(_MODES)
    few = layout if found is None else layout.take(found[0])
    sent = traffic(job, few)
    shared = _Shared(
        parts=block_units(job, few, sent),
        ending=sent.ending_time(),
        gathered=sent.update_time(),
        loads=loads(job, sent),
    )
    return _step(job, layout, shared if found is None else shared.expand_rows(found[1], len(found[0])))[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What layouts that differ only in their modes have in common.

    `ending`: what is sent once per step. `gathered`: updated weights over data, which may hide behind the next step's
    first forward pass. `loads`: what a step puts on links that groups share.
    """

    parts: tuple[BlockUnits, ...]
    ending: Seconds
    gathered: Seconds
    loads: tuple[LinkLoad, ...]

    def expand_rows(self, back: Array, count: int) -> "_Shared":
        """The same for more layouts (see `numerics.expand_rows`)."""
        return _Shared(
            parts=expand_block_rows(self.parts, back, count),
            ending=expand_rows(self.ending, back, count),
            gathered=expand_rows(self.gathered, back, count),
            loads=tuple(load.expand_rows(back, count) for load in self.loads),
        )


def _step(job: Job, layout: Layout, shared: _Shared) -> tuple[Seconds, Seconds]:
    """Seconds of a step, and of the computation in it. No step is shorter than its bytes on any link need."""
    mode, updated = Mode.of(job, layout), _update(job, layout)
    steps, parts = job.accumulation(layout), shared.parts
    computed = steps * computation(parts, mode.passes) + updated
    hidden = job.settings.framework.overlapping.parameter_gather
    exposed = update_gather(parts, mode, shared.gathered, hidden=hidden)
    spent = steps * micro_step(parts, mode) + data_reduce(parts, mode) + shared.ending + exposed + updated
    spent = np.maximum(spent, least_time(shared.loads, mode.passes, steps))
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
