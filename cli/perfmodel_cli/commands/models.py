"""The commands that list and show models."""

from typing import Annotated

import typer

from perfmodel_cli.options import shared
from perfmodel_cli.options.question import example
from perfmodel_cli.printing import renderer, show


@example("perfmodel models list")
def models_list(output: shared.Output = shared.Format.table) -> None:
    """List the model presets."""
    from perfmodel import models as library
    from perfmodel.models import records as models_records

    rows = [models_records.model_summary(library.load(name)) for name in library.names()]
    show({"models": rows}, rows, output, lambda: renderer("listings").rows(rows))


@example("perfmodel models show llama-3-8b")
def models_show(
    name: Annotated[str, typer.Argument(help="A preset, a YAML file, or a Hugging Face config.json.")],
    output: shared.Output = shared.Format.table,
) -> None:
    """Show a model's layers, parameters and FLOPs."""
    from perfmodel import models as library
    from perfmodel.models import records as models_records

    record = models_records.model_record(library.load(name))
    show(record, record["layers"], output, lambda: renderer("listings").model(record))
