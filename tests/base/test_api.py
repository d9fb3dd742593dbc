"""`import perfmodel`: what its functions take and give beyond the commands, and what they refuse."""

import dataclasses
import inspect

import numpy as np
import pytest

import perfmodel
from machines import GOLDEN
from perfmodel import FileProblems, Layout, NoGridError, PerfmodelError, UsageError

ASKED = {"batch": 64, "gpus": 16}


def recommend(**options):
    return perfmodel.recommend("gpt-5b", "perlmutter", **ASKED | options)


def test_every_name_is_there_documented_and_found_by_completion():
    for name in perfmodel.__all__:
        found = getattr(perfmodel, name)
        assert name.startswith("_") or inspect.getdoc(found)
    assert dir(perfmodel) == sorted(perfmodel.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'recommendation'"):
        _ = perfmodel.recommendation


def test_names_files_and_loaded_records_are_the_same(tmp_path):
    machine = tmp_path / "mine.yaml"
    machine.write_text("format: 1\nname: perlmutter\nbase: perlmutter\n", encoding="utf-8")
    loaded = perfmodel.load_machine(machine)
    for model, where in (("gpt-5b", machine), (perfmodel.load_model("gpt-5b"), loaded), ("gpt-5b", str(machine))):
        assert perfmodel.recommend(model, where, **ASKED).to_dict() == recommend().to_dict()
    assert {"gpt-5b", "gpt-20b"} <= set(perfmodel.model_names())
    assert {"perlmutter", "frontier"} <= set(perfmodel.machine_names())


def test_the_layouts_are_those_of_the_results():
    answer = recommend(top=4, uncertainty=True)
    grids = [result["grid"] for result in answer.to_dict()["results"]]
    assert [{axis: getattr(one, axis) for axis in ("x", "y", "z", "data")} for one in answer.layouts] == grids
    assert answer.best == answer.layouts[0]
    assert repr(answer) == "<perfmodel.recommend: 4 results>"


def test_a_grid_is_text_or_a_layout():
    best = recommend().best
    first, second = (
        perfmodel.explain("gpt-5b", "perlmutter", grid=grid, batch=64).to_dict() for grid in (best, best.text())
    )
    assert first == second
    assert first["micro_batch"] == best.micro_batch


def test_an_answer_is_not_changed_through_what_it_gives():
    answer = recommend()
    answer.to_dict()["results"].clear()
    answer.rows[0]["grid"].clear()
    assert answer.to_dict() == recommend().to_dict()


@pytest.mark.parametrize("fidelity", ["full", "flat", "paper"])
def test_predict_gives_the_step_times_of_the_ranking(fidelity):
    answer = recommend(fidelity=fidelity)
    settings = perfmodel.Settings(fidelity=fidelity)
    job = perfmodel.Job.of(
        perfmodel.load_model("gpt-5b"), perfmodel.load_machine("perlmutter"), batch=64, settings=settings
    )
    columns = {each.name: np.array([getattr(one, each.name) for one in answer.layouts]) for each in FIELDS}
    found = np.broadcast_to(perfmodel.predict(job, Layout(**columns)).step, len(answer.layouts))
    assert found == pytest.approx([result["step_time_s"] for result in answer.to_dict()["results"]])


FIELDS = dataclasses.fields(Layout)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"batch": "64"}, "batch is '64', wanted a whole number"),
        ({"batch": True}, "batch is True, wanted a whole number"),
        ({"batch": 0}, "the batch is 0, wanted 1 to"),
        ({"gpus": 16.0}, "gpus is 16.0, wanted a whole number"),
        ({"gpus": None}, "give either gpus or nodes"),
        ({"nodes": 4}, "give either gpus or nodes"),
        ({"gpus": 0}, "gpus is 0, wanted 1 to"),
        ({"gpus": None, "nodes": 2**40}, "nodes is 1099511627776, wanted 1 to"),
        ({"top": 0}, "the top is 0"),
        ({"seq": "long"}, "seq is 'long', wanted a whole number"),
        ({"tokens": "many"}, "tokens 'many': wanted a count"),
        ({"micro_batch": 1.5}, "micro_batch 1.5: wanted any, or a whole number"),
        ({"recompute": "some"}, "recompute is 'some', none of any, none, selective, full"),
        ({"weight_cache": None}, "weight_cache is None, none of any, none, forward, all"),
        ({"placement": "mine"}, "placement is 'mine', none of axonn, paper, any"),
        ({"fidelity": "high"}, "fidelity is 'high', none of full, flat, paper"),
        ({"optimizer": "lion"}, "no optimizer is called 'lion'"),
        ({"overlap": ["everything"]}, "overlap 'everything': wanted none, or some of"),
        ({"bytes": {"states": 4}}, "bytes 'states=4': wanted NAME=COUNT"),
        ({"fix": {"x": 0}}, "fix 'x=0': wanted NAME=COUNT"),
        ({"max": "x"}, "max 'x': wanted NAME=COUNT"),
        ({"fix": {"x": 4}, "max": {"x": 2}}, "x is fixed to 4, above its maximum of 2"),
        ({"host_time": "42 m"}, "host_time: '42 m' has the unknown unit"),
        ({"host_time": 42}, "a host time of 42.0 s"),
        ({"contention": "low"}, "contention is 'low', wanted a number"),
        ({"contention": 2}, "a contention of 2.0"),
        ({"attention_kernel": "flash_9"}, "no attention kernel is called 'flash_9'"),
        ({"vocabulary_multiple": None}, "vocabulary_multiple is None, wanted a whole number"),
        ({"recompte": "full"}, r"no option is called 'recompte' \(did you mean recompute\?\)"),
    ],
    ids=str,
)
def test_a_question_that_is_not_well_formed_is_a_usage_error(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        recommend(**options)


def test_options_of_searches_are_none_of_explain():
    with pytest.raises(UsageError, match="no option is called 'fix'"):
        perfmodel.explain("gpt-5b", "perlmutter", grid="1x1x16x1", batch=64, fix={"x": 1})


@pytest.mark.parametrize(
    ("ask", "kind", "sentence"),
    [
        (lambda: perfmodel.recommend("gpt", "perlmutter", **ASKED), UsageError, "no model is called 'gpt'"),
        (lambda: perfmodel.recommend("gpt-5b", 7, **ASKED), UsageError, "machine is a int, wanted a name, a path"),
        (lambda: recommend(gpus=2), NoGridError, "no grid of 2|nodes of 4"),
        (lambda: perfmodel.explain("gpt-5b", "perlmutter", grid="16", batch=64), UsageError, "'16' is no grid"),
        (lambda: perfmodel.sweep("gpt-5b", "perlmutter", gpus=[16]), UsageError, "give either batch or batch_per_gpu"),
        (lambda: perfmodel.sweep("gpt-5b", "perlmutter", gpus=[], batch=64), UsageError, "gpus '': wanted counts"),
        (lambda: perfmodel.sweep("gpt-5b", "perlmutter", gpus=[3], batch=64), NoGridError, "3"),
        (lambda: perfmodel.compare("none.csv"), FileProblems, "none.csv cannot be read"),
        (lambda: perfmodel.compare([{"machine": "alps"}]), UsageError, "measured is a list, wanted a path or a pandas"),
        (lambda: perfmodel.load_machine("perlmuter"), UsageError, "did you mean perlmutter"),
    ],
)  # fmt: skip
def test_errors_are_the_librarys_own(ask, kind, sentence):
    with pytest.raises(kind, match=sentence) as refused:
        ask()
    assert isinstance(refused.value, PerfmodelError)


def test_a_fitted_machine_is_the_profile_that_is_written(tmp_path):
    runs, out = GOLDEN.parents[1] / "docs" / "examples" / "runs.jsonl", tmp_path / "mine.yaml"
    fitted = perfmodel.calibrate(runs, "localhost-cpu", fit=["gemm"], out=out)
    before, inside, written = (
        perfmodel.compare(runs, machine=where).to_dict()["summary"]["mape"]
        for where in ("localhost-cpu", fitted.machine, out)
    )
    assert inside == pytest.approx(written, rel=1e-5)  # a profile has six digits
    assert inside < before
    with pytest.raises(PerfmodelError, match="already exists"):
        fitted.write(out)
    with pytest.raises(UsageError, match=r"out 'mine.txt' does not end in .yaml"):
        perfmodel.calibrate(runs, "localhost-cpu", out="mine.txt")


def test_a_fitted_profile_names_what_it_lies_over(tmp_path):
    runs = GOLDEN.parents[1] / "docs" / "examples" / "runs.jsonl"
    first = perfmodel.calibrate(runs, perfmodel.load_machine("localhost-cpu"), fit="gemm")
    assert 'base: "localhost-cpu"' in first.write(tmp_path / "one.yaml").read_text()
    second = perfmodel.calibrate(runs, first.machine, fit="fabric-latency")
    with pytest.raises(UsageError, match="localhost-cpu-calibrated was given as a loaded machine"):
        second.write(tmp_path / "two.yaml")
