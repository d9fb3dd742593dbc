"""The schedulers that a profile may name, as data: the names of variables in their jobs, and how a script begins.

A profile's `scheduler.kind` is checked against this table, a process learns from it which job and rank it is, and a job
script takes the names of rank variables from it. The syntax of a scheduler's scripts is in `perfmodel/jobscripts`, in
the module that has the scheduler's name.

Sources of the variables that identify a rank. PALS: HPE's pals.h of 2023 and argonne-lcf/user-guides commit 40eaa57
(its PyTorch page). Flux: flux-environment(7) of flux-core commits 0a619ef and 520eae5. jsrun: axonn-ai/axonn,
run_vgg.sh, and NERSC/sc22-dl-tutorial.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RankVariables:
    """The variables by which a launcher tells a process its rank, and all ranks how many they are.

    Of `local_rank` and `local_world` (the ranks on this host), the first variable that is set counts. A launcher may
    say instead on how many `hosts` equally many ranks are, or list the tasks of each host (`host_tasks`, as Slurm does
    it) and number this `host`. `agent`: a process of the launcher itself listens at MASTER_PORT.
    """

    launcher: str
    rank: str
    world: str
    local_rank: tuple[str, ...]
    local_world: tuple[str, ...] = ()
    hosts: str = ""
    host_tasks: str = ""
    host: str = ""
    agent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerKind:
    """One scheduler.

    `job` is a variable that only its jobs have, `queue` one that names their partition or queue. `launch` starts the
    ranks where a profile has been measured, and is empty where that depends on the centre.
    """

    title: str
    ranks: RankVariables
    job: str = ""
    queue: str = ""
    launch: str = ""
    shebang: str = "#!/bin/bash"


# In this order a scheduler and its launcher may run inside those before it: a Flux instance in a job of Slurm, torchrun
# under srun. So the first whose job this is has given the devices, and the last whose rank this is has started it.
# mpirun and mpiexec start helpers of their own with srun, and flux run sets PMI_RANK and PMI_SIZE besides its own.
SCHEDULERS: Mapping[str, SchedulerKind] = {
    "slurm": SchedulerKind(
        title="Slurm",
        job="SLURM_JOB_ID",
        queue="SLURM_JOB_PARTITION",
        launch="srun",
        ranks=RankVariables(
            launcher="srun",
            rank="SLURM_PROCID",
            world="SLURM_STEP_NUM_TASKS",  # SLURM_NTASKS is set in a batch script too, which is no rank
            local_rank=("SLURM_LOCALID",),
            host_tasks="SLURM_STEP_TASKS_PER_NODE",
            host="SLURM_NODEID",
        ),
    ),
    "pbs": SchedulerKind(
        title="PBS",
        job="PBS_JOBID",
        queue="PBS_QUEUE",
        shebang="#!/bin/bash -l",
        ranks=RankVariables(  # PALS sets those of PMI and its own
            launcher="mpiexec",
            rank="PMI_RANK",
            world="PMI_SIZE",
            local_rank=("PMI_LOCAL_RANK", "MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "SLURM_LOCALID"),
            local_world=("PMI_LOCAL_SIZE", "MPI_LOCALNRANKS", "PALS_LOCAL_SIZE"),
        ),
    ),
    "flux": SchedulerKind(
        title="Flux",
        job="FLUX_URI",  # a batch script is told where its broker is, and not which job it is
        ranks=RankVariables(
            launcher="flux run",
            rank="FLUX_TASK_RANK",
            world="FLUX_JOB_SIZE",
            local_rank=("FLUX_TASK_LOCAL_ID",),
            hosts="FLUX_JOB_NNODES",
        ),
    ),
    "lsf": SchedulerKind(
        title="LSF",
        job="LSB_JOBID",
        queue="LSB_QUEUE",
        ranks=RankVariables(  # which jsrun sets, too
            launcher="Open MPI's mpirun",
            rank="OMPI_COMM_WORLD_RANK",
            world="OMPI_COMM_WORLD_SIZE",
            local_rank=("OMPI_COMM_WORLD_LOCAL_RANK",),
            local_world=("OMPI_COMM_WORLD_LOCAL_SIZE",),
        ),
    ),
    "none": SchedulerKind(
        title="no scheduler",
        launch="torchrun --standalone",
        ranks=RankVariables(
            launcher="torchrun",
            rank="RANK",
            world="WORLD_SIZE",
            local_rank=("LOCAL_RANK",),
            local_world=("LOCAL_WORLD_SIZE",),
            agent=True,
        ),
    ),
}
