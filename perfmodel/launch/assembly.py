"""What trains a job's model on one rank: runs and dry runs put it together here, so that they are the same code."""

import torch

from perfmodel.job import Job
from perfmodel.launch import decoder, parameters
from perfmodel.launch.groups import Grid
from perfmodel.launch.plan import Plan
from perfmodel.launch.training import Trainer, Training
from perfmodel.settings import RECOMPUTES, WEIGHT_CACHES
from perfmodel.workload import Embedding


def trainer(
    job: Job, grid: Grid, *, device: torch.device, dtype: torch.dtype, seed: int | None, tune: bool = False
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


def vocabulary(job: Job) -> int:
    """Tokens that the job's model knows."""
    return next(layer.vocabulary for _, layer in job.model.layers() if isinstance(layer, Embedding))
