"""Measuring a machine: what becomes of good results, and of a measurement that is ended in its midst."""

import functools
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perfmodel.launch.measuring.points import OPERATIONS
from perfmodel.machines import profiles

_PATIENCE = 150
_COMMAND = (sys.executable, "-m", "perfmodel_cli")


def started(folder, *, ranks, budget, rounds=2, limit=None):
    """The command at work, with profile and results in `folder`; `limit`: the largest file that it may write."""
    limited = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit)) if limit else None
    words = ("--nproc", str(ranks), "--budget", budget, "--rounds", str(rounds), "--largest", "1 MiB")
    return subprocess.Popen(
        [*_COMMAND, "machines", "measure", "--out", "here.yaml", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=limited,  # noqa: PLW1509 - no threads here
        start_new_session=True,
    )


def ended(process):
    out, talk = process.communicate(timeout=_PATIENCE)
    return process.returncode, out, talk


def asked(folder, *words):
    done = subprocess.run(
        [*_COMMAND, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=_PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def results(folder):
    """The lines of results that are whole, and the text of the file."""
    text = (folder / "here.measured.jsonl").read_text(encoding="utf-8")
    lines = [whole(line) for line in text.splitlines(keepends=True) if line.endswith("}\n")]
    return [line for line in lines if line and line["what"] != "start"], text


def whole(line):
    """The object that a line is; None where it was cut off, which may be behind a bracket."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def when_there_are(folder, count, process):
    """Wait until so many lines have been written."""
    path, end = folder / "here.measured.jsonl", time.monotonic() + _PATIENCE
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def ranks_of(process):
    """The process ids of the ranks that a command has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
    return [int(child) for child in children]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Two ranks measured, interrupted once on the way: the folder, and how the first attempt ended."""
    folder = tmp_path_factory.mktemp("measured")
    process = started(folder, ranks=2, budget="30 s", rounds=1)
    when_there_are(folder, 30, process)
    process.send_signal(signal.SIGINT)
    first = (*ended(process), *results(folder))
    return folder, first, ended(started(folder, ranks=2, budget="30 s", rounds=1))


def test_an_interrupted_measurement_keeps_its_lines_and_the_next_call_goes_on(measured):
    folder, (code, _, talk, before, text), (again, out, _) = measured
    after, whole = results(folder)
    assert (code, again) == (128 + signal.SIGINT, 0)
    assert "ended by SIGINT; the same command continues" in talk
    assert whole.startswith(text)
    keys = [json.dumps({name: value for name, value in line.items() if name not in ("values", "at")}) for line in after]
    assert len(before) >= 29
    assert len(set(keys)) == len(keys) > len(before)
    assert "all-reduce" in out


def test_every_operation_is_measured_and_every_number_says_when_and_with_what(measured):
    machine = profiles.load(str(measured[0] / "here.yaml"))
    assert {(table.operation, table.ranks, table.inner) for table in machine.collectives} == {
        (operation, 2, 1) for operation in OPERATIONS
    }
    assert [entry.size for entry in machine.bandwidth.inside] == [2]
    source = machine.sources[machine.collectives[0].source]
    assert (source.kind, source.date) == ("measured", time.strftime("%Y-%m-%d", time.gmtime()))
    assert all(word in source.note for word in ("perfmodel", "torch", "gloo"))
    assert machine.device.host_time.source.kind == machine.device.gemm.fp32.source.kind == "measured"
    assert 0 < machine.device.contention.value <= 1
    assert any("all-reduce of 2 ranks" in note for note in machine.notes)


def test_a_measured_machine_is_asked_at_full_fidelity_and_answers_from_its_tables(measured):
    of = ("--machine", "here.yaml", "--model", "gpt-tiny", "--batch", "4", "--format", "json")
    best = json.loads(asked(measured[0], "recommend", "--gpus", "2", *of))
    assert best["fidelity"] == "full"
    assert "[MEASURED]" in best["compute_source"]
    calls = json.loads(asked(measured[0], "explain", "--grid", "2x1x1x1", "--micro-batch", "1", *of))["collectives"]
    assert any(call["time_source"].startswith("measured table") for call in calls)


def test_other_ranks_are_not_mixed_into_a_file(measured):
    code, _, talk = ended(started(measured[0], ranks=1, budget="5 s"))
    assert code == 1
    assert "holds measurements with ranks 2, and this is 1" in talk


def test_four_ranks_are_measured_in_every_shape_of_group_and_a_killed_rank_costs_nothing_else(tmp_path):
    process = started(tmp_path, ranks=4, budget="60 s", rounds=1)
    when_there_are(tmp_path, 20, process)
    os.kill(ranks_of(process)[2], signal.SIGKILL)
    code, _, talk = ended(process)
    assert code == 1
    assert "was ended by SIGKILL" in talk
    assert "the same command continues" in talk
    before, text = results(tmp_path)
    assert len(before) >= 19
    code, _, talk = ended(started(tmp_path, ranks=4, budget="60 s", rounds=1))
    assert code == 0, talk
    assert results(tmp_path)[1].startswith(text)
    machine = profiles.load(str(tmp_path / "here.yaml"))
    assert {(table.inner, table.ranks) for table in machine.collectives} == {(1, 2), (1, 4), (2, 2)}
    assert len(machine.collectives) == 3 * len(OPERATIONS)


def test_a_full_disk_ends_a_measurement_with_a_sentence_and_what_is_whole_stays(tmp_path):
    code, _, talk = ended(started(tmp_path, ranks=2, budget="60 s", limit=9000))
    assert code == 1
    assert "here.measured.jsonl cannot be written: File too large" in talk
    before, text = results(tmp_path)
    assert len(before) > 5
    _, _, talk = ended(started(tmp_path, ranks=2, budget="1 ms"))
    cut = not text.endswith("\n")  # the disk may be full at the end of a line
    assert ("a line that was cut off as it was written is skipped" in talk) == cut
    assert results(tmp_path)[0] == before


def test_a_profile_that_was_not_measured_stays(tmp_path):
    (tmp_path / "here.yaml").write_text("mine", encoding="utf-8")
    code, _, talk = ended(started(tmp_path, ranks=2, budget="5 s"))
    assert code == 1
    assert "was not measured" in talk
    assert (tmp_path / "here.yaml").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--out", "here.txt"), "does not end in .yaml"),
        (("--out", "a.yaml", "--budget", "0 s"), "wanted more than 0 s"),
        (("--out", "a.yaml", "--largest", "2 GiB"), "wanted at most 1 GiB"),
        (("--out", "a.yaml", "--largest", "1 s"), "--largest"),
        (("--out", "a.yaml", "--largest", "1 KiB"), "at least 4 KiB since a table needs two sizes"),
        (("--out", "a.yaml", "--dtypes", "fp32,fp99"), "products in 'fp99' are not measured"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(tmp_path, words, said):
    done = subprocess.run(
        [*_COMMAND, "machines", "measure", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert not list(tmp_path.iterdir())
