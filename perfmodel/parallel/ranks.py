"""Who is in a group with whom: the model and the launcher both read it here, so that they cannot disagree.

Ranks are counted along the placement, innermost axis fastest, so all of them are one array of four dimensions and a
group is a line through it.
"""

import numpy as np

from perfmodel.parallel.layout import AXES, PLACEMENTS, Layout
from perfmodel.units import Array, Count


def rank_array(layout: Layout) -> Array:
    """Ranks as an array indexed [x, y, z, data]; `layout` is a single one.

    >>> rank_array(Layout(x=2, y=2, z=1, data=1))[:, :, 0, 0].tolist()
    [[0, 1], [2, 3]]
    """
    order = PLACEMENTS[int(layout.placement)]
    outermost_first = [int(layout.size(axis)) for axis in reversed(order)]
    ranks = np.arange(int(layout.gpus)).reshape(outermost_first)
    return ranks.transpose([len(AXES) - 1 - order.index(axis) for axis in AXES])


def groups(layout: Layout, axis: str) -> Array:
    """All groups of an axis ("x", "y", "z", "data" or joined, "xy"), one a row, ranks ascending.

    >>> groups(Layout(x=2, y=2, z=2, data=1), "z").tolist()
    [[0, 4], [1, 5], [2, 6], [3, 7]]
    """
    members = [AXES.index(name) for name in (("x", "y") if axis == "xy" else (axis,))]
    ranks = rank_array(layout)
    moved = np.moveaxis(ranks, members, range(-len(members), 0))
    lines = moved.reshape(-1, int(layout.size(axis)))
    lines = np.sort(lines, axis=1)
    return lines[np.argsort(lines[:, 0])]


def first_group(layout: Layout, axis: str, places: Count) -> Count:
    """Members of rank 0's group at `places` of its ascending ranks; no other rank is looked at.

    >>> first_group(Layout(x=2, y=2, z=2**29, data=1), "z", 2**29 - 1)
    2147483644
    """
    order = [name for name in PLACEMENTS[int(layout.placement)] if name in (("x", "y") if axis == "xy" else (axis,))]
    ranks: Count = 0
    for name in order:  # innermost first: the last digit of a place
        size = int(layout.size(name))
        ranks = ranks + places % size * int(layout.inner(name))
        places = places // size
    return ranks


def nodes_of(group: Array, devices: int) -> Array:
    """The node that each rank of a group is on."""
    return np.asarray(group) // devices
