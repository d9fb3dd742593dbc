"""The same job on several counts of devices: the best grid of each, how efficient it is, and what limits it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from perfmodel.errors import NoGridError, UsageError
from perfmodel.machines.allocation import count_problem
from perfmodel.parallel.job import Job
from perfmodel.search.no_answer import why_nothing
from perfmodel.search.search import Ranking, Space, rank


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences per step: the same for every count (strong scaling), or proportional to devices (weak scaling)."""

    whole: int | None = None
    per_device: float | None = None

    def __post_init__(self) -> None:
        """Exactly one of the two is given."""
        given = self.per_device if self.whole is None else self.whole
        if (self.whole is None) == (self.per_device is None) or given is None or not 0 < given < math.inf:
            raise UsageError("give either a batch or a batch per device, above 0")

    @property
    def scaling(self) -> str:
        """Strong or weak."""
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

    def any_of(self, counts: Sequence[int]) -> int:
        """A batch to read the job with, which each count then replaces with its own."""
        return next((batch for batch in map(self.of, counts) if batch), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
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


def answered(found: Sequence[Point]) -> Sequence[Point]:
    """The same; raises the reason of the first where no count has an answer."""
    if not any(point.ranking for point in found):
        raise NoGridError(found[0].reason)
    return found


def _point(job: Job, space: Space, batch: int | None) -> Point:
    gpus = space.gpus
    if batch is None:
        return Point(
            gpus=gpus,
            batch=None,
            ranking=None,
            reason=f"that many sequences per device give no whole batch on {gpus} devices",
        )
    if problem := count_problem(job.machine, gpus):
        return Point(gpus=gpus, batch=batch, ranking=None, reason=problem)
    found = rank(replace(job, batch=batch), space)
    return (
        Point(gpus=gpus, batch=batch, ranking=found)
        if len(found)
        else Point(gpus=gpus, batch=batch, ranking=None, reason=why_nothing(found))
    )
