"""Measured steps as pandas data frames and Parquet: the same rows, checks and sentences as in CSV."""

import datetime as dt
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import perfmodel
from perfmodel import frames

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
STEPS = EXAMPLES / "measured.csv"
ROW = {
    "machine": "perlmutter", "model": "gpt-5b", "z": 8, "data": 2, "batch_sequences": 64, "micro_batch": 4,
    "recompute": "full", "step_time_s": 3.5,
}  # fmt: skip


def steps(*rows):
    return pd.DataFrame([ROW | row for row in rows])


def test_a_frame_and_parquet_hold_what_the_csv_does(tmp_path):
    frame = pd.read_csv(STEPS)
    expected = perfmodel.compare(STEPS).to_dict()
    frame.to_parquet(tmp_path / "steps.parquet")
    frame.to_parquet(tmp_path / "steps.of.any.name")
    assert perfmodel.compare(frame).to_dict() == expected
    for name in ("steps.parquet", "steps.of.any.name"):
        assert perfmodel.compare(tmp_path / name).to_dict() == expected


def test_every_bad_row_is_told_with_its_line_and_the_good_ones_are_kept():
    frame = steps({}, {"z": 3.5}, {"recompute": "often"}, {"step_time_s": None}, {}, {"z": 16, "data": 1})
    found = perfmodel.compare(frame.assign(colour="red"))
    assert [row["line"] for row in found.rows] == [2, 7]
    assert found.problems == (
        "DataFrame:1: unknown column 'colour' (" + found.problems[0].split("(")[1],
        "DataFrame:3: z is '3.5', wanted a whole number of at least 1",
        "DataFrame:4: recompute is 'often', none of none, selective, full, operations",
        "DataFrame:5: neither step_time_s nor tokens_per_s_per_gpu is given",
        "DataFrame:6: the same in everything as line 2",
    )
    assert found.to_dict()["dropped"] == 4


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT, ""])
def test_a_missing_value_is_an_empty_cell(missing):
    (row,) = perfmodel.compare(steps({"placement": missing, "dropout": missing, "memory_B": missing})).rows
    assert row["measured_memory_B"] is None
    assert row["placement"] == "y,x,z,data"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (8, "8"), (8.0, "8.0"), (np.int64(8), "8"), (np.float32(0.5), "0.5"), (True, "yes"), (np.bool_(False), "no"),
        ("  full ", "full"), ("nan", "nan"), ("None", "None"), (dt.date(2026, 11, 30), "2026-11-30"),
        ([1, 2], "[1, 2]"),
    ],
)  # fmt: skip
def test_a_value_is_the_text_that_a_file_would_hold(value, text):
    heads, rows = frames.cells(pd.DataFrame({" a ": pd.Series([value], dtype=object)}))
    assert (heads, rows) == (["a"], [(2, [text])])


@pytest.mark.parametrize("kind", ["category", "string", "Int64", "float32"])
def test_types_of_columns_do_not_matter(kind):
    column = "recompute" if kind in ("category", "string") else "z"
    frame = steps({}, {"z": 16, "data": 1})
    expected = perfmodel.compare(frame).to_dict()
    assert perfmodel.compare(frame.astype({column: kind})).to_dict() == expected


def test_loaded_records_stand_for_the_columns():
    frame = steps({}).drop(columns=["machine", "model"])
    machine, model = perfmodel.load_machine("frontier"), perfmodel.load_model("gpt-5b")
    expected = perfmodel.compare(frame, machine="frontier", model="gpt-5b").to_dict()
    assert perfmodel.compare(frame, machine=machine, model=model).to_dict() == expected
    with pytest.raises(perfmodel.FileProblems, match="DataFrame:2: machine is missing"):
        perfmodel.compare(frame)


def test_a_frame_without_rows_is_refused():
    with pytest.raises(perfmodel.FileProblems, match="DataFrame: no row to compare"):
        perfmodel.compare(steps({}).head(0))
    with pytest.raises(perfmodel.FileProblems, match="column 'z' is given twice"):
        perfmodel.compare(pd.concat([steps({}), steps({})[["z"]]], axis=1))


def test_a_damaged_parquet_file_is_told_in_a_sentence(tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing that belongs here")
    with pytest.raises(perfmodel.FileProblems, match="cannot be read as Parquet: ") as told:
        perfmodel.compare(tmp_path / "bad.parquet")
    assert "\n" not in str(told.value)


def test_a_calibration_of_a_frame_is_dated_today(tmp_path):
    rows = [{"z": 16 // data, "data": data, "step_time_s": 3.5 + 0.1 * data} for data in (1, 2, 4)]
    fitted = perfmodel.calibrate(steps(*rows), "perlmutter", fit=["gemm"])
    text = fitted.write(tmp_path / "mine.yaml").read_text(encoding="utf-8")
    assert "a pandas DataFrame" in text
    assert dt.datetime.now(dt.UTC).date().isoformat()[:8] in text


@pytest.fixture
def without_pandas(monkeypatch):
    """As where it is not installed."""
    monkeypatch.setitem(sys.modules, "pandas", None)


@pytest.mark.usefixtures("without_pandas")
def test_without_pandas_csv_is_read_and_all_else_says_what_to_install(tmp_path):
    answer = perfmodel.compare(STEPS)
    with pytest.raises(perfmodel.PerfmodelError, match=r"a data frame needs pandas and pyarrow: pip install .*frames"):
        answer.to_frame()
    (tmp_path / "steps.parquet").write_bytes(b"PAR1")
    with pytest.raises(perfmodel.PerfmodelError, match=r"a Parquet file needs pandas and pyarrow: pip"):
        perfmodel.compare(tmp_path / "steps.parquet")
    with pytest.raises(perfmodel.UsageError, match="wanted a path or a pandas DataFrame"):
        perfmodel.compare({"machine": ["perlmutter"]})


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "steps.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(perfmodel.PerfmodelError, match="needs pandas and pyarrow"):
        perfmodel.compare(tmp_path / "steps.parquet")
