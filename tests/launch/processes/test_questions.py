"""What `perfmodel run` refuses before it starts anything, and which grids it takes."""

import json
import math
from dataclasses import asdict
from pathlib import Path

import pytest

from perfmodel import models
from perfmodel.errors import PerfmodelError, UsageError
from perfmodel.launch.processes import results, selection
from perfmodel.machines import profiles
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import NAMED_PLACEMENTS, Layout
from perfmodel.parallel.rules import complaints, grid_rules
from perfmodel.search.search import Space
from perfmodel_cli.options.run_options import DtypeChoice, RunQuestion
from perfmodel_cli.options.shared import BackendChoice, CacheChoice, RecomputeChoice


def asked(**options):
    return RunQuestion(**{"model": "gpt-tiny", **options}).experiments(None)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "give either --grid or --grids"),
        ({"grid": "2x2x1x1", "grids": "top:3"}, "give either --grid or --grids"),
        ({"grid": "2x2x1x1", "nproc": 8}, "8 ranks, but the grid 2x2x1x1 has 4"),
        ({"grid": "16x1x1x1"}, "16x1x1x1 cannot run gpt-tiny: 8 attention heads cannot be split evenly by x 16"),
        ({"grid": "1x1x2x2", "batch": 6}, "6 sequences per step cannot be split evenly by z 2 \\* data 2 = 4"),
        ({"grid": "1x1x1x2", "batch": 6, "micro_batch": "2"}, "6 sequences per step cannot be split evenly"),
        ({"grid": "1x1x1x2", "seq": 512}, "512 tokens, but gpt-tiny has 256 positions; wanted --seq of at most 256"),
        ({"grids": "top:3"}, "--grids top:3 needs --nproc"),
        ({"grids": "all"}, "--grids all needs --nproc"),
        ({"grid": "1x1x1x2", "save": "kept", "rounds": 2}, "--save takes the checkpoint of one run, not of 2 rounds"),
        ({"grids": "top:3", "nproc": 8}, "--grids top:3 needs --machine"),
        ({"grids": "top:some", "nproc": 8}, "wanted top: and a number, such as top:5"),
        ({"grids": "sample:2", "nproc": 7, "batch": 6}, "no grid of 7 can run gpt-tiny"),
        ({"grids": "none.txt"}, "none.txt"),
    ],
)  # fmt: skip
def test_a_question_without_an_answer_is_refused_in_a_sentence(options, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PerfmodelError, match=sentence):
        asked(**options)


def test_the_fastest_predicted_are_run_as_they_are_predicted():
    (best, *_) = found = asked(grids="top:3", nproc=8, machine="localhost-cpu", batch=16)
    assert len({one.grid for one in found}) == 3
    job = Job.of(models.load("gpt-tiny"), profiles.load("localhost-cpu"), batch=16)
    assert best.layout() == selection.fastest(job, Space(gpus=8, top=1))[0]


def test_drawn_grids_differ_keep_the_rules_and_are_the_same_for_the_same_seed():
    found = asked(grids="sample:9", nproc=16)
    assert len({one.grid for one in found}) == 9
    job = found[0].workload()
    assert not any(complaints(grid_rules(job), one.layout()) for one in found)
    assert found == asked(grids="sample:9", nproc=16)
    assert [one.grid for one in found] != [one.grid for one in asked(grids="sample:9", nproc=16, seed=1)]


def test_every_grid_that_keeps_the_rules_may_be_drawn():
    job = Job.of(models.load("gpt-tiny"), profiles.load("localhost-cpu"), batch=8)
    space = Space(gpus=8, placements=NAMED_PLACEMENTS["any"], top=10**6)
    drawn = selection.drawn(job, space, seed=0)
    assert len({(one.text(), one.placement) for one in drawn}) == len(drawn)
    assert {one.text() for one in drawn} >= {"8x1x1x1", "1x8x1x1", "1x1x8x1", "1x1x1x8", "2x2x2x1"}


def test_all_grids_are_run_in_rounds_as_they_are_asked_to_be():
    modes = {"micro_batch": "2", "recompute": RecomputeChoice.full, "weight_cache": CacheChoice.all}
    found = asked(grids="all", nproc=4, batch=8, rounds=2, **modes)
    assert len({one.grid for one in found}) == 10
    assert [one.round for one in found] == [1] * 10 + [2] * 10
    assert [one.grid for one in found[:10]] == [one.grid for one in found[10:]]
    assert {(one.micro_batch, one.recompute, one.weight_cache) for one in found} == {(2, "full", "all")}
    (drawn,) = asked(grids="sample:1", nproc=4, batch=8, recompute=RecomputeChoice.selective)
    assert (drawn.recompute, drawn.round) == ("selective", 1)


def test_a_round_is_answered_by_a_result_of_its_own_and_the_first_by_one_from_before_there_were_rounds():
    first, second = asked(grid="1x1x1x2", dtype=DtypeChoice.fp32, backend=BackendChoice.gloo, rounds=2)
    of_first, of_second = asdict(first), asdict(second)
    assert first.answered_by(of_first)
    assert not first.answered_by(of_second)
    assert second.answered_by(of_second)
    before = {name: value for name, value in of_first.items() if name != "round"}
    assert first.answered_by(before)
    assert not second.answered_by(before)


