"""The command that asks the same question for several counts of devices."""

from dataclasses import replace
from typing import Annotated

import typer

from perfmodel.parallel import option_values
from perfmodel_cli import printing
from perfmodel_cli.options import shared
from perfmodel_cli.options.groups import AxisLimits, asks
from perfmodel_cli.options.question import Question, example
from perfmodel_cli.texts import spelled


@asks
@example("perfmodel sweep --model gpt-20b --machine perlmutter --gpus 64,128,256 --batch 2048")
def sweep(
    question: Question,
    gpus: Annotated[str, typer.Option("--gpus", help="Counts of devices, such as 64,128,256.")],
    batch: Annotated[
        int | None, typer.Option("--batch", help="Sequences per step at every count (strong scaling).")
    ] = None,
    batch_per_gpu: Annotated[
        float | None, typer.Option("--batch-per-gpu", help="Sequences per device and step (weak scaling).")
    ] = None,
    *,
    limits: AxisLimits,
    measured: shared.Measured = "",
    plot: Annotated[str, typer.Option("--plot", help="Draw step time and efficiency into this .png or .svg.")] = "",
    output: shared.Output = shared.Format.table,
) -> None:
    """Find the best grid for each of several counts of GPUs: time, efficiency, and what limits it."""
    devices = option_values.devices(gpus, "--gpus")
    from perfmodel.search import scaling as sweeping
    from perfmodel.search.question import scaled_batch
    from perfmodel.search.results import answer_records
    from perfmodel_cli.plots import picture_files

    wanted, file = scaled_batch(batch, batch_per_gpu, spelled), picture_files.wanted(plot)
    asked = replace(question, batch=wanted.any_of(devices))
    job = asked.job(limits, measured)
    space = asked.space(devices[0], 1)
    found = list(printing.progress(sweeping.points(job, space, devices, wanted), len(devices), "counts"))
    record = answer_records.sweep_record(job, wanted, sweeping.answered(found))
    printing.show(record, record["points"], output.value, lambda: printing.renderer("sweep_table").sweep(record))
    if file:
        from perfmodel_cli.plots import scaling_plot

        scaling_plot.scaling(record, file)
