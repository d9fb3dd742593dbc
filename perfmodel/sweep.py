"""The same job on several counts of devices: the best grid of each, how efficient it is, and what limits it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from perfmodel import __version__
from perfmodel.advice import count_problem, why_nothing
from perfmodel.errors import UsageError
from perfmodel.job import Job
from perfmodel.search import Ranking, Space, rank
from perfmodel.tables import Record, ranking_record


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences a step: as many for every count (strong scaling), or so many a device (weak scaling)."""

    whole: int | None = None
    per_device: float | None = None

    def __post_init__(self) -> None:
        """One of the two."""
        given = self.per_device if self.whole is None else self.whole
        if (self.whole is None) == (self.per_device is None) or given is None or not 0 < given < math.inf:
            raise UsageError("give either --batch or --batch-per-gpu, above 0")

    @property
    def scaling(self) -> str:
        """Which of the two, in a word."""
        return "weak" if self.whole is None else "strong"

    def of(self, gpus: int) -> int | None:
        """Sequences for a count of devices; None where a device's share gives no whole batch.

        >>> Batch(per_device=0.25).of(256), Batch(per_device=0.25).of(2), Batch(whole=512).of(64)
        (64, None, 512)
        """
        if self.whole is not None:
            return self.whole
        batch = gpus * (self.per_device or 0.0)
        return int(batch) if batch == int(batch) and batch >= 1 else None


@dataclass(frozen=True, slots=True)
class Point:
    """One count of devices: the best grid in a ranking of one, or the reason why there is none."""

    gpus: int
    batch: int | None
    ranking: Ranking | None
    reason: str = ""


def points(job: Job, space: Space, counts: Sequence[int], batch: Batch) -> Iterator[Point]:
    """The answer for every count, in the order given."""
    for gpus in counts:
        yield _point(job, replace(space, gpus=gpus, top=1), batch.of(gpus))


def _point(job: Job, space: Space, batch: int | None) -> Point:
    gpus = space.gpus
    if batch is None:
        return Point(gpus, None, None, f"that many sequences a device on {gpus} devices make no whole batch")
    if problem := count_problem(job.machine, gpus):
        return Point(gpus, batch, None, problem)
    found = rank(replace(job, batch=batch), space)
    return Point(gpus, batch, found) if len(found) else Point(gpus, batch, None, why_nothing(found))


def sweep_record(job: Job, batch: Batch, found: Sequence[Point]) -> Record:
    """All counts as a record; efficiency is tokens a second and device against the first count with an answer."""
    rows = [_row(job, point) for point in found]
    first = next((row["tokens_per_device_s"] for row in rows if row["tokens_per_device_s"]), None)
    for row in rows:
        row["efficiency"] = row["tokens_per_device_s"] / first if row["tokens_per_device_s"] and first else None
    return {
        "perfmodel_version": __version__,
        "model": job.model.name,
        "parameters": job.model.parameters,
        "machine": job.machine.name,
        "device": job.machine.device.name,
        "devices_per_node": job.machine.node_devices,
        "sequence_length": job.sequence,
        "fidelity": job.settings.fidelity,
        "scaling": batch.scaling,
        "points": rows,
    }


def _row(job: Job, point: Point) -> Record:
    asked = {
        "gpus": point.gpus,
        "nodes": -(-point.gpus // job.machine.node_devices),
        "batch_sequences": point.batch,
        "reason": point.reason,
        "efficiency": None,
        "tokens_per_device_s": None,
        "limited_by": None,
        "largest_communication": None,
    }
    if point.ranking is None:
        return asked
    (best,) = ranking_record(point.ranking)["results"]
    step, tokens = best["step_time_s"], (point.batch or 0) * job.sequence
    found = {
        "tokens_per_device_s": tokens / point.gpus / step if step else None,
        "limited_by": limit(best),
        "largest_communication": largest_term(best),
    }
    return asked | found | {key: value for key, value in best.items() if key != "rank"}


def largest_term(result: Record) -> str | None:
    """What is sent for longest, hidden or not; None where nothing is sent."""
    terms: dict[str, float] = result["communication_s"]
    largest = max(terms, key=lambda name: terms[name])
    return largest if terms[largest] else None


def limit(result: Record) -> str:
    """What takes most of a step: computation, or else the largest term of the communication that it does not hide."""
    computed = result["compute_time_s"] or 0.0
    return (result["exposed_communication_time_s"] > computed and largest_term(result)) or "compute"
