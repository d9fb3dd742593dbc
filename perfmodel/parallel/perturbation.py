"""The inputs of a prediction, scaled by what their sources leave uncertain."""

from dataclasses import dataclass, fields, replace

from perfmodel.costs.nccl import Constants
from perfmodel.parallel.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """One number for each input that is uncertain: its sigma, or a sample's factor."""

    inside: float
    between: float
    fabric_latency: float
    network_latency: float
    products: float
    memory: float
    issuing: float
    contention: float
    model: float
    tables: float  # the last, since it is drawn apart


CERTAIN = Inputs(**dict.fromkeys((each.name for each in fields(Inputs)), 0.0))


def scaled(job: Job, factors: Inputs) -> Job:
    """The same job on machines with other figures; the rate of products and the memory's are not the job's."""
    links, settings = job.bandwidths, job.settings
    return replace(
        job,
        settings=replace(
            settings,
            host_time=settings.host_time * factors.issuing,
            contention=settings.contention * factors.contention,
        ),
        bandwidths=replace(links, factor=factors.inside, between=links.between * factors.between),
        constants=job.constants and _scaled_constants(job.constants, factors),
        tables=tuple(replace(table, factor=factors.tables) for table in job.tables),
    )


def _scaled_constants(at: Constants, factors: Inputs) -> Constants:
    """Latencies and rates of collectives on machines with other figures."""
    latencies = {
        name: getattr(at, name) * factors.network_latency for name in ("network", "bulk", "ring", "far", "startup")
    }
    return replace(
        at,
        **latencies,
        fabric=at.fabric * factors.fabric_latency,
        channels=at.channels * factors.inside,
        switched=at.switched * factors.inside,
        tapered=at.tapered * factors.between,
    )
