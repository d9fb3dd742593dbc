"""What is kept from the forward to the backward pass is what the analytical model counts, byte for byte."""

from dataclasses import replace

import pytest
import torch

from gloo.beside_dense import SHAPES
from perfmodel.launch.layers import decoder
from perfmodel.launch.training.groups import Grid
from perfmodel.launch.training.parameters import hold
from perfmodel.launch.training.plan import Plan
from perfmodel.memory.activations import block_activations
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.settings import Settings

SEQUENCES, POSITIONS, PADDED = 4, 32, 52
ONE = Layout(x=1, y=1, z=1, data=1)


def kept(model, *, flash, dropout):
    """Bytes of all tensors that autograd keeps, parameters left out; each piece of memory once."""
    plan = replace(Plan.of(Grid.of(ONE)), dropout=dropout)
    built = decoder.build(model, plan, padded_vocabulary=PADDED, flash=flash)
    flat = hold(built, device=torch.device("cpu"), dtype=torch.float32)
    found = {}

    def keep(tensor):
        found[tensor.untyped_storage().data_ptr()] = tensor  # held, so that no other gets its address
        return tensor

    tokens = torch.zeros(SEQUENCES, POSITIONS, dtype=torch.int64)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        built(tokens, tokens, scale=1.0)
    found.pop(flat.values.untyped_storage().data_ptr())
    return sum(tensor.untyped_storage().nbytes() for tensor in found.values())


def counted(model, *, flash, dropout):
    """What the model counts, and what it counts elsewhere or leaves out: logits, and angles that all layers share."""
    settings = Settings(flash_attention=flash, dropout=dropout > 0).resolve("fp32")
    layers = sum(block.repeat * block_activations(block, settings, POSITIONS).on(ONE) for block in model.blocks)
    angles = 0 if model.transformer.learned_positions else 4 * POSITIONS * 2 * (model.transformer.head_width // 2)
    return SEQUENCES * POSITIONS * (layers + 4 * PADDED) + angles


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("flash", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_kept_is_what_the_model_counts(shape, flash, dropout):
    positions = POSITIONS if SHAPES[shape].learned_positions else 0
    model = replace(SHAPES[shape], learned_positions=positions).model(shape)
    assert kept(model, flash=flash, dropout=dropout) == counted(model, flash=flash, dropout=dropout)
