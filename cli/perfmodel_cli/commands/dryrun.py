"""The command that runs the launch code dry: at any scale, in one process, without a GPU."""

from typing import TYPE_CHECKING, Annotated

import typer

from perfmodel.errors import PerfmodelError, UsageError
from perfmodel_cli.commands.run import need_torch
from perfmodel_cli.options import shared
from perfmodel_cli.options.groups import asks
from perfmodel_cli.options.question import Question, example

if TYPE_CHECKING:
    from perfmodel.parallel.job import Job
    from perfmodel.parallel.layout import Layout


@asks
@example("perfmodel dryrun --grid 2x2x4x4 --gpus 64 --model gpt-tiny --machine perlmutter --batch 32")
def dryrun(
    question: Question,
    grid: shared.Grid,
    gpus: shared.Gpus = None,
    rank: Annotated[int, typer.Option("--rank", min=0, help="The rank to run.")] = 0,
    output: shared.Output = shared.Format.table,
) -> None:
    """Run the launch code's step for one rank without a GPU, and count what it sends, multiplies and holds.

    Needs torch. Process groups and tensors are fake, so that any number of ranks can be asked for.
    """
    need_torch("perfmodel dryrun")
    job, layout = _chosen(question, grid, gpus)
    from perfmodel.launch.dryrun.beside import beside_record
    from perfmodel.launch.dryrun.step import dry_run
    from perfmodel_cli import printing

    record = beside_record(job, layout, rank, dry_run(job, layout, rank=rank))
    printing.show(
        record, record["collectives"], output.value, lambda: printing.renderer("dryrun_table").dry_run(record)
    )


def _chosen(question: Question, grid: str, gpus: int | None) -> "tuple[Job, Layout]":
    """The job, and the grid with what was left open as `explain` would choose it."""
    from perfmodel.parallel.layout import parse_grid
    from perfmodel.parallel.rules import MEMORY
    from perfmodel.search.explain import explain

    asked = parse_grid(grid)
    if gpus is not None and gpus != asked.gpus:
        raise UsageError(f"--grid {grid} has {asked.gpus} devices, --gpus says {gpus}")
    if question.fidelity is shared.FidelityChoice.paper:
        raise UsageError("--fidelity paper leaves out most of what is sent: wanted flat or full")
    job = question.job()
    found = explain(job, question.space(int(asked.gpus), 1), asked)
    broken = [reason for rule, reason in found.rejections if rule != MEMORY]
    if broken:
        raise PerfmodelError(f"{grid} cannot run {job.model.name}: {broken[0]}")
    return job, found.layout
