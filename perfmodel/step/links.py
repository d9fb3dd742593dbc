"""The groups that a layout sends in, as links."""

from dataclasses import fields

from perfmodel.costs.collective import Link
from perfmodel.numerics import repeats
from perfmodel.parallel.axes import SENDING
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout

_PLACELESS = ("micro_batch", "recompute", "weight_cache")  # of a layout's columns, those that move no rank


def links(job: Job, layout: Layout) -> dict[str, Link]:
    """The groups of SENDING, for one layout or many; neighbours that differ in no size or placement share theirs."""
    place = (getattr(layout, each.name) for each in fields(layout) if each.name not in _PLACELESS)
    found = repeats(place)
    few = layout if found is None else layout.take(found[0])
    gpus = few.gpus
    made = {
        group: job.costs.link.of(job.costs, axis=group, size=few.size(group), inner=few.inner(group), gpus=gpus)
        for group in SENDING
    }
    if found is None:
        return made
    return {group: link.spread(found[1], len(found[0])) for group, link in made.items()}
