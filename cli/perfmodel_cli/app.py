"""The commands: read options, call one library function, show the record.

Everything that needs numpy or rich is imported inside the commands, so that --help stays as quick as Typer itself.
"""

import gc
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfmodel import __version__
from perfmodel.errors import PerfmodelError, UsageError, printable
from perfmodel_cli import (
    counts,
    dryrun_command,
    import_command,
    job_command,
    measure_command,
    options,
    printing,
    report_command,
    run_command,
    sweep_command,
    validation_commands,
)
from perfmodel_cli.question import Question, asks, example, gpu_count

if TYPE_CHECKING:
    from collections.abc import Callable


_GARBAGE_THRESHOLD = 100_000  # objects: imports alone would set the collector off dozens of times, 8 ms in all


def _typer(purpose: str) -> typer.Typer:
    """Plain help text: Rich would double the time of --help."""
    return typer.Typer(
        help=purpose, rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True
    )


app = _typer("Which 4D grid trains a model fastest on a machine, will it fit, and why.")
machines = _typer("Machine profiles: what is known of each machine, and where each number comes from.")
models = _typer("Models: presets, parameter and FLOP counts.")
sweep_command.add_to(app)
job_command.add_to(app)
validation_commands.add_to(app)
report_command.add_to(app)
run_command.add_to(app)
dryrun_command.add_to(app)
import_command.add_to(machines)
measure_command.add_to(machines)
app.add_typer(machines, name="machines")
app.add_typer(models, name="models")


def main() -> None:
    """Run the program: exit code 0 for an answer, 1 for none, 2 for a question that is not well formed."""
    sys.stdout, sys.stderr = _open(sys.stdout), _open(sys.stderr)
    gc.set_threshold(_GARBAGE_THRESHOLD)
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
    """A stream that takes any text: escaped where its encoding lacks it, unheard where the shell closed it (>&-)."""
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8", errors="backslashreplace")  # until the process ends
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    return stream


