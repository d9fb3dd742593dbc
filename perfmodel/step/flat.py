"""A step at flat fidelity: all communication, computation at the rate of large products, no overlap."""

from perfmodel.memory.per_device import memory_per_device
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.step.flops import compute_time, utilization
from perfmodel.step.prediction import Prediction
from perfmodel.traffic.per_step import ring_latency, traffic
from perfmodel.units import Seconds


def predict(job: Job, layout: Layout) -> Prediction:
    """Every term of a step."""
    sent = traffic(job, layout)
    communication, compute = sent.communication(), compute_time(job, layout, job.costs.rate)
    return Prediction(
        communication=communication,
        compute=compute,
        exposed_communication=communication.total,
        memory=memory_per_device(job, layout),
        utilization=utilization(job, layout, compute + communication.total),
        ring_latency=ring_latency(job, sent),
    )


def step_time(job: Job, layout: Layout) -> Seconds:
    """Seconds per step, without the terms."""
    return traffic(job, layout).communication().total + compute_time(job, layout, job.costs.rate)
