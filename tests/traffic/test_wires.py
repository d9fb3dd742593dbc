"""No step is shorter than its bytes on any kind of link, and no lower bound is above the step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel import models
from perfmodel.costs import ring
from perfmodel.machines import profiles
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.settings import Settings
from perfmodel.search.search import Space, rank
from perfmodel.step.predict import step_time
from perfmodel.step.throughput import throughput
from perfmodel.traffic.per_step import traffic
from perfmodel.traffic.wires import LinkLoad, loads


@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    model=st.sampled_from(["gpt-5b", "gpt-40b", "llama-3-8b"]),
    machine=st.sampled_from(["perlmutter", "frontier", "alps", "dgx-h100"]),
    gpus=st.sampled_from([8, 64, 256]),
    batch=st.sampled_from([64, 256, 2048]),
    contention=st.sampled_from([0.0, 0.2]),
)
def test_no_answer_is_below_the_bytes_on_any_link(model, machine, gpus, batch, contention):
    chosen = Settings(contention=contention, ignore_memory=True)
    question = Job.of(models.load(model), profiles.load(machine), batch=batch, settings=chosen)
    found = rank(question, Space(gpus=gpus, top=200, placements=(0, 1)))
    bounds = throughput(question, found.layouts, found.prediction, question.product_rate)
    assert np.all(bounds.lower_bound <= found.prediction.step * (1 + 1e-9))
    between = 0.0
    for one in traffic(question, found.layouts):
        alone = ring.TIMES[one.operation](one.buffer, size=one.link.size, bandwidth=one.link.bandwidth)
        between = between + np.where(one.link.crosses, one.calls * np.minimum(alone, one.time), 0.0)
    assert np.all(found.prediction.step >= between * (1 - 1e-9))


def test_the_grid_that_broke_the_wires_of_alps_no_longer_does():
    question = Job.of(models.load("gpt-40b"), profiles.load("alps"), batch=256)
    layout = Layout(x=8, y=1, z=32, data=1, micro_batch=8, recompute=0, weight_cache=1)
    sent = traffic(question, layout)
    crossing = sum(float(one.total) for one in sent if np.all(one.link.crosses))
    assert float(step_time(question, layout)) >= crossing * (1 - 1e-9) > 2.0


def test_what_comes_with_each_pass_is_counted_with_it():
    from perfmodel.parallel.passes import Passes

    load = LinkLoad(always=1.0, forward=10.0, gather=100.0, gather_once=1000.0, step=0.5)
    full = Passes.of(Layout(recompute=2, weight_cache=0))
    assert load.least(full, 2) == pytest.approx(2 * (1 + 2 * 10 + 3 * 100 + 2 * 1000) + 0.5)


def test_pairs_of_a_mesh_are_not_added_up():
    mesh, switch = (
        loads(job, traffic(job, Layout(x=2, z=2)))[1]
        for job in (Job.of(models.load("gpt-5b"), profiles.load(name), batch=64) for name in ("perlmutter", "dgx-h100"))
    )
    assert np.all(np.asarray(mesh.always) == 0)
    assert np.all(np.asarray(switch.always) > 0)
