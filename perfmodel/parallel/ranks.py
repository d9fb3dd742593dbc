"""The ranks of each group: the launcher creates its groups from them, and `explain` names them.

Ranks are numbered along the placement, innermost axis fastest. All ranks form one array with a dimension for each axis,
and a group is a line through it. `Layout.inner` is the stride of that line, from which costs follow for many layouts at
once; tests check that the two agree. `machines.domains.contained` says whether a group leaves a node.
"""

import numpy as np

from perfmodel.parallel.axes import AXES, MEMBERS
from perfmodel.parallel.layout import PLACEMENTS, Layout
from perfmodel.units import Array, Count


def rank_array(layout: Layout) -> Array:
    """Ranks as an array indexed by the axes in the order of AXES; `layout` is a single one.

    >>> rank_array(Layout(x=2, y=2))[:, :, 0, 0].tolist()
    [[0, 1], [2, 3]]
    """
    order = PLACEMENTS[int(layout.placement)]
    outermost_first = [int(layout.size(axis)) for axis in reversed(order)]
    ranks = np.arange(int(layout.gpus)).reshape(outermost_first)
    return ranks.transpose([len(AXES) - 1 - order.index(axis) for axis in AXES])


def groups(layout: Layout, group: str) -> Array:
    """All groups of an axis, or of several joined ("xy"), one per row, ranks ascending.

    >>> groups(Layout(x=2, y=2, z=2), "z").tolist()
    [[0, 4], [1, 5], [2, 6], [3, 7]]
    """
    members = [AXES.index(axis) for axis in MEMBERS[group]]
    moved = np.moveaxis(rank_array(layout), members, range(-len(members), 0))
    lines = np.sort(moved.reshape(-1, int(layout.size(group))), axis=1)
    return lines[np.argsort(lines[:, 0])]


def members_with(layout: Layout, group: str, rank: int) -> Array:
    """The ranks of the group that `rank` is in, in the order of its axes: x then y, as the vocabulary is split.

    >>> members_with(Layout(x=2, y=2, z=2, placement=1), "xy", 4).tolist()
    [4, 6, 5, 7]
    """
    ranks = rank_array(layout)
    (place,) = np.argwhere(ranks == rank)
    line = (slice(None) if axis in MEMBERS[group] else int(at) for axis, at in zip(AXES, place, strict=True))
    return ranks[tuple(line)].reshape(-1)


def first_group(layout: Layout, group: str, places: Count) -> Count:
    """Members of rank 0's group at `places` of its ascending ranks, without listing all ranks.

    >>> first_group(Layout(x=2, y=2, z=2**29), "z", 2**29 - 1)
    2147483644
    """
    ranks: Count = 0
    for axis in (name for name in PLACEMENTS[int(layout.placement)] if name in MEMBERS[group]):
        size = int(layout.size(axis))  # innermost first: the last digit of a place
        ranks = ranks + places % size * int(layout.inner(axis))
        places = places // size
    return ranks
