"""Answers as plain records: what JSON can hold, sums that must hold, and figures that fit each other."""

import json
from math import prod

import pytest

from machines import job
from perfmodel.parallel.layout import Layout
from perfmodel.search.explain import explain, timeline
from perfmodel.search.recommend import answer
from perfmodel.search.results.answer_records import explanation_record, ranking_record, timeline_record
from perfmodel.search.search import Space, rank
from perfmodel.search.terms import largest_term, limit

FIDELITIES = ("full", "flat", "paper")
SPACE = Space(gpus=32)


def record(fidelity="full"):
    return ranking_record(rank(job(fidelity=fidelity), SPACE))


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_a_ranking_is_what_json_can_hold(fidelity):
    found = record(fidelity)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_the_figures_of_a_result_fit_each_other(fidelity):
    found = record(fidelity)
    assert [result["rank"] for result in found["results"]] == list(range(1, 11))
    for result in found["results"]:
        assert prod(result["grid"].values()) == found["gpus"] == 32
        assert sum(result["communication_s"].values()) == pytest.approx(result["communication_time_s"], rel=1e-12)
        assert sum(result["memory_terms_B"].values()) == pytest.approx(result["memory_B"], rel=1e-12)
        exposed = result["exposed_communication_time_s"]
        assert result["step_time_s"] == pytest.approx((result["compute_time_s"] or 0) + exposed, rel=1e-12)
        shared = result["micro_batch"] * result["accumulation_steps"] * result["grid"]["z"] * result["grid"]["data"]
        assert shared == found["batch_sequences"]


def test_rates_follow_from_the_step():
    found = record()
    for result in found["results"]:
        step = result["step_time_s"]
        assert result["sequences_per_s"] * step == pytest.approx(found["batch_sequences"], rel=1e-12)
        assert result["tokens_per_s"] == pytest.approx(result["sequences_per_s"] * found["sequence_length"], rel=1e-12)
        assert result["model_flop_per_s"] * step == pytest.approx(found["model_flop"], rel=1e-12)
        assert result["lower_bound_s"] <= step <= result["upper_bound_s"]


def test_what_the_paper_does_not_know_is_null():
    for result in record("paper")["results"]:
        unknown = ("compute_time_s", "model_flops_utilization", "tokens_per_s", "model_flop_per_s", "lower_bound_s")
        assert [result[key] for key in unknown] == [None] * len(unknown)


def test_counts_of_grids_add_up():
    found = record()
    assert found["searched"] == found["feasible"] + sum(found["rejected"].values())


def test_a_search_with_all_beside_it_is_one_record_that_shows_what_was_asked_for():
    ranking, beside = answer(job(), Space(gpus=32, top=2), 10**9, uncertain=True)
    found = ranking_record(ranking, beside)
    assert len(ranking) > 2
    assert len(found["results"]) == 2
    assert {result["training_tokens"] for result in found["results"]} == {10**9}
    assert [one["name"] for one in found["baselines"]] == ["fsdp", "hsdp", "megatron-tp", "megatron-hsdp", "ddp"]
    chances = [one["chance_of_being_fastest"] for one in found["uncertainty"]["worth_a_try"]]
    assert 0 < sum(chances) <= 1 + 1e-12


def test_an_explanation_has_the_figures_of_the_ranking():
    best = record()["results"][0]
    grid = Layout(**best["grid"])
    found = explanation_record(explain(job(), SPACE, grid))
    for key in ("step_time_s", "compute_time_s", "memory_B", "tokens_per_s", "micro_batch", "recompute"):
        assert found[key] == best[key]
    assert found["rejected"] == []


def test_the_events_of_a_timeline_are_in_order():
    explained = explain(job(), SPACE, Layout(x=2, y=2, z=4, data=2))
    found = timeline_record(explained, *timeline(explained))
    starts = [event["start"] for event in found["events"]]
    assert starts == sorted(starts)
    assert len(starts) > 10
    assert found["settings"]["optimizer"]


def result(compute, exposed, **terms):
    return {"compute_time_s": compute, "exposed_communication_time_s": exposed, "communication_s": terms}


@pytest.mark.parametrize(
    ("of", "largest", "limited"),
    [
        (result(2.0, 1.0, small=0.1, data_reduce=5.0), "data_reduce", "compute"),
        (result(1.0, 2.0, small=0.1, data_reduce=5.0), "data_reduce", "data_reduce"),
        (result(None, 2.0, weight_gather=2.0), "weight_gather", "weight_gather"),
        (result(1.0, 0.0, weight_gather=0.0), None, "compute"),
    ],
)
def test_what_limits_a_step_is_computation_or_the_largest_of_what_is_exposed(of, largest, limited):
    assert (largest_term(of), limit(of)) == (largest, limited)
