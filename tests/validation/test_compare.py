"""Measured and published steps against predictions: reading, scores, what is predicted for a row."""

from dataclasses import replace

import numpy as np
import pytest

from perfmodel import models
from perfmodel.errors import FileProblems, PerfmodelError
from perfmodel.machines import profiles
from perfmodel.numerics import kendall, ranks, spearman
from perfmodel.parallel.choices import AXONN_OVERLAPS
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.settings import Settings
from perfmodel.search.search import Space, rank
from perfmodel.step.predict import predict
from perfmodel.validation import compare, published, step_files
from perfmodel.validation.scores import Order, Sizes

HEADS = "machine,model,sequence_length,tp,fsdp,dp,batch_sequences,micro_batch,recompute,step_time_s"
GOOD = "perlmutter,gpt-5b,2048,1,8,2,64,4,full,3.5"


@pytest.fixture
def read(tmp_path):
    """Read a file of a heading and rows."""

    def ask(*lines, heads=HEADS, **given):
        path = tmp_path / "runs.csv"
        path.write_text("\n".join([heads, *lines, ""]), encoding="utf-8")
        return step_files.read(path, **given)

    return ask


def full(**given):
    return Settings(fidelity="full", **given)


def test_degrees_of_other_frameworks_are_axes_of_the_grid(read):
    (row,) = read("perlmutter,gpt-5b,2048,2,4,8,64,1,no,3.5").rows
    assert (row.grid, row.gpus, row.recompute) == ((2, 1, 4, 8), 64, "none")


def test_axes_by_their_own_names_and_a_row_without_any(read):
    heads = "machine,model,x,y,z,data,batch_sequences,step_time_s,gpus"
    rows = read("alps,gpt-5b,1,2,,4,64,1.5,", "alps,gpt-5b,,,,,64,2,16", heads=heads).rows
    assert [(row.grid, row.gpus) for row in rows] == [((1, 2, 1, 4), 8), (None, 16)]


@pytest.mark.parametrize("heads", ["model", "hidden,layers,heads,kv_heads,ffn,vocabulary"])
def test_a_model_by_its_numbers_in_one_cell_or_six(read, heads):
    numbers = "1024,24,16,,,51200" if "," in heads else '"1024,24,16,,,51200"'
    heads = f"machine,{heads},sequence_length,dp,batch_sequences,micro_batch,step_time_s"
    (row,) = read(f"alps,{numbers},1024,8,16,4,1.5", heads=heads).rows
    assert row.model == (1024, 24, 16, None, None, 51200)
    assert compare.model_of(row.model, sequence=1024).parameters == 355_788_800


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("perlmutter,gpt-5b,2048,1,8,2,64,4,fully,3.5", "recompute is 'fully', none of none, selective, full, oper"),
        ("perlmutter,gpt-5b,2048,1,8,2,64,4,full,", "neither step_time_s nor tokens_per_s_per_gpu is given"),
        ("perlmutter,gpt-5b,2048,1,8,2,64,4,full,fast", "step_time_s is 'fast', wanted a number"),
        ("perlmutter,gpt-5b,2048,1,8,2,64,4,full,nan", "step_time_s is 'nan', wanted a number from 9e-13 to 1e+24"),
        ("perlmutter,gpt-5b,2048,1.5,8,2,64,4,full,1", "tp is '1.5', wanted a whole number of at least 1"),
        ("perlmutter,gpt-5b,2048,1,8,2,,4,full,1", "batch_sequences is missing (sequences in a step, all"),
        ("perlmutter,gpt-5b,2048,,,,64,4,full,1", "gpus is missing (devices in all; empty: what the grid has)"),
        (",gpt-5b,2048,1,8,2,64,4,full,1", "machine is missing (a shipped machine, or the path of a profile)"),
        ("perlmutter,gpt-5b,2048,1,8", "5 cells under 10 columns"),
    ],
)  # fmt: skip
def test_a_bad_row_is_told_by_its_line_and_the_good_ones_are_kept(read, line, sentence):
    reading = read(GOOD, line, GOOD.replace(",64,", ",128,"))
    ((told, text),) = reading.problems
    assert (told, text[: len(sentence)]) == (3, sentence)
    assert [row.line for row in reading.rows] == [2, 4]
    assert reading.dropped == 1


def test_an_unknown_column_is_told_with_the_nearest_and_does_no_harm(read):
    reading = read(f"{GOOD},7", heads=f"{HEADS},micro_bach")
    assert reading.problems == ((1, "unknown column 'micro_bach' (did you mean micro_batch?)"),)
    assert len(reading.rows) == 1