def test_a_file_of_grids_may_have_comments_and_every_wrong_line_is_named(tmp_path):
    path = tmp_path / "grids"
    path.write_text("# all of four\n2x2x1x1\n\n1x1x4x1  # depth\n")
    assert selection.of_file(path) == [Layout(x=2, y=2, z=1, data=1), Layout(x=1, y=1, z=4, data=1)]
    path.write_text("2x2\n1x1x1x1\n3\n")
    with pytest.raises(PerfmodelError, match=r"(?s)grids:1: '2x2' is no grid.*grids:3: '3' is no grid"):
        selection.of_file(path)


def test_one_batch_goes_for_all_grids(tmp_path):
    path = tmp_path / "grids"
    path.write_text("1x1x1x8\n1x2x1x1\n")
    assert {one.batch_sequences for one in asked(grids=str(path))} == {8}


def test_a_line_that_was_cut_off_is_passed_over_and_the_next_begins_a_line_of_its_own(tmp_path):
    path = tmp_path / "results.jsonl"
    results.append(path, {"status": "ok", "x": 1})
    with path.open("a") as file:
        file.write('{"status": "o')
    results.append(path, {"status": "timeout", "x": 2})
    kept = results.read(path)
    assert [record["x"] for record in kept.records] == [1, 2]
    assert len(kept.problems) == 1
    assert "results.jsonl:2: a line that was cut off" in kept.problems[0]
    assert json.loads(path.read_text().splitlines()[2]) == {"status": "timeout", "x": 2}


def test_a_file_of_something_else_is_not_added_to(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("# notes\n")
    with pytest.raises(PerfmodelError, match=r"notes\.txt:1 is no result of perfmodel run"):
        results.read(path)


def test_results_are_kept_in_a_file_only():
    with pytest.raises(PerfmodelError, match="/dev/full is a device or a pipe"):
        results.read(Path("/dev/full"))


def test_a_record_answers_only_where_all_that_is_shown_is_there():
    (one,) = asked(grid="1x1x1x1")
    found = {"backend": "gloo", "dtype": "fp32", "communication": {}, "hardware": "a", "losses": [9.0], "memory_B": 1}
    found |= {"step_time_s": 1.0, "step_time_min_s": 1.0, **one.rates(1.0, "fp32")}
    whole = {**asdict(one), "status": "ok", "schema": results.SCHEMA, **found}
    assert results.Kept((whole,), ()).answer(one) == whole
    for lost in ("schema", "step_time_s", "losses", "memory_B"):
        part = {name: value for name, value in whole.items() if name != lost}
        assert results.Kept((part,), ()).answer(one) is None


def test_rates_count_three_passes_of_the_model():
    (one,) = asked(grid="1x1x1x2", machine="localhost-cpu", batch=4)
    rates = one.rates(0.5, "fp32")
    assert rates["tokens_per_s"] == 4 * 256 / 0.5
    assert rates["model_flop_per_s"] == 3 * 4 * models.load("gpt-tiny").forward_flops(256) / 0.5
    assert math.isclose(rates["model_flops_utilization"], rates["model_flop_per_s"] / (2 * 50e9))
    assert one.rates(0.5, "fp64")["model_flops_utilization"] is None


GOOD = {
    "schema": 1, "status": "ok", "backend": "gloo", "dtype": "fp32", "hardware": "a", "communication": {},
    "losses": [9.0, None], "memory_B": 1e6, "model_flops_utilization": None, "step_time_s": 1.0, "step_time_min_s": 1.0,
    "tokens_per_s": 5.0,
}  # fmt: skip


@pytest.mark.parametrize(
    "damage",
    [
        {"backend": ["gloo"]}, {"losses": []}, {"losses": None}, {"step_time_s": "abc"}, {"step_time_s": float("nan")},
        {"memory_B": None}, {"communication": {"all-reduce": 3}}, {"tokens_per_s": None}, {"hardware": 5},
        {"communication": {"all-reduce": {"x": {"calls": 1}}}},
    ],
)  # fmt: skip
def test_a_damaged_result_answers_nothing(tmp_path, damage):
    (experiment,) = asked(grid="1x1x1x2")
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(asdict(experiment) | GOOD) + "\n")
    assert results.read(path).answer(experiment) is not None
    path.write_text(json.dumps(asdict(experiment) | GOOD | damage) + "\n")
    assert results.read(path).answer(experiment) is None


def test_a_line_that_is_too_deep_is_taken_as_cut_off(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text('{"a":' + "[" * 100_000 + "\n")
    assert "out.jsonl:1: a line that was cut off" in results.read(path).problems[0]


def test_a_machine_that_has_no_profile_is_told_before_anything_runs():
    with pytest.raises(UsageError, match=r"no machine is called 'permutter'"):
        asked(grid="2x2x1x1", machine="permutter")
