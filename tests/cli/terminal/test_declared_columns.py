"""A column is one entry of the declared tables: JSON, CSV, the terminal and the report have it with no other change."""

import re

import pytest

from perfmodel.search.results import result_columns, sweep_columns
from perfmodel.search.results.columns import Column, Place

ASKED = ("--model", "gpt-5b", "--machine", "perlmutter", "--batch", 64)
TABLES = ("ranking", "sweep", "report", "report of scaling")
COLUMN = Column(
    key="steps_per_h",
    heading="steps/h",
    unit="1/h",
    meaning="steps in an hour",
    value=lambda answer: 3600 / answer.step,
    places=tuple(Place(table=table, at=1000) for table in TABLES),
)


@pytest.fixture
def added(monkeypatch):
    """Declare the column."""
    monkeypatch.setattr(result_columns, "RESULT", (*result_columns.RESULT, COLUMN))


@pytest.mark.usefixtures("added")
def test_a_declared_column_is_in_every_form_of_a_recommendation(run, recommend, read_csv):
    results = recommend(top=3)["results"]
    assert all(row["steps_per_h"] == pytest.approx(3600 / row["step_time_s"]) for row in results)
    asked = ("recommend", *ASKED, "--gpus", 16, "--top", 3)
    rows = read_csv(run(*asked, "--format", "csv").out)
    assert [float(row["steps_per_h"]) for row in rows] == [row["steps_per_h"] for row in results]
    lines = [line.strip() for line in run(*asked).out.splitlines()]
    place = next(number for number, line in enumerate(lines) if line.endswith("steps/h"))
    shown = [line.split()[-1] for line in lines[place : lines.index("", place)] if re.match(r"\d+ ", line)]
    assert shown == [f"{row['steps_per_h']:.4g}" for row in results]


@pytest.mark.usefixtures("added")
def test_a_declared_column_is_in_every_form_of_a_sweep(run, read_csv):
    asked = ("sweep", *ASKED, "--gpus", "6,16")
    without, row = read_csv(run(*asked, "--format", "csv").out)
    assert without["steps_per_h"] == ""
    lines = [line.strip() for line in run(*asked).out.splitlines() if re.match(r" *(6|16) +\d", line)]
    assert [line.split()[-1] for line in lines] == ["-", f"{float(row['steps_per_h']):.4g}"]


@pytest.mark.usefixtures("added")
def test_a_declared_column_is_in_both_tables_of_the_report(run, tmp_path):
    page = tmp_path / "page.html"
    assert run("report", *ASKED, "--gpus", 16, "--out", page).code == 0
    assert page.read_text(encoding="utf-8").count(">steps/h</th>") == 2


def test_keys_are_declared_once_and_end_in_their_unit():
    declared = (*sweep_columns.POINT, *result_columns.RESULT)
    assert len({column.key for column in declared}) == len(declared)
    for column in declared:
        if column.unit in ("s", "B"):
            assert column.key.endswith(f"_{column.unit}"), column.key
        if column.unit.endswith("/s"):
            assert column.key.endswith("_s"), column.key
