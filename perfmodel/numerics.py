"""General arithmetic: divisors, ranks, isotonic medians, equal rows."""

from bisect import insort
from collections.abc import Iterable
from functools import cache

import numpy as np

from perfmodel.units import Array, Number


def divisors(number: int) -> list[int]:
    """All divisors, ascending.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    found = [1]
    for prime, exponent in _prime_factors(number):
        found = [divisor * prime**power for divisor in found for power in range(exponent + 1)]
    return sorted(found)


@cache
def _prime_factors(number: int) -> tuple[tuple[int, int], ...]:
    factors, prime = [], 2
    while prime * prime <= number:
        exponent = 0
        while number % prime == 0:
            number //= prime
            exponent += 1
        if exponent:
            factors.append((prime, exponent))
        prime += 1
    return (*factors, (number, 1)) if number > 1 else tuple(factors)


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    """All ways to write `total` as an ordered sum of `parts` numbers >= 0."""
    if parts == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in _compositions(total - first, parts - 1)]


def isotonic(values: Array) -> Array:
    """Isotonic median regression: the non-decreasing values with the least sum of absolute differences to `values`.

    At index k: max over i <= k of min over j >= k of the median of values i to j. So a single gross outlier changes
    only its own value. The median of an even number is the lower one in the middle, since noise makes calls longer.
    Source: Robertson and Wright, Multiple isotonic median regression, Annals of Statistics 1 (1973), 422-432.

    >>> isotonic(np.array([9.0, 2.0, 3.0, 5.0, 4.0, 6.0])).tolist()
    [2.0, 2.0, 3.0, 4.0, 4.0, 6.0]
    """
    count = len(values)
    medians = np.full((count, count), np.inf)
    for first in range(count):
        seen: list[float] = []
        for last in range(first, count):
            insort(seen, float(values[last]))
            medians[first, last] = seen[(last - first) // 2]
    least = np.minimum.accumulate(medians[:, ::-1], axis=1)[:, ::-1]
    found: Array = np.max(np.where(np.tri(count, dtype=bool).T, least, -np.inf), axis=0)
    return found


def ranks(values: Array) -> Array:
    """Ranks from 1; equal values share the mean of theirs.

    >>> ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist()
    [3.5, 1.0, 3.5, 2.0]
    """
    below = (values[:, None] > values[None, :]).sum(axis=1)
    equal = (values[:, None] == values[None, :]).sum(axis=1)
    found: Array = below + 0.5 * (equal + 1)
    return found


def spearman(first: Array, second: Array) -> float:
    """Correlation of the ranks. Source: C. Spearman 1904; ties as in Kendall 1945.

    >>> round(spearman(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0])), 6)
    0.8
    """
    one, other = (ranks(values) - 0.5 * (len(values) + 1) for values in (first, second))
    return float((one * other).sum() / np.sqrt((one**2).sum() * (other**2).sum()))


def kendall(first: Array, second: Array) -> float:
    """Kendall's tau-b: (concordant - discordant pairs) / sqrt(pairs untied in one * pairs untied in the other).

    >>> round(kendall(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0])), 6)
    0.666667
    """
    one, other = (np.sign(values[:, None] - values[None, :]) for values in (first, second))
    return float((one * other).sum() / np.sqrt((one**2).sum() * (other**2).sum()))


def expand_rows(value: Number, back: Array, count: int) -> Number:
    """Expand `count` distinct rows to many: index the last axis of `value` with the row numbers `back`.

    A value without such an axis is the same for all rows and is returned unchanged.

    >>> expand_rows(np.array([3.0, 4.0]), np.array([0, 0, 1]), 2).tolist(), expand_rows(5.0, np.array([0, 0, 1]), 2)
    ([3.0, 3.0, 4.0], 5.0)
    """
    found = np.asarray(value)
    if found.ndim == 0 or found.shape[-1] != count:
        return value
    many: Array = found[..., back]
    return many


def equal_rows(columns: Iterable[Number]) -> tuple[Array, Array] | None:
    """(first row of each run of equal rows, the run that each row is in), or None if few rows repeat.

    `columns`: arrays of equal length; single numbers are ignored.

    >>> [rows.tolist() for rows in equal_rows([np.array([7, 7, 7, 8]), 1])]
    [[0, 3], [0, 0, 0, 1]]
    """
    changed: Array | None = None
    for column in columns:
        if np.size(column) > 1:
            differs = np.diff(column, prepend=column[0] - 1) != 0  # type: ignore[index]
            changed = differs if changed is None else changed | differs
    if changed is None:
        return None
    starts = np.flatnonzero(changed)
    return (starts, np.cumsum(changed) - 1) if 2 * len(starts) <= len(changed) else None
