"""The syntax of schedulers: directives, the start of the ranks, and the variables that identify a rank.

Sources of the variables that identify a rank. PALS: HPE's pals.h of 2023 and argonne-lcf/user-guides commit 40eaa57
(its PyTorch page). Flux: flux-environment(7) and flux-hostlist(1) of flux-core commits 0a619ef and 520eae5. jsrun and
the look-up of Summit's hosts: axonn-ai/axonn, run_vgg.sh, and NERSC/sc22-dl-tutorial.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from perfmodel.jobscripts import flux, lsf, pbs, plain, slurm
from perfmodel.jobscripts.request import Line, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One scheduler.

    `start` are lines before anything else. `first_host` is a command that prints the first host. `rank` and
    `local_rank` are the launcher's variables, empty if it sets those of torch itself. `index` numbers the jobs of an
    array from 1.
    """

    title: str
    submit: tuple[str, ...]
    directives: Callable[[Request], Iterator[Line]]
    launch: Callable[[Request], tuple[str, ...]]
    start: tuple[Line, ...] = ()
    first_host: str = ""
    port: str = "29500"
    rank: str = ""
    local_rank: str = ""
    index: str = ""


DIALECTS: Mapping[str, Dialect] = {
    "slurm": Dialect(
        title="Slurm",
        submit=("sbatch",),
        directives=slurm.directives,
        launch=slurm.launch,
        first_host='scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1',
        port="$((20000 + SLURM_JOB_ID % 10000))",
        rank="$SLURM_PROCID",
        local_rank="$SLURM_LOCALID",
        index="$SLURM_ARRAY_TASK_ID",
    ),
    "pbs": Dialect(
        title="PBS",
        submit=("qsub",),
        directives=pbs.directives,
        launch=pbs.launch,
        start=(Line('cd "$PBS_O_WORKDIR" || exit 1', "since PBS starts jobs in the home folder"),),
        first_host='head -n 1 "$PBS_NODEFILE" | cut -d . -f 1',
        rank="${PMI_RANK:-$PALS_RANKID}",
        local_rank="${PMI_LOCAL_RANK:-$PALS_LOCAL_RANKID}",
        index="$PBS_ARRAY_INDEX",
    ),
    "flux": Dialect(
        title="Flux",
        submit=("flux", "batch"),
        directives=flux.directives,
        launch=flux.launch,
        first_host="flux hostlist --expand local | cut -d ' ' -f 1",
        rank="$FLUX_TASK_RANK",
        local_rank="$FLUX_TASK_LOCAL_ID",
    ),
    "lsf": Dialect(
        title="LSF",
        submit=("bsub",),
        directives=lsf.directives,
        launch=lsf.launch,
        first_host='sort -u "$LSB_DJOB_HOSTFILE" | grep -v -e login -e batch | head -n 1',
        rank="$OMPI_COMM_WORLD_RANK",
        local_rank="$OMPI_COMM_WORLD_LOCAL_RANK",
        index="$LSB_JOBINDEX",
    ),
    "none": Dialect(title="no scheduler", submit=(), directives=plain.directives, launch=plain.launch),
}
