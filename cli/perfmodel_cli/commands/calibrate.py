"""The command that fits a few figures of a profile to measured steps."""

from pathlib import Path
from typing import Annotated

import typer

from perfmodel.errors import nothing_left
from perfmodel.parallel import option_values
from perfmodel_cli.options import shared
from perfmodel_cli.options.question import example
from perfmodel_cli.printing import tell_dropped


@example("perfmodel calibrate --measured docs/examples/runs.jsonl --machine localhost-cpu --out mine.yaml")
def calibrate(
    measured: shared.Measured,
    machine: Annotated[str, typer.Option("--machine", help="The machine of all rows, whose profile is fitted.")],
    out: shared.NewProfile,
    model: shared.RowModel = "",
    fit: Annotated[str, typer.Option("--fit", help="Only these parameters, such as gemm,contention.")] = "",
    output: shared.Output = shared.Format.table,
) -> None:
    """Fit a few figures of a profile to measured steps, and write a profile based on it. Needs scipy.

    Robust against outliers and within bounds; figures that the steps do not determine stay as they are. It says whether
    steps that were left out of the fit are predicted better than before.
    """
    from perfmodel import files
    from perfmodel.machines import profiles
    from perfmodel.validation import calibrated_profile, calibration, compare, records, step_files
    from perfmodel_cli import printing

    file = calibrated_profile.free(out, "--out")
    calibration.check_installed()
    known = profiles.load(machine)
    rows = calibration.stated(step_files.read(Path(measured), machine=machine, model=model))
    compared = compare.compare(rows)
    if not compared.rows:
        raise nothing_left(compared.problems, measured, "fit")
    tell_dropped(compared.problems, compared.dropped, len(compared.rows) + compared.dropped)
    found = calibration.calibrate(compared, known, option_values.names(fit))
    record = records.calibration_record(found)
    files.write_new(file, calibrated_profile.profile(found, machine, file, [measured]))
    printing.show(
        record, record["parameters"], output.value, lambda: printing.renderer("calibration_table").calibration(record)
    )
    printing.tell(f"wrote {out}; to use it: --machine {file if file.parent != Path() else f'./{file}'}")
