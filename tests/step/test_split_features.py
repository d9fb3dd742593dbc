"""Which axis splits the features between layers, and what follows from it in memory and rules."""

import pytest

from machines import gpt, job
from perfmodel import models
from perfmodel.models.layers import Activation, Linear, Norm
from perfmodel.models.model import Block, Model
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.rules import first_broken, grid_rules
from perfmodel.parallel.settings import Sized
from perfmodel.parallel.sharding import replicated_parameters
from perfmodel.step.activations import block_activations

UNET = next(name for name in models.names() if name.startswith("unet"))
RESIDUAL = (
    Norm("first norm", 96),
    Activation("first activation", 96),
    Linear("first", 96, 64, bias=False),
    Norm("second norm", 64),
    Activation("second activation", 64),
    Linear("second", 64, 64, transposed=True, bias=False),
    Norm("last norm", 64),
)


def test_features_are_split_over_x_after_a_normal_layer_and_over_y_elsewhere():
    assert [axis for _, axis in Block("b", RESIDUAL).split()] == ["y", "y", "y", "x", "x", "x", "y"]


def test_what_norms_and_activations_keep_is_split_as_the_layer_before_left_it():
    kept = block_activations(Block("b", RESIDUAL), Sized(), sequence=1)
    assert kept.over_y == 2 * (96 + 96 + 96 + 64)  # two inputs and the first product's, then the last norm's
    assert kept.over_x == 2 * (64 + 64 + 64)


def test_parameters_of_norms_are_split_with_their_features():
    model = Model("residual", 8, (Block("b", RESIDUAL),))
    assert replicated_parameters(job(model), Layout(2, 4, 8, 1)) == 2 * 96 / 4 + 2 * 64 / 2 + 2 * 64 / 4


def test_widths_are_held_to_the_axis_that_splits_them():
    layers = (
        Activation("first", 12),
        Linear("up", 12, 16),
        Norm("second", 16),
        Linear("down", 16, 12, transposed=True),
    )
    rules = grid_rules(job(Model("m", 8, (Block("b", layers),)), batch=1))
    for grid, name in (((8, 1), None), ((1, 3), None), ((3, 1), "width_x"), ((1, 8), "width_y")):
        first = int(first_broken(rules, Layout(*grid, 1, 1)))
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
