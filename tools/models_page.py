"""The tables of docs/models.md, made from the code: models known by name, keys of our files, architectures read.

Run as `python tools/models_page.py` to compare, as `python tools/models_page.py --write` to put them in place.
"""

import dataclasses
import typing
from pathlib import Path

from page_tables import run, table
from perfmodel import models, units
from perfmodel.models.architectures import ARCHITECTURES
from perfmodel.models.files import BlockEntry, LayerEntry, ModelFile
from perfmodel.models.model import Transformer
from perfmodel.models.presets import PRESETS

PAGE = Path(__file__).parents[1] / "docs" / "models.md"


def presets() -> str:
    """One line a model known by name."""
    rows = []
    for name in models.names():
        model = models.load(name)
        flops = units.show(model.forward_flops(model.sequence) / model.sequence, "flop")
        rows.append([f"`{name}`", f"{model.parameters:,}", flops, str(model.sequence), PRESETS[name].source])
    return table(["name", "parameters", "FLOPs per token, forward", "sequence", "source"], rows, numbers_right=True)


def keys() -> str:
    """One line a record of a file, with its keys; those in brackets may be left out."""
    kinds = typing.get_type_hints(LayerEntry)
    records = {"(file)": ModelFile, "transformer": Transformer, "blocks": BlockEntry}
    records |= {name: typing.get_args(kind)[0] for name, kind in kinds.items()}
    return table(["record", "keys"], [[f"`{name}`", ", ".join(_keys(kind))] for name, kind in records.items()])


def _keys(kind: type) -> list[str]:
    return [_key(field) for field in dataclasses.fields(kind) if field.init]


def _key(field: "dataclasses.Field[object]") -> str:
    optional = field.default is not dataclasses.MISSING
    known = field.default is not None and field.default != () and optional
    value = str(field.default).lower() if isinstance(field.default, bool) else field.default
    text = f"`{field.name}`" + (f" = {value}" if known else "")
    return f"[{text}]" if optional else text


def architectures() -> str:
    """One line an architecture."""
    rows = [[f"`{name}`", kind.features, kind.checked] for name, kind in ARCHITECTURES.items()]
    return table(["model_type", "what it is", "checked against"], rows)


TABLES = {"presets": presets, "keys": keys, "architectures": architectures}

if __name__ == "__main__":
    run(PAGE, TABLES, __doc__)
