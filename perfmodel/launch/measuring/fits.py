"""Start-up time and bandwidth of each operation in each shape of group, from all rounds."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from perfmodel.launch.measuring.lines import Lines
from perfmodel.launch.measuring.points import OPERATIONS, Collective
from perfmodel.logs.line_fit import FittedLine, fit
from perfmodel.logs.samples import traffic
from perfmodel.machines.collective_times import Operation
from perfmodel.units import show

_NAMED = 3  # number of outliers that a sentence lists


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A line through all times of one operation in one shape; `outliers` are (bytes, round, seconds).

    `largest_rate` is the bus bandwidth of the largest call. `holds` says whether the line predicts it: whether the line
    has a finite bandwidth and fits the largest size in most rounds. It may not if that size exceeds a cache.
    """

    operation: Operation
    inner: int
    size: int
    line: FittedLine
    sizes: int
    samples: int
    largest_rate: float
    holds: bool
    outliers: tuple[tuple[float, int, float], ...]

    @property
    def bandwidth(self) -> float:
        """Bus bandwidth of large calls: from the line if it holds for them, else that of the largest call."""
        return float(self.line.beta) if self.holds else self.largest_rate

    @property
    def bandwidth_interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the bandwidth; None if the bandwidth is that of the largest call."""
        return self.line.beta_interval if self.holds else None

    @property
    def alpha(self) -> float:
        """Start-up time in seconds."""
        return float(self.line.alpha)

    @property
    def words(self) -> str:
        """The fit as one sentence, with 95 % intervals, the error, and the outliers."""
        alpha = _with_interval(self.alpha, self.line.alpha_interval, "s")
        beta = _with_interval(self.bandwidth, self.bandwidth_interval, "B/s")
        beta += "" if self.holds else " (of the largest, for which no line holds)"
        told = f"{self.operation} of {self.size} ranks, stride {self.inner}: {alpha} and {beta}"
        return f"{told}, error {self.line.error:.0%} over {self.samples} times of {self.sizes} sizes{self._off()}"

    def _off(self) -> str:
        if not self.outliers:
            return ""
        named = [
            f"{show(size, 'B')} in round {number + 1} ({show(taken, 's')})"
            for size, number, taken in self.outliers[:_NAMED]
        ]
        more = f" and {len(self.outliers) - _NAMED} more" if len(self.outliers) > _NAMED else ""
        return f"; off the line: {', '.join(named)}{more}"


def _with_interval(value: float, interval: tuple[float, float] | None, unit: str) -> str:
    """A number with its 95 % interval, as text."""
    if interval is None:
        return show(value, unit)
    low, high = (show(end, unit) for end in interval)
    return f"{show(value, unit)} ({low} to {high})"


def fits(lines: Lines) -> list[Fit]:
    """A fit for every series with two or more sizes, in the order of groups."""
    series: dict[tuple[int, int, Operation], list[Collective]] = {}
    for point in lines.values:
        if isinstance(point, Collective):
            series.setdefault((point.inner, point.size, point.operation), []).append(point)
    ordered = sorted(series, key=lambda key: (*key[:2], OPERATIONS.index(key[2])))
    found = (_fit(lines, sorted(series[key], key=lambda point: point.bytes)) for key in ordered)
    return [one for one in found if one is not None]


def _fit(lines: Lines, points: list[Collective]) -> Fit | None:
    first, last = points[0], points[-1]
    samples = [
        (point.bytes, number, values["seconds"])
        for point in points
        for number, values in sorted(lines.values[point].items())
    ]
    sent = np.array([traffic(first.operation, size, first.size) for size, _, _ in samples])
    line = fit(sent, np.array([taken for _, _, taken in samples]))
    if line is None:
        return None
    rate = float(traffic(last.operation, last.bytes, last.size)) / lines.median(last)
    outliers = tuple(samples[place] for place in line.outliers)
    holds = line.beta_interval is not None and bool(np.isfinite(line.beta_interval[1]))
    holds &= 2 * sum(size == last.bytes for size, _, _ in outliers) <= len(lines.values[last])
    return Fit(
        operation=first.operation,
        inner=first.inner,
        size=first.size,
        line=line,
        sizes=len(points),
        samples=len(samples),
        largest_rate=rate,
        holds=holds,
        outliers=outliers,
    )


def of_shape(every: Iterable[Fit], inner: int, size: int) -> float | None:
    """One bandwidth for a shape of group, as in the paper's database: that of one call of each operation together.

    It is the bytes through a link in an all-gather, a reduce-scatter and an all-reduce (which sends twice as many),
    divided by the time of the three calls. Operations that were not measured are left out.
    """
    rates = {one.operation: one.bandwidth for one in every if (one.inner, one.size) == (inner, size)}
    if not rates:
        return None
    shares = {operation: 2.0 if operation == "all-reduce" else 1.0 for operation in rates}
    return sum(shares.values()) / sum(share / rates[operation] for operation, share in shares.items())
