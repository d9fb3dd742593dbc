"""Which rank this process is, from the environment variables of torchrun, mpirun, flux run, mpiexec or srun.

This does not need torch: a program that is one of many ranks knows its rank before it starts anything.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perfmodel.errors import UsageError
from perfmodel.units import count

_MOST_RANKS = 2**31
_MOST_PORT = 2**16 - 1
_PORT = 29500  # torchrun's default
# A Slurm step uses one of these ports, chosen by its number. They lie below the ports that systems give to connections.
_FIRST_PORT, _PORTS = 20000, 10000
_LOCALHOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The variables of one launcher: rank and world size, in all and on this host; the first variable set is read."""

    launcher: str
    rank: str
    world: str
    local_rank: tuple[str, ...]
    local_world: tuple[str, ...]


# The order matters. torchrun may run under srun, and mpirun and mpiexec start their helpers with srun, so srun is last.
# flux run sets PMI_RANK and PMI_SIZE besides its own variables (flux-environment(7)), so it precedes mpiexec.
# SLURM_STEP_NUM_TASKS is set by srun only; SLURM_NTASKS is also set in a batch script, which is not a rank.
# jsrun sets the variables of Open MPI, and PALS (pals.h) sets those of PMI and its own.
LAUNCHERS = (
    Names(
        launcher="torchrun",
        rank="RANK",
        world="WORLD_SIZE",
        local_rank=("LOCAL_RANK",),
        local_world=("LOCAL_WORLD_SIZE",),
    ),
    Names(
        launcher="Open MPI's mpirun",
        rank="OMPI_COMM_WORLD_RANK",
        world="OMPI_COMM_WORLD_SIZE",
        local_rank=("OMPI_COMM_WORLD_LOCAL_RANK",),
        local_world=("OMPI_COMM_WORLD_LOCAL_SIZE",),
    ),
    Names(
        launcher="flux run",
        rank="FLUX_TASK_RANK",
        world="FLUX_JOB_SIZE",
        local_rank=("FLUX_TASK_LOCAL_ID",),
        local_world=(),
    ),
    Names(
        launcher="mpiexec",
        rank="PMI_RANK",
        world="PMI_SIZE",
        local_rank=("PMI_LOCAL_RANK", "MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "SLURM_LOCALID"),
        local_world=("PMI_LOCAL_SIZE", "MPI_LOCALNRANKS", "PALS_LOCAL_SIZE"),
    ),
    Names(
        launcher="srun",
        rank="SLURM_PROCID",
        world="SLURM_STEP_NUM_TASKS",
        local_rank=("SLURM_LOCALID",),
        local_world=(),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One rank of a launch, with the host and port of rank 0; `local` counts the ranks of this host only."""

    launcher: str
    rank: int
    world: int
    local_rank: int
    local_world: int
    address: str
    port: int


def place(variables: Mapping[str, str]) -> Place | None:
    """This process's place in a launch; None if it was started alone.

    >>> place({"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "29401"})
    Place(launcher='torchrun', rank=1, world=2, local_rank=1, local_world=2, address='127.0.0.1', port=29402)
    """
    names = next((names for names in LAUNCHERS if names.rank in variables and names.world in variables), None)
    if names is None:
        return None
    world = _number(variables, names.world, 1, _MOST_RANKS)
    if world == 1:
        return None
    rank = _number(variables, names.rank, 0, world - 1)
    local_rank = _number(variables, _first(names, names.local_rank, "LOCAL_RANK", variables), 0, world - 1)
    local_world = _local_world(names, variables, world)
    if local_rank >= local_world:
        raise UsageError(f"{names.launcher} calls this local rank {local_rank} of {local_world}; wanted less than that")
    address = _address(names, variables, alone=local_world == world)
    return Place(
        launcher=names.launcher,
        rank=rank,
        world=world,
        local_rank=local_rank,
        local_world=local_world,
        address=address,
        port=_port(names, variables),
    )


# For each scheduler, a variable that is set in its jobs, and the variable that names the partition or queue. In a batch
# script Flux sets the address of its broker, but not the number of the job.
_SCHEDULERS = (
    ("slurm", "SLURM_JOB_ID", "SLURM_JOB_PARTITION"),
    ("pbs", "PBS_JOBID", "PBS_QUEUE"),
    ("flux", "FLUX_URI", ""),
    ("lsf", "LSB_JOBID", "LSB_QUEUE"),
)


def scheduler(variables: Mapping[str, str]) -> tuple[str, str]:
    """The scheduler whose job this runs in, as a profile names it, and the job's partition or queue.

    >>> scheduler({"SLURM_JOB_ID": "7", "SLURM_JOB_PARTITION": "gpu"}), scheduler({})
    (('slurm', 'gpu'), ('none', ''))
    """
    for kind, job, queue in _SCHEDULERS:
        if job in variables:
            return kind, variables.get(queue, "")
    return "none", ""


def refuse_other_counts(grids: Iterable[tuple[str, int]], ranks: int | None, place: Place | None) -> None:
    """Raise if a grid (its text, its size) does not have as many ranks as were asked for, or as this launch has.

    >>> refuse_other_counts([("2x2x1x1", 4)], 8, None)
    Traceback (most recent call last):
    perfmodel.errors.UsageError: 8 ranks, but the grid 2x2x1x1 has 4; wanted --nproc 4, or a grid of 8
    """
    if place is not None and ranks not in (None, place.world):
        raise UsageError(f"--nproc {ranks}, but {place.launcher} has started {place.world} ranks; leave --nproc out")
    world = place.world if place is not None else ranks
    for text, size in grids:
        if world not in (None, size):
            instead = f"{size} started by {place.launcher}" if place is not None else f"--nproc {size}"
            raise UsageError(f"{world} ranks, but the grid {text} has {size}; wanted {instead}, or a grid of {world}")


def _number(variables: Mapping[str, str], name: str, least: int, most: int) -> int:
    text = variables[name].strip()
    number = 0 if text == "0" else count(text, most)
    if number is None or number < least:
        raise UsageError(f"{name} is {text!r}, wanted a whole number from {least} to {most}")
    return number


def _first(names: Names, wanted: tuple[str, ...], general: str, variables: Mapping[str, str]) -> str:
    """The first variable that is set; if the launcher sets none, torchrun's variable is read instead."""
    for name in (*wanted, general):
        if name in variables:
            return name
    missing = f"none of {', '.join(wanted)}" if wanted else f"no {general}"
    raise UsageError(f"{names.launcher} sets {names.rank} but {missing}; set {general} on every rank")


def _local_world(names: Names, variables: Mapping[str, str], world: int) -> int:
    if names.launcher == "srun" and "SLURM_STEP_TASKS_PER_NODE" in variables:
        return _tasks_here(variables["SLURM_STEP_TASKS_PER_NODE"], int(variables.get("SLURM_NODEID", "0")))
    if names.launcher == "flux run" and "FLUX_JOB_NNODES" in variables:
        nodes = _number(variables, "FLUX_JOB_NNODES", 1, world)
        if world % nodes == 0:
            return world // nodes
    return _number(variables, _first(names, names.local_world, "LOCAL_WORLD_SIZE", variables), 1, world)


def _tasks_here(text: str, node: int) -> int:
    """Tasks on one node of a Slurm step.

    >>> _tasks_here("4(x2),3", 1), _tasks_here("4(x2),3", 2)
    (4, 3)
    """
    found = re.findall(r"(\d+)(?:\(x(\d+)\))?", text)
    each = [int(tasks) for tasks, times in found for _ in range(int(times or 1))]
    if node >= len(each):
        raise UsageError(f"SLURM_STEP_TASKS_PER_NODE is {text!r}, which has no node {node} (SLURM_NODEID)")
    return each[node]


def _address(names: Names, variables: Mapping[str, str], *, alone: bool) -> str:
    """The host of rank 0: MASTER_ADDR, this host if all ranks are on it, or the first host of the Slurm step."""
    if told := variables.get("MASTER_ADDR"):
        return told
    if alone:
        return _LOCALHOST
    if hosts := variables.get("SLURM_STEP_NODELIST") or variables.get("SLURM_NODELIST"):
        return first_host(hosts)
    raise UsageError(f"{names.launcher} does not say where rank 0 is; set MASTER_ADDR to its host on every rank")


def first_host(hosts: str) -> str:
    """The first host of a host list in the notation of Slurm.

    >>> first_host("nid[001102-001104,001200]"), first_host("a,b")
    ('nid001102', 'a')
    """
    first = re.split(r",(?![^\[]*\])", hosts)[0]
    return re.sub(r"\[(\d+)[^\]]*\]", r"\1", first)


def _port(names: Names, variables: Mapping[str, str]) -> int:
    """A port on the host of rank 0 that every rank derives by itself; it is not the one of torchrun's agent."""
    if "MASTER_PORT" in variables:
        told = _number(variables, "MASTER_PORT", 1, _MOST_PORT - 1)
        return told + 1 if names.launcher == "torchrun" else told
    job, step = (variables.get(name, "") for name in ("SLURM_JOB_ID", "SLURM_STEP_ID"))
    return _FIRST_PORT + (int(job) + int(step)) % _PORTS if job.isdigit() and step.isdigit() else _PORT
