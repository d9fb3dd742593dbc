"""Read the config.json of a Hugging Face model: which architecture, and which part of the file describes the text."""

import json
from collections.abc import Mapping
from pathlib import Path

from perfmodel import schema
from perfmodel.errors import PerfmodelError
from perfmodel.models.architectures import ARCHITECTURES
from perfmodel.models.config import Config, shown
from perfmodel.models.model import Model

# Where multimodal models keep the description of their language part.
_TEXT_PARTS = ("text_config", "llm_config", "language_config")
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts", "n_experts")


def load(path: Path) -> Model:
    """The model that the config.json at `path` describes, or one sentence with the file, the key and its value."""
    values = _parse(schema.read_text(path), path)
    try:
        return _model(values, path)
    except PerfmodelError as error:
        raise PerfmodelError(f"{path}: {error}") from None


def _parse(text: str, path: Path) -> Mapping[str, object]:
    try:
        values = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_unique)
    except PerfmodelError as error:
        raise PerfmodelError(f"{path}: {error}") from None
    except json.JSONDecodeError as error:
        raise PerfmodelError(f"{path}:{error.lineno}: not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise PerfmodelError(f"{path}: nested too deeply") from None
    except ValueError:
        raise PerfmodelError(f"{path}: a number has thousands of digits") from None
    if not isinstance(values, dict):
        raise PerfmodelError(f"{path}: wanted an object with keys, found {shown(values)}")
    return values


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object; refuse a key that is given twice, as JSON would silently use the second value."""
    values: dict[str, object] = {}
    for key, value in pairs:
        if key in values:
            raise PerfmodelError(f"the key {key} is given twice")
        values[key] = value
    return values


def _model(values: Mapping[str, object], path: Path) -> Model:
    whole = Config(values)
    _refuse_experts(whole)
    architecture = whole.text("model_type")
    config, name = whole, _name(path, architecture)
    if architecture not in ARCHITECTURES:
        part = next((key for key in _TEXT_PARTS if isinstance(values.get(key), dict)), None)
        if part is not None:
            config = _text_part(whole, part)
            architecture, name = config.text("model_type"), f"{name} (text part)"
            _refuse_experts(config)
    if architecture is None:
        raise PerfmodelError(f"missing {config.within}model_type, which names the architecture")
    if architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise PerfmodelError(f"{config.within}model_type is {shown(architecture)}; supported are {known}")
    return ARCHITECTURES[architecture].read(config).model(name)


def _text_part(whole: Config, part: str) -> Config:
    """The language part of a larger model, with what the library assumes for keys left out there."""
    values = whole.values[part]
    if not isinstance(values, dict):
        raise PerfmodelError(f"{part} is {shown(values)}, wanted an object")
    kind = values.get("model_type")
    assumed = ARCHITECTURES[kind].assumed if isinstance(kind, str) and kind in ARCHITECTURES else {}
    tied = {key: whole.values[key] for key in ("tie_word_embeddings",) if key in whole.values}
    return Config({**tied, **values}, assumed, f"{part}.")


def _refuse_experts(config: Config) -> None:
    for key in _EXPERTS:
        experts = config.values.get(key)
        if isinstance(experts, int) and experts > 1:
            name = config.text("model_type") or "this model"
            raise PerfmodelError(
                f"{name} is a mixture of experts ({shown(experts)} experts, {config.within}{key}); "
                "perfmodel models dense decoders"
            )


def _name(path: Path, architecture: str | None) -> str:
    """The name of the model: its folder, since the file itself is always called config.json."""
    name = path.parent.name if path.stem == "config" else path.stem
    return name if name.strip() and name.isprintable() else architecture or "config"
