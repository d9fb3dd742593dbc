"""What the commands print and write is what was recorded: tools/golden_commands.py --write records it anew."""

import contextlib
import io
import sys
from unittest import mock

import pytest

import golden_commands
from golden_cases import CASES
from perfmodel_cli import app

pytestmark = pytest.mark.checkout


def run_here(arguments, folder):
    """The program in this process, where torch and numpy are loaded once for all cases."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["perfmodel", *arguments]),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            app.main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
    return golden_commands.Answer(code, out.getvalue(), err.getvalue())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_command_answers_as_it_was_recorded(case, tmp_path, monkeypatch):
    for name, value in golden_commands.PLAIN.items():
        monkeypatch.setenv(name, value)
    for name in golden_commands.UNWANTED:
        monkeypatch.delenv(name, raising=False)
    text = golden_commands.record(case, tmp_path / "folder", run_here)
    differences = golden_commands.differences(case.name, text, set())
    assert not differences, "\n".join(differences)


def test_every_golden_file_is_of_a_case_and_no_name_is_given_twice():
    assert golden_commands.strays() == []
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Take a text for the golden file of a case; the differences from another, and the old keys that were met."""
    monkeypatch.setattr(golden_commands, "GOLDEN", tmp_path)
    monkeypatch.setattr(golden_commands, "RENAMED_KEYS", {"old": "new"})

    def compare(golden, real):
        (tmp_path / "it.txt").write_text(golden, encoding="utf-8")
        used = set()
        return golden_commands.differences("it", real, used), used

    return compare


@pytest.mark.parametrize(
    ("golden", "real", "used"),
    [
        ("##### stdout, json\n[0.1]\n", "##### stdout, json\n[0.10000000000001]\n", set()),
        ("##### stdout, csv\na,old\nx,0.1\n", "##### stdout, csv\na,new\nx,0.10000000000001\n", {"old"}),
        ('##### stdout, json\n{"a": {"old": 1}}\n', '##### stdout, json\n{"a": {"new": 1}}\n', {"old"}),
    ],
)
def test_rounding_and_renamed_keys_are_no_difference(recorded, golden, real, used):
    assert recorded(golden, real) == ([], used)


@pytest.mark.parametrize(
    ("golden", "real"),
    [
        ("##### stdout, json\n[0.1]\n", "##### stdout, json\n[0.1000001]\n"),
        ("##### stdout, json\n[5000000000]\n", "##### stdout, json\n[5000000001]\n"),
        ("##### stdout, json\n[true]\n", "##### stdout, json\n[1]\n"),
        ('##### stdout, json\n{"a": 1}\n', '##### stdout, json\n{"a": 1, "b": 2}\n'),
        ("##### stdout, json\n[1, 2]\n", "##### stdout, json\n[1]\n"),
        ("##### stdout, csv\na,b\n1,2\n", "##### stdout, csv\nb,a\n2,1\n"),
        ("##### stdout\n0.1\n", "##### stdout\n0.10000000000001\n"),
        ("##### stdout\na\n", "##### stderr\na\n"),
        ("", "##### stdout\na\n"),
    ],
)
def test_anything_else_is_a_difference(recorded, golden, real):
    differences, _ = recorded(golden, real)
    assert differences[:2] == ["--- golden/it", "+++ now/it"]
