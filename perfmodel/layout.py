"""The grid and how it is run: one layout (ints) or many (arrays of one length); nothing else differs.

Axes are the paper's: x, y, z split tensors, data splits the batch. A placement is an order of the four, innermost
(neighbouring ranks) first. AxoNN's library really uses y, x, z, data (column, row, depth, data); the paper's text says
x, y, z, data. They rank grids differently, so both exist.
"""

from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import permutations
from typing import Any, Literal, TypeAlias

import numpy as np

from perfmodel.errors import UsageError
from perfmodel.units import Array, Count

Axis: TypeAlias = Literal["x", "y", "z", "data"]
AXES: tuple[Axis, ...] = ("x", "y", "z", "data")
Placement: TypeAlias = tuple[Axis, ...]

MOST_DEVICES = 2**31  # of a job; no machine comes near, and counts stay exact in 64 bits

AXONN: Placement = ("y", "x", "z", "data")
PAPER: Placement = ("x", "y", "z", "data")
# A layout holds an index into this list; the two named ones come first.
PLACEMENTS: tuple[Placement, ...] = (AXONN, PAPER, *(p for p in permutations(AXES) if p not in (AXONN, PAPER)))
NAMED_PLACEMENTS: dict[str, tuple[int, ...]] = {"axonn": (0,), "paper": (1,), "any": tuple(range(len(PLACEMENTS)))}


def _inside() -> Array:
    """Whether `other` is inside `axis`, by [axis, other, placement]."""
    order = np.array([[placement.index(axis) for placement in PLACEMENTS] for axis in AXES])
    return order[None, :, :] < order[:, None, :]


_INSIDE = _inside()


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of the axes, placement, sequences a device processes at once, recomputation and weight cache (indices)."""

    x: Count
    y: Count
    z: Count
    data: Count
    placement: Count = 0
    micro_batch: Count = 1
    recompute: Count = 0
    weight_cache: Count = 0

    @property
    def gpus(self) -> Count:
        """Devices in all: x * y * z * data.

        >>> Layout(x=1, y=2, z=32, data=4).gpus
        256
        """
        return self.x * self.y * self.z * self.data

    def size(self, axis: str) -> Count:
        """Size of one axis, or of several joined, such as "xy"."""
        if axis == "xy":
            return self.x * self.y
        found: Count = getattr(self, axis)
        return found

    def inner(self, axis: str) -> Count:
        """Product P of the axes inside `axis`: the stride between neighbours of a group, and the groups interleaved.

        >>> Layout(x=2, y=4, z=8, data=1).inner("z")
        8
        """
        if axis == "xy":
            return self._inner_of_xy()
        row = AXES.index(axis)
        product: Count = 1
        for column, other in enumerate(AXES):
            if column != row:
                product = product * self._if_inside(row, column, self.size(other))
        return product

    def exchanged(self) -> "Layout":
        """The same with the sizes of x and y exchanged."""
        return Layout(
            self.y, self.x, self.z, self.data, self.placement, self.micro_batch, self.recompute, self.weight_cache
        )

    def take(self, rows: Any) -> "Layout":
        """Rows of many layouts: an int gives one layout of plain ints, an index array or mask gives many."""
        shape = np.shape(self.gpus)
        values = {f.name: np.broadcast_to(getattr(self, f.name), shape)[rows] for f in fields(self)}
        if isinstance(rows, int):
            values = {name: int(value) for name, value in values.items()}
        return Layout(**values)

    def text(self) -> str:
        """One layout's grid as Gx x Gy x Gz x Gdata.

        >>> Layout(1, 2, 32, 4).text()
        '1x2x32x4'
        """
        return f"{self.x}x{self.y}x{self.z}x{self.data}"

    def _if_inside(self, row: int, column: int, size: Count) -> Count:
        inside = _INSIDE[row, column]
        if isinstance(self.placement, int):
            return size if inside[self.placement] else 1
        return np.where(inside[self.placement], size, 1)

    def _inner_of_xy(self) -> Count:
        """Groups interleaved in the block of ranks that one joined x, y group spans.

        With x and y neighbours in the placement this is what lies inside both; with z or data between them, the block
        is longer, and so more groups share it. Where one of the two has size 1, the group is the other's own.
        """
        inner_x, inner_y = self.inner("x"), self.inner("y")
        span = np.maximum(inner_x * self.x, inner_y * self.y) // (self.x * self.y)
        span = np.where(self.x == 1, inner_y, np.where(self.y == 1, inner_x, span))
        return int(span) if isinstance(self.placement, int) and np.ndim(span) == 0 else span


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


def divisors(number: int) -> list[int]:
    """All divisors, ascending.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    found = [1]
    for prime, exponent in _prime_factors(number):
        found = [divisor * prime**power for divisor in found for power in range(exponent + 1)]
    return sorted(found)


def shapes(gpus: int) -> Layout:
    """Every factorization, unplaced."""
    return Layout(*factorizations(gpus))


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