def test_a_file_with_a_column_given_twice_is_refused(read):
    with pytest.raises(FileProblems, match="column 'micro_batch' is given twice"):
        read(f"{GOOD},4", heads=f"{HEADS},micro_batch")


@pytest.mark.parametrize("machine", ["rtx4090-8x", "localhost-cpu", "summit"])
def test_a_stated_grid_on_devices_that_the_machine_has_not_is_left_out(read, machine):
    heads = "machine,model,batch_sequences,x,y,z,data,micro_batch,recompute,step_time_s"
    rows = [f"{machine},gpt-tiny,64,1,1,1,16,1,full,5", "perlmutter,gpt-tiny,64,1,1,1,16,1,full,5"]
    found = compare.compare(read(*rows, heads=heads))
    assert ([one.row.machine for one in found.rows], found.dropped) == (["perlmutter"], 1)
    assert np.isfinite(found.sizes.mape)


def test_a_prediction_does_not_depend_on_the_other_rows_of_the_file(read):
    heads = "machine,model,batch_sequences,x,y,z,data,micro_batch,recompute,step_time_s"
    row, other = (f"gb200-nvl72,gpt-80b,1024,4,1,2,{data},1,selective,9" for data in (16, 128))
    alone, beside = compare.compare(read(row, heads=heads)), compare.compare(read(row, other, heads=heads))
    assert alone.rows[0].predicted == beside.rows[0].predicted


def test_a_row_that_asks_for_more_devices_than_there_are_is_left_out(read):
    heads = "machine,model,batch_sequences,gpus,step_time_s"
    found = compare.compare(read("perlmutter,gpt-5b,64,16,3", "perlmutter,gpt-5b,64,99999999996,3", heads=heads))
    assert (len(found.rows), found.dropped) == (1, 1)
    assert "asked for 99999999996" in found.problems[0]


def test_a_file_without_a_good_row_is_refused_with_every_problem(read, tmp_path):
    with pytest.raises(FileProblems) as refused:
        read("perlmutter,gpt-5b,2048,1,8,2,64,4,full,-1")
    first, last = refused.value.problems
    assert first.startswith(f"{tmp_path / 'runs.csv'}:2: step_time_s is '-1'")
    assert last.endswith("no row to compare")
    with pytest.raises(FileProblems, match="cannot be read"):
        step_files.read(tmp_path / "none.csv")


def test_an_option_stands_for_a_column(read):
    (row,) = read(GOOD, machine="alps", model="gpt-10b").rows
    assert (row.machine, row.model) == ("alps", "gpt-10b")


def test_a_row_is_predicted_as_its_layout_alone(read):
    (one,) = compare.compare(read(GOOD)).rows
    settings = full(ignore_memory=True)
    job = Job.of(models.load("gpt-5b"), profiles.load("perlmutter"), batch=64, settings=settings)
    alone = predict(job, Layout(x=1, y=1, z=8, data=2, placement=0, micro_batch=4, recompute=2, weight_cache=1))
    assert one.predicted == pytest.approx(float(alone.step), rel=1e-12)
    assert one.memory == pytest.approx(float(alone.memory.total), rel=1e-12)
    assert one.error == pytest.approx(float(alone.step) / 3.5 - 1)


def test_rows_of_one_job_are_predicted_together_as_they_are_alone(read):
    lines = [f"perlmutter,gpt-5b,2048,{x},{z},{16 // x // z},64,1,full,2" for x in (1, 2, 4) for z in (2, 4)]
    together = compare.compare(read(*lines)).rows
    assert [one.predicted for one in together] == [compare.compare(read(line)).rows[0].predicted for line in lines]


def test_a_row_without_a_grid_is_compared_with_the_best(read):
    heads = "machine,model,batch_sequences,recompute,step_time_s,gpus"
    (one,) = compare.compare(read("perlmutter,gpt-5b,64,full,2.5,16", heads=heads)).rows
    job = Job.of(models.load("gpt-5b"), profiles.load("perlmutter"), batch=64, settings=full())
    best = rank(job, Space(gpus=16, recompute="full", top=1))
    assert (one.layout, one.predicted) == (best.layouts.take(0), best.prediction.step[0])


def test_tokens_a_second_are_a_step_time(read):
    heads = HEADS.replace("step_time_s", "tokens_per_s_per_gpu")
    (one,) = compare.compare(read("perlmutter,gpt-5b,2048,1,8,2,64,4,full,1024", heads=heads)).rows
    assert one.measured == 64 * 2048 / (1024 * 16)


