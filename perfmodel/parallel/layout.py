"""A grid and how it is run: one layout (ints) or many (arrays of equal length), with the same code for both.

The axes are those of `axes.Shape`. A placement is an order of them, innermost (neighbouring ranks) first. The AxoNN
library uses y, x, z, data (column, row, depth, data), while the paper's text says x, y, z, data. The two rank grids
differently, so both are offered.
"""

from collections.abc import Container
from dataclasses import dataclass, fields, replace
from itertools import permutations
from typing import Any

import numpy as np

from perfmodel.errors import UsageError
from perfmodel.numerics import equal_rows
from perfmodel.parallel.axes import AXES, AXONN, MAX_DEVICES, MEMBERS, PAPER, Placement, Shape, read_sizes
from perfmodel.units import Array, Count

# A layout holds an index into this list; the two named ones come first.
PLACEMENTS: tuple[Placement, ...] = (AXONN, PAPER, *(p for p in permutations(AXES) if p not in (AXONN, PAPER)))
NAMED_PLACEMENTS: dict[str, tuple[int, ...]] = {"axonn": (0,), "paper": (1,), "any": tuple(range(len(PLACEMENTS)))}


def _inside() -> Array:
    """Whether `other` is inside `axis`, by [axis, other, placement]."""
    order = np.array([[placement.index(axis) for placement in PLACEMENTS] for axis in AXES])
    return order[None, :, :] < order[:, None, :]


_INSIDE = _inside()


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout(Shape):
    """A shape with its placement, micro-batch (sequences per device), recomputation and weight cache (indices)."""

    placement: Count = 0
    micro_batch: Count = 1
    recompute: Count = 0
    weight_cache: Count = 0

    def inner(self, group: str) -> Count:
        """Product P of the axes inside a group: the stride between neighbours, and the number of interleaved groups.

        >>> Layout(x=2, y=4, z=8).inner("z")
        8
        """
        first, *others = MEMBERS[group]
        stride, size = self._inner_of(first), self.size(first)
        for axis in others:
            stride, size = self._joined(stride, size, axis), size * self.size(axis)
        return stride

    def exchanged(self) -> "Layout":
        """The same with the sizes of x and y exchanged."""
        return replace(self, x=self.y, y=self.x)

    def equal_rows(self, ignoring: Container[str]) -> tuple[Array, Array] | None:
        """Consecutive layouts that differ only in the columns of `ignoring` (see `numerics.equal_rows`)."""
        return equal_rows(getattr(self, each.name) for each in fields(self) if each.name not in ignoring)

    def take(self, rows: Any) -> "Layout":
        """Rows of many layouts: an int gives one layout of plain ints, an index array or mask gives many."""
        shape = np.shape(self.gpus)
        values = {f.name: np.broadcast_to(getattr(self, f.name), shape)[rows] for f in fields(self)}
        if isinstance(rows, int):
            values = {name: int(value) for name, value in values.items()}
        return Layout(**values)

    def _inner_of(self, axis: str) -> Count:
        row = AXES.index(axis)
        product: Count = 1
        for column, other in enumerate(AXES):
            if column != row:
                product = product * self._if_inside(row, column, self.size(other))
        return product

    def _if_inside(self, row: int, column: int, size: Count) -> Count:
        inside = _INSIDE[row, column]
        if isinstance(self.placement, int):
            return size if inside[self.placement] else 1
        return np.where(inside[self.placement], size, 1)

    def _joined(self, stride: Count, size: Count, axis: str) -> Count:
        """Groups interleaved in the block of ranks that a group spans when one more axis joins it.

        If the axes are neighbours in the placement, this is the product of the axes inside all of them. With others
        between them the block is longer, so more groups share it. If one has size 1, the group is that of the other.
        """
        other_stride, other = self._inner_of(axis), self.size(axis)
        span = np.maximum(stride * size, other_stride * other) // (size * other)
        span = np.where(size == 1, other_stride, np.where(other == 1, stride, span))
        return int(span) if isinstance(self.placement, int) and np.ndim(span) == 0 else span


def parse_grid(text: str) -> Layout:
    """Read Gx x Gy x Gz x Gdata, such as 1x2x32x4.

    >>> parse_grid("1x2x32x4").gpus
    256
    """
    grid = Layout.of(read_sizes(text))
    if int(grid.gpus) > MAX_DEVICES:
        raise UsageError(f"a grid of {grid.gpus} devices, wanted at most {MAX_DEVICES}")
    return grid
