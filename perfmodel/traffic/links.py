"""The links of the groups that a layout communicates in."""

import numpy as np

from perfmodel.costs.collective import Link
from perfmodel.parallel.axes import COMMUNICATION_GROUPS, REPLICA_GROUP
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout

_PLACELESS = ("micro_batch", "recompute", "weight_cache")  # columns of a layout that move no rank


# Where the optimizer is sharded over a part of data's ranks only: these, and those that hold the same shard.
SHARDS, COPIES = "data shards", "data copies"


def links(job: Job, layout: Layout) -> dict[str, Link]:
    """One link per group of COMMUNICATION_GROUPS, for one layout or many; consecutive equal grids share them."""
    found = layout.equal_rows(_PLACELESS)
    few = layout if found is None else layout.take(found[0])
    gpus = few.gpus
    made = {
        group: job.costs.link.of(job.costs, axis=group, size=few.size(group), inner=few.inner(group), gpus=gpus)
        for group in COMMUNICATION_GROUPS
    }
    if job.settings.shard_ranks:
        made |= _parts_of_data(job, few)
    if found is None:
        return made
    return {group: link.expand_rows(found[1], len(found[0])) for group, link in made.items()}


def _parts_of_data(job: Job, few: Layout) -> dict[str, Link]:
    ranks, inner = few.size(REPLICA_GROUP), few.inner(REPLICA_GROUP)
    shards = np.gcd(ranks, job.settings.shard_ranks)
    parts = {SHARDS: (shards, inner), COPIES: (ranks // shards, inner * shards)}
    return {
        name: job.costs.link.of(job.costs, axis=REPLICA_GROUP, size=size, inner=stride, gpus=few.gpus)
        for name, (size, stride) in parts.items()
    }
