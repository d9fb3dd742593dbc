"""Terms put together."""

import pytest

from machines import job
from perfmodel.memory.per_device import memory_per_device
from perfmodel.parallel.layout import Layout
from perfmodel.step.flops import compute_time, utilization
from perfmodel.step.predict import predict, step_time
from perfmodel.traffic.per_step import communication_time

LAYOUT = Layout(x=2, y=2, z=2, data=2, micro_batch=4, recompute=2, weight_cache=1)


def test_at_paper_fidelity_a_step_is_its_communication():
    question = job(fidelity="paper")
    found = predict(question, LAYOUT)
    assert (found.compute, found.utilization) == (None, None)
    assert found.step == found.exposed_communication == communication_time(question, LAYOUT).total


def test_at_flat_fidelity_computation_is_added_and_nothing_overlaps():
    question = job(fidelity="flat")
    rate = question.costs.rate
    found = predict(question, LAYOUT)
    assert found.compute == compute_time(question, LAYOUT, rate)
    assert found.step == found.compute + communication_time(question, LAYOUT).total
    assert found.utilization == utilization(question, LAYOUT, found.step)
    assert found.memory == memory_per_device(question, LAYOUT)


@pytest.mark.parametrize("fidelity", ["paper", "flat", "full"])
def test_the_search_ranks_by_the_step_that_is_shown(fidelity):
    question = job(fidelity=fidelity)
    assert step_time(question, LAYOUT) == predict(question, LAYOUT).step
