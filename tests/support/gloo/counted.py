"""One step of training on real ranks, for what it sends."""

import torch

from decoders import in_dtype
from machines import gpt, job
from perfmodel.launch.processes.assembly import trainer
from perfmodel.launch.training.groups import Grid


def small():
    """A small decoder, eight sequences per step."""
    model = gpt(layers=2, hidden=64, heads=4, vocabulary=500, sequence=16, kv_heads=2, gated=True)
    return job(model, in_dtype("fp32"), batch=8)


def counted(rank, layouts):
    """{(operation, axis): (calls, bytes)} of this rank in a step, layout by layout."""
    return [_counted(rank, small(), layout) for layout in layouts]


def _counted(rank, question, layout):
    grid = Grid.of(layout, rank)
    made = trainer(question, grid, device=torch.device("cpu"), dtype=torch.float32, seed=0)
    batch = torch.ones((layout.micro_batch, question.sequence), dtype=torch.long)
    made.step(0, [(batch, batch)] * made.accumulation)
    return grid.ledger.totals()
