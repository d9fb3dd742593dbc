"""The command that runs grids for real, and keeps what it measures."""

import importlib.util
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perfmodel.errors import PerfmodelError, UsageError
from perfmodel_cli import printing
from perfmodel_cli.options import shared
from perfmodel_cli.options.groups import asks
from perfmodel_cli.options.question import example
from perfmodel_cli.options.run_options import RunQuestion
from perfmodel_cli.signals import BY_SIGNAL, StoppedError, stopped_by_signals

if TYPE_CHECKING:
    from perfmodel.launch.processes.experiment import Experiment
    from perfmodel.records import Record

_WEEK = 7 * 24 * 60 * 60  # seconds; torch waits for no longer than 24 days


@asks
@example("perfmodel run --model gpt-tiny --grid 2x2x1x1")
def run(
    question: RunQuestion,
    timeout: Annotated[float, typer.Option("--timeout", min=1, help="Time limit per grid in seconds.")] = 600.0,
    out: Annotated[str, typer.Option("--out", help="Append each result to this file, one JSON object per line.")] = "",
    resume: Annotated[bool, typer.Option("--resume", help="Skip runs whose good result --out already holds.")] = False,
    output: shared.Output = shared.Format.table,
) -> None:
    """Train a model on grids, each in its own processes, and measure steps, memory, and collectives.

    Needs torch. Ranks are started here, or are those of torchrun, srun or mpirun when it starts this command.
    """
    if resume and not out:
        raise UsageError("--resume needs --out, the file that holds what is done")
    if not timeout <= _WEEK:  # nor is NaN
        raise UsageError(f"--timeout {timeout:g}: wanted at most {_WEEK}, a week")
    need_torch("perfmodel run")
    from perfmodel.launch.processes.environment import place
    from perfmodel.launch.processes.runner import Runner

    here = place(os.environ)
    experiments = question.experiments(here)
    runner = Runner(
        experiments=tuple(experiments), place=here, timeout=timeout, threads_given="OMP_NUM_THREADS" in os.environ
    )
    rows: dict[int, Record] = {}
    stopped = None
    try:
        with stopped_by_signals():
            if here is not None and here.rank > 0:
                runner.follow()
                return
            for number, record in _results(runner, Path(out) if out else None, resume=resume):
                rows[number] = record  # noqa: PERF403 - what is done is kept when the next is interrupted
    except StoppedError as signalled:
        stopped = signalled.number
    finally:
        if rows:
            _show([rows[number] for number in sorted(rows)], output)
    _end(list(rows.values()), len(experiments), stopped, kept=bool(out))


def need_torch(command: str) -> None:
    """Raise where torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        raise PerfmodelError(f"{command} needs torch: pip install 'perfmodel[launch]'")


def _results(runner: Any, path: Path | None, *, resume: bool) -> "Iterator[tuple[int, Record]]":
    """Records of all runs: those that the file holds, then the others, which are added to it one by one."""
    from perfmodel.launch.processes import results

    kept = results.Kept((), ())
    if path is not None:
        kept = results.read(path)
        results.check_writable(path)
    for problem in kept.problems:
        printing.tell(problem)
    held = {number: kept.answer(one) for number, one in enumerate(runner.experiments)} if resume else {}
    done = {number: record for number, record in held.items() if record is not None}
    if done:
        printing.tell(f"{path} holds {len(done)} of {len(runner.experiments)} results already")
    yield from done.items()
    wanted = [number for number in range(len(runner.experiments)) if number not in done]
    for number, record in runner.run(wanted, lambda number: _announce(runner.experiments, number)):
        printing.tell(_outcome(runner.experiments[number], record))
        try:
            if path is not None:
                results.append(path, record)
        finally:
            yield number, record


def _announce(experiments: "tuple[Experiment, ...]", number: int) -> None:
    one = experiments[number]
    ranks = f"{one.ranks} rank{'s' if one.ranks > 1 else ''}"
    which = f"{number + 1} of {len(experiments)}{f', round {one.round}' if experiments[-1].round > 1 else ''}"
    printing.tell(f"{one.grid} ({which}): {ranks}, {one.warmup} + {one.steps} steps")


def _outcome(experiment: "Experiment", record: "Record") -> str:
    from perfmodel.launch.processes.results import loss_text
    from perfmodel.units import show

    if record["status"] != "ok":
        return f"{experiment.grid}: {record['status']}: {record['message']}"
    return f"{experiment.grid}: {show(record['step_time_s'], 's')} per step, loss {loss_text(record['losses'][-1])}"


def _show(rows: "list[Record]", output: shared.Format) -> None:
    printing.show({"results": rows}, rows, output.value, lambda: printing.renderer("run_table").runs(rows))


def _end(rows: "list[Record]", wanted: int, stopped: int | None, *, kept: bool) -> None:
    """The exit code: that of a signal, or 1 where no grid has run. `kept`: there is a file to go on from."""
    if stopped is not None:
        goes_on = "; the same command with --resume continues" if kept else ""
        printing.tell(f"ended by {signal.Signals(stopped).name} after {len(rows)} of {wanted} runs{goes_on}")
        raise typer.Exit(BY_SIGNAL + stopped)
    if not any(row["status"] == "ok" for row in rows):
        raise PerfmodelError(f"no grid has run to its end; the first: {rows[0]['status']}: {rows[0]['message']}")
