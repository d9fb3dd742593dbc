"""A job really runs `perfmodel run` on two pretended nodes: eight ranks under srun on gloo, and compare at the end."""

import json
import re
import sys
import textwrap
import time

import pytest

PROFILE = """
format: 1
name: private
title: Two nodes that are one host
base: localhost-cpu
sources:
  HERE: {kind: assumed, note: "this host, pretending to be two"}
node:
  devices: 4 [HERE]
fabric:
  domain: ~
network:
  topology: fat-tree
  nics: 1 [HERE]
  nic_bandwidth: 1 GB/s [HERE]
  injection: 1 GB/s [HERE]
  efficiency: 0.5 [HERE]
  latency: 50 us [HERE]
scheduler:
  kind: slurm
  source: HERE
  account: optional
  launch: srun
  tasks_per_node: 4
  cores_per_task: 1
  master_address: first-host
  environment:
    - {name: OMP_NUM_THREADS, value: "1", why: eight ranks share this host, source: HERE}
    - {name: MASTER_ADDR, value: 127.0.0.1, why: both nodes are this host, source: HERE}
"""


def perfmodel(*words):
    return (sys.executable, "-m", "perfmodel_cli", *map(str, words))


@pytest.fixture
def job(two_nodes, tmp_path):
    """Write and submit a job of the three fastest grids; hand back its id."""
    (tmp_path / "private.yaml").write_text(textwrap.dedent(PROFILE))

    def submit(*more, gpus=8):
        asked = ("--model", "gpt-tiny", "--machine", "private.yaml", "--gpus", gpus, "--batch", 16, "--seq", 32)
        written = two_nodes.run(
            *perfmodel("job", *asked, "--top", 3, "--time", "00:10:00", "--steps", 2, "--warmup", 1, *more),
            *("--program", f"{sys.executable} -m perfmodel_cli", "-o", "job.sh", "--submit", "--name", "tiny"),
            cwd=tmp_path,
        )
        assert written.returncode == 0, written.stderr
        return written.stdout.split()[-1]

    return submit


def state(slurm, job):
    shown = slurm.run("scontrol", "show", "job", job).stdout.split()
    return dict(word.partition("=")[::2] for word in shown)["JobState"]


def results(folder):
    path = folder / "tiny.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def until(ready, folder, patience=400):
    end = time.monotonic() + patience
    while not ready():
        told = "\n".join(path.read_text() for path in folder.glob("tiny-*.out"))
        assert time.monotonic() < end, told
        time.sleep(0.5)


def grids(rows):
    return [tuple(row[axis] for axis in ("x", "y", "z", "data")) for row in rows]


def test_the_three_fastest_grids_run_under_srun_and_come_back_through_compare(job, two_nodes, tmp_path):
    number = job("--compare")
    until(lambda: state(two_nodes, number) in ("COMPLETED", "FAILED"), tmp_path)
    rows = results(tmp_path)
    assert [row["status"] for row in rows] == ["ok"] * 3
    assert len(set(grids(rows))) == 3
    assert {row["x"] * row["y"] * row["z"] * row["data"] for row in rows} == {8}
    assert state(two_nodes, number) == "COMPLETED"
    told = (tmp_path / f"tiny-{number}.out").read_text()
    assert re.search(r"predicted", told), told
    compared = two_nodes.run(
        *perfmodel("compare", "--measured", "tiny.jsonl", "--machine", "private.yaml", "--format", "json"), cwd=tmp_path
    )
    assert compared.returncode == 0, compared.stderr
    assert [row["measured_s"] for row in json.loads(compared.stdout)["rows"]] == [row["step_time_s"] for row in rows]


def test_a_cancelled_and_requeued_job_goes_on_without_repeating_what_is_done(job, two_nodes, tmp_path):
    number = job("--steps", 6, gpus=4)
    until(lambda: len(results(tmp_path)) >= 1, tmp_path)
    before = results(tmp_path)
    assert two_nodes.run("scontrol", "requeue", number).returncode == 0
    until(lambda: state(two_nodes, number) in ("PENDING", "RUNNING", "COMPLETED"), tmp_path)
    until(lambda: state(two_nodes, number) in ("COMPLETED", "FAILED"), tmp_path)
    rows = [row for row in results(tmp_path) if row["status"] == "ok"]
    assert rows[: len(before)] == before
    assert len(grids(rows)) == len(set(grids(rows))) == 3
