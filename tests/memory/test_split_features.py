"""Which axis splits the features between layers, and what follows from it in memory and rules."""

import pytest

from machines import gpt, job
from perfmodel import models
from perfmodel.memory.activations import block_activations
from perfmodel.models.layers import Activation, Linear, Norm
from perfmodel.models.model import Block, Model
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.rules import first_broken, grid_rules
from perfmodel.parallel.settings import Settings
from perfmodel.parallel.sharding import replicated_parameters

UNET = next(name for name in models.names() if name.startswith("unet"))
RESIDUAL = (
    Norm(name="first norm", width=96),
    Activation(name="first activation", width=96),
    Linear(name="first", inputs=96, outputs=64, bias=False),
    Norm(name="second norm", width=64),
    Activation(name="second activation", width=64),
    Linear(name="second", inputs=64, outputs=64, transposed=True, bias=False),
    Norm(name="last norm", width=64),
)


def test_features_are_split_over_x_after_a_normal_layer_and_over_y_elsewhere():
    assert [axis for _, axis in Block(name="b", layers=RESIDUAL).split()] == ["y", "y", "y", "x", "x", "x", "y"]


def test_what_norms_and_activations_keep_is_split_as_the_layer_before_left_it():
    kept = block_activations(Block(name="b", layers=RESIDUAL), Settings().resolve("bf16"), sequence=1)
    assert kept.over_y == 2 * (96 + 96 + 96 + 64)  # two inputs and the first product's, then the last norm's
    assert kept.over_x == 2 * (64 + 64 + 64)


def test_parameters_of_norms_are_split_with_their_features():
    model = Model(name="residual", sequence=8, blocks=(Block(name="b", layers=RESIDUAL),))
    assert replicated_parameters(job(model), Layout(x=2, y=4, z=8, data=1)) == 2 * 96 / 4 + 2 * 64 / 2 + 2 * 64 / 4


def test_widths_are_held_to_the_axis_that_splits_them():
    layers = (
        Activation(name="first", width=12),
        Linear(name="up", inputs=12, outputs=16),
        Norm(name="second", width=16),
        Linear(name="down", inputs=16, outputs=12, transposed=True),
    )
    rules = grid_rules(job(Model(name="m", sequence=8, blocks=(Block(name="b", layers=layers),)), batch=1))
    for grid, name in (((8, 1), None), ((1, 3), None), ((3, 1), "width_x"), ((1, 8), "width_y")):
        first = int(first_broken(rules, Layout.of((*grid, 1, 1))))
        assert (rules[first].name if first < len(rules) else None) == name


def test_a_unet_keeps_most_of_what_it_keeps_at_the_start_of_its_blocks_over_y():
    for block in models.load(UNET).blocks:
        axes = {layer.name: axis for layer, axis in block.split()}
        assert axes["first activation"] == axes["first norm"] == "y"
        assert axes["second activation"] == axes["second norm"] == "x"


@pytest.mark.parametrize("shape", [{}, {"gated": True}, {"norms": 1}, {"norms": 4}, {"embedding_norm": True}], ids=str)
def test_in_a_transformer_norms_are_split_over_y_and_activations_over_x(shape):
    for block in gpt(**shape).blocks:
        for layer, axis in block.split():
            if isinstance(layer, (Norm, Activation)):
                assert axis == ("y" if isinstance(layer, Norm) else "x")
