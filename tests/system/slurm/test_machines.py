"""Slurm itself takes the script of every shipped Slurm machine, where it has that machine's nodes and limits."""

import re

import pytest

import private_slurm
from job_requests import SLURM, load, question, text
from machine_declarations import declaration, size
from perfmodel.jobscripts.limits import clock
from perfmodel.parallel.layout import Layout


def jobs(machine):
    """Scripts at the limits of each way in: its fewest and its most nodes, for as long as it allows."""
    for way in machine.scheduler.qos or [None]:
        fewest = (way.min_nodes if way else None) or 1
        bins = [one.max_nodes for one in machine.scheduler.qos if one.kind == "bin"]
        most = (way.max_nodes if way else None) or max(bins, default=size(machine))
        for count in sorted({fewest, most}):
            gpus = count * machine.node_devices
            time = clock(way.node_minutes * 60 // count) if way and way.node_minutes else ""
            changes = {"qos": way.name, "time": time or way.max_time or "01:00:00"} if way else {}
            yield f"{way.name if way else 'any'}, {count} nodes", text(machine.name, gpus, **changes)


@pytest.mark.parametrize("name", SLURM)
def test_slurm_takes_the_jobs_of_a_machine(name, munge, tmp_path):
    machine = load(name)
    folder = tmp_path / "cluster"
    with private_slurm.cluster(folder, declaration(machine), munge, pretended=True) as slurm:
        for what, script in jobs(machine):
            answer = submitted(slurm, tmp_path, script)
            assert (answer.returncode, "to start at" in answer.stderr) == (0, True), f"{what}: {answer.stderr}"
        for what, script in broken(machine):
            answer = submitted(slurm, tmp_path, script)
            assert answer.returncode != 0, f"{what} was taken: {answer.stderr}"


def submitted(slurm, folder, script):
    """What sbatch says of a script that is only tried."""
    (folder / "job.sh").write_text(script)
    return slurm.run("sbatch", "--test-only", str(folder / "job.sh"))


def broken(machine):
    """The same job asking for what this machine has not: the declaration above really limits."""
    good = text(machine.name, 2 * machine.node_devices)
    wrong = {
        "too many nodes": (r"--nodes=2\n", f"--nodes={size(machine) + 1}\n"),
        "too many cores": (r"--cpus-per-task=\d+\n", "--cpus-per-task=4096\n"),
        "too many devices": (r"--(gpus-per-node=|gres=gpu:)\d\n", r"--\g<1>99\n"),
        "another kind of node": (r'--constraint=".*"\n', "--constraint=nothing\n"),
        "another partition": (r"--partition=.*\n", "--partition=nothing\n"),
        "another directive": (r"#SBATCH --nodes", "#SBATCH --nonsense=1\n#SBATCH --nodes"),
    }
    for what, (pattern, instead) in wrong.items():
        changed = re.sub(f"(?<=#SBATCH ){pattern}" if pattern.startswith("--") else pattern, instead, good)
        if changed != good:
            yield what, changed


def test_every_kind_of_job_is_taken(munge, tmp_path):
    machine = load("perlmutter")
    grids = [Layout(x=1, y=1, z=8, data=1), Layout(x=1, y=1, z=4, data=2), Layout(x=2, y=1, z=2, data=2)]
    assert question("perlmutter", 8).batch % 8 == 0
    with private_slurm.cluster(tmp_path / "cluster", declaration(machine), munge, pretended=True) as slurm:
        for mode in ("one", "array"):
            answer = submitted(slurm, tmp_path, text("perlmutter", 8, grids, mode=mode, compare=mode == "one"))
            assert "to start at" in answer.stderr, answer.stderr
