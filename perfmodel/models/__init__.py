"""What is trained: models known by name, our own YAML, or the config.json of a Hugging Face model.

It may import no other room, only the base modules.
"""

import os
from pathlib import Path

from perfmodel.errors import PerfmodelError, UsageError, nearest
from perfmodel.models import presets
from perfmodel.models.model import Model

_YAML = (".yaml", ".yml")
_JSON = ".json"


def names() -> list[str]:
    """Names of the models known, smallest first within a family."""
    return list(presets.PRESETS)


def load(text: str) -> Model:
    """The model called `text`, or the one described by the file of that path (.yaml, .yml or .json).

    >>> load("llama-3-8b").parameters
    8030261248
    """
    known = text.lower()
    if known in presets.PRESETS:
        return presets.model(known)
    # Parsers are imported here, so that a model known by name costs nothing.
    if known.endswith(_YAML) and not _is_folder(text):
        from perfmodel.models import files  # noqa: PLC0415

        return files.load(Path(text))
    if known.endswith(_JSON) and not _is_folder(text):
        from perfmodel.models import huggingface  # noqa: PLC0415

        return huggingface.load(Path(text))
    raise _not_a_model(text)


def _not_a_model(text: str) -> PerfmodelError:
    """The sentence that says what to give instead."""
    if _is_folder(text):
        config = str(Path(text) / "config.json")
        advice = f"give {config}" if _is_file(config) else "wanted a .yaml file or a config.json"
        return UsageError(f"{text} is a directory, {advice}")
    if _is_file(text):
        return UsageError(f"{text} ends neither in .yaml (our own models) nor in .json (Hugging Face configs)")
    offered = nearest(text.rpartition("/")[2], names())
    return UsageError(f"no model is called {text!r} ({offered}; or give the path of a .yaml file or a config.json)")


def _is_folder(text: str) -> bool:
    return os.path.isdir(text)  # noqa: PTH112 - Path.is_dir raises for a name that is too long


def _is_file(text: str) -> bool:
    return os.path.isfile(text)  # noqa: PTH113 - as above
