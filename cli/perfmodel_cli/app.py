"""The program: its commands, and how their errors are reported.

A command is loaded when it is called, and what needs numpy or rich when it runs, so that --help is as quick as Typer.
"""

import atexit
import gc
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from perfmodel import __version__
from perfmodel.errors import PerfmodelError, UsageError, printable
from perfmodel_cli import command_list, on_demand

_GARBAGE_THRESHOLD = 100_000  # objects: imports alone would set the collector off dozens of times, 8 ms in all


app = on_demand.group("Which 4D grid trains a model fastest on a machine, will it fit, and why.", command_list.PROGRAM)
app.add_typer(
    on_demand.group(
        "Machine profiles: what is known about each machine, and where each number is from.", command_list.MACHINES
    ),
    name="machines",
)
app.add_typer(on_demand.group("Models: presets, parameter and FLOP counts.", command_list.MODELS), name="models")
app.add_typer(
    on_demand.group("Frameworks: what each does in a step, and where that is from.", command_list.FRAMEWORKS),
    name="frameworks",
)


def main() -> None:
    """Run the program: exit code 0 for an answer, 1 for none, 2 for a question that is not well formed."""
    sys.stdout, sys.stderr = _open(sys.stdout), _open(sys.stderr)
    gc.set_threshold(_GARBAGE_THRESHOLD)
    atexit.register(gc.freeze)  # else Python looks through all objects when it ends: 7 ms of --help, 18 of a search
    try:
        app(prog_name="perfmodel")
    except PerfmodelError as error:
        sys.exit(_say(str(error), 2 if isinstance(error, UsageError) else 1))
    except OSError as error:
        if code := getattr(error.__context__, "exit_code", 0):  # Typer could not say what is wrong with the question
            _silence(sys.stderr)
            sys.exit(code)
        _silence(sys.stdout)  # the reader (head, less) has seen enough, or the disk is full
        if not isinstance(error, BrokenPipeError):
            sys.exit(_say(f"the answer cannot be written: {error.strerror}", 1))


def _open(stream: Any) -> Any:
    """A stream that takes any text: escaped where its encoding lacks it, dropped if the shell closed it (>&-)."""
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8", errors="backslashreplace")  # until the process ends
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    return stream


def _silence(stream: Any) -> None:
    """Discard what is left of a stream, so that Python reports no error when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _say(problem: str, code: int) -> int:
    """Print an error without control characters; if standard error is closed, only the exit code remains."""
    try:
        sys.stderr.write(f"perfmodel: {printable(problem)}\n")
    except OSError:
        _silence(sys.stderr)
    return code


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Which 4D grid trains a model fastest on a machine, will it fit, and why.

    A grid Gx x Gy x Gz x Gdata splits every layer over X and Y, its weights once more over Z, and the batch over data.
    """
