"""How well predictions agree with measurements: errors of size, and of order within groups."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfmodel.numerics import kendall, spearman
from perfmodel.units import Array

_LEAST = 3  # least rows of a group for its order to be meaningful
_SOME, _FEW = 3, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Relative errors: mean and median of absolute values, signed mean, and the largest."""

    rows: int
    mape: float
    median: float
    bias: float
    worst: float

    @classmethod
    def of(cls, errors: Sequence[float]) -> "Sizes":
        """Sizes of errors, predicted / measured - 1; at least one.

        >>> Sizes.of([0.1, -0.3, 0.05])
        Sizes(rows=3, mape=0.15, median=0.1, bias=-0.05, worst=0.3)
        """
        found = np.asarray(errors, dtype=float)
        size = np.abs(found)
        return cls(
            rows=len(found),
            mape=float(size.mean()),
            median=float(np.median(size)),
            bias=float(found.mean()),
            worst=float(size.max()),
        )


def mean_error(sizes: Sizes) -> str:
    """The mean error in words, such as "7.2 %"."""
    return f"{100 * sizes.mape:.1f} %"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Agreement in order, over groups of rows that differ only in their grids; None where no group is large enough.

    Correlations use groups of 3 or more rows in which something varies; hits and regret those of 2 or more.
    `top1`, `top3`, `top5`: share of groups whose fastest row is among the 1, 3 or 5 predicted to be fastest.
    `regret`: measured time of the row predicted to be fastest / time of the fastest.
    """

    groups: int
    spearman: float | None
    spearman_mean: float | None
    kendall: float | None
    kendall_mean: float | None
    top1: float | None
    top3: float | None
    top5: float | None
    regret: float | None
    regret_worst: float | None

    @classmethod
    def of(cls, predicted: Sequence[float], measured: Sequence[float], groups: Sequence[object]) -> "Order":
        """Score each group by itself."""
        rows: dict[object, list[int]] = {}
        for row, group in enumerate(groups):
            rows.setdefault(group, []).append(row)
        guess, truth = np.asarray(predicted, dtype=float), np.asarray(measured, dtype=float)
        pairs = [(guess[found], truth[found]) for found in rows.values() if len(found) > 1]
        ranked = [pair for pair in pairs if len(pair[0]) >= _LEAST and all(np.ptp(values) > 0 for values in pair)]
        spearmans, kendalls = [spearman(*pair) for pair in ranked], [kendall(*pair) for pair in ranked]
        regrets = [float(b[np.argmin(a)] / b.min()) for a, b in pairs]
        return cls(
            groups=len(pairs),
            spearman=_median(spearmans), spearman_mean=_mean(spearmans),
            kendall=_median(kendalls), kendall_mean=_mean(kendalls),
            top1=_hits(pairs, 1), top3=_hits(pairs, _SOME), top5=_hits(pairs, _FEW),
            regret=_mean(regrets), regret_worst=max(regrets, default=None),
        )  # fmt: skip


def _hits(pairs: Sequence[tuple[Array, Array]], most: int) -> float | None:
    found = [int(np.argmin(measured)) in np.argsort(guess, kind="stable")[:most] for guess, measured in pairs]
    return _mean([float(hit) for hit in found])


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _median(values: list[float]) -> float | None:
    return float(np.median(values)) if values else None
