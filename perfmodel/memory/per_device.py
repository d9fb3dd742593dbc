"""Peak memory of one device in a step, term by term."""

from dataclasses import dataclass, fields

import numpy as np

from perfmodel.memory.peak import peak_moment
from perfmodel.parallel.axes import COMMUNICATION_GROUPS, TENSOR_GROUP
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.sharding import replicated_parameters, sharded_parameters
from perfmodel.sources import Figure
from perfmodel.units import Bytes, Count, Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes on one device by term; the total is their sum."""

    weights: Bytes
    gradients: Bytes
    optimizer: Bytes
    activations: Bytes
    recomputed_block: Bytes
    in_flight: Bytes
    gathered_weights: Bytes
    logits: Bytes
    communicators: Bytes
    reserve: Bytes
    slack: Bytes

    @property
    def total(self) -> Bytes:
        """The sum of all terms."""
        total: Bytes = 0.0
        for term in fields(self):
            total = total + getattr(self, term.name)
        return total


def memory_per_device(job: Job, layout: Layout) -> Memory:
    """Peak bytes per device, for one layout or many."""
    settings, device = job.settings, job.machine.device
    parameters = sharded_parameters(job, layout) + replicated_parameters(job, layout)
    moment, shards = peak_moment(job, layout), job.state_shards(layout)
    kept = parameters / shards if settings.shards == "gradients" else parameters
    allocated = (
        parameters * settings.stored_weight_bytes
        + kept * settings.kept_gradient_bytes
        + parameters / shards * settings.optimizer_bytes
        + moment.total
    )
    return Memory(
        weights=parameters * settings.stored_weight_bytes,
        gradients=kept * settings.kept_gradient_bytes,
        optimizer=parameters / shards * settings.optimizer_bytes,
        activations=moment.activations,
        recomputed_block=moment.recomputed_block,
        in_flight=moment.in_flight,
        gathered_weights=moment.gathered_weights,
        logits=moment.logits,
        communicators=_held(device.communicator_buffer, settings.communicator_buffer) * _communicators(layout),
        reserve=0.0 * layout.x + _held(device.reserve, settings.reserve),
        slack=allocated * settings.slack,
    )


def _held(figure: Figure | None, otherwise: float) -> float:
    """The profile's figure, or the assumption made for GPUs."""
    return figure.value if figure else otherwise


def capacity(job: Job) -> float:
    """Bytes of one device that a plan may use: its memory as the framework sees it, less the user's margin."""
    return job.machine.device.memory.value * (1 - job.settings.memory_margin)


# Standard deviation of log(measured / predicted) of memory over published runs (docs/validation.md).
MEMORY_SCATTER = 0.08


def risk(job: Job, total: Bytes) -> Number:
    """Probability of running out of memory, from the scatter of published memory around predictions.

    Phi(log(total / memory) / 0.08), Phi of the standard normal distribution, as a logistic curve of the same slope
    (within 0.02 of it). Valid where the framework's traits are known.

    >>> from perfmodel import models
    >>> from perfmodel.machines import profiles
    >>> job = Job.of(models.load("gpt-5b"), profiles.load("perlmutter"), batch=8)
    >>> [round(float(risk(job, share * job.machine.device.memory.value)), 2) for share in (0.8, 0.93, 1.0)]
    [0.01, 0.18, 0.5]
    """
    distance = np.log(total / job.machine.device.memory.value) / MEMORY_SCATTER
    return 1.0 / (1.0 + np.exp(-_LOGISTIC * distance))


_LOGISTIC = 1.702


def _communicators(layout: Layout) -> Count:
    """Groups of more than one rank that a device belongs to, except that of the vocabulary, which sends little."""
    return sum((layout.size(group) > 1) * 1 for group in COMMUNICATION_GROUPS if group != TENSOR_GROUP)
