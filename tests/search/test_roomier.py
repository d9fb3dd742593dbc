"""Grids that take about as long are put in order of memory."""

from dataclasses import replace

import numpy as np
import pytest

from perfmodel import models
from perfmodel.machines import profiles
from perfmodel.memory.per_device import capacity
from perfmodel.parallel.job import Job
from perfmodel.parallel.settings import Settings
from perfmodel.search.roomier import COMFORTABLE, TOLERANCE, ordered
from perfmodel.search.search import Space, rank


@pytest.fixture(scope="module", params=["perlmutter", "dgx-h100"])
def both(request):
    question = Job.of(models.load("gpt-20b"), profiles.load(request.param), batch=512, settings=Settings())
    space = Space(gpus=128, top=20)
    return rank(question, space), rank(question, replace(space, tolerance=TOLERANCE))


def test_without_tolerance_time_alone_decides():
    assert ordered(np.array([3.0, 1.0, 2.0]), np.array([1.0, 9.0, 5.0]), 0.0).tolist() == [1, 2, 0]


def test_every_index_comes_once():
    times, memory = np.linspace(1, 2, 50), np.linspace(2, 1, 50)
    assert sorted(ordered(times, memory, 0.05).tolist()) == list(range(50))


def test_nothing_is_slower_than_the_fastest_left_by_more_than_the_tolerance(both):
    _, roomy = both
    steps = np.asarray(roomy.prediction.step)
    for row, step in enumerate(steps):
        assert step <= (1 + TOLERANCE) * steps[row:].min() * (1 + 1e-9)


def test_the_first_needs_no_more_memory_than_the_fastest(both):
    fast, roomy = both
    first = [float(np.asarray(found.prediction.memory.total)[0]) for found in both]
    comfortable = COMFORTABLE * fast.job.machine.device.memory.value
    assert max(first[1], comfortable) <= max(first[0], comfortable) <= capacity(fast.job)
    assert float(np.asarray(roomy.prediction.step)[0]) <= (1 + TOLERANCE) * float(np.asarray(fast.prediction.step)[0])


def test_the_same_grids_are_there(both):
    fast, roomy = both
    assert len(fast) == len(roomy)
