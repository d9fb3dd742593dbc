"""`perfmodel run` on real processes: what is recorded, what a killed, hanging or interrupted rank does to the rest."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

from perfmodel.launch.processes.experiment import Experiment
from perfmodel.launch.processes.results import loss_text
from perfmodel.launch.processes.worker import _losses
from perfmodel.launch.training.training import Outcome
from perfmodel.validation.measured_steps import COLUMNS

_PROGRAM = [sys.executable, "-m", "perfmodel_cli"]
_PATIENCE = 120
MODEL = """
format: 1
name: tiny
transformer: {layers: 1, hidden: 32, heads: 4, vocabulary: 256, sequence: 16, learned_positions: 16}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, tokens to train it on (by which a rank in training is known), and lists of grids."""
    path = tmp_path_factory.mktemp("run")
    (path / "tiny.yaml").write_text(MODEL)
    np.arange(4096, dtype="<u2").__mod__(256).tofile(path / "words.uint16")
    (path / "three.txt").write_text("2x1x1x1  # killed\n1x2x1x1\n\n1x1x2x1\n")
    (path / "two.txt").write_text("1x1x2x1\n1x1x1x2\n")
    return path


def command(*options, steps=2):
    question = ["--model", "tiny.yaml", "--tokens", "words.uint16", "--batch", "4", "--warmup", "1", "--steps", steps]
    return [*_PROGRAM, "run", *map(str, question), *map(str, options)]


def ended(*options, folder, **given):
    return subprocess.run(
        command(*options, **given), cwd=folder, capture_output=True, text=True, timeout=_PATIENCE, check=False
    )


def started(*options, folder, variables=None, **given):
    environment = {**os.environ, **(variables or {})}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command(*options, **given), cwd=folder, env=environment, text=True, **pipes)


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def in_training(process, rank, but=frozenset()):
    """The process of a rank that a runner has started, once it reads tokens; none of those in `but`."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        for child in set(children(process.pid)) - but:
            if f"request-{rank}.json" in text(child, "cmdline") and "words.uint16" in text(child, "maps"):
                return child
        time.sleep(0.01)
    pytest.fail(f"rank {rank} has not begun to train")


def children(pid):
    return [int(child) for child in text(pid, f"task/{pid}/children").split()]


def text(pid, name):
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


