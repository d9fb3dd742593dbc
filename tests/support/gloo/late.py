"""Work of which one rank begins its part late: what it takes by the clocks of single ranks, and of the host."""

import time

import torch

from perfmodel.launch.processes import timing
from perfmodel.launch.processes.devices import Device

WORK, LATE = 0.05, 0.5


def timed(rank):
    """(by the slowest rank's own clock, from the first start to the last end)."""
    device = Device(torch.device("cpu"), "gloo", "fp32")
    timing.together(device)
    time.sleep(LATE * rank)
    start = time.perf_counter()
    time.sleep(WORK)
    end = time.perf_counter()
    return timing.slowest([end - start], device)[0], timing.spanned(start, end, device, 2)
