"""A small GPT that learns the bytes of a text, on grids of some ranks."""

import torch

from perfmodel.launch.layers import decoder
from perfmodel.launch.training.groups import Grid
from perfmodel.launch.training.parameters import hold
from perfmodel.launch.training.plan import Plan
from perfmodel.launch.training.tokens import TokenFile, batches
from perfmodel.launch.training.training import Trainer, Training
from perfmodel.models.model import Transformer
from perfmodel.parallel.choices import OVERLAPS
from perfmodel.parallel.layout import Layout

BYTES, LENGTH, BATCH = 256, 32, 8
GPT = Transformer(layers=1, hidden=32, heads=4, vocabulary=BYTES, sequence=LENGTH, learned_positions=LENGTH)


def curves(rank, path, cases):
    """The loss of every step, for each (grid, dtype, steps)."""
    return [_curve(Grid.of(Layout.of(sizes), rank), path, *rest) for sizes, *rest in cases]


def _curve(grid, path, dtype, steps):
    plan = Plan.of(grid, overlap=frozenset(OVERLAPS))
    model = decoder.build(GPT.model("tiny"), plan, padded_vocabulary=BYTES)
    flat = hold(model, device=torch.device("cpu"), dtype=getattr(torch, dtype))
    trainer = Trainer(model, flat, plan, Training(learning_rate=0.001))
    source = TokenFile(path, vocabulary=BYTES, length=LENGTH)
    outcomes = [
        trainer.step(step, batches(source, grid, batch=BATCH, accumulation=1, step=step)) for step in range(steps)
    ]
    return [outcome.loss.item() for outcome in outcomes]
