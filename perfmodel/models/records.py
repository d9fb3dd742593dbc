"""Models as plain records."""

from __future__ import annotations

from perfmodel.models.model import Model, closed_form_flops, closed_form_parameters, layer_flops
from perfmodel.records import Record, plain


def model_record(model: Model) -> Record:
    """A model's counts and its layers."""
    shape = model.transformer
    closed = closed_flops = None
    if shape and shape.is_gpt:  # the closed forms count nothing else
        closed_flops = closed_form_flops(
            batch=1, sequence=model.sequence, layers=shape.layers, hidden=shape.hidden, vocabulary=shape.vocabulary,
            recompute=False,
        )  # fmt: skip
        closed = closed_form_parameters(
            layers=shape.layers, hidden=shape.hidden, vocabulary=shape.vocabulary, sequence=shape.sequence
        )
    layers = [
        {"block": block.name, "repeat": block.repeat, "kind": type(layer).__name__.lower()} | plain(layer)
        | {"parameters": layer.parameters, "forward_flop": layer_flops(layer, model.sequence)}
        for block, layer in model.layers()
    ]  # fmt: skip
    return {
        "model": model.name,
        "sequence_length": model.sequence,
        "parameters": model.parameters,
        "closed_form_parameters": closed,
        "forward_flop_per_sequence": model.forward_flops(model.sequence),
        "step_flop_per_sequence": 3 * model.forward_flops(model.sequence),
        "closed_form_step_flop_per_sequence": closed_flops,
        "layers": layers,
    }


def model_summary(model: Model) -> Record:
    """One line of `models list`."""
    shape = model.transformer
    return {
        "name": model.name,
        "parameters": model.parameters,
        "layers": shape.layers if shape else None,
        "hidden": shape.hidden if shape else None,
        "heads": shape.heads if shape else None,
        "sequence_length": model.sequence,
    }
