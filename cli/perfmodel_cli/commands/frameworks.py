"""The commands that list and show frameworks."""

from typing import Annotated

import typer

from perfmodel_cli.options import shared
from perfmodel_cli.options.question import example
from perfmodel_cli.printing import renderer, show


@example("perfmodel frameworks list")
def frameworks_list(output: shared.Output = shared.Format.table) -> None:
    """List the frameworks whose traits are known."""
    from perfmodel.frameworks import loading, records

    rows = [records.summary(loading.load(name)) for name in loading.names()]
    show({"frameworks": rows}, rows, output, lambda: renderer("listings").rows(rows))


@example("perfmodel frameworks show megatron-lm")
def frameworks_show(
    name: Annotated[str, typer.Argument(help="A shipped framework, or the path of a .yaml file.")],
    output: shared.Output = shared.Format.table,
) -> None:
    """Show what a framework does in a step: every trait with its source."""
    from perfmodel.frameworks import loading, records

    found = records.record(loading.load(name))
    show(found, found["traits"], output, lambda: renderer("framework_table").framework(found))
