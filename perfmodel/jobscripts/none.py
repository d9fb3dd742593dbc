"""A machine without a scheduler: torchrun starts the ranks."""

import shlex
from collections.abc import Iterator

from perfmodel.errors import UsageError
from perfmodel.jobscripts.dialects import Dialect
from perfmodel.jobscripts.request import Line, Request


def directives(request: Request) -> Iterator[Line]:
    """None, since there is no scheduler to read them."""
    if request.array:
        raise UsageError(f"{request.machine.name} has no scheduler for an array of jobs; wanted --mode one")
    yield from ()


def launch(request: Request) -> tuple[str, ...]:
    """Torchrun, which also sets the variables that a rank reads; it starts a program, not a Python file."""
    return (*shlex.split(request.machine.scheduler.launch), f"--nproc-per-node={request.gpus}", "--no-python")


DIALECT = Dialect(submit=(), directives=directives, launch=launch)
