"""One step of one rank at any scale, in one process and without a GPU: the launch code under fake groups and tensors.

Fake process groups send nothing and fake tensors hold no numbers. The code of a run executes all its operations in the
same order, so that collectives, FLOPs and memory can be counted.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.distributed.fake_pg import FakeStore

from perfmodel.errors import UsageError
from perfmodel.launch.dryrun.tracking import Tracker
from perfmodel.launch.processes.assembly import trainer
from perfmodel.launch.training.groups import Grid
from perfmodel.launch.training.ledger import Ledger
from perfmodel.launch.training.training import Trainer
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout

_KEPT = 4  # bytes of an accumulated gradient
_FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What one rank did in a step: collectives, FLOPs of products with weights and of attention, peak bytes."""

    ledger: Ledger
    products: int
    attention: int
    peak: int
    kinds: Mapping[str, int]


def dry_run(job: Job, layout: Layout, *, rank: int = 0) -> DryRun:
    """Run one step of `rank`, with gradients accumulated as the batch requires."""
    _refuse(job)
    with _pretended(int(layout.gpus), rank):
        grid, tracker = Grid.of(layout, rank), Tracker(_pass)
        shape = int(layout.micro_batch), job.sequence
        with FakeTensorMode():
            tokens = torch.zeros(shape, dtype=torch.long)  # the batch itself is not counted
            with tracker:
                made = trainer(job, grid, device=torch.device("cpu"), dtype=_FORMATS[job.dtype], seed=None)
                _name(tracker, made)
                batches = [(tokens, tokens)] * made.accumulation
                if made.accumulation == 1:  # the very first micro-step gathers no weight in advance
                    made.step(0, batches)
                before = grid.ledger.calls.copy()
                tracker.begin()
                made.step(1, batches)
    found = grid.ledger.since(before)
    return DryRun(
        ledger=found, products=tracker.products, attention=tracker.attention, peak=tracker.peak, kinds=tracker.at_peak
    )


def _refuse(job: Job) -> None:
    """Refuse what the launch code does not support."""
    settings = job.settings
    if job.model.transformer is None:
        raise UsageError(f"{job.model.name} is not a decoder, and only decoders can be run dry")
    if job.dtype not in _FORMATS:
        raise UsageError(f"a dry run in {job.dtype}: wanted {', '.join(_FORMATS)}")
    size = _FORMATS[job.dtype].itemsize
    sizes = settings.activation_bytes, settings.weight_bytes, settings.gradient_bytes
    if sizes != (size, size, size) or settings.data_gradient_bytes not in (None, _KEPT):
        raise UsageError(
            f"a dry run has {size} bytes per element of all but the accumulated gradients, which have {_KEPT}"
        )
    if settings.optimizer != "adamw" or settings.dropout:
        raise UsageError("a dry run has AdamW and no dropout: wanted --optimizer adamw and --no-dropout")


@contextmanager
def _pretended(ranks: int, rank: int) -> Iterator[None]:
    """Act as one of the given number of ranks, none of which exists."""
    if not 0 <= rank < ranks:
        raise UsageError(f"rank {rank} of {ranks} ranks; wanted 0 to {ranks - 1}")
    if ranks == 1:
        yield
        return
    dist.init_process_group("fake", rank=rank, world_size=ranks, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


def _name(tracker: Tracker, made: Trainer) -> None:
    """Name the tensors that live from step to step."""
    flat, optimizer = made.flat, made.optimizer
    for tensor in (flat.master, optimizer.first, optimizer.second):
        tracker.name(tensor, "optimizer")
    tracker.name(flat.values, "weights")
    tracker.name(flat.gradient, "gradients")


def _pass() -> str:
    """The kind of a tensor made now; no public function tells whether a backward pass is running."""
    backward = torch._C._current_graph_task_id() != -1  # noqa: SLF001
    return "backward pass" if backward else "kept from the forward pass"
