"""The groups that a layout sends in: the links of x, y, z and data, and of x and y joined."""

from dataclasses import fields

from perfmodel.costs.collective import Link
from perfmodel.numerics import repeats
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout

_GROUPS = ("x", "y", "z", "data", "xy")
_PLACELESS = ("micro_batch", "recompute", "weight_cache")  # of a layout's columns, those that move no rank


def links(job: Job, layout: Layout) -> dict[str, Link]:
    """The groups of each axis, for one layout or many; neighbours that differ in no size or placement share theirs."""
    place = (getattr(layout, each.name) for each in fields(layout) if each.name not in _PLACELESS)
    found = repeats(place)
    few = layout if found is None else layout.take(found[0])
    gpus = few.gpus
    made = {
        axis: job.costs.link.of(job.costs, axis=axis, size=few.size(axis), inner=few.inner(axis), gpus=gpus)
        for axis in _GROUPS
    }
    if found is None:
        return made
    return {axis: link.spread(found[1], len(found[0])) for axis, link in made.items()}
