"""Figures that follow from the step time: throughput, utilization, bounds, and the time and node-hours of a training.

FLOPs are counted in two ways. Model FLOPs are those that training needs, 3 passes: MFU. Hardware FLOPs add
recomputation: HFU, the "flop/s" of arXiv 2502.08145 (its 96 B s l h^2 counts four passes). Neither counts the attention
that the ranks of Y repeat among themselves, which is waste, nor exploits the causal mask.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from perfmodel.costs.gemm import GemmRate
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.passes import Passes
from perfmodel.step.flops import hardware_flops, model_flops, utilization
from perfmodel.step.prediction import Prediction
from perfmodel.units import Flops, Number, Seconds, parse

_HOUR = parse("1 h", "s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Figures of one layout or many. Rates are of all devices together; `of_peak`, `of_gemm` are shares of theirs.

    `mfu` is MFU and `hfu` HFU, against the advertised dense peak; `gemm_utilization` is against
    the rate that large matrix products were measured to reach. `least`, `most`: seconds of a step if everything
    overlapped, links shared, and if nothing did.
    """

    tokens_per_second: Number
    sequences_per_second: Number
    model_flops_per_second: Number
    hardware_flops_per_second: Number
    mfu: Number
    hfu: Number
    gemm_utilization: Number
    lower_bound: Seconds
    upper_bound: Seconds


def throughput(job: Job, layout: Layout, prediction: Prediction, rate: GemmRate) -> Throughput:
    """All of it from a prediction that knows computation (flat and full fidelity)."""
    step, compute = prediction.step, 0.0 if prediction.compute is None else prediction.compute
    communication = prediction.communication.total
    model, hardware = model_flops(job) / step, needed_flops(job, layout) / step
    share = utilization(job, layout, step)
    return Throughput(
        tokens_per_second=job.batch * job.sequence / step,
        sequences_per_second=job.batch / step,
        model_flops_per_second=model,
        hardware_flops_per_second=hardware,
        mfu=share,
        hfu=share * (hardware / model),
        gemm_utilization=executed_flops(job, layout) / (step * layout.gpus * rate.value),
        lower_bound=np.maximum(compute, communication if prediction.least is None else prediction.least),
        upper_bound=compute + communication,
    )


def needed_flops(job: Job, layout: Layout) -> Flops:
    """FLOPs per step with recomputation, attention counted once: those of the same layout with Y = 1."""
    return hardware_flops(job, replace(layout, y=1))


def executed_flops(job: Job, layout: Layout) -> Flops:
    """FLOPs per step that kernels execute: a flash kernel computes the causal half of attention only.

    MFU and HFU count the full square, as the field does; the share of the GEMM rate counts what is computed, as time
    does, so that it never exceeds 1.
    """
    if not job.settings.flash_attention:
        return needed_flops(job, layout)
    modes = Passes.of(layout)
    attention = (3.0 + modes.full + modes.selective) * job.batch * job.model.attention_flops(job.sequence)
    return needed_flops(job, layout) - 0.5 * attention


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """Training on a number of tokens: whole steps, seconds, and node-hours."""

    tokens: int
    steps: int
    time: float
    node_hours: float


def training_run(job: Job, *, gpus: int, tokens: int, step: float) -> TrainingRun:
    """Training on `tokens` tokens, steps and nodes rounded up; without start-up, checkpoints and failures.

    >>> from perfmodel import models
    >>> from perfmodel.machines import profiles
    >>> job = Job.of(models.load("gpt-20b"), profiles.load("perlmutter"), batch=2048)
    >>> found = training_run(job, gpus=256, tokens=2048 * 2048 * 1000, step=9.0)
    >>> found.steps, found.time, found.node_hours
    (1000, 9000.0, 160.0)
    """
    steps = math.ceil(tokens / (job.batch * job.sequence))
    nodes = math.ceil(gpus / job.machine.node_devices)
    return TrainingRun(tokens=tokens, steps=steps, time=steps * step, node_hours=nodes * steps * step / _HOUR)
