"""The least time of a step on the links that its collectives share: whatever overlaps, no step is shorter.

All groups that cross domains send through the same adapters, and all groups inside a domain of a switch or a bus
through the same ports. A call holds its link while it lasts, so that side by side calls take as long as in turn:

    step >= sum over collectives on a kind of link of calls * time of a call >= sum of bytes / bandwidth

Pairs of a mesh have links of their own, so groups inside it are not added up.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

import numpy as np

from perfmodel.costs.collective import Collective
from perfmodel.models.layers import Linear
from perfmodel.numerics import expand_rows
from perfmodel.parallel.job import Job
from perfmodel.parallel.passes import Passes
from perfmodel.traffic.per_step import Traffic
from perfmodel.units import Array, Number, Seconds

_SHARED = ("switch", "shared")  # topologies inside a domain whose groups share links


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLoad:
    """Seconds on one kind of link, by how often they come in a step.

    `always`: in every micro-step. `forward`: with each forward pass of checkpointed blocks. `gather`: with each gather
    of their weights; `gather_once`: of weights in other blocks. `step`: once per step.
    """

    always: Seconds = 0.0
    forward: Seconds = 0.0
    gather: Seconds = 0.0
    gather_once: Seconds = 0.0
    step: Seconds = 0.0

    def least(self, passes: Passes, micro_steps: Number) -> Seconds:
        """Seconds of a step."""
        gathers = passes.gathers * self.gather + passes.gathers_once * self.gather_once
        return micro_steps * (self.always + passes.forward * self.forward + gathers) + self.step

    def expand_rows(self, back: Array, count: int) -> "LinkLoad":
        """The same for more layouts (see `numerics.expand_rows`)."""
        return LinkLoad(**{each.name: expand_rows(getattr(self, each.name), back, count) for each in fields(LinkLoad)})


def loads(job: Job, sent: Traffic) -> tuple[LinkLoad, LinkLoad]:
    """What a step puts on the links between domains, and on those inside one."""
    between: dict[str, Seconds] = {each.name: 0.0 for each in fields(LinkLoad)}
    inside = dict(between)
    shares = job.machine.fabric.topology in _SHARED
    for kind, times, one in _sent(sent):
        seconds = times * one.time
        between[kind] = between[kind] + np.where(one.link.crosses, seconds, 0.0)
        if shares:
            inside[kind] = inside[kind] + np.where(one.link.crosses, 0.0, seconds)
    return LinkLoad(**between), LinkLoad(**inside)


def _sent(sent: Traffic) -> Iterator[tuple[str, int, Collective]]:
    """(how often, times per occurrence, collective) of everything in a step."""
    for each in sent.layers:
        again = each.block.checkpointed
        for one in each.sent:
            if one.role in ("data", "update"):
                kind = "step"
            elif one.role == "gather" and isinstance(each.layer, Linear):
                kind = "gather" if again else "gather_once"
            elif one.role == "reduce" and again:
                kind = "forward"
            else:
                kind = "always"
            yield kind, each.block.repeat * one.each, one
    yield from (("step", 1, one) for one in sent.ending)


def least_time(loaded: Iterable[LinkLoad], passes: Passes, micro_steps: Number) -> Seconds:
    """Seconds that a step takes at least, by the link that is loaded most."""
    least: Seconds = 0.0
    for load in loaded:
        least = np.maximum(least, load.least(passes, micro_steps))
    return least
