"""All grids of a number of devices, and all physically distinct orders of their axes."""

from dataclasses import replace
from functools import cache

import numpy as np

from perfmodel.errors import UsageError
from perfmodel.numerics import _compositions, _prime_factors
from perfmodel.parallel.layout import AXES, PLACEMENTS, Layout
from perfmodel.units import Array


def factorizations(gpus: int) -> tuple[Array, Array, Array, Array]:
    """All ordered (x, y, z, data) with product `gpus`, sorted by x, y, z.

    Every prime's exponent is dealt to the four axes independently, and the deals are multiplied out.

    >>> [len(axis) for axis in factorizations(512)]
    [220, 220, 220, 220]
    """
    if gpus < 1:
        raise UsageError(f"the number of GPUs is {gpus}, wanted at least 1")
    grids = np.ones((1, 4), dtype=np.int64)
    for prime, exponent in _prime_factors(gpus):
        deals = np.array(_compositions(exponent, 4), dtype=np.int64)
        grids = (grids[:, None, :] * prime ** deals[None, :, :]).reshape(-1, 4)
    grids = grids[np.lexsort(grids.T[::-1])]
    return grids[:, 0], grids[:, 1], grids[:, 2], grids[:, 3]


def shapes(gpus: int) -> Layout:
    """Every factorization, unplaced."""
    return Layout.of(factorizations(gpus))


def orders(grids: Layout, placements: tuple[int, ...]) -> Array:
    """Which placements are physically distinct, by [grid, placement].

    Axes of size 1 may stand anywhere in the order without moving a rank, so of equal orders only the first counts.
    """
    split = (grids.x > 1) * 1 + (grids.y > 1) * 2 + (grids.z > 1) * 4 + (grids.data > 1) * 8
    return _first_of_equal_orders(placements)[split]


def placed(gpus: int, placements: tuple[int, ...]) -> Layout:
    """Every factorization under every placement, each physically distinct grid once."""
    return each_placed(shapes(gpus), placements)[1]


def each_placed(grids: Layout, placements: tuple[int, ...]) -> tuple[Array, Layout]:
    """(row of `grids`, that grid in one of its distinct placements), grid by grid."""
    rows, columns = np.nonzero(orders(grids, placements))
    return rows, replace(grids.take(rows), placement=np.array(placements)[columns])


@cache  # every block of a search asks for it
def _first_of_equal_orders(placements: tuple[int, ...]) -> Array:
    """Whether a placement is the first with its order of the split axes, by [split axes (bits), placement]."""
    table = np.zeros((16, len(placements)), dtype=bool)
    for bits in range(16):
        seen: set[tuple[str, ...]] = set()
        for column, code in enumerate(placements):
            order = tuple(axis for axis in PLACEMENTS[code] if bits >> AXES.index(axis) & 1)
            table[bits, column] = order not in seen
            seen.add(order)
    return table
