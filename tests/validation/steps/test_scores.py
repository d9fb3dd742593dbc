"""Published steps predicted and scored."""

import pytest

from perfmodel.errors import PerfmodelError
from perfmodel.validation.steps import records as step_records
from perfmodel.validation.steps import scores as step_scores
from published_steps import write


@pytest.fixture
def measured(tmp_path):
    """Three grids of one job whose steps are 1.2 times as long as predicted, and rows that cannot be predicted."""
    grids = ({"tp": "1", "dp": "8"}, {"tp": "2", "dp": "4"}, {"tp": "4", "dp": "2"})
    plain, _ = step_scores.scored([write(tmp_path / "plain.csv", *grids)])
    slower = [grid | {"step_s": f"{1.2 * one.predicted:.9f}"} for grid, one in zip(grids, plain, strict=True)]
    return write(tmp_path / "slower.csv", *slower, {"pp": "2"}, {"pp": "4"})


def test_one_factor_explains_a_set_that_is_slower_by_one(measured):
    rows, refused = step_scores.scored([measured])
    (score,) = step_scores.by_set(rows, refused)
    assert score.sizes.rows == 3
    assert score.sizes.bias == pytest.approx(1 / 1.2 - 1, abs=1e-6)
    assert score.ratio == pytest.approx(1.2, abs=1e-6)
    assert score.with_factor == pytest.approx(0.0, abs=1e-6)
    assert (score.order.spearman, score.order.regret) == (1.0, 1.0)
    assert score.refused == {"pipeline parallelism is not modelled": 2}


def test_a_row_without_micro_batch_gets_the_fastest(tmp_path):
    stated, searched = (
        step_scores.scored([write(tmp_path / f"{name}.csv", change)])[0][0]
        for name, change in (("stated", {}), ("searched", {"micro_batch_sequences": "", "recompute": ""}))
    )
    assert searched.predicted <= stated.predicted


def test_memory_is_called_to_fit_or_not(tmp_path):
    small, large = {"status": "ok", "memory_GiB": "3"}, {"layers": "400", "hidden_features": "8192", "status": "oom"}
    rows, refused = step_scores.scored([write(tmp_path / "memory.csv", small, large)])
    (score,) = step_scores.by_set(rows, refused)
    assert (score.ran_right, score.ran_out_right) == (1.0, 1.0)
    assert score.memory.rows == 1


def test_a_framework_may_replace_that_of_the_set(measured):
    rows, _ = step_scores.scored([measured], framework="megatron-deepspeed")
    assert {one.case.job.settings.framework.name for one in rows} == {"megatron-deepspeed"}


def test_a_folder_gives_the_files_that_have_the_columns(tmp_path):
    path = write(tmp_path / "steps.csv", {})
    (tmp_path / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert step_scores.files([str(tmp_path)]) == [path]
    with pytest.raises(PerfmodelError, match="is not there"):
        step_scores.files([str(tmp_path / "nowhere")])


def test_the_record_holds_sets_rows_and_what_was_refused(measured):
    rows, refused = step_scores.scored([measured])
    record = step_records.steps_record(rows, refused)
    assert [one["set"] for one in record["sets"]] == ["slower"]
    assert record["mean_error"] == pytest.approx(1 - 1 / 1.2, abs=1e-6)
    assert record["coverage"] is None  # one set alone cannot be left out
    assert len(record["rows"]) == 3
    for row in record["rows"]:
        assert row["likely_low_s"] < row["predicted_s"] < row["likely_high_s"]
