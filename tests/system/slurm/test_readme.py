"""README's second example, pasted: from the recommendation to a job that Slurm has taken."""

import itertools
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

import private_slurm
from examples import ROOT, examples
from job_requests import load
from machine_declarations import declaration

pytestmark = pytest.mark.checkout


def test_the_second_example_ends_with_a_job_that_is_submitted(munge, tmp_path):
    shown = examples(ROOT / "README.md")
    recommend, job = next(pair for pair in itertools.pairwise(shown) if pair[1].command.startswith("perfmodel job "))
    machine = re.search(r"--machine (\S+)", recommend.command)[1]
    assert re.findall(r"--(?:model|machine|gpus|batch) \S+", recommend.command) == re.findall(
        r"--(?:model|machine|gpus|batch) \S+", job.command
    )
    with private_slurm.cluster(tmp_path / "cluster", declaration(load(machine)), munge, pretended=True) as slurm:
        said = pasted(job.command, slurm, tmp_path)
        submission = said.strip().rpartition("submit it with ")[2]
        assert re.fullmatch(r"Submitted batch job \d+", pasted(submission, slurm, tmp_path).strip())
        queued = slurm.run("squeue", "--noheader", "--format=%j %D %q %a").stdout.split()
        assert queued[:2] == ["gpt-20b", "64"]


def pasted(command, slurm, folder):
    """What a command of the page prints, in a shell that finds this program and this Slurm."""
    path = f"{sysconfig.get_path('scripts')}:{slurm.environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=Path(folder), env={**slurm.environment, "PATH": path},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
