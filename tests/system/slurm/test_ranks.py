"""A job really runs on two pretended nodes: who its ranks are, what they are told, and how it goes on when requeued.

The program of each rank stands in for `perfmodel run`: it writes down who it is, and does each grid once.
"""

import json
import sys
import textwrap
import time

import pytest

import job_requests
from perfmodel.jobscripts import build, flags
from perfmodel.jobscripts.script import script
from perfmodel.machines import profiles
from perfmodel.parallel.layout import Layout

PROFILE = """
format: 1
name: private
title: Two nodes that are one host
base: dgx-a100
node:
  devices: 4 [SITE]
scheduler:
  directives: ["--gpus-per-node=4"]
  tasks_per_node: 4
  cores_per_task: 2
  visible_devices: {visible}
  environment:
    - {{name: OF_THE_PROFILE, value: "a 'b' $HOME", why: a value with quotes, source: SITE}}
"""
PROGRAM = """
import json, os, sys, time
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES",
         "OF_THE_PROFILE", "SLURM_PROCID", "SLURM_JOB_ID")
told = {name: os.environ.get(name) for name in names}
given = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
ranks = f"ranks-{given['grid']}.jsonl"
with open(ranks, "a") as file:
    file.write(json.dumps({"told": told, "arguments": sys.argv[1:]}) + "\\n")
done = open(given["out"]).read().split() if os.path.exists(given["out"]) else []
if given["grid"] in done:
    sys.exit(0)
if given["grid"] == "1x1x4x2" and os.path.exists("wait"):
    time.sleep(600)
if os.environ["RANK"] == "0":
    with open(given["out"], "a") as file:
        file.write(given["grid"] + "\\n")
if given["grid"] == "2x1x2x2":
    while len(open(ranks).readlines()) < 8:  # the first that fails ends the others
        time.sleep(0.05)
    sys.exit(1)
"""
GRIDS = [Layout(x=1, y=1, z=8, data=1), Layout(x=1, y=1, z=4, data=2), Layout(x=2, y=1, z=2, data=2)]


@pytest.fixture
def submit(two_nodes, tmp_path):
    """Submit a job for the grids above and hand back its id; it runs in the test's folder."""
    (tmp_path / "program.py").write_text(PROGRAM)

    def go(*options, visible="0,1,2,3", launcher="perfmodel", **changes):
        (tmp_path / "private.yaml").write_text(textwrap.dedent(PROFILE).format(visible=visible))
        machine = profiles.load(str(tmp_path / "private.yaml"))
        job = job_requests.Job.of(job_requests.models.load("gpt-tiny"), machine, batch=16)
        plan = flags.Plan(
            launcher=launcher, job=job, model="gpt-tiny", machine="private.yaml", program=(sys.executable, "program.py")
        )
        wish = build.Allocation(time="00:05:00", name="tiny", **changes)
        (tmp_path / "job.sh").write_text(script(build.requests(plan, GRIDS, wish)[0]))
        done = two_nodes.run("sbatch", "--parsable", *options, "job.sh", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return go


def ranks(folder, grid):
    """What the ranks of a grid wrote down, by rank."""
    found = [json.loads(line) for line in (folder / f"ranks-{grid}.jsonl").read_text().splitlines()]
    return sorted(found, key=lambda one: int(one["told"]["RANK"]))


def until(ready, slurm):
    end = time.monotonic() + 120
    while not ready():
        assert time.monotonic() < end, slurm.run("scontrol", "show", "job").stdout
        time.sleep(0.2)


def test_each_rank_is_told_who_it_is_and_a_failed_grid_leaves_the_others_their_turn(submit, two_nodes, tmp_path):
    job = submit("--wait-all-nodes=1")
    until(lambda: "JobState=FAILED" in two_nodes.run("scontrol", "show", "job", job).stdout, two_nodes)
    for grid in ("1x1x8x1", "1x1x4x2", "2x1x2x2"):
        told = [one["told"] for one in ranks(tmp_path, grid)]
        assert [int(one["RANK"]) for one in told] == [int(one["SLURM_PROCID"]) for one in told] == list(range(8))
        assert [int(one["LOCAL_RANK"]) for one in told] == [0, 1, 2, 3] * 2
        assert {(one["WORLD_SIZE"], one["LOCAL_WORLD_SIZE"]) for one in told} == {("8", "4")}
        assert {one["MASTER_ADDR"] for one in told} == {"n1"}
        assert {int(one["MASTER_PORT"]) for one in told} == {20000 + int(job) % 10000}
        assert {one["CUDA_VISIBLE_DEVICES"] for one in told} == {"0,1,2,3"}
        assert len({one["OF_THE_PROFILE"] for one in told}) == 1
        assert told[0]["OF_THE_PROFILE"].startswith("a 'b' /")
        assert f"--grid={grid}" in ranks(tmp_path, grid)[0]["arguments"]
    assert (tmp_path / "tiny.jsonl").read_text().split() == ["1x1x8x1", "1x1x4x2", "2x1x2x2"]


def test_a_requeued_job_does_not_repeat_what_is_done(submit, two_nodes, tmp_path):
    (tmp_path / "wait").touch()
    job = submit()
    until((tmp_path / "ranks-1x1x4x2.jsonl").exists, two_nodes)
    until(lambda: len(ranks(tmp_path, "1x1x4x2")) == 8, two_nodes)
    assert two_nodes.run("scontrol", "requeue", job).returncode == 0
    (tmp_path / "wait").unlink()
    until(lambda: "JobState=FAILED" in two_nodes.run("scontrol", "show", "job", job).stdout, two_nodes)
    assert (tmp_path / "tiny.jsonl").read_text().split() == ["1x1x8x1", "1x1x4x2", "2x1x2x2"]
    assert len(ranks(tmp_path, "1x1x8x1")) == len(ranks(tmp_path, "1x1x4x2")) == 16


def test_each_job_of_an_array_runs_its_own_grid(submit, two_nodes, tmp_path):
    job = submit(mode="array")
    files = [tmp_path / f"tiny-{number}.jsonl" for number in (1, 2, 3)]
    until(lambda: all(file.exists() for file in files), two_nodes)
    assert [file.read_text().strip() for file in files] == ["1x1x8x1", "1x1x4x2", "2x1x2x2"]
    assert (tmp_path / f"tiny-{job}-1.out").exists()


def test_a_rank_that_sees_one_device_is_told_which(submit, two_nodes, tmp_path):
    submit(visible="$SLURM_LOCALID")
    until((tmp_path / "ranks-2x1x2x2.jsonl").exists, two_nodes)
    until(lambda: len(ranks(tmp_path, "2x1x2x2")) == 8, two_nodes)
    assert [one["told"]["CUDA_VISIBLE_DEVICES"] for one in ranks(tmp_path, "1x1x8x1")] == ["0", "1", "2", "3"] * 2
