"""The commands that list, show, check and write machine profiles."""

from pathlib import Path
from typing import Annotated

import typer

from perfmodel.errors import printable
from perfmodel_cli.options import shared
from perfmodel_cli.options.question import example
from perfmodel_cli.printing import renderer, show


@example("perfmodel machines list")
def machines_list(output: shared.Output = shared.Format.table) -> None:
    """List the shipped machines."""
    from perfmodel.machines import profiles, records

    rows = [records.machine_summary(profiles.load(name)) for name in profiles.names()]
    show({"machines": rows}, rows, output, lambda: renderer("listings").rows(rows))


@example("perfmodel machines show frontier")
def machines_show(
    name: Annotated[str, typer.Argument(help="A shipped machine, or the path of a profile.")],
    output: shared.Output = shared.Format.table,
) -> None:
    """Show a profile: every figure with its source."""
    from perfmodel.costs import profile_record
    from perfmodel.machines import profiles, records

    machine = profiles.load(name)
    record, figures = profile_record.machine_record(machine), records.machine_figures(machine)
    rows = [*figures, *records.timing_figures(machine)]
    show(record, rows, output, lambda: renderer("listings").machine(machine, figures, record["derived_bandwidths"]))


@example("perfmodel machines check my-cluster.yaml")
def machines_check(file: Annotated[str, typer.Argument(help="A profile of your own.")]) -> None:
    """Check a profile, and name every problem with its line."""
    from perfmodel.machines import profiles

    machine = profiles.load_file(Path(file)) if Path(file).exists() else profiles.load(file)
    typer.echo(printable(f"{file}: {machine.title} is a valid profile"))


@example("perfmodel machines new --from perlmutter my-cluster.yaml")
def machines_new(
    file: Annotated[str, typer.Argument(help="The file to write.")],
    name: Annotated[str, typer.Option("--from", help="The shipped machine to start from.")],
) -> None:
    """Write a commented profile to edit, filled with a shipped machine's figures."""
    from perfmodel import files
    from perfmodel.machines import template

    path = shared.profile_path(file)
    files.write_new(path, template.template(name, path.name.removesuffix(".yaml").removesuffix(".yml")))
    typer.echo(printable(f"wrote {file}; edit it, then: perfmodel machines check {file}"))