def gone(pids):
    """Whether these processes end within a few seconds."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not any(text(pid, "cmdline") for pid in pids):
            return True
        time.sleep(0.05)
    return False


@pytest.fixture(scope="module")
def kept(folder):
    """A file with the result of one grid."""
    path = folder / "kept.jsonl"
    done = ended("--grid", "1x1x1x2", "--machine", "localhost-cpu", "--out", path, "--format", "json", folder=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"results": records(path)}
    return path


def test_a_result_says_what_ran_and_what_was_measured(kept):
    (record,) = records(kept)
    assert (record["status"], record["gpus"], record["hosts"]) == ("ok", 2, 1)
    assert (record["backend"], record["dtype"]) == ("gloo", "fp32")
    assert len(record["step_times_s"]) == 2
    assert min(record["step_times_s"]) == record["step_time_min_s"] <= record["step_time_s"]
    assert record["tokens_per_s"] == pytest.approx(4 * 16 / record["step_time_s"])
    peak = 50e9  # of a CPU process in the profile of localhost-cpu
    assert record["model_flops_utilization"] == pytest.approx(record["model_flop_per_s"] / (2 * peak))
    assert record["memory_B"] > 2**20
    assert len(record["losses"]) == len(record["gradient_norms"]) == 3
    assert record["losses"] == pytest.approx([np.log(256)] * 3, rel=0.05)
    assert {"torch_version", "python_version", "perfmodel_version", "hardware", "started"} <= record.keys()


def test_all_that_is_sent_by_data_parallelism_is_the_gradient_and_two_numbers(kept):
    (record,) = records(kept)
    parameters = (256 + 16) * 32 + 12 * 32**2 + 13 * 32 + 2 * 32  # tables, blocks, final norm
    sent = record["communication"]
    assert list(sent) == ["all-reduce"]
    assert list(sent["all-reduce"]) == ["data"]
    assert sent["all-reduce"]["data"]["bytes"] == pytest.approx(4 * parameters, abs=64)
    assert sent["all-reduce"]["data"]["seconds"] > 0


def test_results_carry_the_names_that_compare_reads(kept):
    needed = {"model", "machine", "x", "y", "z", "data", "gpus", "batch_sequences", "sequence_length", "micro_batch"}
    needed |= {"recompute", "weight_cache", "overlap", "attention", "dtype", "optimizer", "step_time_s", "memory_B"}
    assert needed <= COLUMNS.keys() & records(kept)[0].keys()


@pytest.mark.checkout
def test_every_key_of_a_result_is_documented(kept):
    page = (Path(__file__).parents[3] / "docs" / "running.md").read_text()
    assert [key for key in records(kept)[0] if f"`{key}`" not in page] == []


def test_resume_passes_over_what_is_done_and_names_a_line_that_was_cut_off(kept, folder):
    cut = folder / "cut.jsonl"
    cut.write_text(kept.read_text() + '{"status": "o')
    again = ("--grid", "1x1x1x2", "--machine", "localhost-cpu", "--out", cut, "--resume", "--format", "csv")
    done = ended(*again, folder=folder)
    assert done.returncode == 0, done.stderr
    assert "cut.jsonl:2: a line that was cut off" in done.stderr
    assert "holds 1 of 1 results already" in done.stderr
    assert "(1 of 1)" not in done.stderr
    assert len(done.stdout.splitlines()) == 2
    assert cut.read_text().count("\n") == 1


def test_resume_runs_a_question_that_differs_in_one_setting(kept):
    (record,) = records(kept)
    asked = {name: record[name] for name in (one.name for one in fields(Experiment))}
    assert Experiment(**asked).answered_by(record)
    assert Experiment(**{**asked, "dtype": "auto"}).answered_by(record)
    assert not Experiment(**{**asked, "dtype": "auto"}).answered_by({**record, "dtype": "fp64"})
    assert not Experiment(**{**asked, "seed": 1}).answered_by(record)
    assert not Experiment(**{**asked, "micro_batch": 2}).answered_by(record)


def test_a_killed_rank_ends_its_own_grid_only(folder):
    out = folder / "killed.jsonl"
    process = started("--grids", "three.txt", "--out", out, "--format", "csv", folder=folder, steps=100)
    killed = in_training(process, 1)
    os.kill(killed, signal.SIGKILL)
    answer, said = process.communicate(timeout=_PATIENCE)
    assert process.returncode == 0, said
    first, second, third = records(out)
    assert (first["x"], first["status"]) == (2, "crashed")
    assert first["message"].startswith("rank 1 was ended by SIGKILL")
    assert (second["y"], second["status"]) == (2, "ok")
    assert (third["z"], third["status"]) == (2, "ok")
    assert answer.count("\n") == 4


def test_a_grid_that_takes_longer_than_it_may_is_ended_and_the_next_one_runs(folder):
    out = folder / "slow.jsonl"
    done = ended("--grids", "two.txt", "--timeout", 3, "--out", out, folder=folder, steps=10**6)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("perfmodel: no grid has run to its end; the first: timeout: after 3")
    assert [(one["status"], one["message"]) for one in records(out)] == [
        ("timeout", "after 3 s 2 of 2 ranks had not ended")
    ] * 2


def test_ctrl_c_ends_the_ranks_and_keeps_what_is_done(folder):
    out = folder / "interrupted.jsonl"
    process = started("--grids", "two.txt", "--out", out, "--format", "json", folder=folder, steps=100)
    in_training(process, 0)
    ranks = set(children(process.pid))
    in_training(process, 1, but=ranks)
    ranks = children(process.pid)
    process.send_signal(signal.SIGINT)
    answer, said = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGINT
    assert "ended by SIGINT after 1 of 2 runs; the same command with --resume continues" in said
    assert json.loads(answer)["results"] == records(out)
    assert [record["status"] for record in records(out)] == ["ok"]
    assert gone(ranks)


def test_ranks_do_not_outlive_a_killed_program(folder):
    process = started("--grid", "1x1x1x2", folder=folder, steps=10**6)
    in_training(process, 1)
    ranks = children(process.pid)
    process.kill()
    process.communicate()
    assert len(ranks) == 2
    assert gone(ranks)


def test_torchrun_starts_the_ranks(folder):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*torchrun, "-m", *command("--grid", "1x1x2x1", "--out", "torchrun.jsonl")[2:]],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (record,) = records(folder / "torchrun.jsonl")
    assert (record["status"], record["gpus"]) == ("ok", 2)
    assert done.stdout.count("1x1x2x1") == 1  # rank 0 alone speaks


def test_a_rank_killed_under_srun_does_not_end_the_launch(folder):
    step = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_STEP_NODELIST": "localhost"}
    step |= {"SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_ID": "0"}
    tasks = [
        started(
            *("--grids", "two.txt", "--out", "srun.jsonl"),
            folder=folder,
            variables={**step, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)},
            steps=100,
        )
        for rank in range(2)
    ]
    os.kill(in_training(tasks[1], 1), signal.SIGKILL)
    for task in tasks:
        _, said = task.communicate(timeout=_PATIENCE)
        assert task.returncode == 0, said
    first, second = records(folder / "srun.jsonl")
    assert (first["z"], first["status"]) == (2, "crashed")
    assert first["message"].startswith("rank 1 was ended by SIGKILL")
    assert (second["data"], second["status"]) == (2, "ok")


def test_a_grid_that_runs_out_of_memory_is_recorded_as_such(folder):
    room = 6 * 2**30  # bytes of address space: torch fits, 4 bytes for each of five billion parameters do not
    options = ("--model", "gpt-5b", "--grid", "1x1x1x1", "--out", "full.jsonl")
    done = subprocess.run(
        [*_PROGRAM, "run", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room)),
    )
    assert done.returncode == 1
    (record,) = records(folder / "full.jsonl")
    assert record["status"] == "out of memory"
    assert record["message"].startswith("rank 0: RuntimeError: ")


def test_a_run_goes_on_from_the_checkpoint_of_another_grid(folder):
    through = folder / "through.jsonl"
    whole = ended("--grid", "2x1x1x1", "--out", through, folder=folder, steps=5)
    assert whole.returncode == 0, whole.stderr
    first = ended("--grid", "1x2x1x1", "--out", through, "--save", "half", folder=folder, steps=2)
    assert first.returncode == 0, first.stderr
    second = ended("--grid", "1x1x2x1", "--out", through, "--load", "half", folder=folder, steps=2)
    assert second.returncode == 0, second.stderr
    straight, before, after = (record["losses"] for record in records(through))
    assert before + after == pytest.approx(straight, rel=1e-5)


def test_where_no_checkpoint_can_be_saved_nothing_is_trained(folder):
    (folder / "held").mkdir()
    (folder / "held" / ".metadata").touch()
    start = time.monotonic()
    for target, sentence in (
        ("held", "held holds a checkpoint already"),
        ("tiny.yaml", "no checkpoint can be written"),
    ):
        done = ended("--grid", "1x1x1x1", "--save", target, folder=folder, steps=100_000)
        assert done.returncode == 1
        assert sentence in done.stderr
    assert time.monotonic() - start < _PATIENCE


def test_ranks_meet_in_a_temporary_folder_of_any_name(folder, monkeypatch):
    named = folder / "ränke 100% #1?"
    named.mkdir()
    monkeypatch.setenv("TMPDIR", str(named))
    done = ended("--grid", "1x1x1x2", "--timeout", "60", folder=folder)
    assert done.returncode == 0, done.stderr
    assert not list(named.glob("perfmodel-run-*"))


def test_a_result_that_cannot_be_kept_is_still_shown(folder):
    out = folder / "replaced.jsonl"
    process = started("--grid", "1x1x1x1", "--out", out, "--format", "csv", folder=folder)
    in_training(process, 0)
    out.unlink()
    out.mkdir()
    shown, said = process.communicate(timeout=_PATIENCE)
    assert process.returncode == 1
    assert "replaced.jsonl cannot be written: Is a directory" in said
    assert shown.splitlines()[1].startswith("ok,")


def test_ranks_that_cannot_be_started_are_a_result_too(folder):
    done = subprocess.run(
        command("--grid", "1x1x1x1", "--format", "csv"),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )
    assert done.returncode == 1
    assert "crashed: the ranks could not be started: No usable temporary directory" in done.stderr.replace(
        "[Errno 2] ", ""
    )
    assert done.stdout.splitlines()[1].startswith("crashed,")


def test_a_training_that_diverges_is_recorded():
    nan, one = torch.tensor(float("nan")), torch.tensor(1.0)
    found = _losses([Outcome(one, one), Outcome(nan, nan)])
    assert found == {"losses": [1.0, None], "gradient_norms": [1.0, None]}
    assert [loss_text(loss) for loss in found["losses"]] == ["1.0000", "not finite"]
