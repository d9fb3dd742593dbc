"""How far published steps lie from predictions: the likely range of a step, from evidence and not from assumptions.

`data/evidence.csv` has one line for each set of published steps: how far its runs lie from predictions made without
fitting to them, as mean and standard deviation of log(measured / predicted). A set of one's own is one more draw from
the same population, so its range is a predictive interval of a random-effects model:

    log(measured / predicted) ~ N(centre, between^2 * (1 + 1 / (sets + 1)) + within^2)

between: standard deviation of the sets' means over all sets; within: pooled over all sets. The centre is the mean of
the sets that resemble the question, shrunk towards the mean of all as if that were one more set. Sets of the same
framework on the same device count, else those of the device, else those of the framework, else all.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import exp, log, sqrt

from perfmodel.parallel.job import Job

_FILE = "search/data/evidence.csv"
OWN = "your own measurement"
_NORMAL = 1.645  # 5th and 95th percentile of a normal distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One set: its framework and device, the number of runs, and their log(measured / predicted)."""

    set: str
    framework: str
    device: str
    rows: int
    mean: float
    spread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Likely:
    """Factors on a predicted step that 9 of 10 measured ones lie between; from how many sets and runs, of what."""

    low: float
    high: float
    centre: float
    sets: int
    rows: int
    of: str

    def measured(self, scatter: float, rows: int) -> "Likely":
        """Around predictions whose level `rows` steps of one's own have set: both scatter around the set's mean."""
        half = exp(_NORMAL * scatter * sqrt(1 + 1 / rows))
        return Likely(low=1 / half, high=half, centre=1.0, sets=1, rows=rows, of=OWN)


@cache
def evidence() -> tuple[Evidence, ...]:
    """The shipped sets."""
    text = files("perfmodel").joinpath(_FILE).read_text(encoding="utf-8")
    return tuple(
        Evidence(
            set=row["set"],
            framework=row["framework"],
            device=row["device"],
            rows=int(row["rows"]),
            mean=float(row["mean_log"]),
            spread=float(row["sd_log"]),
        )
        for row in csv.DictReader(text.splitlines())
    )


def chip(device: str) -> str:
    """The kind of a device without its maker, form and memory.

    >>> chip("NVIDIA A100-SXM4-80GB"), chip("NVIDIA GH200 96GB"), chip("AMD MI250X GCD")
    ('A100', 'GH200', 'MI250X')
    """
    words = device.replace("-", " ").split()
    named = [word for word in words if any(letter.isdigit() for letter in word) and not word.endswith("GB")]
    return named[0] if named else device


def likely(framework: str, device: str, among: Sequence[Evidence] | None = None) -> Likely:
    """The likely range for a framework on a device; `among`: the evidence, the shipped sets unless given.

    >>> sets = [Evidence(set=str(n), framework="f", device="d", rows=9, mean=0.1, spread=0.05) for n in range(4)]
    >>> found = likely("f", "d", sets)
    >>> round(found.low, 3), round(found.high, 3), found.of
    (1.018, 1.2, 'f on d')
    """
    sets = evidence() if among is None else tuple(among)
    own = chip(device)
    choices = (
        ([one for one in sets if one.framework == framework and one.device == own], f"{framework} on {own}"),
        ([one for one in sets if one.device == own], own),
        ([one for one in sets if one.framework == framework], framework),
        (list(sets), "all devices"),
    )
    chosen, of = next(choice for choice in choices if choice[0])
    overall = sum(one.mean for one in sets) / len(sets)
    between = _between(sets, overall)
    centre = (sum(one.mean for one in chosen) + overall) / (len(chosen) + 1)
    half = _NORMAL * sqrt(between**2 * (1 + 1 / (len(chosen) + 1)) + within(sets) ** 2)
    return Likely(
        low=exp(centre - half),
        high=exp(centre + half),
        centre=exp(centre),
        sets=len(chosen),
        rows=sum(one.rows for one in chosen),
        of=of,
    )


def likely_of(job: Job) -> Likely:
    """The likely range of a job's steps; narrower where a step that the user measured sets the level."""
    found = likely(job.settings.framework.name, job.machine.device.name)
    rows = job.settings.level_rows
    return found.measured(within(evidence()), rows) if rows else found


def within(sets: Sequence[Evidence]) -> float:
    """Pooled standard deviation of runs around their set's mean."""
    freedom = sum(one.rows - 1 for one in sets)
    return sqrt(sum((one.rows - 1) * one.spread**2 for one in sets) / freedom) if freedom else 0.0


def _between(sets: Sequence[Evidence], overall: float) -> float:
    """Standard deviation of the sets' means."""
    return sqrt(sum((one.mean - overall) ** 2 for one in sets) / (len(sets) - 1)) if len(sets) > 1 else log(2)
