"""Flux: flux batch and flux run."""

import shlex
from collections.abc import Iterator

from perfmodel.errors import UsageError
from perfmodel.jobscripts.dialects import Dialect
from perfmodel.jobscripts.limits import limits
from perfmodel.jobscripts.quoting import directive, one_line
from perfmodel.jobscripts.request import Line, Request

_PREFIX = "#flux: "


def directives(request: Request) -> Iterator[Line]:
    """What flux batch reads at the head of a script."""
    if request.array:
        raise UsageError("Flux has no arrays of jobs; wanted --mode one or --mode many")
    for text, why in _options(request):
        yield Line(f"{_PREFIX}{text}", why)


def launch(request: Request) -> tuple[str, ...]:
    """Flux run inside the job's own instance."""
    scheduler = request.machine.scheduler
    counts = (
        f"--nodes={request.nodes}",
        f"--ntasks={request.gpus}",
        f"--cores-per-task={scheduler.cores_per_task}",
    )
    return (*shlex.split(scheduler.launch), *counts)


def _options(request: Request) -> Iterator[tuple[str, str]]:
    scheduler, way, name = request.machine.scheduler, request.way, directive(request.name, "the name of the job")
    yield f"--job-name={name}", "name of the job in the queue"
    if request.account:
        yield f"--bank={directive(request.account, '--account')}", "account that is charged"
    if way is not None:
        yield f"--queue={directive(way.name, 'queue')}", f"{limits(way)} [{way.source}]"
    yield f"--nodes={request.nodes}", f"{request.gpus} devices on nodes of {request.machine.node_devices}"
    for given in scheduler.directives:
        yield one_line(given, "a directive of the profile"), f"required by the centre [{scheduler.source}]"
    yield f"--time-limit={request.time}s", "time limit"
    yield f"--output={name}-{{{{id}}}}.out", "file for output and errors"


DIALECT = Dialect(
    submit=("flux", "batch"),
    directives=directives,
    launch=launch,
    # flux-hostlist(1) of flux-core commits 0a619ef and 520eae5
    first_host="flux hostlist --expand local | cut -d ' ' -f 1",
)
