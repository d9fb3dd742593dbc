"""PBS with PALS: qsub and mpiexec."""

import shlex
from collections.abc import Iterator

from perfmodel.jobscripts.dialects import Dialect
from perfmodel.jobscripts.limits import clock, limits
from perfmodel.jobscripts.quoting import argument, directive, one_line
from perfmodel.jobscripts.request import Line, Request

_PREFIX = "#PBS "


def directives(request: Request) -> Iterator[Line]:
    """What qsub reads at the head of a script."""
    for text, why in _options(request):
        yield Line(f"{_PREFIX}{text}", why)


def launch(request: Request) -> tuple[str, ...]:
    """Mpiexec, which passes the environment on."""
    scheduler = request.machine.scheduler
    bound = ("--cpu-bind", argument(scheduler.cpu_binding)) if scheduler.cpu_binding else ()
    counts = ("-n", str(request.gpus), "--ppn", str(request.tasks_per_node))
    return (*shlex.split(scheduler.launch), *counts, *bound)


def _options(request: Request) -> Iterator[tuple[str, str]]:
    scheduler, way = request.machine.scheduler, request.way
    yield f"-N {directive(request.name, 'the name of the job')}", "name of the job in the queue"
    if request.account:
        yield f"-A {directive(request.account, '--account')}", "account that is charged"
    if way is not None:
        yield f"-q {directive(way.name, 'queue')}", f"{limits(way)} [{way.source}]"
    devices = f"{request.gpus} devices on nodes of {request.machine.node_devices}"
    yield f"-l select={request.nodes}", devices
    yield f"-l walltime={clock(request.time)}", "time limit"
    for given in scheduler.directives:
        yield one_line(given, "a directive of the profile"), f"required by the centre [{scheduler.source}]"
    yield "-j oe", "output and errors in one file"
    if request.array:
        yield f"-J 1-{len(request.runs)}", "one job per grid"
    if request.resumes:
        yield "-r y", "a restarted job continues with the remaining grids"


DIALECT = Dialect(
    submit=("qsub",),
    directives=directives,
    launch=launch,
    start=(Line('cd "$PBS_O_WORKDIR" || exit 1', "since PBS starts jobs in the home folder"),),
    first_host='head -n 1 "$PBS_NODEFILE" | cut -d . -f 1',
    rank="${PMI_RANK:-$PALS_RANKID}",
    local_rank="${PMI_LOCAL_RANK:-$PALS_LOCAL_RANKID}",
    index="$PBS_ARRAY_INDEX",
)
