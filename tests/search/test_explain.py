"""One grid explained: terms add up to the prediction, groups are those of the layout, and rejections are told."""

import json
from dataclasses import asdict, fields

import pytest

from machines import job, machine
from perfmodel.errors import NoGridError, UsageError
from perfmodel.parallel.layout import AXES, Layout
from perfmodel.parallel.rules import first_broken, grid_rules
from perfmodel.search.explain import explain, timeline
from perfmodel.search.search import Space

GRID = Layout(x=2, y=2, z=4, data=2)
SPACE = Space(gpus=32)


@pytest.mark.parametrize("fidelity", ["full", "flat", "paper"])
def test_the_collectives_add_up_to_the_communication_of_the_prediction(fidelity):
    found = explain(job(fidelity=fidelity), SPACE, GRID)
    assert found.rejections == ()
    for term in fields(found.prediction.communication):
        seconds = [one.time_s for one in found.collectives if one.term == term.name]
        assert sum(seconds) == pytest.approx(float(getattr(found.prediction.communication, term.name)), rel=1e-9)
    assert sum(one.time_s for one in found.collectives) > 0


def test_a_collective_names_the_first_group_of_its_axis():
    found = explain(job(), SPACE, GRID)
    sizes = {"x": 2, "y": 2, "z": 4, "data": 2}
    ranks = {"y": "0,1", "x": "0,2", "z": "0,4,8,12", "data": "0,16"}  # y, x, z, data: neighbours first
    seen = {one.axis: one for one in found.collectives if one.axis in AXES}
    assert {axis: one.group_size for axis, one in seen.items()} == sizes
    assert {axis: one.ranks for axis, one in seen.items()} == ranks
    assert {axis: one.link for axis, one in seen.items()} == {
        "y": "inside the node",
        "x": "inside the node",
        "z": "between nodes",
        "data": "between nodes",
    }


def test_an_explained_collective_is_plain_text_and_numbers():
    for one in explain(job(), SPACE, GRID).collectives:
        assert json.loads(json.dumps(asdict(one), allow_nan=False)) == asdict(one)


def test_a_rejected_grid_is_explained_and_has_a_neighbour_that_fits():
    question = job()  # 16 heads
    found = explain(question, SPACE, Layout(x=32, y=1, z=1, data=1))
    assert "heads" in dict(found.rejections)
    assert int(found.nearest.gpus) == 32
    assert first_broken(grid_rules(question), found.nearest) == len(grid_rules(question))


def test_what_no_memory_holds_is_told_with_what_is_missing():
    found = explain(job(where=machine(memory=2.5e9)), Space(gpus=4), Layout(x=1, y=1, z=1, data=4))
    assert dict(found.rejections)["memory"].endswith("are missing")
    assert float(found.prediction.memory.total) > found.memory_capacity


def test_a_count_that_is_no_whole_number_of_nodes_is_a_rejection():
    found = explain(job(batch=60), Space(gpus=6), Layout(x=1, y=1, z=6, data=1))
    assert "not whole nodes of 4" in dict(found.rejections)["whole_nodes"]


def test_a_machine_of_one_node_has_nothing_to_say_of_more():
    from perfmodel.machines import profiles

    where = next(one for one in map(profiles.load, profiles.names()) if one.network.topology == "none")
    with pytest.raises(NoGridError, match="nearest counts that work"):
        explain(job(where=where), Space(gpus=2 * where.domain), Layout(x=1, y=1, z=2 * where.domain, data=1))


def test_a_timeline_ends_with_its_last_event_and_exists_at_full_fidelity_only():
    events, end = timeline(explain(job(), SPACE, GRID))
    assert max(event.end for event in events) == pytest.approx(end, rel=1e-12)
    with pytest.raises(UsageError, match="full fidelity only, not at flat"):
        timeline(explain(job(fidelity="flat"), SPACE, GRID))