def _silence(stream: Any) -> None:
    """Send what is left of a stream nowhere, so that the end of the process has nothing to complain of."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _say(problem: str, code: int) -> int:
    """Say what is wrong, with nothing in it that a terminal would obey; where nobody can hear it, the code is left."""
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


@app.command()
@asks
@example("perfmodel recommend --model gpt-20b --machine perlmutter --gpus 256 --batch 2048")
def recommend(
    question: Question,
    gpus: options.Gpus = None,
    nodes: options.Nodes = None,
    top: options.Top = 10,
    fix: options.Fix = "",
    maximum: options.Maximum = "",
    tokens: options.Tokens = "",
    uncertainty: options.Doubt = False,
    output: options.Output = options.Format.table,
) -> None:
    """Rank all ways to spread a model over some GPUs, and say why the others were turned down."""
    from perfmodel import tables
    from perfmodel_cli.answers import answer

    job = question.job(fix=fix, maximum=maximum)
    devices = gpu_count(job.machine.node_devices, gpus, nodes)
    wanted = counts.tokens(tokens, "--tokens") if tokens else None
    ranking, beside = answer(job, question.space(devices, top), wanted, uncertain=uncertainty)
    record = tables.ranking_record(ranking, beside)
    _show(record, record["results"], output, lambda: _renderer().ranking(record, ranking))


@app.command()
@asks
@example("perfmodel explain --grid 1x2x32x4 --model gpt-20b --machine perlmutter --batch 2048")
def explain(
    question: Question,
    grid: options.Grid,
    timeline: Annotated[bool, typer.Option("--timeline", help="Show what runs when in a micro-step instead.")] = False,
    output: options.Output = options.Format.table,
) -> None:
    """Show every collective, its ranks, link and time, the memory terms, and the equations with numbers put in."""
    from perfmodel import explain as explaining
    from perfmodel import tables

    wanted = explaining.parse_grid(grid)
    explanation = explaining.explain(question.job(), question.space(int(wanted.gpus), 1), wanted)
    if timeline:
        shown = tables.timeline_record(explanation, *explaining.timeline(explanation))
        _tell_rejections(shown)
        _show(shown, shown["events"], output, lambda: _renderer("render_explanation").timeline(shown))
        return
    record = tables.explanation_record(explanation)
    _show(record, record["collectives"], output, lambda: _renderer("render_explanation").explanation(record))


@app.command()
@asks
@example("perfmodel trace --grid 1x2x32x4 --model gpt-20b --machine perlmutter --batch 2048 trace.json")
def trace(
    question: Question,
    grid: options.Grid,
    file: Annotated[str, typer.Argument(help="The file to write; Perfetto and chrome://tracing open it.")],
) -> None:
    """Write what runs when in a micro-step of one grid as a Chrome trace."""
    import json

    from perfmodel import explain as explaining
    from perfmodel import tables
    from perfmodel.files import write_whole
    from perfmodel.timeline import chrome_trace

    wanted = explaining.parse_grid(grid)
    explanation = explaining.explain(question.job(), question.space(int(wanted.gpus), 1), wanted)
    events, end = explaining.timeline(explanation)
    of = tables.question_record(explanation)
    _tell_rejections(of)
    write_whole(Path(file), json.dumps(chrome_trace(events, of), allow_nan=False) + "\n")
    typer.echo(f"wrote {len(events):,} events of a micro-step of {end:.4g} s to {file}")


@machines.command("list")
@example("perfmodel machines list")
def machines_list(output: options.Output = options.Format.table) -> None:
    """List the shipped machines."""
    from perfmodel import profile_tables, profiles

    rows = [profile_tables.machine_summary(profiles.load(name)) for name in profiles.names()]
    _show({"machines": rows}, rows, output, lambda: _renderer().rows(rows))


@machines.command("show")
@example("perfmodel machines show frontier")
def machines_show(
    name: Annotated[str, typer.Argument(help="A shipped machine, or the path of a profile.")],
    output: options.Output = options.Format.table,
) -> None:
    """Show a profile: every figure with its source."""
    from perfmodel import profile_tables, profiles

    machine = profiles.load(name)
    record, figures = profile_tables.machine_record(machine), profile_tables.machine_figures(machine)
    rows = [*figures, *profile_tables.timing_figures(machine)]
    _show(record, rows, output, lambda: _renderer().machine(machine, figures, record["derived_bandwidths"]))


@machines.command("check")
@example("perfmodel machines check my-cluster.yaml")
def machines_check(file: Annotated[str, typer.Argument(help="A profile of your own.")]) -> None:
    """Check a profile, and name every problem with its line."""
    from perfmodel import profiles

    machine = profiles.load_file(Path(file)) if Path(file).exists() else profiles.load(file)
    typer.echo(printable(f"{file}: {machine.title} is a valid profile"))


@machines.command("new")
@example("perfmodel machines new --from perlmutter my-cluster.yaml")
def machines_new(
    file: Annotated[str, typer.Argument(help="The file to write.")],
    name: Annotated[str, typer.Option("--from", help="The shipped machine to start from.")],
) -> None:
    """Write a commented profile to edit, filled with a shipped machine's figures."""
    from perfmodel import files, profiles

    path = Path(file)
    if not path.name.endswith((".yaml", ".yml")):
        raise UsageError(f"{file!r} does not end in .yaml, by which --machine knows a profile of your own")
    files.write_new(path, profiles.template(name, path.name.removesuffix(".yaml").removesuffix(".yml")))
    typer.echo(printable(f"wrote {file}; edit it, then: perfmodel machines check {file}"))


@models.command("list")
@example("perfmodel models list")
def models_list(output: options.Output = options.Format.table) -> None:
    """List the model presets."""
    from perfmodel import models as library
    from perfmodel import tables

    rows = [tables.model_summary(library.load(name)) for name in library.names()]
    _show({"models": rows}, rows, output, lambda: _renderer().rows(rows))


@models.command("show")
@example("perfmodel models show llama-3-8b")
def models_show(
    name: Annotated[str, typer.Argument(help="A preset, our YAML, or a Hugging Face config.json.")],
    output: options.Output = options.Format.table,
) -> None:
    """Show a model's layers, parameters and FLOPs."""
    from perfmodel import models as library
    from perfmodel import tables

    record = tables.model_record(library.load(name))
    _show(record, record["layers"], output, lambda: _renderer().model(record))


def _tell_rejections(of: dict[str, Any]) -> None:
    """Say on standard error that a timeline is of a grid that cannot run."""
    for rejection in of["rejected"]:
        printing.tell(f"rejected by {rejection['rule']}: {rejection['reason']}")
    if of["rejected"]:
        printing.tell("the timeline is of the setting that needs least memory, and cannot run")


def _renderer(name: str = "render") -> ModuleType:
    from importlib import import_module  # Rich is loaded for tables only

    return import_module(f"perfmodel_cli.{name}")


def _show(
    record: dict[str, Any], rows: list[dict[str, Any]], output: options.Format, picture: "Callable[[], Any]"
) -> None:
    printing.show(record, rows, output.value, picture)
