"""LSF: bsub and jsrun."""

import shlex
from collections.abc import Iterator

from perfmodel.jobscripts.dialects import Dialect
from perfmodel.jobscripts.limits import limits
from perfmodel.jobscripts.quoting import directive, one_line
from perfmodel.jobscripts.request import Line, Request

_PREFIX = "#BSUB "
_MINUTE = 60


def directives(request: Request) -> Iterator[Line]:
    """What bsub reads at the head of a script."""
    for text, why in _options(request):
        yield Line(f"{_PREFIX}{text}", why)


def launch(request: Request) -> tuple[str, ...]:
    """Jsrun: one resource set per rank, as the profile's options say."""
    return (*shlex.split(request.machine.scheduler.launch), "-n", str(request.gpus))


def _options(request: Request) -> Iterator[tuple[str, str]]:
    scheduler, way, name = request.machine.scheduler, request.way, directive(request.name, "the name of the job")
    yield f"-J {name}[1-{len(request.runs)}]" if request.array else f"-J {name}", "name of the job in the queue"
    if request.account:
        yield f"-P {directive(request.account, '--account')}", "account that is charged"
    told = f"; {limits(way)} [{way.source}]" if way is not None else ""
    yield f"-nnodes {request.nodes}", f"{request.gpus} devices on nodes of {request.machine.node_devices}{told}"
    minutes = -(-request.time // _MINUTE)
    yield f"-W {minutes // _MINUTE}:{minutes % _MINUTE:02d}", "time limit in hours and minutes"
    for given in scheduler.directives:
        yield one_line(given, "a directive of the profile"), f"required by the centre [{scheduler.source}]"
    yield f"-o {name}.%J.out", "file for output and errors"
    if request.resumes:
        yield "-r", "a restarted job continues with the remaining grids"


DIALECT = Dialect(
    submit=("bsub",),
    directives=directives,
    launch=launch,
    reads_input=True,
    # Summit's hosts are looked up as in axonn-ai/axonn, run_vgg.sh, and in NERSC/sc22-dl-tutorial
    first_host='sort -u "$LSB_DJOB_HOSTFILE" | grep -v -e login -e batch | head -n 1',
    index="$LSB_JOBINDEX",
)
