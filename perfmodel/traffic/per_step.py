"""The collectives of one training step: what is sent, in which group, over which bandwidth, how often.

What each layer sends is in `per_layer`; this module adds the groups, the end of a step, and the sums. A dry run of
the launch code sends exactly these bytes. Paper fidelity counts only the equations of the paper; flat and full fidelity
count everything that a step sends, however small.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from perfmodel.costs.collective import Collective, Link
from perfmodel.models.layers import Attention
from perfmodel.parallel.axes import REPLICA_GROUP, TENSOR_GROUP, WEIGHT_GROUP
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.sharding import block_repeats, replicated_parameters
from perfmodel.traffic.links import links
from perfmodel.traffic.per_layer import FP32, LayerTraffic, layers
from perfmodel.units import Bytes, Seconds

# One call per step each.
_SCALARS = (
    ("gradient norm", TENSOR_GROUP),
    ("gradient norm", WEIGHT_GROUP),
    ("loss", WEIGHT_GROUP),
    ("loss", REPLICA_GROUP),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Communication:
    """Seconds per step, by what is sent; the total is the sum (Eq. 6 over the network)."""

    weight_gather: Seconds
    gradient_scatter: Seconds
    forward_reduce: Seconds
    backward_reduce: Seconds
    data_reduce: Seconds
    update_gather: Seconds
    vocabulary: Seconds
    small: Seconds

    @property
    def total(self) -> Seconds:
        """All communication of a step."""
        tensor = self.weight_gather + self.gradient_scatter + self.forward_reduce + self.backward_reduce
        return tensor + self.data_reduce + self.update_gather + self.vocabulary + self.small


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """All collectives of a step: those of each kind of layer, and those that end the step.

    The printed terms, the step, explain, the timeline, calibration and the dry run all read this record.
    """

    layers: tuple[LayerTraffic, ...]
    ending: tuple[Collective, ...]

    def __iter__(self) -> Iterator[Collective]:
        """Every collective, by kind of layer, then those that end the step."""
        for each in self.layers:
            yield from each.sent
        yield from self.ending

    def communication(self) -> Communication:
        """Seconds per step by what is sent."""
        terms: dict[str, Seconds] = dict.fromkeys(Communication.__dataclass_fields__, 0.0)
        for one in self:
            terms[one.term] = terms[one.term] + one.total
        return Communication(**terms)

    def ending_time(self) -> Seconds:
        """Seconds of the collectives that end the step."""
        total: Seconds = 0.0
        for one in self.ending:
            total = total + one.time
        return total

    def update_time(self) -> Seconds:
        """Seconds of gathering the weights that a sharded optimizer has updated."""
        total: Seconds = 0.0
        for each in self.layers:
            for one in each.sent:
                total = total + one.total if one.role == "update" else total
        return total


def traffic(job: Job, layout: Layout) -> Traffic:
    """Everything that is sent in a step, for one layout or many."""
    groups = links(job, layout)
    return Traffic(layers=tuple(layers(job, layout, groups)), ending=tuple(_ending(job, layout, groups)))


def communication_time(job: Job, layout: Layout) -> Communication:
    """Seconds of communication of a step on one layout or many."""
    return traffic(job, layout).communication()


def ring_latency(job: Job, sent: Traffic) -> Seconds:
    """Seconds that the hops of a step's rings would add: steps of each ring * the profile's latency of one hop.

    Neither paper nor flat fidelity counts it; it is shown beside the step, so that readers see where bandwidth alone
    misleads. A ring over d domains has d hops between them, and an all-reduce goes round twice.
    """
    fabric, network = job.machine.fabric.latency, job.machine.network.latency
    inside, between = (figure.value if figure else 0.0 for figure in (fabric, network))
    seconds: Seconds = 0.0
    for collective in sent:
        link = collective.link
        steps = link.size - 1
        domains = -(-link.size * link.inner // job.machine.domain)
        crossing = np.where(link.crosses, np.minimum(steps, domains), 0)
        rounds = 2 if collective.operation == "all-reduce" else 1
        seconds = seconds + collective.calls * rounds * (crossing * between + (steps - crossing) * inside)
    return seconds


def _ending(job: Job, layout: Layout, groups: dict[str, Link]) -> Iterator[Collective]:
    """What is sent once per step: gradients of what Z does not split, the gradient norm, the loss."""
    if job.settings.fidelity == "paper":
        return
    elements, sizes = replicated_parameters(job, layout), job.settings
    attention = [(block, layer) for block, layer in job.model.layers() if isinstance(layer, Attention)]
    scales = sum(block_repeats(block, layout) * layer.parameters for block, layer in attention)
    sent: list[tuple[str, str, Bytes]] = []
    if scales:
        sent.append(("scales of queries and keys", "x", scales * sizes.kept_gradient_bytes))
    if np.any(elements):
        if sizes.sequence_parallel:  # ranks of X have seen different tokens
            sent.append(("biases, norms", "x", elements * sizes.kept_gradient_bytes))
        sent.append(("biases, norms, positions", WEIGHT_GROUP, elements * sizes.kept_gradient_bytes))
        sent.append(("biases, norms, positions", REPLICA_GROUP, elements * sizes.sent_gradient_bytes))
    sent += [(name, group, FP32) for name, group in _SCALARS]
    for name, group, buffer in sent:
        yield Collective(
            layer=name, role="end", term="small", operation="all-reduce", link=groups[group], buffer=buffer, calls=1
        )
