"""Jobs for tests: any machine, any launcher, without a search."""

from dataclasses import replace
from functools import cache

from perfmodel import models
from perfmodel.jobscripts import build, flags
from perfmodel.jobscripts.frameworks import FRAMEWORKS, device_problem, problem
from perfmodel.jobscripts.script import script
from perfmodel.machines import profiles
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.settings import Settings

DEVICES = 64  # of a job whose flags are looked at
load = cache(profiles.load)
MACHINES = profiles.names()
SLURM = [name for name in MACHINES if load(name).scheduler.kind == "slurm"]


@cache
def question(machine, gpus, model="gpt-20b"):
    """A job with a sequence a device and micro-step."""
    return Job.of(models.load(model), load(machine), batch=4 * gpus)


def plan(machine, gpus, launcher="perfmodel", /, **changes):
    """What is run; what a launcher cannot do without is given."""
    given = {
        "model": "gpt-20b",
        "machine": machine,
        "arguments": ("--more", "of it") if FRAMEWORKS[launcher].needs else (),
        "program": ("python", "train.py") if launcher == "deepspeed" else (),
    }
    return flags.Plan(launcher=launcher, job=question(machine, gpus), **{**given, **changes})


def asked(model="gpt-20b", machine="perlmutter", gpus=DEVICES, batch=None, sequence=None, **settings):
    """A job with settings of its own."""
    return Job.of(
        models.load(model), load(machine), batch=batch or 8 * gpus, sequence=sequence, settings=Settings(**settings)
    )


def told(launcher, layout, job=None, **changes):
    """Flags of a run as a mapping; a flag without a value is True."""
    planned = replace(plan("perlmutter", DEVICES, launcher, **changes), job=job or asked())
    words = [word.partition("=") for word in flags.run(planned, layout, "out.jsonl").command if word.startswith("--")]
    return {name: value or True for name, _, value in words}


def allocation(machine, **changes):
    """Half an hour, or weeks on what no queue limits; paid for where somebody has to pay."""
    time = "999:00:00" if load(machine).scheduler.kind == "none" else "00:30:00"
    account = "m1234" if load(machine).scheduler.account == "required" else ""
    return build.Allocation(**{"time": time, "account": account, **changes})


def request(machine, gpus, layouts=None, launcher="perfmodel", *, plan_changes=None, **changes):
    """The record of a job; the grid is all along Z unless given."""
    grids = layouts or [Layout(x=1, y=1, z=gpus, data=1)]
    return build.requests(plan(machine, gpus, launcher, **(plan_changes or {})), grids, allocation(machine, **changes))[
        0
    ]


def text(*arguments, **changes):
    """The script of a job."""
    return script(request(*arguments, **changes))


def nodes(count, machine):
    """So many nodes, in devices."""
    return count * load(machine).node_devices


def pairs():
    """Every shipped machine with every launcher that can use its devices, in the format that they are fast in."""
    for machine in MACHINES:
        for launcher, framework in FRAMEWORKS.items():
            half = launcher == "torchtitan" and Job.of(models.load("gpt-20b"), load(machine), batch=1).dtype == "fp16"
            if not half and not device_problem(framework, load(machine)):
                yield machine, launcher


def suiting(machine, launcher):
    """Devices of a small job, and a grid that the launcher can express."""
    gpus = nodes(1 if load(machine).network.topology == "none" else 2, machine)
    half = gpus // 2
    tried = (
        Layout(x=1, y=1, z=half, data=2),
        Layout(x=1, y=1, z=2, data=half),
        Layout(x=1, y=1, z=gpus, data=1),
        Layout(x=gpus, y=1, z=1, data=1),
    )
    job, framework = question(machine, gpus), FRAMEWORKS[launcher]
    return gpus, next(grid for grid in tried if int(grid.gpus) == gpus and not problem(framework, job, grid))
