"""Scaling over counts of devices."""

import pytest

from machines import job
from perfmodel.errors import UsageError
from perfmodel.search.results.answer_records import sweep_record
from perfmodel.search.scaling import Batch, points
from perfmodel.search.search import Space, rank
from perfmodel.search.terms import largest_term, limit


def answers(counts, batch, **chosen):
    question = job(fidelity="full", **chosen)
    return sweep_record(question, batch, list(points(question, Space(gpus=1), counts, batch)))


def test_every_count_has_the_answer_of_a_search_of_its_own():
    record = answers([4, 8, 16], Batch(whole=64))
    assert record["scaling"] == "strong"
    for row in record["points"]:
        alone = rank(job(fidelity="full"), Space(gpus=row["gpus"]))
        assert row["step_time_s"] == alone.prediction.step[0]
        assert tuple(row["grid"].values()) == tuple(
            alone.layouts.take(0).size(axis) for axis in ("x", "y", "z", "data")
        )


def test_efficiency_is_against_the_first_count_with_an_answer():
    rows = answers([6, 4, 16], Batch(whole=64))["points"]
    assert rows[0]["efficiency"] is None
    assert "not whole nodes" in rows[0]["reason"]
    assert rows[1]["efficiency"] == 1
    assert rows[2]["efficiency"] == pytest.approx(rows[1]["step_time_s"] / rows[2]["step_time_s"] / 4)
    assert 0 < rows[2]["efficiency"] < 1


def test_weak_scaling_gives_every_device_as_many_sequences():
    record = answers([4, 6, 8], Batch(per_device=0.5))
    assert record["scaling"] == "weak"
    assert [row["batch_sequences"] for row in record["points"]] == [2, 3, 4]
    assert Batch(per_device=0.3).of(4) is None


def test_counts_without_an_answer_are_rows_with_the_reason():
    rows = answers([5, 4, 2], Batch(whole=6), fixed={"y": 4})["points"]
    assert ["grid" in row for row in rows] == [False, True, False]
    assert "2 is no multiple of y 4" in rows[2]["reason"]
    assert "give no whole batch" in answers([3], Batch(per_device=0.5))["points"][0]["reason"]


@pytest.mark.parametrize("given", [{}, {"whole": 8, "per_device": 1.0}, {"whole": 0}, {"per_device": -1.0}])
def test_a_batch_is_given_in_one_way_and_above_zero(given):
    with pytest.raises(UsageError, match="either a batch"):
        Batch(**given)


def test_the_limit_is_computation_or_what_is_sent_for_longest():
    terms = {"weight_gather": 1.0, "data_reduce": 3.0}
    result = {"exposed_communication_time_s": 2.0, "compute_time_s": 1.0, "communication_s": terms}
    assert limit(result) == largest_term(result) == "data_reduce"
    assert limit(result | {"compute_time_s": 2.5}) == "compute"
    assert limit(result | {"compute_time_s": None}) == "data_reduce"
    assert largest_term(result | {"communication_s": dict.fromkeys(terms, 0.0)}) is None