def test_what_cannot_be_predicted_is_left_out_with_its_reason(read):
    found = compare.compare(read(GOOD, GOOD.replace("gpt-5b", "gpt-5c"), GOOD.replace("2048,1,8,2", "2048,3,8,2")))
    assert (len(found.rows), found.dropped) == (1, 2)
    assert "no model is called 'gpt-5c'" in found.problems[0]
    assert "32 attention heads cannot be split evenly by x 3" in found.problems[1]


def test_settings_of_a_row_are_those_of_its_prediction(read):
    heads = f"{HEADS},overlap,attention"
    plain, alone, old = compare.compare(read(f"{GOOD},,", f"{GOOD},none,", f"{GOOD},,flash-1", heads=heads)).rows
    assert alone.predicted > plain.predicted
    assert old.predicted > plain.predicted


def test_sizes_of_errors():
    assert Sizes.of([0.1, -0.2, 0.3]) == Sizes(
        rows=3, mape=pytest.approx(0.2), median=0.2, bias=pytest.approx(0.2 / 3), worst=0.3
    )


# Worked by hand: ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4. Spearman 4.5 / sqrt(4.5 * 5); Kendall tau-b 5 / sqrt(5 * 6).
def test_correlations_with_ties():
    tied, plain = np.array([1.0, 2.0, 2.0, 5.0]), np.array([10.0, 20.0, 30.0, 40.0])
    assert ranks(tied).tolist() == [1, 2.5, 2.5, 4]
    assert spearman(tied, plain) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)
    assert kendall(tied, plain) == pytest.approx(5 / 30**0.5)
    assert (spearman(plain, -plain), kendall(plain, -plain)) == (-1, -1)


def test_order_is_scored_within_groups():
    predicted, actual = [1.0, 2.0, 3.0, 1.0, 2.0], [10.0, 20.0, 30.0, 6.0, 5.0]
    order = Order.of(predicted, actual, ["a", "a", "a", "b", "b"])
    assert (order.groups, order.spearman, order.kendall) == (2, 1.0, 1.0)
    assert (order.top1, order.top5) == (0.5, 1.0)
    assert (order.regret, order.regret_worst) == (pytest.approx(1.1), pytest.approx(1.2))


def test_order_says_nothing_of_groups_of_one():
    order = Order.of([1.0, 2.0], [1.0, 2.0], ["a", "b"])
    assert (order.groups, order.spearman, order.regret) == (0, None, None)


def test_every_published_figure_has_a_citation_and_a_question_that_can_be_asked():
    found = published.rows()
    assert len(found) >= 30
    for row in found:
        assert row["source"].startswith(("arXiv ", "github ")), row
        assert row["quantity"] in published.UNITS
        assert float(row["published"]) > 0


def test_published_computation_memory_and_megatron_are_met():
    """What the model claims to know; the other checks are in docs/validation.md."""
    bounds = {"computation": 0.04, "memory": 0.05, "Megatron-LM": 0.1}
    for check, bound in bounds.items():
        assert max(abs(one.error) for one in published.validate(check)) <= bound, check


def test_an_unknown_check_is_told_with_those_there_are():
    with pytest.raises(PerfmodelError, match="no check is called 'x'"):
        published.validate("x")


def test_slowed_computation_is_what_overlap_takes_from_it():
    job = Job.of(models.load("gpt-5b"), profiles.load("frontier"), batch=64, settings=full())
    layout = Layout(x=1, y=1, z=16, data=1, placement=0, micro_batch=4, recompute=2, weight_cache=1)
    alone = replace(job, settings=replace(job.settings, overlap=frozenset()))
    assert published.slowed_computation(alone, predict(alone, layout)) == pytest.approx(
        float(predict(alone, layout).compute)
    )
    prediction = predict(job, layout)
    assert job.settings.overlap == AXONN_OVERLAPS
    assert float(prediction.compute) < published.slowed_computation(job, prediction) < float(prediction.step)


def test_a_row_may_name_its_framework(read):
    head = "machine,model,sequence_length,gpus,tp,dp,batch_sequences,micro_batch,recompute,framework,step_time_s"
    plain, other = (
        compare.compare(read(f"dgx-a100,llama-2-7b,4096,8,2,4,64,1,full,{name},9", heads=head)).rows[0]
        for name in ("", "megatron-lm")
    )
    assert plain.job.settings.framework.name == "perfmodel"
    assert other.job.settings.framework.name == "megatron-lm"
    assert other.predicted < plain.predicted  # its norms and gates are fused
