"""The axes of a grid in one table: the fields of `Shape`. Code that loops over axes or named groups follows from it.

An axis is added as one field. It is then searched, ranked, printed, fixed by name, and read as one more size in the
text of a grid. Its field also says which groups it belongs to; any other effect is coded where it takes place.
No numpy here: the command line reads the names for its help.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Self, TypeAlias

from perfmodel.errors import UsageError
from perfmodel.units import Count, count

Axis: TypeAlias = str
Placement: TypeAlias = tuple[Axis, ...]

MAX_DEVICES = 2**31  # per job; no machine comes near, and counts stay exact in 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What an axis does. `title`: its name in prose; `axonn`: its place in AxoNN's order of ranks, 0 the innermost.

    Along an axis that splits tensors, all ranks see the same tokens; along one that shares the batch, each sees its
    own. An axis that shards weights keeps a part of each weight on every rank, and gathers them.
    """

    title: str
    axonn: int
    splits_tensors: bool = False
    shards_weights: bool = False
    shares_batch: bool = False


def _axis(**kind: Any) -> dict[str, Kind]:
    return {"kind": Kind(**kind)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes of the axes, in the order of the paper; one grid (ints) or many (arrays of equal length)."""

    x: Count = field(default=1, metadata=_axis(title="X", axonn=1, splits_tensors=True))
    y: Count = field(default=1, metadata=_axis(title="Y", axonn=0, splits_tensors=True))
    z: Count = field(default=1, metadata=_axis(title="Z", axonn=2, shards_weights=True, shares_batch=True))
    data: Count = field(default=1, metadata=_axis(title="data", axonn=3, shares_batch=True))

    @classmethod
    def of(cls, sizes: Iterable[Count], **others: Count) -> Self:
        """From the sizes of all axes in the order of AXES, and any other fields.

        >>> Shape.of((1, 2, 32, 4)) == Shape(y=2, z=32, data=4)
        True
        """
        return cls(**dict(zip(AXES, sizes, strict=True)), **others)

    @property
    def gpus(self) -> Count:
        """Devices in all: the product of all axes.

        >>> Shape(y=2, z=32, data=4).gpus
        256
        """
        return self._product(AXES)

    def size(self, group: str) -> Count:
        """Size of one axis, or of a group of several joined, such as "xy"."""
        return self._product(MEMBERS[group])

    def sizes(self) -> dict[str, int]:
        """One grid's sizes by axis, as plain numbers.

        >>> Shape(y=2, z=32, data=4).sizes()
        {'x': 1, 'y': 2, 'z': 32, 'data': 4}
        """
        return {axis: int(self._product((axis,))) for axis in AXES}

    def text(self) -> str:
        """One grid as Gx x Gy x Gz x Gdata.

        >>> Shape(y=2, z=32, data=4).text()
        '1x2x32x4'
        """
        return "x".join(str(size) for size in self.sizes().values())

    def _product(self, axes: tuple[Axis, ...]) -> Count:
        product: Count = getattr(self, axes[0])
        for axis in axes[1:]:
            product = product * getattr(self, axis)
        return product


KINDS: dict[Axis, Kind] = {each.name: each.metadata["kind"] for each in fields(Shape)}
AXES: tuple[Axis, ...] = tuple(KINDS)

TENSOR_AXES = tuple(axis for axis, kind in KINDS.items() if kind.splits_tensors)
WEIGHT_AXES = tuple(axis for axis, kind in KINDS.items() if kind.shards_weights)
BATCH_AXES = tuple(axis for axis, kind in KINDS.items() if kind.shares_batch)
# Ranks that differ only in these hold the same weights and see different tokens: gradients are summed over them.
REPLICA_AXES = tuple(axis for axis in BATCH_AXES if axis not in WEIGHT_AXES)


def joined(axes: tuple[Axis, ...]) -> str:
    """The name of a group of axes.

    >>> joined(("x", "y")), joined(("z", "data"))
    ('xy', 'z+data')
    """
    return ("" if all(len(axis) == 1 for axis in axes) else "+").join(axes)


TENSOR_GROUP, WEIGHT_GROUP, BATCH_GROUP, REPLICA_GROUP = map(
    joined, (TENSOR_AXES, WEIGHT_AXES, BATCH_AXES, REPLICA_AXES)
)
SHARD_GROUP = joined((*TENSOR_AXES, *WEIGHT_AXES))  # splits a weight into the parts that devices keep
MEMBERS: dict[str, tuple[Axis, ...]] = {axis: (axis,) for axis in AXES} | {
    joined(axes): axes for axes in (TENSOR_AXES, WEIGHT_AXES, BATCH_AXES, REPLICA_AXES, (*TENSOR_AXES, *WEIGHT_AXES))
}
"""The axes of each group that has a name, single axes among them."""

# The groups that a step communicates in; `groups.Grid` of the launcher creates these.
COMMUNICATION_GROUPS = tuple(dict.fromkeys((*TENSOR_AXES, WEIGHT_GROUP, REPLICA_GROUP, TENSOR_GROUP)))

AXONN: Placement = tuple(sorted(AXES, key=lambda axis: KINDS[axis].axonn))
PAPER: Placement = AXES

LISTED = ",".join(AXES)
"""The heading of a column of grids."""
FORM = " x ".join(f"G{axis}" for axis in AXES)
"""How a grid is written."""
EXAMPLE = Shape(y=2, z=32, data=4).text()


def read_sizes(text: str) -> list[int]:
    """Read a grid, Gx x Gy x Gz x Gdata.

    >>> read_sizes("1x2x32x4")
    [1, 2, 32, 4]
    """
    parts = text.lower().split("x")
    sizes = [size for part in parts if (size := count(part, MAX_DEVICES)) is not None]
    if not len(sizes) == len(parts) == len(AXES):
        raise UsageError(f"{text!r} is no grid; wanted {FORM} as {len(AXES)} counts, such as {EXAMPLE}")
    return sizes
