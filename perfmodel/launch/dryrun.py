"""One step of one rank at any scale, in one process and without a GPU: the launch code under fake groups and tensors.

Fake process groups send nothing and fake tensors hold no numbers, so that the code of a run does all that it would do,
in the same order, and what it sends, multiplies and holds can be counted.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.distributed.fake_pg import FakeStore

from perfmodel.errors import UsageError
from perfmodel.job import Job
from perfmodel.launch import decoder, parameters
from perfmodel.launch.groups import Grid
from perfmodel.launch.ledger import Ledger
from perfmodel.launch.plan import Plan
from perfmodel.launch.tracking import Tracker
from perfmodel.launch.training import Trainer, Training
from perfmodel.layout import Layout
from perfmodel.settings import RECOMPUTES, WEIGHT_CACHES
from perfmodel.workload import Embedding

_FORMATS = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True, slots=True)
class DryRun:
    """What one rank did in a step: collectives, FLOPs of products with weights and of attention, bytes at the peak."""

    ledger: Ledger
    products: int
    attention: int
    peak: int
    kinds: Mapping[str, int]


def dry_run(job: Job, layout: Layout, *, rank: int = 0) -> DryRun:
    """Run one step of `rank`, gradients accumulated as the batch asks for."""
    with _pretended(int(layout.gpus), rank):
        grid = Grid.of(layout, rank)
        plan = Plan.of(
            grid,
            overlap=job.settings.overlap,
            weight_cache=WEIGHT_CACHES[int(layout.weight_cache)],
            recompute=RECOMPUTES[int(layout.recompute)],
        )
        tracker = Tracker(_pass)
        batch = torch.zeros((int(layout.micro_batch), job.sequence), dtype=torch.long, device="meta")
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            tokens = mode.from_tensor(batch)  # not counted
            with tracker:
                trainer = _trainer(job, layout, plan)
                _name(tracker, trainer)
                trainer.step(0, [(tokens, tokens)] * trainer.accumulation)
    return DryRun(grid.ledger, tracker.products, tracker.attention, tracker.peak, tracker.at_peak)


@contextmanager
def _pretended(ranks: int, rank: int) -> Iterator[None]:
    """Be one of so many ranks, of which no other exists."""
    if not 0 <= rank < ranks:
        raise UsageError(f"rank {rank} of {ranks} ranks, wanted 0 to {ranks - 1}")
    if ranks == 1:
        yield
        return
    dist.init_process_group("fake", rank=rank, world_size=ranks, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


def _trainer(job: Job, layout: Layout, plan: Plan) -> Trainer:
    vocabulary = next(layer.vocabulary for _, layer in job.model.layers() if isinstance(layer, Embedding))
    padded = int(job.padded_vocabulary(vocabulary, layout))
    model = decoder.build(job.model, plan, padded_vocabulary=padded, flash=job.settings.flash_attention)
    flat = parameters.hold(model, device=torch.device("cpu"), dtype=_FORMATS[job.dtype], seed=None)
    return Trainer(model, flat, plan, Training(), int(job.accumulation(layout)))


def _name(tracker: Tracker, trainer: Trainer) -> None:
    """What is alive from step to step."""
    flat, optimizer = trainer.flat, trainer.optimizer
    for tensor in (flat.master, optimizer.first, optimizer.second):
        tracker.name(tensor, "optimizer")
    tracker.name(flat.values, "weights")
    tracker.name(flat.gradient, "gradients")


def _pass() -> str:
    """What a tensor is that is made now; nothing public tells whether a backward pass is running."""
    backward = torch._C._current_graph_task_id() != -1  # noqa: SLF001
    return "backward pass" if backward else "kept from the forward pass"
