"""Which rank this process is, from the environment variables of torchrun, mpirun, flux run, mpiexec or srun.

This does not need torch: a program that is one of many ranks knows its rank before it starts anything.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perfmodel.errors import UsageError
from perfmodel.machines.scheduler_kinds import SCHEDULERS, RankVariables
from perfmodel.units import count

_MOST_RANKS = 2**31
_MOST_PORT = 2**16 - 1
_PORT = 29500  # torchrun's default
# A Slurm step uses one of these ports, chosen by its number. They lie below the ports that systems give to connections.
_FIRST_PORT, _PORTS = 20000, 10000
_LOCALHOST = "127.0.0.1"


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
    innermost_first = [kind.ranks for kind in reversed(list(SCHEDULERS.values()))]
    names = next((names for names in innermost_first if names.rank in variables and names.world in variables), None)
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


def scheduler(variables: Mapping[str, str]) -> tuple[str, str]:
    """The scheduler whose job this runs in, as a profile names it, and the job's partition or queue.

    >>> scheduler({"SLURM_JOB_ID": "7", "SLURM_JOB_PARTITION": "gpu"}), scheduler({})
    (('slurm', 'gpu'), ('none', ''))
    """
    for name, kind in SCHEDULERS.items():
        if kind.job in variables:
            return name, variables.get(kind.queue, "")
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


def _first(names: RankVariables, wanted: tuple[str, ...], general: str, variables: Mapping[str, str]) -> str:
    """The first variable that is set; if the launcher sets none, torchrun's variable is read instead."""
    for name in (*wanted, general):
        if name in variables:
            return name
    missing = f"none of {', '.join(wanted)}" if wanted else f"no {general}"
    raise UsageError(f"{names.launcher} sets {names.rank} but {missing}; set {general} on every rank")


def _local_world(names: RankVariables, variables: Mapping[str, str], world: int) -> int:
    if names.host_tasks in variables:
        return _tasks_here(names, variables)
    if names.hosts in variables:
        hosts = _number(variables, names.hosts, 1, world)
        if world % hosts == 0:
            return world // hosts
    return _number(variables, _first(names, names.local_world, "LOCAL_WORLD_SIZE", variables), 1, world)


def _tasks_here(names: RankVariables, variables: Mapping[str, str]) -> int:
    """Tasks on this host, from the list of all hosts.

    >>> _tasks_here(SCHEDULERS["slurm"].ranks, {"SLURM_STEP_TASKS_PER_NODE": "4(x2),3", "SLURM_NODEID": "2"})
    3
    """
    text, host = variables[names.host_tasks], int(variables.get(names.host, "0"))
    found = re.findall(r"(\d+)(?:\(x(\d+)\))?", text)
    each = [int(tasks) for tasks, times in found for _ in range(int(times or 1))]
    if host >= len(each):
        raise UsageError(f"{names.host_tasks} is {text!r}, which has no node {host} ({names.host})")
    return each[host]


def _address(names: RankVariables, variables: Mapping[str, str], *, alone: bool) -> str:
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


def _port(names: RankVariables, variables: Mapping[str, str]) -> int:
    """A port on the host of rank 0 that every rank derives by itself; it is not the one of torchrun's agent."""
    if "MASTER_PORT" in variables:
        told = _number(variables, "MASTER_PORT", 1, _MOST_PORT - 1)
        return told + 1 if names.agent else told
    job, step = (variables.get(name, "") for name in ("SLURM_JOB_ID", "SLURM_STEP_ID"))
    return _FIRST_PORT + (int(job) + int(step)) % _PORTS if job.isdigit() and step.isdigit() else _PORT
