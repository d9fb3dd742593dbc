"""The program in this process: arguments in, exit code and both streams out."""

import contextlib
import csv
import io
import json
import math
import os
import sys
from dataclasses import dataclass
from unittest import mock

import pytest

from perfmodel_cli import app


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


def _run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    plain = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    with (
        mock.patch.object(sys, "argv", ["perfmodel", *map(str, arguments)]),
        mock.patch.dict(os.environ, plain, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            app.main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
    return Answer(code, out.getvalue(), err.getvalue())


def _options(given):
    """Keywords as options: micro_batch=4 is --micro-batch 4, True is a flag, None leaves the option out."""
    for name, value in given.items():
        if value is not None:
            yield f"--{name.replace('_', '-')}"
            if value is not True:
                yield value


@pytest.fixture(scope="session")
def run():
    """Run the program; nothing that it raises is hidden."""
    return _run


@pytest.fixture(scope="session")
def recommend():
    """Ask for a recommendation (gpt-5b on 16 devices of Perlmutter unless told otherwise) and read the JSON."""

    def ask(**given):
        asked = {"model": "gpt-5b", "machine": "perlmutter", "batch": 64, "format": "json"} | given
        if "nodes" not in asked:
            asked.setdefault("gpus", 16)
        answer = _run("recommend", *_options(asked))
        assert (answer.code, answer.err) == (0, "")
        return _read_json(answer.out)

    return ask


@pytest.fixture(scope="session")
def explain():
    """Ask for the explanation of a grid and read the JSON."""

    def ask(grid, **given):
        asked = {"model": "gpt-5b", "machine": "perlmutter", "batch": 64, "format": "json"} | given
        answer = _run("explain", "--grid", grid, *_options(asked))
        assert (answer.code, answer.err) == (0, "")
        return _read_json(answer.out)

    return ask


@pytest.fixture(scope="session")
def refused():
    """Run what has no answer; the one sentence that says so."""

    def ask(*arguments):
        answer = _run(*arguments)
        assert answer.code in (1, 2), answer
        return _sentence(answer)

    return ask


def _read_json(text):
    """Strict JSON: no NaN, no Infinity, no key given twice."""

    def unique(pairs):
        assert len({key for key, _ in pairs}) == len(pairs), "a key is given twice"
        return dict(pairs)

    def forbidden(word):
        pytest.fail(f"{word} is no JSON")

    return json.loads(text, parse_constant=forbidden, object_pairs_hook=unique)


def _sentence(answer):
    """What is on standard error, once it is certain to be one sentence and nothing else was printed."""
    assert answer.out == "", answer
    assert "Traceback" not in answer.err
    lines = answer.err.splitlines()
    if lines[0].startswith("Usage:"):  # Typer's own form: usage, a pointer to --help, a blank line, the sentence
        assert lines[1].startswith("Try "), answer.err
        lines = lines[3:]
    assert len(lines) == 1, answer.err
    assert lines[0].startswith(("perfmodel: ", "Error: ")), answer.err
    text = lines[0].split(": ", 1)[1]
    assert text.strip(), answer.err
    assert text.isprintable(), repr(text)
    return text


@pytest.fixture(scope="session")
def sentence():
    """The one sentence of an answer that is none."""
    return _sentence


@pytest.fixture(scope="session")
def read_csv():
    """Rows of CSV text."""
    return lambda text: list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def profile(tmp_path):
    """Write a profile: lines of YAML after format and name; give its path."""

    def write(body, name="mine"):
        path = tmp_path / f"{name}.yaml"
        path.write_text(f"format: 1\nname: {name}\n{body}", encoding="utf-8")
        return path

    return write


@pytest.fixture
def config(tmp_path):
    """Write a config.json of the given values in a folder of that name; give its path."""

    def write(values, name="some-model"):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        path = folder / "config.json"
        path.write_text(values if isinstance(values, str) else json.dumps(values), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def close():
    """Equal but for the rounding of sums."""
    return lambda one, other: math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-15)
