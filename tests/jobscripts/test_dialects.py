"""A scheduler is declared in two places, and found from there by all that deals with schedulers."""

import sys

import pytest

from job_requests import text
from perfmodel import jobscripts
from perfmodel.errors import FileProblems
from perfmodel.jobscripts import flux, lsf, none, pbs, slurm
from perfmodel.jobscripts.dialects import dialect_of
from perfmodel.launch.processes.environment import Place, place, scheduler
from perfmodel.machines import profiles
from perfmodel.machines.scheduler_kinds import SCHEDULERS, RankVariables, SchedulerKind

# The two places for a scheduler called desk: an entry of the table, and a module of its name.
DESK = SchedulerKind(
    title="the Desk",
    job="DESK_JOB",
    queue="DESK_QUEUE",
    shebang="#!/bin/bash -e",
    ranks=RankVariables(
        launcher="deskrun",
        rank="DESK_RANK",
        world="DESK_RANKS",
        local_rank=("DESK_SEAT",),
        hosts="DESK_HOSTS",
    ),
)
DESKS_MODULE = """
from perfmodel.jobscripts.dialects import Dialect
from perfmodel.jobscripts.request import Line


def directives(request):
    yield Line(f"#DESK hosts={request.nodes}", "so many hosts")


def launch(request):
    return ("deskrun", f"--ranks={request.gpus}")


DIALECT = Dialect(submit=("desksub",), directives=directives, launch=launch, first_host="desk first")
"""
PROFILE = """
base: dgx-a100
name: ours
scheduler:
  kind: desk
  master_address: first-host
"""


@pytest.fixture
def ours(tmp_path):
    """A profile whose scheduler is called desk."""
    path = tmp_path / "ours.yaml"
    path.write_text(PROFILE, encoding="utf-8")
    return str(path)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """The scheduler, added to the table and to the folder of modules until the test ends."""
    name = f"{jobscripts.__name__}.desk"
    (tmp_path / "desk.py").write_text(DESKS_MODULE, encoding="utf-8")
    monkeypatch.setitem(SCHEDULERS, "desk", DESK)
    monkeypatch.setattr(jobscripts, "__path__", [*jobscripts.__path__, str(tmp_path)])
    yield
    sys.modules.pop(name, None)
    vars(jobscripts).pop("desk", None)


def test_every_scheduler_has_the_module_of_its_name():
    modules = {"slurm": slurm, "pbs": pbs, "flux": flux, "lsf": lsf, "none": none}
    assert {kind: dialect_of(kind) for kind in SCHEDULERS} == {kind: one.DIALECT for kind, one in modules.items()}


def test_a_scheduler_that_is_not_in_the_table_is_refused_with_those_that_are(ours):
    with pytest.raises(FileProblems, match=r"ours\.yaml:5: 'desk' is none of slurm, pbs, flux, lsf, none"):
        profiles.load(ours)


@pytest.mark.usefixtures("desk")
def test_a_scheduler_that_is_added_in_two_places_gets_job_scripts(ours):
    lines = text(ours, 16, launcher="torchtitan", plan_changes={"arguments": ("--job.config_file", "a.toml")})
    head, _, rest = lines.partition("\n")
    assert head == "#!/bin/bash -e"
    assert "# Made by perfmodel job for the Desk." in rest
    assert "\n# So many hosts\n#DESK hosts=2\n" in rest
    assert "\nMASTER_ADDR=$(desk first)  # " in rest
    started = rest[rest.index("deskrun --ranks=16 ") :]
    assert "export RANK=$DESK_RANK WORLD_SIZE=16 LOCAL_RANK=$DESK_SEAT LOCAL_WORLD_SIZE=8" in started


@pytest.mark.usefixtures("desk")
def test_a_scheduler_that_is_added_in_two_places_is_known_by_its_jobs_and_ranks():
    job = {"DESK_JOB": "7", "DESK_QUEUE": "long", "MASTER_ADDR": "host1"}
    assert scheduler(job) == ("desk", "long")
    assert place(job) is None
    assert place({**job, "DESK_RANK": "9", "DESK_RANKS": "16", "DESK_SEAT": "1", "DESK_HOSTS": "2"}) == Place(
        launcher="deskrun", rank=9, world=16, local_rank=1, local_world=8, address="host1", port=29500
    )


@pytest.mark.usefixtures("desk")
def test_a_misspelled_scheduler_is_refused_with_the_added_one(tmp_path):
    path = tmp_path / "typo.yaml"
    path.write_text(PROFILE.replace("kind: desk", "kind: dusk"), encoding="utf-8")
    with pytest.raises(FileProblems, match="'dusk' is none of slurm, pbs, flux, lsf, none, desk"):
        profiles.load(str(path))
