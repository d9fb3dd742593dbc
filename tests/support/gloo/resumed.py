"""Training that stops on one grid and goes on on another."""

from pathlib import Path

import torch

from gloo.trained import BATCH, source, trainer
from perfmodel.launch.training import checkpoints
from perfmodel.launch.training.groups import Grid
from perfmodel.launch.training.tokens import batches
from perfmodel.parallel.layout import Layout


def written(rank, folder, cases):
    """Losses of two steps and of two more, with a checkpoint between them, for each (name, dtype, grid)."""
    return [_written(Grid.of(Layout.of(sizes), rank), folder, *rest) for *rest, sizes in cases]


def _written(grid, folder, name, dtype):
    mine = trainer(name, grid, getattr(torch, dtype), clip=0.05)
    before = _losses(mine, grid, name, range(2))
    checkpoints.save(path(folder, name, dtype, grid.layout), mine.flat, mine.optimizer, grid)
    return before, _losses(mine, grid, name, range(2, 4))


def resumed(rank, folder, cases):
    """Losses of the two steps after a checkpoint, for each (name, dtype, grid that wrote it, grid that reads it)."""
    return [_resumed(Grid.of(Layout.of(sizes), rank), folder, *rest) for *rest, sizes in cases]


def _resumed(grid, folder, name, dtype, wrote):
    mine = trainer(name, grid, getattr(torch, dtype), clip=0.05)
    mine.flat.master[mine.flat.master != 0] = torch.nan  # all but padding: what is not read shows
    done = checkpoints.load(path(folder, name, dtype, Layout.of(wrote)), mine.flat, mine.optimizer, grid)
    return _losses(mine, grid, name, range(done, done + 2))


def path(folder, name, dtype, layout):
    """Where a grid writes."""
    return Path(folder, f"{name}-{dtype}-{layout.text()}")


def _losses(mine, grid, name, steps):
    return [
        mine.step(step, batches(source(name), grid, batch=BATCH, accumulation=1, step=step)).loss.item()
        for step in steps
    ]
