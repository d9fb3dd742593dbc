"""perfmodel frameworks, and the option --framework."""

import json

import pytest

from perfmodel.frameworks import loading
from published_steps import write


def test_all_frameworks_are_listed(run):
    found = json.loads(run("frameworks", "list", "--format", "json").out)
    assert [row["name"] for row in found["frameworks"]] == loading.names()


@pytest.mark.parametrize("name", loading.names())
def test_a_framework_is_shown_with_its_sources(run, name):
    shown = run("frameworks", "show", name).out
    assert loading.load(name).title in " ".join(shown.split())
    assert "spread.shards_over_data" in shown


def test_an_unknown_framework_is_told(run):
    found = run("frameworks", "show", "megatron")
    assert found.code == 2
    assert "did you mean megatron-lm" in found.err


def test_a_ranking_keeps_to_what_the_framework_splits(run):
    asked = ("recommend", "--model", "gpt-5b", "--machine", "dgx-a100", "--gpus", "16", "--batch", "64")
    found = json.loads(run(*asked, "--framework", "megatron-lm", "--format", "json").out)
    assert found["framework"] == "megatron-lm"
    assert {(row["grid"]["y"], row["grid"]["z"]) for row in found["results"]} == {(1, 1)}
    assert found["rejected"]["framework"] > 0


def test_published_steps_are_scored_by_set(run, tmp_path):
    path = write(tmp_path / "mine.csv", {}, {"tp": "4", "dp": "2"}, {"pp": "2"})
    shown = run("validate", "--steps", str(path)).out
    assert "mine" in shown
    assert "1 x pipeline parallelism is not modelled" in shown
    found = json.loads(run("validate", "--steps", str(path), "--format", "json").out)
    assert found["sets"][0]["rows"] == 2


def test_a_file_without_a_row_to_predict_is_no_answer(run, tmp_path):
    path = write(tmp_path / "mine.csv", {"pp": "2"})
    found = run("validate", "--steps", str(path))
    assert found.code == 1
    assert "no row can be predicted: pipeline" in found.err


@pytest.mark.parametrize("framework", loading.names())
def test_a_grid_of_every_framework_is_explained_term_by_term(run, framework):
    asked = ("--model", "llama-2-7b", "--machine", "dgx-a100", "--batch", "64", "--framework", framework)
    best = json.loads(run("recommend", *asked, "--gpus", "16", "--format", "json").out)["results"][0]
    grid = "x".join(str(size) for size in best["grid"].values())
    found = json.loads(run("explain", *asked, "--grid", grid, "--format", "json").out)
    summed = sum(one["time_s"] for one in found["collectives"])
    assert summed == pytest.approx(found["communication_time_s"], rel=1e-9)
