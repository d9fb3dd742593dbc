"""Builds the trainer of a job's model on one rank, for runs and dry runs alike, so that both execute the same code."""

import torch

from perfmodel.launch.layers import decoder
from perfmodel.launch.training import parameters
from perfmodel.launch.training.groups import Grid
from perfmodel.launch.training.plan import Plan
from perfmodel.launch.training.training import Trainer, Training
from perfmodel.models.model import Embedding
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.job import Workload


def trainer(
    job: Workload, grid: Grid, *, device: torch.device, dtype: torch.dtype, seed: int | None, tune: bool = False
) -> Trainer:
    """A trainer of the job's decoder; without a seed its parameters are not drawn."""
    layout = grid.layout
    plan = Plan.of(
        grid,
        overlap=job.settings.overlap,
        weight_cache=WEIGHT_CACHES[int(layout.weight_cache)],
        recompute=RECOMPUTES[int(layout.recompute)],
        tune=tune,
    )
    padded = int(job.padded_vocabulary(vocabulary(job), layout))
    model = decoder.build(job.model, plan, padded_vocabulary=padded, flash=job.settings.flash_attention)
    flat = parameters.hold(model, device=device, dtype=dtype, seed=seed)
    return Trainer(model, flat, plan, Training(), int(job.accumulation(layout)))


def vocabulary(job: Workload) -> int:
    """The vocabulary size of the job's model."""
    return next(layer.vocabulary for _, layer in job.model.layers() if isinstance(layer, Embedding))
