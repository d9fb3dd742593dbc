"""Chances by sampling: what must hold whatever the machine."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines import GOLDEN, job
from perfmodel import models
from perfmodel.costs.costs import Factors
from perfmodel.machines import profiles
from perfmodel.parallel.job import Job
from perfmodel.parallel.settings import Settings
from perfmodel.search.search import Space, rank
from perfmodel.search.uncertainty import ENOUGH, RELATIVE, sample, sigmas
from perfmodel.step.predict import step_time

MEASURED = str(GOLDEN / "perlmutter-measured.yaml")
MACHINES = ["perlmutter", "frontier", "dgx-h100", "alps", "localhost-cpu", "summit"]
FIDELITIES = ["paper", "flat", "full"]


def ranking(machine="perlmutter", fidelity="full", gpus=16, top=20):
    chosen = Settings(fidelity=fidelity, ignore_memory=True)
    question = Job.of(models.load("gpt-5b"), profiles.load(machine), batch=64, settings=chosen)
    return rank(question, Space(gpus=gpus, top=top))


def draw(found, seed=1, uncertain=None, samples=100):
    return sample(found, np.random.default_rng(seed), uncertain or sigmas(found.job), samples)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_without_uncertainty_every_sample_is_the_prediction(machine, fidelity):
    found = ranking(machine, fidelity, gpus=4)
    certain = draw(found, uncertain=Factors.all(0.0), samples=5)
    assert np.all(certain.steps == found.prediction.step)
    assert certain.interval(0) == (found.prediction.step[0], found.prediction.step[0])
    assert certain.steps[0, np.argmax(certain.chances())] == np.min(found.prediction.step)
    assert np.max(certain.chances()) == 1
    assert len(certain.contenders()) == 1


@settings(max_examples=25, derandomize=True)
@given(machine=st.sampled_from(MACHINES), fidelity=st.sampled_from(FIDELITIES), seed=st.integers(0, 99))
def test_chances_sum_to_one_and_those_named_reach_ninety_percent(machine, fidelity, seed):
    drawn = draw(ranking(machine, fidelity, gpus=4), seed)
    chances, named = drawn.chances(), drawn.contenders()
    assert np.sum(chances) == pytest.approx(1)
    assert sum(chances[named]) >= ENOUGH - 1e-9
    assert sum(chances[named[:-1]]) < ENOUGH - 1e-9
    assert np.all(np.diff(chances[named]) <= 0)
    low, high = drawn.interval()
    assert low < np.median(drawn.steps[:, 0]) < high


def test_the_same_seed_gives_the_same_samples():
    found = ranking()
    assert np.array_equal(draw(found).steps, draw(found).steps)
    assert not np.array_equal(draw(found).steps, draw(found, seed=2).steps)


def test_all_samples_at_once_are_each_sample_alone():
    """A row of scaled figures equals the job with those figures."""
    found = ranking("frontier")
    uncertain = replace(Factors.all(0.0), between=0.3, products=0.2, contention=0.4, issuing=0.3)
    drawn = draw(found, seed=5, uncertain=uncertain, samples=3)
    names = [name for name in Factors.__dataclass_fields__ if name != "tables"]  # drawn apart
    normal = np.random.default_rng(5).standard_normal((3, len(names)))
    for row in range(3):
        factor = {name: float(np.exp(getattr(uncertain, name) * normal[row, i])) for i, name in enumerate(names)}
        question = found.job
        costs = question.costs
        other = replace(
            costs,
            bandwidths=replace(costs.bandwidths, between=costs.bandwidths.between * factor["between"]),
            constants=replace(costs.constants, tapered=costs.constants.tapered * factor["between"]),
            contention=costs.contention * factor["contention"],
            host_time=costs.host_time * factor["issuing"],
            products=factor["products"],
        )
        seconds = step_time(replace(question, costs=other), found.layouts)
        assert np.allclose(drawn.steps[row], seconds, rtol=1e-12)


def test_sigmas_follow_the_kind_of_source():
    frontier = sigmas(Job.of(models.load("gpt-5b"), profiles.load("frontier"), batch=64))
    assert frontier.products == RELATIVE["paper"]
    assert frontier.between == RELATIVE["measured"]
    assert frontier.fabric_latency == RELATIVE["assumed"]
    assumed = sigmas(job())
    assert {assumed.inside, assumed.between, assumed.products} == {RELATIVE["assumed"]}


@pytest.mark.parametrize("name", sorted(set(Factors.__dataclass_fields__)))
def test_each_input_matters_at_full_fidelity(name):
    found = ranking(MEASURED, gpus=16)
    drawn = draw(found, uncertain=replace(Factors.all(0.0), **{name: 0.3}), samples=20)
    assert np.any(np.ptp(drawn.steps, axis=0) > 0)


def test_a_measured_table_is_as_uncertain_as_its_source_and_changes_no_other_draw():
    assert sigmas(ranking(MEASURED).job).tables == RELATIVE["assumed"]  # one of its tables is
    assert sigmas(ranking().job).tables == 0
    with_tables, without = (ranking(name) for name in (MEASURED, "perlmutter"))
    steps = [draw(replace(found, layouts=without.layouts)).steps for found in (with_tables, without)]
    apart = np.flatnonzero(np.all(steps[0] == steps[1], axis=0))
    assert 0 < len(apart) < len(without)  # grids that no table is for


def test_samples_of_a_measured_table_are_the_step_with_its_times_multiplied():
    found = ranking(MEASURED)
    factors = np.array([[0.5], [1.0], [2.0]])

    def steps(factor):
        tables = tuple(replace(table, factor=factor) for table in found.job.costs.tables)
        return step_time(replace(found.job, costs=replace(found.job.costs, tables=tables)), found.layouts)

    assert np.array_equal(steps(factors), np.stack([steps(float(factor)) for factor in factors[:, 0]]))
    assert np.all(np.diff(steps(factors), axis=0) >= 0)
