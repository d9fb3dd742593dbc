"""`calibrate`, and `compare` on what the launcher wrote: what they print, write and refuse."""

import json
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "runs.jsonl"


@pytest.fixture
def calibrate(run, tmp_path):
    """Calibrate localhost-cpu to the example; give the answer and the file."""

    def ask(*more, measured=EXAMPLE, out="mine.yaml"):
        file = tmp_path / out
        return run("calibrate", "--measured", measured, "--machine", "localhost-cpu", "--out", file, *more), file

    return ask


def test_compare_takes_the_lines_of_the_launcher(run):
    answer = run("compare", "--measured", EXAMPLE, "--format", "json")
    assert (answer.code, answer.err) == (0, "")
    record = json.loads(answer.out)
    assert len(record["rows"]) == 10
    assert {(one["operation"], one["axis"]) for one in record["collectives"]} >= {
        ("all-gather", "z"),
        ("all-reduce", "x"),
    }
    assert record["summary"]["top3"] is not None
    text = run("compare", "--measured", EXAMPLE).out
    assert record["verdict"]["sentence"] in " ".join(text.split())


def test_a_profile_is_written_that_predicts_as_the_fit_does(calibrate, run):
    answer, file = calibrate("--format", "json")
    assert answer.code == 0
    record = json.loads(answer.out)
    assert {"before", "after", "held_out"} == set(record["errors"])
    assert record["left_alone"]
    assert run("machines", "check", file).code == 0
    beside = json.loads(run("compare", "--measured", EXAMPLE, "--machine", file, "--format", "json").out)
    assert beside["summary"]["mape"] == pytest.approx(record["errors"]["after"]["mape"], abs=1e-4)
    shown = run("machines", "show", file).out
    assert "FIT" in shown
    assert all(one["field"] in shown for one in record["parameters"])


def test_it_says_whether_steps_left_out_are_predicted_better(calibrate):
    answer, file = calibrate()
    assert answer.code == 0
    assert "The mean error " in answer.out
    assert "not fitted: contention: no measured step depends on it" in answer.out
    assert f"wrote {file}" in answer.err


def test_a_file_that_is_there_is_not_touched(calibrate):
    answer, file = calibrate(out="there.yaml")
    before = file.read_bytes()
    answer, _ = calibrate(out="there.yaml")
    assert (answer.code, answer.out, file.read_bytes()) == (1, "", before)
    assert "already exists" in answer.err


def test_a_name_that_is_no_profile_and_a_parameter_that_is_none_are_refused(calibrate):
    answer, file = calibrate(out="mine.txt")
    assert (answer.code, answer.out) == (2, "")
    answer, file = calibrate("--fit", "gem")
    assert (answer.code, file.exists()) == (2, False)
    assert "no parameter is called 'gem'" in answer.err


def test_bad_lines_are_told_and_counted(calibrate, tmp_path):
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    spoiled = tmp_path / "spoiled.jsonl"
    spoiled.write_text("\n".join([*lines, lines[0], lines[1][:99]]), encoding="utf-8")
    answer, _ = calibrate(measured=spoiled)
    assert answer.code == 0
    assert f"{spoiled}:11: the same in everything as line 1" in answer.err
    assert f"{spoiled}:12: no JSON object: cut off" in answer.err
    assert "2 of 12 rows left out" in answer.err


def test_a_file_without_a_good_row_has_no_answer_and_leaves_no_file(calibrate, tmp_path):
    spoiled = tmp_path / "spoiled.jsonl"
    spoiled.write_text('{"status": "timeout", "message": "after 600 s"}\n', encoding="utf-8")
    answer, file = calibrate(measured=spoiled)
    assert (answer.code, answer.out, file.exists()) == (1, "", False)
    assert "the run did not end well: timeout" in answer.err
