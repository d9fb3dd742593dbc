"""Between grids that take about as long, the one with more room in memory goes first.

A search ranks by time alone. Predictions are not exact, and a grid that fills the memory may not run at all, so grids
within a tolerance of one another are put in order of memory. Each grid is first shown with the micro-batch,
recomputation and weight cache that need least memory within the same tolerance of its fastest. Memory below what is
comfortable counts as the same: nothing is gained by leaving more of it empty.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from perfmodel.memory.per_device import capacity, memory_per_device
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.step.predict import step_time
from perfmodel.units import Array

TOLERANCE = 0.02
COMFORTABLE = 0.8  # share of a device's memory below which no published run is known to have run out unpredicted
EXAMINED = 64  # fastest grids that are put in order

# From some grids, every row that may be tried: (row's grid, rows).
Expand: TypeAlias = Callable[[Layout], tuple[Array, Layout]]


def roomier(job: Job, layouts: Layout, expand: Expand, *, tolerance: float = TOLERANCE) -> Layout:
    """The same grids, each with its roomiest settings, in order of time except for differences within `tolerance`."""
    if not np.size(layouts.x):
        return layouts
    grid, rows = expand(layouts)
    time = np.broadcast_to(step_time(job, rows), grid.shape)
    held = np.broadcast_to(memory_per_device(job, rows).total, grid.shape)
    fits = (held <= capacity(job)) | job.settings.ignore_memory
    memory = np.maximum(held, COMFORTABLE * job.machine.device.memory.value)
    chosen = []
    for one in range(int(np.size(layouts.x))):
        mine = np.flatnonzero((grid == one) & fits)
        close = mine[time[mine] <= (1 + tolerance) * time[mine].min()]
        chosen.append(int(close[np.lexsort((time[close], memory[close]))[0]]))
    picked = np.array(chosen)
    return rows.take(picked[ordered(time[picked], memory[picked], tolerance)])


def ordered(time: Array, memory: Array, tolerance: float) -> Array:
    """Indices in order: of all within `tolerance` of the fastest that is left, the one with least memory comes next.

    >>> ordered(np.array([1.0, 1.01, 1.5]), np.array([9.0, 5.0, 1.0]), 0.02).tolist()
    [1, 0, 2]
    """
    left = list(np.argsort(time, kind="stable"))
    found = []
    while left:
        close = [row for row in left if time[row] <= (1 + tolerance) * time[left[0]]]
        best = min(close, key=lambda row: (memory[row], time[row]))
        found.append(best)
        left.remove(best)
    return np.array(found)
