"""Find and read models: known by name, our own YAML, or the config.json of a Hugging Face model."""

import os
from pathlib import Path

from perfmodel import presets
from perfmodel.errors import PerfmodelError, UsageError, nearest
from perfmodel.workload import Model

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
    if text.lower().endswith(_YAML) and not os.path.isdir(text):
        from perfmodel import model_files

        return model_files.load(Path(text))
    if text.lower().endswith(_JSON) and not os.path.isdir(text):
        from perfmodel import huggingface

        return huggingface.load(Path(text))
    raise _not_a_model(text)


def _not_a_model(text: str) -> PerfmodelError:
    """The sentence that says what to give instead."""
    if os.path.isdir(text):
        config = os.path.join(text, "config.json")
        advice = f"give {config}" if os.path.isfile(config) else "wanted a .yaml file or a config.json"
        return UsageError(f"{text} is a directory, {advice}")
    if os.path.isfile(text):
        return UsageError(f"{text} ends neither in .yaml (our own models) nor in .json (Hugging Face configs)")
    offered = nearest(text.rpartition("/")[2], names())
    return UsageError(f"no model is called {text!r} ({offered}; or give the path of a .yaml file or a config.json)")
