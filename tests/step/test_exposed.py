"""What computation waits for: the exposed communication of a step, split."""

from dataclasses import astuple

import pytest

from machines import EVERY_SHAPE, gpt, machine
from perfmodel import models
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.settings import Settings
from perfmodel.step.exposed import exposed_by_stream, idle_by_stream
from perfmodel.step.predict import predict
from perfmodel.step.timeline import SLOWED, TraceEvent
from perfmodel.traffic.per_step import communication_time

GRIDS = [(1, 1, 64, 1), (4, 2, 8, 1), (2, 1, 16, 2), (1, 1, 1, 8), (8, 1, 1, 1), (1, 1, 1, 1)]
MODELS = {"gpt": gpt(layers=3), "llama": models.load("llama-3-8b")}


def split(grid, model=MODELS["gpt"], where=None, **settings):
    """The waits of a grid, the prediction, and all that it sends."""
    job = Job.of(model, where or machine(8), batch=1024, settings=Settings(fidelity="full", **settings))
    layout = Layout.of(grid, micro_batch=2, recompute=2, weight_cache=1)
    prediction = predict(job, layout)
    return (
        exposed_by_stream(job, layout, float(prediction.exposed_communication)),
        prediction,
        communication_time(job, layout),
    )


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("grid", GRIDS)
def test_standing_still_is_all_that_is_exposed_where_nothing_contends(model, grid):
    found, prediction, _ = split(grid, model, contention=0.0)
    assert found.slowed <= 1e-9 * float(prediction.step)
    assert sum(astuple(found)) == pytest.approx(float(prediction.exposed_communication), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("where", EVERY_SHAPE, ids=lambda where: where.name)
def test_the_parts_are_the_exposed_communication_with_contention_too(grid, where):
    found, prediction, _ = split(grid, where=where, contention=0.3)
    assert min(astuple(found)) >= 0
    assert sum(astuple(found)) == pytest.approx(float(prediction.exposed_communication), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("grid", [(1, 1, 64, 1), (4, 2, 8, 1), (2, 1, 16, 2), (1, 1, 1, 8)])
def test_where_nothing_overlaps_every_message_is_waited_for(grid):
    found, _, sent = split(grid, overlap=frozenset())
    assert found.slowed == pytest.approx(0.0, abs=1e-9 * float(sent.total))
    assert sum(astuple(found)) == pytest.approx(float(sent.total), rel=1e-9)
    for stream, term in (("gathers", "weight_gather"), ("scatters", "gradient_scatter"), ("data", "data_reduce")):
        alone = float(getattr(sent, term))  # the vocabulary's own messages are a term of their own
        assert alone * (1 - 1e-9) <= getattr(found, stream) <= (alone + float(sent.vocabulary)) * (1 + 1e-9)


def test_contention_alone_can_be_what_is_lost():
    lone, _, _ = split((1, 1, 64, 1), MODELS["llama"], contention=0.0)
    slowed, _, _ = split((1, 1, 64, 1), MODELS["llama"], contention=0.3)
    assert slowed.slowed > 0
    assert slowed.gathers == pytest.approx(lone.gathers)  # the first gather, beside which there is nothing


def test_what_runs_first_in_line_is_what_is_waited_for():
    events = [
        TraceEvent(stream="gathers", name="a", start=0.0, end=2.0),
        TraceEvent(stream="collectives", name="b", start=0.5, end=1.0),
        TraceEvent(stream="compute", name="c", start=1.5, end=3.0),
        TraceEvent(stream="scatters", name="d", start=2.5, end=4.0),
        TraceEvent(stream="compute", name=SLOWED, start=5.0, end=5.5),
    ]
    # From 4 to 5 nothing runs: the queue of scatters still has the links.
    assert dict(idle_by_stream(events, 5.5)) == {"gathers": 1.0, "collectives": 0.5, "scatters": 2.0}
