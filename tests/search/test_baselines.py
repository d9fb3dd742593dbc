"""Named strategies beside the search."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from machines import job, machine
from perfmodel import models
from perfmodel.machines import profiles
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import NAMED_PLACEMENTS
from perfmodel.parallel.settings import Settings
from perfmodel.search.baselines import STRATEGIES, baselines, tensor_degrees
from perfmodel.search.search import Space, rank


def frontier(model, **settings):
    chosen = Settings(fidelity="full", **settings)
    return Job.of(models.load(model), profiles.load("frontier"), batch=8192, settings=chosen)


def best(question, space):
    return float(rank(question, space).prediction.step[0])


@pytest.mark.parametrize("fidelity", ["paper", "flat", "full"])
@pytest.mark.parametrize("placement", ["axonn", "any"])
def test_no_baseline_beats_the_search(fidelity, placement):
    question, space = job(fidelity=fidelity), Space(gpus=16, placements=NAMED_PLACEMENTS[placement])
    found = baselines(question, space)
    assert [each.name for each in found] == list(STRATEGIES)
    assert any(each.layout for each in found)
    for each in found:
        assert (each.step is None) == (each.layout is None) == (each.reason != "")
        if each.step is not None:
            assert each.layout.gpus == 16
            assert each.gain(best(question, space)) >= 1


def test_a_baseline_is_the_search_with_its_axes_fixed():
    question, space = frontier("gpt-5b"), Space(gpus=64)
    for each in baselines(question, space):
        if each.layout:
            sizes = {axis: each.layout.size(axis) for axis in ("x", "y", "z", "data")}
            fixed = replace(question, settings=replace(question.settings, fixed=sizes))
            alone = rank(fixed, space)
            assert alone.layouts.take(0) == each.layout
            assert alone.prediction.step[0] == each.step


def test_sizes_that_the_user_fixes_do_not_hold_for_baselines():
    question = job()
    fixed = replace(question, settings=replace(question.settings, fixed=MappingProxyType({"x": 2, "y": 2})))
    assert baselines(fixed, Space(gpus=16)) == baselines(question, Space(gpus=16))


def test_a_strategy_without_a_grid_says_why():
    found = {each.name: each for each in baselines(frontier("gpt-80b"), Space(gpus=1024))}
    assert "lacks " in found["ddp"].reason
    few = {each.name: each for each in baselines(job(batch=8), Space(gpus=16))}
    assert "8 sequences per step cannot be split evenly" in few["fsdp"].reason
    odd = {each.name: each for each in baselines(job(), Space(gpus=16, micro_batch=7))}
    assert "multiple of micro-batch 7" in odd["fsdp"].reason
    lone = {each.name: each for each in baselines(job(where=machine(1)), Space(gpus=16))}
    assert "no size above 1" in lone["megatron-tp"].reason


def test_tensor_degrees_divide_node_and_heads_largest_first():
    assert tensor_degrees(frontier("gpt-5b"), 8) == [8, 4, 2]
    assert tensor_degrees(frontier("gpt-5b"), 1) == []


@pytest.mark.parametrize(("model", "gpus"), [("gpt-5b", 512), ("gpt-20b", 2048), ("gpt-80b", 8192)])
def test_without_overlap_the_papers_baseline_is_slower_by_about_what_it_says(model, gpus):
    """Fig. 7 of arXiv 2502.08145: 1.81 (5B) to 1.15 (80B)."""
    question, space = frontier(model, overlap=frozenset()), Space(gpus=gpus)
    found = {each.name: each for each in baselines(question, space)}
    assert 1.15 <= found["megatron-hsdp"].gain(best(question, space)) <= 1.8
