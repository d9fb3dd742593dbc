"""The functions of `import perfmodel` give what the commands print, and take what the commands take."""

import csv
import dataclasses
import html
import io
import json
import re
from enum import StrEnum
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

import perfmodel
from perfmodel.api import SearchOptions
from perfmodel.search import question as asked
from perfmodel_cli.options import question as typed

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
RUNS, STEPS = str(EXAMPLES / "runs.jsonl"), str(EXAMPLES / "measured.csv")
MINE = {"model": "gpt-5b", "machine": "perlmutter"}
FITTED = {"machine": "localhost-cpu", "fit": "gemm,fabric-latency"}

# Function, its keywords, and those that the command spells otherwise.
ANSWERS = {
    "recommend": (perfmodel.recommend, MINE | {"batch": 64, "gpus": 16, "top": 5}, {}),
    "recommend with options": (
        perfmodel.recommend,
        MINE | {"batch": 64, "nodes": 4, "placement": "any", "fidelity": "flat", "tokens": "300B", "seq": 1024}
        | {"bytes": {"gradients": 4}, "fix": {"z": 4}, "max": {"x": 2}, "micro_batch": 2, "recompute": "full"},
        {"bytes": "gradients=4", "fix": "z=4", "max": "x=2"},
    ),
    "recommend with uncertainty": (
        perfmodel.recommend,
        MINE | {"batch": 64, "gpus": 16, "uncertainty": True, "overlap": ["data", "all-gather"], "host_time": 30e-6}
        | {"contention": 0.2, "vocabulary_multiple": 0, "attention_kernel": "flash_1", "optimizer": "sgd"}
        | {"weight_cache": "all"},
        {"overlap": "data,all-gather", "host_time": "30 us"},
    ),
    "recommend without memory": (
        perfmodel.recommend, MINE | {"batch": 64, "gpus": 4, "ignore_memory": True, "overlap": []}, {"overlap": "none"},
    ),
    "explain": (perfmodel.explain, MINE | {"batch": 64, "grid": "1x2x8x1"}, {}),
    "explain what cannot run": (perfmodel.explain, MINE | {"batch": 64, "grid": "1x1x1x16"}, {}),
    "sweep": (perfmodel.sweep, MINE | {"gpus": [16, 6, 32], "batch": 64}, {"gpus": "16,6,32"}),
    "weak sweep": (perfmodel.sweep, MINE | {"gpus": [16, 32], "batch_per_gpu": 4}, {"gpus": "16,32"}),
    "compare": (perfmodel.compare, {"measured": RUNS}, {}),
    "compare on another machine": (perfmodel.compare, {"measured": STEPS, "machine": "frontier"}, {}),
    "calibrate": (perfmodel.calibrate, FITTED | {"measured": RUNS}, {}),
}  # fmt: skip


@pytest.fixture(scope="module")
def answers():
    """Every answer, calculated when it is first asked for."""
    found = {}

    def ask(name):
        function, given, _ = ANSWERS[name]
        return found[name] if name in found else found.setdefault(name, function(**given))

    return ask


@pytest.fixture
def command(run, tmp_path):
    """What the command of the same question prints in a form."""

    def ask(name, form):
        _, given, spelled = ANSWERS[name]
        words = [name.split()[-1] if name == "weak sweep" else name.split()[0]]
        options = given | spelled | ({"out": str(tmp_path / "mine.yaml")} if name == "calibrate" else {})
        for option, value in options.items():
            words += [f"--{option.replace('_', '-')}", *([] if value is True else [value])]
        answer = run(*words, "--format", form)
        assert answer.code == 0, answer.err
        return answer.out

    return ask


@pytest.mark.parametrize("name", ANSWERS)
def test_a_dict_is_the_json_of_the_command(name, answers, command):
    assert answers(name).to_dict() == json.loads(command(name, "json"))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_frame_has_the_rows_and_columns_of_the_csv(name, answers, command):
    frame = answers(name).to_frame()
    heads, *rows = csv.reader(io.StringIO(command(name, "csv")))
    assert list(frame.columns) == heads
    assert len(frame) == len(rows) == len(answers(name).rows)
    for column, head in enumerate(heads):
        for value, text in zip(frame[head], (row[column] for row in rows), strict=True):
            same = not text if pd.isna(value) else text in (str(value), str(int(value)) if text.isdigit() else "")
            assert same, (head, value, text)


@pytest.mark.parametrize("name", ANSWERS)
def test_text_and_html_are_the_table_of_the_command(name, answers, command, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    table = command(name, "table").rstrip("\n")
    assert str(answers(name)) == table
    page = answers(name)._repr_html_()
    assert html.unescape(re.sub("<[^>]+>", "", page)).rstrip("\n") == table
    assert page.startswith("<pre style=")
    console = Console(width=132, file=io.StringIO(), highlight=False)
    console.print(answers(name))
    assert console.file.getvalue().splitlines()[0] == table.splitlines()[0]


def test_an_answer_in_a_window_is_as_wide_as_the_window(answers, monkeypatch):
    monkeypatch.setenv("COLUMNS", "116")
    assert max(map(len, str(answers("recommend")).splitlines())) == 116


def test_options_have_the_names_and_defaults_of_the_command_line():
    library = {field.name: field.default for field in dataclasses.fields(asked.Question)}
    for field in dataclasses.fields(typed.Question):
        ours, theirs = library[field.name], field.default
        assert ours == (theirs.value if isinstance(theirs, StrEnum) else theirs), field.name
    names = SearchOptions.__optional_keys__ | {"model", "machine", "batch"}
    assert names == {field.name for field in dataclasses.fields(typed.Question)} | {"fix", "max"}
