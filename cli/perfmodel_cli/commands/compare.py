"""The commands that compare predictions with measurements: compare and validate."""

import math
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from perfmodel.errors import PerfmodelError, UsageError, nothing_left
from perfmodel_cli.options import shared
from perfmodel_cli.options.question import example
from perfmodel_cli.printing import tell_dropped

_BOUND = 0.25


@example("perfmodel compare --measured docs/examples/measured.csv")
def compare(
    measured: shared.Measured,
    machine: Annotated[str, typer.Option("--machine", help="A machine for all rows, instead of the column.")] = "",
    model: shared.RowModel = "",
    output: shared.Output = shared.Format.table,
    plot: Annotated[str, typer.Option("--plot", help="Plot predicted against measured into this .png or .svg.")] = "",
) -> None:
    """Compare predictions with measured steps: errors of size, and of order within groups.

    Where `perfmodel run` has timed the collectives, also which of them are off, and what fails most.
    """
    from perfmodel.validation import compare as validating
    from perfmodel.validation import records, step_files
    from perfmodel_cli import printing
    from perfmodel_cli.plots import picture_files

    file = picture_files.wanted(plot)
    rows = step_files.read(Path(measured), machine=machine, model=model)
    found = validating.compare(rows)
    if not found.rows:
        raise nothing_left(found.problems, measured, "compare")
    tell_dropped(found.problems, found.dropped, sum(one.row.repetitions for one in found.rows) + found.dropped)
    record = records.record(found)
    printing.show(
        record, record["rows"], output.value, lambda: printing.renderer("comparison_tables").comparison(record)
    )
    if file:
        from perfmodel_cli.plots import measured_plot

        measured_plot.scatter(record, file)


@example("perfmodel validate")
def validate(
    check: Annotated[str, typer.Option("--check", help="One check of the table only.")] = "",
    bound: Annotated[float, typer.Option("--bound", min=0, help="Mean error above which the exit code is 1.")] = _BOUND,
    steps: Annotated[
        list[str] | None,
        typer.Option("--steps", help="Score published steps instead: a .csv file or a folder of them; repeatable."),
    ] = None,
    framework: Annotated[str, typer.Option("--framework", help="With --steps: this framework for all rows.")] = "",
    output: shared.Output = shared.Format.table,
) -> None:
    """Compare predictions with figures printed in papers, which come with the program.

    As shipped, and with one number per machine fitted to one figure, which is then not scored. With --steps, score sets
    of published steps of your own, in the columns of docs/validation.md.
    """
    if steps:
        _score_steps(steps, framework, output)
        return
    from perfmodel.validation import published, records
    from perfmodel_cli import printing

    if not math.isfinite(bound):
        raise UsageError(f"--bound is {bound}: wanted a share, such as 0.1")
    found, fits = published.validate(check), published.fits()
    record = records.published_record(found, bound, fits=fits, refitted=published.refitted(found, fits))
    printing.show(
        record, record["rows"], output.value, lambda: printing.renderer("comparison_tables").validation(record)
    )
    summary = record["summary"]
    if not summary["within_bound"]:
        raise PerfmodelError(f"the mean error of {summary['mape']:.1%} is above the bound of {bound:.1%}")


def _score_steps(paths: list[str], framework: str, output: shared.Format) -> None:
    from perfmodel.validation.steps import records as step_records
    from perfmodel.validation.steps import scores as step_scores
    from perfmodel_cli import printing

    rows, refused = step_scores.scored(step_scores.files(paths), framework)
    if not rows:
        reasons = Counter(reason for told in refused.values() for reason in told.elements())
        raise PerfmodelError(f"no row can be predicted: {'; '.join(reason for reason, _ in reasons.most_common(3))}")
    record = step_records.steps_record(rows, refused)
    printing.show(record, record["rows"], output.value, lambda: printing.renderer("step_scores_table").scores(record))
