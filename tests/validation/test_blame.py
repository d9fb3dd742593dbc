"""Which assumption fails: the parts of an error add up, and the verdict names the one that was made to fail."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.traffic.per_step import traffic
from perfmodel.validation import collectives, compare, records, step_files
from perfmodel.validation.blame import COMPUTATION, NONE, OVERLAP, UNKNOWN, Parts, verdict

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "runs.jsonl"
SECONDS = st.floats(0.01, 100)


@given(SECONDS, SECONDS, SECONDS, st.dictionaries(st.sampled_from("abc"), st.tuples(SECONDS, SECONDS)), st.booleans())
def test_the_parts_of_an_error_add_up_to_it(predicted, measured, computation, collectives, overlapped):
    if not collectives:
        predicted = computation
    shares = Parts(
        predicted=predicted, measured=measured, computation=computation, collectives=collectives, overlapped=overlapped
    ).shares()
    assert sum(shares.values()) == pytest.approx(predicted / measured - 1, rel=1e-6, abs=1e-6)


@pytest.fixture(scope="module")
def predicted():
    """Rows of the example whose steps and collectives take what is predicted."""
    found = compare.compare(step_files.read(EXAMPLE))
    rows = []
    for one in found.rows:
        as_predicted = [term.predicted for term in collectives.terms(one)]
        rows.append(replace(one, measured=one.predicted, row=replace(one.row, timed=tuple(as_predicted))))
    return replace(found, rows=tuple(rows))


def judged(comparison):
    return records.record(comparison)["verdict"]


def test_nothing_fails_where_all_is_as_predicted(predicted):
    assert judged(predicted)["assumption"] == NONE


def slowed(one, operation, axis, factor):
    """A step in which one collective takes longer, and so the step."""
    timed = [
        replace(each, seconds=each.seconds * factor) if (each.operation, each.axis) == (operation, axis) else each
        for each in one.row.timed
    ]
    more = sum(each.seconds for each in timed) - sum(each.seconds for each in one.row.timed)
    return replace(one, measured=one.measured + more, row=replace(one.row, timed=tuple(timed)))


@pytest.mark.parametrize(("operation", "axis"), [("all-reduce", "x"), ("all-gather", "z"), ("all-reduce", "y")])
def test_a_collective_that_takes_longer_is_named(predicted, operation, axis):
    slow = replace(predicted, rows=tuple(slowed(one, operation, axis, 5) for one in predicted.rows))
    found = judged(slow)
    assert found["assumption"] == f"{operation} over {axis}"
    assert "predicted too short" in found["sentence"]


@pytest.mark.parametrize(("factor", "direction"), [(1.6, "too short"), (0.7, "too long")])
def test_computation_is_blamed_for_what_no_collective_explains(predicted, factor, direction):
    rows = tuple(replace(one, measured=one.measured * factor) for one in predicted.rows)
    found = judged(replace(predicted, rows=rows))
    assert found["assumption"] == COMPUTATION
    assert f"predicted {direction}" in found["sentence"]


def test_overlap_is_blamed_where_less_is_hidden_than_was_taken_to_be():
    hidden = Parts(
        predicted=1.0, measured=1.4, computation=1.0, collectives={"all-gather over z": (0.5, 0.5)}, overlapped=True
    ).shares()
    assert hidden == {"all-gather over z": 0.0, OVERLAP: pytest.approx(-0.4 / 1.4)}
    assert "hide more than it does" in verdict([hidden]).sentence
    beyond = Parts(
        predicted=1.0, measured=2.0, computation=1.0, collectives={"all-gather over z": (0.5, 0.5)}, overlapped=True
    ).shares()
    assert beyond[COMPUTATION] == pytest.approx(-0.5)


def test_without_timed_collectives_nothing_can_be_told_apart():
    found = verdict([], error=-0.2)
    assert found.assumption == UNKNOWN
    assert "20.0 % too short" in found.sentence


def test_the_bytes_and_calls_of_the_launcher_are_those_of_the_model():
    """Gradients over data, which the launcher sends in one buffer, are as many bytes in fewer calls."""
    comparison = compare.compare(step_files.read(EXAMPLE))
    every = [term for one in comparison.rows for term in collectives.terms(one)]
    assert len(every) > 20
    for term in every:
        assert term.predicted.buffers == pytest.approx(term.measured.buffers), term
        assert term.axis == "data" or term.predicted.calls == term.measured.calls, term


def test_sums_over_rows_are_those_of_their_terms():
    record = records.record(compare.compare(step_files.read(EXAMPLE)))
    for one in record["collectives"]:
        mine = [
            term for term in record["terms"] if (term["operation"], term["axis"]) == (one["operation"], one["axis"])
        ]
        assert one["rows"] == len(mine)
        assert one["measured_s_a_call"] * one["measured_calls"] == pytest.approx(sum(t["measured_s"] for t in mine))
    assert json.dumps(record["verdict"])


def test_a_group_of_one_sends_nothing():
    one = compare.compare(step_files.read(EXAMPLE)).rows[0]
    named = {(term.operation, term.axis) for term in collectives.terms(one)}
    assert {each.link.axis for each in traffic(one.job, one.layout)} > {axis for _, axis in named}
    assert collectives.terms(replace(one, row=replace(one.row, timed=()))) == []
