"""`compare` and `validate`: what they print, what they say on standard error, how they end."""

import json

import pandas as pd
import pytest

HEADS = "machine,model,sequence_length,tp,fsdp,dp,batch_sequences,micro_batch,recompute,step_time_s"
ROWS = [
    "perlmutter,gpt-5b,2048,1,8,2,64,4,full,3.5",
    "perlmutter,gpt-5b,2048,2,4,2,64,4,full,3.9",
    "perlmutter,gpt-5b,2048,4,4,1,64,4,full,4.5",
]


@pytest.fixture
def file(tmp_path):
    """Write a file of rows; give its path."""

    def write(*rows, heads=HEADS):
        path = tmp_path / "runs.csv"
        path.write_text("\n".join([heads, *rows, ""]), encoding="utf-8")
        return path

    return write


def test_the_record_has_rows_and_the_summary_that_the_page_names(run, file):
    answer = run("compare", "--measured", file(*ROWS), "--format", "json")
    assert (answer.code, answer.err) == (0, "")
    record = json.loads(answer.out)
    assert [row["measured_s"] for row in record["rows"]] == [3.5, 3.9, 4.5]
    assert {"mape", "median", "bias", "worst", "spearman", "kendall", "top1", "top5", "regret"} <= set(
        record["summary"]
    )
    assert record["summary"]["rows"] == 3
    for row in record["rows"]:
        assert row["error"] == pytest.approx(row["predicted_s"] / row["measured_s"] - 1)


def test_rows_as_csv(run, file, read_csv):
    rows = read_csv(run("compare", "--measured", file(*ROWS), "--format", "csv").out)
    assert [(row["grid_x"], row["grid_z"]) for row in rows] == [("1", "8"), ("2", "4"), ("4", "4")]


def test_parquet_is_read_as_the_csv_is(run, refused, file, tmp_path):
    path = tmp_path / "steps.parquet"
    pd.read_csv(file(*ROWS)).to_parquet(path)
    answers = [run("compare", "--measured", each, "--format", "json") for each in (path, file(*ROWS))]
    assert answers[0] == answers[1]
    path.write_bytes(path.read_bytes()[:100])
    assert refused("compare", "--measured", path).startswith(f"{path} cannot be read as Parquet: ")


def test_the_table_ends_with_the_summary(run, file):
    text = run("compare", "--measured", file(*ROWS)).out
    assert "1x1x8x2" in text
    assert "3 rows: mean error" in text
    assert "Spearman" in text


def test_rows_left_out_are_told_on_standard_error(run, file):
    path = file(ROWS[0], ROWS[1].replace("perlmutter", "perlmuter"))
    answer = run("compare", "--measured", path, "--format", "json")
    assert (answer.code, json.loads(answer.out)["dropped"]) == (0, 1)
    assert f"{path}:3: no machine is called 'perlmuter' (did you mean perlmutter" in answer.err
    assert answer.err.splitlines()[-1] == "perfmodel: 1 of 2 rows left out"


def test_nothing_to_compare_is_no_answer(run, file, tmp_path):
    for path in (file(ROWS[0].replace("3.5", "")), tmp_path / "none.csv"):
        answer = run("compare", "--measured", path)
        assert (answer.code, answer.out) == (1, "")
    answer = run("compare", "--measured", file(*ROWS), "--machine", "perlmuter")
    assert (answer.code, answer.out) == (1, "")
    assert "no row to compare" in answer.err


def test_a_machine_given_is_the_one_predicted_for(run, file):
    here, there = (
        json.loads(run("compare", "--measured", file(*ROWS), "--format", "json", *more).out)
        for more in ((), ("--machine", "frontier"))
    )
    assert here["rows"][0]["predicted_s"] < there["rows"][0]["predicted_s"]


def test_validate_lists_every_check(run):
    answer = run("validate", "--format", "json")
    assert answer.code == 0
    record = json.loads(answer.out)
    assert [one["check"] for one in record["checks"]][:2] == ["batch time", "computation"]
    assert sum(one["rows"] for one in record["checks"]) == len(record["rows"]) == record["summary"]["rows"]
    assert all(row["source"] for row in record["rows"])


@pytest.mark.parametrize("bound", ["nan", "inf", "-inf", "-0.1", "1e999"])
def test_a_bound_that_is_no_share_is_refused(refused, run, bound):
    assert "bound" in refused("validate", "--bound", bound)
    assert run("validate", "--bound", bound).code == 2


def test_validate_ends_with_1_above_the_bound(run):
    answer = run("validate", "--check", "memory", "--bound", "0.0001")
    assert answer.code == 1
    assert "22b" in answer.out
    assert "is above the bound of 0.0 %" in answer.err.replace("0.0%", "0.0 %")


def test_validate_tells_errors_before_and_after_the_fit(run):
    record = json.loads(run("validate", "--format", "json").out)
    assert {fit["machine"]: fit["setting"] for fit in record["fits"]} == dict.fromkeys(
        ("perlmutter", "frontier"), "contention"
    )
    before, after = ({one["check"]: one for one in record[name]} for name in ("checks", "checks_after_fits"))
    fitted = [fit["check"] for fit in record["fits"]]
    assert all(after[check]["rows"] < before[check]["rows"] for check in fitted)
    text = run("validate").out
    assert all(f"{fit['fitted']:.3f} instead of" in text for fit in record["fits"])


RUN = {
    "status": "ok", "model": "gpt-tiny", "machine": "localhost-cpu", "x": 2, "y": 2, "z": 1, "data": 1,
    "batch_sequences": 8, "sequence_length": 64, "micro_batch": 2, "recompute": "none", "weight_cache": "none",
    "placement": "y,x,z,data", "overlap": "none", "attention": "flash", "dtype": "fp32", "optimizer": "adamw",
    "scale_layers": None, "scale_hidden": "", "step_time_s": 0.5, "memory_B": 500e6, "losses": [9.0, 8.9],
    "communication": {"all-reduce": {"x": {"calls": 2, "bytes": 1e6, "seconds": 1e-3}}},
}  # fmt: skip


@pytest.fixture
def runs(tmp_path):
    """A file of results, each as RUN but for what is given; text stands for itself."""

    def write(*changes):
        path = tmp_path / "results.jsonl"
        lines = [one if isinstance(one, str) else json.dumps(RUN | one) for one in changes]
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


def test_a_run_is_predicted_with_its_ranks_where_they_were(run, runs):
    def predicted(placement):
        wide = {"machine": "perlmutter", "model": "gpt-5b", "x": 4, "y": 1, "z": 4, "batch_sequences": 64}
        large = {"sequence_length": 2048, "micro_batch": 16, "dtype": "bf16"}  # little is gathered, much reduced
        path = runs(wide | large | {"placement": placement})
        answer = run("compare", "--measured", path, "--format", "json")
        assert answer.code == 0, answer.err
        return json.loads(answer.out)["rows"][0]["predicted_s"]

    assert predicted("y,x,z,data") < predicted("y,z,x,data"), "an all-reduce is cheaper inside a node"
