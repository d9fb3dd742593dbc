"""All grids of a number of devices, and all physically distinct orders of their axes."""

from dataclasses import replace
from functools import cache

import numpy as np

from perfmodel.errors import UsageError
from perfmodel.numerics import _compositions, _prime_factors
from perfmodel.parallel.axes import AXES
from perfmodel.parallel.layout import PLACEMENTS, Layout
from perfmodel.units import Array


def factorizations(gpus: int) -> tuple[Array, ...]:
    """All sizes of the axes, in the order of AXES, with product `gpus`, sorted by the first, then the next.

    The exponent of each prime is distributed over the axes independently; all combinations are then multiplied out.

    >>> [len(axis) for axis in factorizations(512)]
    [220, 220, 220, 220]
    """
    if gpus < 1:
        raise UsageError(f"the number of GPUs is {gpus}, wanted at least 1")
    grids = np.ones((1, len(AXES)), dtype=np.int64)
    for prime, exponent in _prime_factors(gpus):
        deals = np.array(_compositions(exponent, len(AXES)), dtype=np.int64)
        grids = (grids[:, None, :] * prime ** deals[None, :, :]).reshape(-1, len(AXES))
    grids = grids[np.lexsort(grids.T[::-1])]
    return tuple(grids.T)


def shapes(gpus: int) -> Layout:
    """Every factorization, without a placement."""
    return Layout.of(factorizations(gpus))


def orders(grids: Layout, placements: tuple[int, ...]) -> Array:
    """Which placements are physically distinct, by [grid, placement].

    An axis of size 1 moves no rank wherever it stands in the order, so only the first of equal orders counts.
    """
    split = np.array([grids.size(axis) for axis in AXES]) > 1
    distinct: Array = _first_of_equal_orders(placements)[(1 << np.arange(len(AXES))) @ split]
    return distinct


def placed(gpus: int, placements: tuple[int, ...]) -> Layout:
    """Every factorization with every placement, each physically distinct grid once."""
    return each_placed(shapes(gpus), placements)[1]


def each_placed(grids: Layout, placements: tuple[int, ...]) -> tuple[Array, Layout]:
    """(row of `grids`, that grid in one of its distinct placements), grid by grid."""
    rows, columns = np.nonzero(orders(grids, placements))
    return rows, replace(grids.take(rows), placement=np.array(placements)[columns])


@cache  # called for every block of a search
def _first_of_equal_orders(placements: tuple[int, ...]) -> Array:
    """Whether a placement is the first with its order of the split axes, by [split axes (bits), placement]."""
    table = np.zeros((1 << len(AXES), len(placements)), dtype=bool)
    for bits in range(len(table)):
        seen: set[tuple[str, ...]] = set()
        for column, code in enumerate(placements):
            order = tuple(axis for axis in PLACEMENTS[code] if bits >> AXES.index(axis) & 1)
            table[bits, column] = order not in seen
            seen.add(order)
    return table
