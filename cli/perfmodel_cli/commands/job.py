"""The command that writes job scripts, and submits them."""

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfmodel.errors import PerfmodelError, UsageError, printable
from perfmodel_cli import printing
from perfmodel_cli.options.groups import asks
from perfmodel_cli.options.job_options import JobQuestion, ModeChoice
from perfmodel_cli.options.question import example
from perfmodel_cli.texts import shortened

if TYPE_CHECKING:
    from perfmodel.jobscripts.dialects import Dialect
    from perfmodel.jobscripts.request import Request

_MOST_NAMED = 3  # grids left out


@asks
@example(
    "perfmodel job --model gpt-20b --machine perlmutter --gpus 256 --batch 2048 --account m1234 --time 00:30:00 --top 5"
)
def job(
    question: JobQuestion,
    submit: Annotated[bool, typer.Option("--submit", help="Submit what is written.")] = False,
    out: Annotated[str, typer.Option("--out", "-o", help="The file to write [default: standard output].")] = "",
) -> None:
    """Write a job script that runs the fastest grids: directives, environment, binding, a framework's flags.

    Each line says what it is for. Words of --setup, --program and --arguments arrive as they are: nothing is filled in.
    """
    if not out and (submit or question.mode is ModeChoice.many):
        raise UsageError(f"{'--submit' if submit else '--mode many'} needs -o, the file that is written")
    from perfmodel.jobscripts.build import requests
    from perfmodel.jobscripts.script import script

    layouts, left_out = question.layouts()
    for reason in shortened(left_out, _MOST_NAMED, "{} more grids"):
        printing.tell(f"left out {reason}")
    found = requests(question.plan(), layouts, question.allocation())
    if not out:
        typer.echo(script(found[0]), nl=False)
        return
    for path, request in zip(_paths(Path(out), found), found, strict=True):
        _write(path, script(request))
        _start(path, request) if submit else typer.echo(printable(f"wrote {path}{_how(path, request)}"))


def _paths(path: Path, found: "list[Request]") -> list[Path]:
    """One file per job, numbered if there are several."""
    if len(found) == 1:
        return [path]
    return [path.with_name(f"{path.stem}-{number}{path.suffix}") for number in range(1, len(found) + 1)]


def _write(path: Path, text: str) -> None:
    from perfmodel.files import write_whole

    write_whole(path, text)


def _how(path: Path, request: "Request") -> str:
    """How the file is used, in a few words."""
    dialect = _dialect(request)
    if not dialect.submit:
        return f"; run it with bash {path}"
    words = (*dialect.submit, *(("<",) if dialect.reads_input else ()), str(path))
    return f"; submit it with {' '.join(words)}"


def _dialect(request: "Request") -> "Dialect":
    from perfmodel.jobscripts.dialects import dialect_of

    return dialect_of(request.machine.scheduler.kind)


def _start(path: Path, request: "Request") -> None:
    """Submit a file; what the scheduler says goes where this program talks."""
    dialect = _dialect(request)
    command = dialect.submit
    if not command:
        raise PerfmodelError(f"{request.machine.name} has no scheduler; run {path} with bash")
    if shutil.which(command[0]) is None:
        raise PerfmodelError(f"no {command[0]} here: {path} is written; submit it on {request.machine.name}")
    words = command if dialect.reads_input else (*command, str(path.absolute()))
    with path.open(encoding="utf-8") as script:
        done = subprocess.run(words, stdin=script if dialect.reads_input else subprocess.DEVNULL, check=False)  # noqa: S603
    if done.returncode:
        raise PerfmodelError(f"{command[0]} did not take {path}: it ended with {done.returncode}")
