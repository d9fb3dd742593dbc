"""Time of the arithmetic of a step at flat fidelity: FLOPs over the rate that large matrix products reach."""

from perfmodel.costs.gemm import GemmRate
from perfmodel.errors import PerfmodelError
from perfmodel.models.model import Head, Linear
from perfmodel.parallel.job import Job, Workload
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.passes import Passes
from perfmodel.parallel.sharding import block_repeats
from perfmodel.units import Flops, Number, Seconds


def model_flops(job: Workload) -> Flops:
    """FLOPs per step that training needs, without recomputation: 3 passes, for MFU."""
    return 3.0 * job.batch * job.model.forward_flops(job.sequence)


def hardware_flops(job: Job, layout: Layout) -> Flops:
    """FLOPs per step that the devices execute: 3 passes, recomputation, and the copies of attention over Y.

    Full recomputation repeats the forward pass of the checkpointed blocks (not the head); selective repeats attention.
    Heads are split over X only: after the all-reduce every rank of Y holds the same queries, keys and values and
    computes the same attention (arXiv 2502.08145, Algorithm 1: O is a copy over Y).
    """
    length = job.sequence
    attention, blocks = job.model.attention_flops(length), job.model.block_flops(length)
    passes = Passes.of(layout)
    repeated = passes.selective * attention + passes.full * blocks + passes.operations * 0.5 * (blocks - attention)
    copies = attention * (3.0 + passes.selective + passes.full) * (layout.y - 1.0)
    return model_flops(job) + job.batch * (repeated + copies)


def product_flops(job: Job, layout: Layout) -> Flops:
    """FLOPs per step of one device's products with weights: three passes, and the forward passes that are recomputed.

    Counted as executed, with the padding rows of the vocabulary: exactly what a dry run counts.
    """
    modes = Passes.of(layout)
    rows, passes = job.rows(layout), modes.forward + 0.5 * modes.operations
    total: Number = 0.0
    for block, layer in job.model.layers():
        repeats = block_repeats(block, layout)
        if isinstance(layer, Linear):
            products = passes + 2 if block.checkpointed else 3
            total = total + repeats * products * layer.flops(rows)
        elif isinstance(layer, Head):
            padded = job.padded_vocabulary(layer.vocabulary, layout)
            total = total + 3 * repeats * 2.0 * rows * layer.width * padded
    return job.accumulation(layout) * total / (layout.x * layout.y)


def compute_time(job: Job, layout: Layout, rate: GemmRate) -> Seconds:
    """Seconds of arithmetic: hardware FLOPs / (devices * GEMM rate); all devices do the same amount."""
    return hardware_flops(job, layout) / (1.0 * layout.gpus * rate.value)


def utilization(job: Job, layout: Layout, step: Seconds) -> Number:
    """Model FLOPs utilization: model FLOPs / (step time * devices * advertised dense peak)."""
    peak = job.machine.device.peak.get(job.dtype)
    if peak is None:
        raise PerfmodelError(f"{job.machine.name} has no peak in {job.dtype}")
    return model_flops(job) / (step * layout.gpus * peak.value)
