"""The links of the groups that a layout communicates in."""

from perfmodel.costs.collective import Link
from perfmodel.parallel.axes import COMMUNICATION_GROUPS
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout

_PLACELESS = ("micro_batch", "recompute", "weight_cache")  # columns of a layout that move no rank


def links(job: Job, layout: Layout) -> dict[str, Link]:
    """One link per group of COMMUNICATION_GROUPS, for one layout or many; consecutive equal grids share them."""
    found = layout.equal_rows(_PLACELESS)
    few = layout if found is None else layout.take(found[0])
    gpus = few.gpus
    made = {
        group: job.costs.link.of(job.costs, axis=group, size=few.size(group), inner=few.inner(group), gpus=gpus)
        for group in COMMUNICATION_GROUPS
    }
    if found is None:
        return made
    return {group: link.expand_rows(found[1], len(found[0])) for group, link in made.items()}
