"""A step at paper fidelity: the published equations to the letter, communication only."""

from perfmodel.memory.per_device import memory_per_device
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.step.prediction import Prediction
from perfmodel.traffic.per_step import ring_latency, traffic
from perfmodel.units import Seconds


def predict(job: Job, layout: Layout) -> Prediction:
    """Every term of a step."""
    sent = traffic(job, layout)
    communication = sent.communication()
    return Prediction(
        communication=communication,
        compute=None,
        exposed_communication=communication.total,
        memory=memory_per_device(job, layout),
        utilization=None,
        ring_latency=ring_latency(job, sent),
    )


def step_time(job: Job, layout: Layout) -> Seconds:
    """Seconds per step, without the terms."""
    return traffic(job, layout).communication().total
