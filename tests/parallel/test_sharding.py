"""Parameters on one device: worked numbers of small models, and all of them together on one device alone."""

import pytest

from machines import gpt, job, linears
from perfmodel import models
from perfmodel.models.layers import Linear
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.sharding import replicated_parameters, sharded_parameters

PAIR = (
    Linear(name="up", inputs=96, outputs=64),
    Linear(name="down", inputs=64, outputs=96, transposed=True),
)


def layout(x=1, y=1, z=1, data=1):
    return Layout(x=x, y=y, z=z, data=data)


@pytest.mark.parametrize("data", [1, 5])
def test_weights_are_split_over_x_y_and_z_and_not_over_data(data):
    question = job(linears(*PAIR, repeat=3))
    assert sharded_parameters(question, layout(2, 4, 8, data)) == 3 * 2 * 96 * 64 / (2 * 4 * 8)


def test_a_bias_is_split_over_the_axis_of_its_outputs_and_never_over_z():
    question = job(linears(*PAIR, repeat=3))
    assert replicated_parameters(question, layout(2, 4, 8)) == 3 * (64 / 2 + 96 / 4)


def test_the_table_of_the_vocabulary_is_split_after_it_is_padded():
    question = job(gpt(vocabulary=1000, hidden=1024))
    weights = sharded_parameters(question, layout()) - 1024 * 1024  # 1000 tokens in 8 * 128 rows
    assert weights == 4 * (3 + 1 + 4 + 4) * 1024 * 1024
    padded = 1536  # 12 * 128, for X and Y of 12 together
    assert sharded_parameters(question, layout(4, 3)) == (weights + padded * 1024) / 12


@pytest.mark.parametrize("name", models.names())
def test_one_device_alone_holds_all_parameters_of_a_model(name):
    question = job(models.load(name), vocabulary_multiple=0)
    held = sharded_parameters(question, layout()) + replicated_parameters(question, layout())
    assert held == question.model.parameters


@pytest.mark.parametrize("name", ["gpt-20b", "llama-3-8b", "unet-7b"])
def test_all_shards_together_are_the_weights_of_the_model(name):
    question = job(models.load(name), vocabulary_multiple=0)
    whole = sharded_parameters(question, layout())
    for sizes in ((2, 4, 8), (8, 2, 1), (1, 1, 64)):
        assert sharded_parameters(question, layout(*sizes)) * sizes[0] * sizes[1] * sizes[2] == whole
