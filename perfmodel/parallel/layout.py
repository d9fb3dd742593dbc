"""The grid and how it is run: one layout (ints) or many (arrays of one length); nothing else differs.

Axes are the paper's: x, y, z split tensors, data splits the batch. A placement is an order of the four, innermost
(neighbouring ranks) first. AxoNN's library really uses y, x, z, data (column, row, depth, data); the paper's text says
x, y, z, data. They rank grids differently, so both exist.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from itertools import permutations
from typing import Any, Literal, TypeAlias

import numpy as np

from perfmodel.errors import UsageError
from perfmodel.units import Array, Count, count

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


@dataclass(frozen=True, slots=True, kw_only=True)
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

    @classmethod
    def of(cls, sizes: Iterable[Count], **others: Count) -> "Layout":
        """From the sizes of the axes in the order of AXES, and what else is not the default.

        >>> Layout.of((1, 2, 32, 4), micro_batch=2) == Layout(x=1, y=2, z=32, data=4, micro_batch=2)
        True
        """
        return cls(**dict(zip(AXES, sizes, strict=True)), **others)

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
        return replace(self, x=self.y, y=self.x)

    def take(self, rows: Any) -> "Layout":
        """Rows of many layouts: an int gives one layout of plain ints, an index array or mask gives many."""
        shape = np.shape(self.gpus)
        values = {f.name: np.broadcast_to(getattr(self, f.name), shape)[rows] for f in fields(self)}
        if isinstance(rows, int):
            values = {name: int(value) for name, value in values.items()}
        return Layout(**values)

    def text(self) -> str:
        """One layout's grid as Gx x Gy x Gz x Gdata.

        >>> Layout(x=1, y=2, z=32, data=4).text()
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


def parse_grid(text: str) -> Layout:
    """Read Gx x Gy x Gz x Gdata, such as 1x2x32x4.

    >>> parse_grid("1x2x32x4").gpus
    256
    """
    parts = text.lower().split("x")
    sizes = [size for part in parts if (size := count(part, MOST_DEVICES)) is not None]
    if not len(sizes) == len(parts) == len(AXES):
        raise UsageError(f"{text!r} is no grid; wanted Gx x Gy x Gz x Gdata as four counts, such as 1x2x32x4")
    grid = Layout.of(sizes)
    if int(grid.gpus) > MOST_DEVICES:
        raise UsageError(f"a grid of {grid.gpus} devices, wanted at most {MOST_DEVICES}")
    return grid
