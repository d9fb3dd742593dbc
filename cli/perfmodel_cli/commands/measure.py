"""machines measure: a profile of the machine that this runs on."""

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfmodel.errors import PerfmodelError, UsageError
from perfmodel.parallel import option_values
from perfmodel_cli import printing
from perfmodel_cli.commands.run import need_torch
from perfmodel_cli.options import shared
from perfmodel_cli.options.question import example
from perfmodel_cli.signals import BY_SIGNAL, StoppedError, stopped_by_signals
from perfmodel_cli.terminal.measuring_bar import Progress

if TYPE_CHECKING:
    from perfmodel.launch.measuring.assignment import MeasurementRequest
    from perfmodel.launch.processes.environment import Place

_MORE = 300.0  # seconds after the budget at which ranks that still run are ended


@example("perfmodel machines measure --out my-cluster.yaml")
def machines_measure(
    out: Annotated[str, typer.Option("--out", help="The profile to write; results are kept in a file beside it.")],
    nproc: Annotated[
        int | None, typer.Option("--nproc", min=1, help="Ranks [default: GPUs of this node, else its CPU cores].")
    ] = None,
    budget: Annotated[str, typer.Option("--budget", help="Time after which no new measurement starts.")] = "10 min",
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="How many times everything is measured.")] = 5,
    largest: Annotated[str, typer.Option("--largest", help="Size of the largest message.")] = "1 GiB",
    dtypes: Annotated[
        str, typer.Option("--dtypes", help="Number formats of products: fp32,bf16,fp16; collectives use the first.")
    ] = "auto",
    backend: shared.Backend = shared.BackendChoice.auto,
    output: shared.Output = shared.Format.table,
) -> None:
    """Measure this machine and write its profile: products, memory, issuing of kernels, and collectives of all shapes.

    Needs torch. The command starts the ranks, or uses those of torchrun, srun or mpirun if started by one of them.
    Results are kept at once: after an interruption the same command continues.
    """
    path = shared.profile_path(out)
    need_torch("perfmodel machines measure")
    from perfmodel.launch.measuring import lines, profile
    from perfmodel.launch.processes.environment import place, refuse_other_counts
    from perfmodel.launch.processes.runner import Runner

    here = place(os.environ)
    refuse_other_counts([], nproc, here)
    results = lines.file_beside(path)
    profile.refuse_foreign(path)
    asked = _asked(here, nproc, results, _Amounts(budget, rounds, largest), (dtypes, backend.value))
    runner = Runner(
        experiments=(asked,), place=here, timeout=asked.budget + _MORE, threads_given="OMP_NUM_THREADS" in os.environ
    )
    if here is not None and here.rank > 0:
        with stopped_by_signals():
            runner.follow()
        return
    before = lines.Lines.read(results).count
    how = _measured(runner, asked, results)
    _keep(path, results, output, how)
    if how == ("", None) and lines.Lines.read(results).count == before:
        printing.tell("no further measurement fits into this budget; with more --rounds everything is measured again")


def _keep(path: Path, results: Path, output: shared.Format, how: tuple[str, int | None]) -> None:
    """Write a profile if the results suffice, and end with the exit code that says how the measurement ended."""
    ended, stopped = how
    try:
        _show(path, results, output)
    except PerfmodelError as error:
        if not ended and stopped is None:
            raise
        printing.tell(str(error))
    if stopped is not None:
        printing.tell(f"ended by {signal.Signals(stopped).name}; the same command continues")
        raise typer.Exit(BY_SIGNAL + stopped)
    if ended:
        raise PerfmodelError(f"{ended}; the measurements so far are in {results}, and the same command continues")


class _Amounts:
    """How much is measured, read from text."""

    def __init__(self, budget: str, rounds: int, largest: str) -> None:
        from perfmodel.launch.measuring.points import LARGEST, LEAST_LARGEST
        from perfmodel.units import parse, show

        self.budget, self.rounds = option_values.seconds(budget, "--budget"), rounds
        try:
            self.largest = parse(largest, "B")
        except PerfmodelError as error:
            raise UsageError(f"--largest: {error}") from None
        if self.budget <= 0:
            raise UsageError(f"--budget is {budget}, wanted more than 0 s")
        if not LEAST_LARGEST <= self.largest <= LARGEST:
            raise UsageError(
                f"--largest is {largest}, wanted at most {show(LARGEST, 'B')}, and at least "
                f"{show(LEAST_LARGEST, 'B')} since a table needs two sizes"
            )


def _asked(
    here: "Place | None", nproc: int | None, results: Path, amounts: _Amounts, choice: tuple[str, str]
) -> "MeasurementRequest":
    from perfmodel.launch.measuring.assignment import MeasurementRequest
    from perfmodel.launch.processes.environment import scheduler

    dtypes, backend = choice
    kind, partition = scheduler(os.environ)
    return MeasurementRequest(
        ranks=here.world if here is not None else nproc or _devices(backend),
        lines=str(results.absolute()),
        budget=amounts.budget,
        rounds=amounts.rounds,
        largest=amounts.largest,
        dtypes="+".join(part.strip() for part in dtypes.split(",")),
        backend=backend,  # type: ignore[arg-type]
        scheduler=kind,
        partition=partition,
    )


def _devices(backend: str) -> int:
    from perfmodel.launch.measuring.hardware import devices_here  # imports torch, which takes a second or two

    return devices_here(backend)


def _measured(runner: Any, asked: "MeasurementRequest", results: Path) -> tuple[str, int | None]:
    """Measure; if it ended early, return why, and by which signal."""
    from perfmodel.files import exclusive
    from perfmodel.launch.processes.results import check_writable

    check_writable(results)
    try:
        with (
            exclusive(results, "perfmodel machines measure"),
            stopped_by_signals(),
            Progress(asked, results, printing.tell),
        ):
            for _, record in runner.run([0], lambda _: None):
                if record["status"] == "refused":
                    raise PerfmodelError(record["message"])
                if record["status"] != "ok":
                    return f"{record['status']}: {record['message']}", None
    except StoppedError as signalled:
        return "", signalled.number
    return "", None


def _show(path: Path, results: Path, output: shared.Format) -> None:
    """Write the profile from all lines, and show its figures."""
    from perfmodel.launch.measuring import profile
    from perfmodel.launch.measuring.lines import Lines
    from perfmodel.launch.measuring.summary import summary

    lines = Lines.read(results)
    for problem in lines.problems:
        printing.tell(problem)
    found = profile.write(lines, path, results)
    record = summary(lines, found, str(path), str(results))
    printing.show(
        record, record["collectives"], output.value, lambda: printing.renderer("measurement_table").measured(record)
    )
