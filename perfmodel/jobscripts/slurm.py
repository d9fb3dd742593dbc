"""Slurm: sbatch and srun."""

import shlex
from collections.abc import Iterator

from perfmodel.errors import PerfmodelError
from perfmodel.jobscripts.dialects import Dialect
from perfmodel.jobscripts.limits import clock, limits
from perfmodel.jobscripts.quoting import argument, directive, one_line
from perfmodel.jobscripts.request import Line, Request

_PREFIX = "#SBATCH "


def directives(request: Request) -> Iterator[Line]:
    """What sbatch reads at the head of a script."""
    for text, why in (*_where(request), *_size(request), *_running(request)):
        yield Line(f"{_PREFIX}{text}", why)


def launch(request: Request) -> tuple[str, ...]:
    """Srun with the options that it does not inherit from sbatch."""
    scheduler = request.machine.scheduler
    options = [
        f"--nodes={request.nodes}",
        f"--ntasks={request.gpus}",
        f"--ntasks-per-node={request.tasks_per_node}",
        f"--cpus-per-task={scheduler.cores_per_task}",
        "--kill-on-bad-exit=1",
    ]
    if scheduler.cpu_binding:
        options.append(f"--cpu-bind={scheduler.cpu_binding}")
    if scheduler.gpu_binding:
        options.append(f"--gpu-bind={scheduler.gpu_binding}")
    return (*shlex.split(scheduler.launch), *map(argument, options), *container(request))


def container(request: Request) -> tuple[str, ...]:
    """The option of srun that starts a task inside an image, where a plug-in provides it."""
    option = {"pyxis": "--container-image", "environment": "--environment"}.get(request.machine.scheduler.container)
    return (argument(f"{option}={request.container}"),) if request.container and option else ()


def _where(request: Request) -> Iterator[tuple[str, str]]:
    scheduler, way = request.machine.scheduler, request.way
    yield f"--job-name={directive(request.name, 'the name of the job')}", "name of the job in the queue"
    if request.account:
        yield f"--account={directive(request.account, '--account')}", "account that is charged"
    if scheduler.constraint:
        yield f'--constraint="{_quotable(scheduler.constraint)}"', f"nodes of this kind [{scheduler.source}]"
    named_partition = way is not None and way.kind == "partition"
    if way is not None and way.kind in ("partition", "qos"):
        yield f"--{way.kind}={directive(way.name, way.kind)}", f"{limits(way)} [{way.source}]"
    if scheduler.partition and not named_partition:
        told = f"; {limits(way)} [{way.source}]" if way is not None and way.kind == "bin" else f" [{scheduler.source}]"
        yield f"--partition={directive(scheduler.partition, 'partition')}", f"the partition of these nodes{told}"


def _size(request: Request) -> Iterator[tuple[str, str]]:
    scheduler, devices = request.machine.scheduler, request.machine.node_devices
    yield f"--nodes={request.nodes}", f"{request.gpus} devices on nodes of {devices}"
    yield f"--ntasks-per-node={request.tasks_per_node}", "one rank per device"
    yield (
        f"--cpus-per-task={scheduler.cores_per_task}",
        f"cores per rank, as Slurm counts them here [{scheduler.source}]",
    )
    for given in scheduler.directives:
        yield one_line(given, "a directive of the profile"), f"required by the centre [{scheduler.source}]"


def _running(request: Request) -> Iterator[tuple[str, str]]:
    yield f"--time={clock(request.time)}", "time limit"
    number = "%A-%a" if request.array else "%j"
    yield f"--output={directive(request.name, 'the name of the job')}-{number}.out", "file for output and errors"
    if request.array:
        yield f"--array=1-{len(request.runs)}", "one job per grid"
    if request.resumes:
        yield "--requeue", "a restarted job continues with the remaining grids"
        yield "--open-mode=append", "and appends to the earlier output"


def _quotable(text: str) -> str:
    """Text that a pair of quotes keeps whole in a directive."""
    if '"' in text or "\\" in text:
        raise PerfmodelError(f"the constraint of the profile {text!r}: wanted no quotes and no backslashes")
    return one_line(text, "the constraint of the profile")


DIALECT = Dialect(
    submit=("sbatch",),
    directives=directives,
    launch=launch,
    first_host='scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1',
    port="$((20000 + SLURM_JOB_ID % 10000))",
    index="$SLURM_ARRAY_TASK_ID",
)
