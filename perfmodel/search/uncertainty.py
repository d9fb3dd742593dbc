"""How far to trust a ranking: the uncertainty of the machine's figures, carried through the model by sampling.

Every input is multiplied by exp(sigma z) with z standard normal, drawn once per sample for all grids: a slow network
is slow for every grid. Sigma follows from the kind of source of the figure (docs/model.md, Uncertainty). The error of
the model itself differs from grid to grid, and is drawn separately for each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from perfmodel.costs.costs import Factors
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.search.search import Ranking
from perfmodel.sources import Figure, Kind
from perfmodel.step.predict import step_time
from perfmodel.units import Array

SAMPLES = 200
ENOUGH = 0.9  # probability that the fastest grid is among those listed
_LOW, _HIGH = 5, 95  # percentiles of the interval

# The model's own error from grid to grid, which decides between grids that are a few percent apart: measured over
# predicted time in 60 groups of vTrain's runs on one node (VIA-Research/vTrain f8dda84) scatters by 4.8 % (1.4826 times
# the median absolute deviation from the group's mean).
_MODEL = 0.05
# Relative standard deviations by the kind of source.
RELATIVE: Mapping[Kind, float] = MappingProxyType({"measured": 0.05, "paper": 0.07, "vendor": 0.15, "assumed": 0.25})


def sigmas(job: Job) -> Factors:
    """The inputs' relative standard deviations, by the sources that the machine's profile names."""
    machine, device = job.machine, job.machine.device
    measured = [entry.bandwidth for entry in machine.bandwidth.inside]
    return Factors(
        inside=_largest(measured or [machine.fabric.efficiency]),
        between=_largest([machine.bandwidth.between or machine.network.efficiency]),
        fabric_latency=_largest([machine.fabric.latency]),
        network_latency=_largest([machine.network.latency]),
        products=_largest([device.gemm.get(job.dtype) or device.gemm_efficiency]),
        memory=_largest([device.memory_sustained or device.memory_bandwidth]),
        # If the profile has none, those of `settings`, which were fitted on other software than the user's.
        issuing=_largest([device.host_time]) or RELATIVE["assumed"],
        contention=_largest([device.contention]) or RELATIVE["assumed"],
        model=_MODEL,
        tables=max((RELATIVE[machine.sources[each.source].kind] for each in machine.collectives), default=0.0),
    )


def _largest(figures: Sequence[Figure | None]) -> float:
    """The sigma of the least certain figure; 0 if there is none."""
    return max((RELATIVE[figure.source.kind] for figure in figures if figure), default=0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """Seconds per step by [sample, grid], grids in the order of the ranking."""

    layouts: Layout
    steps: Array

    def interval(self, row: int = 0) -> tuple[float, float]:
        """The 5th and 95th percentile of one grid's seconds per step."""
        low, high = np.percentile(self.steps[:, row], (_LOW, _HIGH))
        return float(low), float(high)

    def chances(self) -> Array:
        """Of each grid, the share of samples in which it is the fastest; the first one on a tie."""
        fastest = np.argmin(self.steps, axis=1)
        return np.bincount(fastest, minlength=self.steps.shape[1]) / len(self.steps)

    def contenders(self) -> list[int]:
        """The smallest set of grids that contains the fastest with a probability of 90 %, likeliest first."""
        chances = self.chances()
        order = np.argsort(-chances, kind="stable")
        enough = int(np.searchsorted(np.cumsum(chances[order]), ENOUGH - 1 / (2 * len(self.steps)))) + 1
        found: list[int] = order[:enough].tolist()
        return found


def sample(
    ranking: Ranking, generator: "np.random.Generator", uncertain: Factors, samples: int = SAMPLES
) -> Uncertainty:
    """Time the grids of a ranking on machines sampled from the uncertainty of the profile's figures.

    All at once: a factor is a column of samples, which every formula broadcasts over the row of grids.
    """
    names = [each.name for each in fields(Factors)]
    spread = np.array([getattr(uncertain, name) for name in names])
    of_tables = generator.spawn(1)[0]  # so that profiles without tables draw the same numbers as those with
    drawn = [generator.standard_normal((samples, len(names) - 1)), of_tables.standard_normal((samples, 1))]
    columns: Any = np.exp(spread * np.concatenate(drawn, axis=1)).T[:, :, None]
    factors = Factors(**dict(zip(names, columns, strict=True)))  # columns instead of numbers: formulas take either
    job = replace(ranking.job, costs=ranking.job.costs.scaled(factors))
    steps = step_time(job, ranking.layouts)
    own = np.exp(uncertain.model * generator.standard_normal((samples, len(ranking))))
    return Uncertainty(ranking.layouts, steps * own)
