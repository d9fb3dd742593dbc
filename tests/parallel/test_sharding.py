"""Parameters on one device: worked numbers of small models, and all of them together on one device alone."""

import pytest

from machines import gpt, job, linears
from perfmodel import models
from perfmodel.models.layers import Embedding, Linear, Norm
from perfmodel.models.model import Block, Model, Transformer
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


def held(question, layout):
    return sharded_parameters(question, layout) + replicated_parameters(question, layout)


@pytest.mark.parametrize(
    "name", ["gpt-5b", "llama-2-7b", "llama-3-8b", "mistral-7b", "qwen2.5-7b", "gpt3-175b", "unet-7.5b"]
)
def test_one_device_holds_the_model_whole(name):
    if name not in models.names():
        name = next(known for known in models.names() if known.startswith("unet"))
    question = job(models.load(name), vocabulary_multiple=0)
    assert held(question, Layout(x=1, y=1, z=1, data=1)) == question.model.parameters


def test_query_and_key_norms_and_head_biases_are_held_too():
    shape = {"layers": 2, "hidden": 256, "heads": 4, "vocabulary": 1024, "sequence": 64}
    model = Transformer(**shape, query_key_norm=True, head_bias=True, tied=False).model("all-the-trimmings")
    assert held(job(model, vocabulary_multiple=0), Layout(x=1, y=1, z=1, data=1)) == model.parameters


def test_norms_are_counted_on_every_rank_that_holds_a_copy():
    model = Model(
        name="one-norm",
        sequence=8,
        blocks=(
            Block(name="b", layers=(Norm(name="n", width=64), Linear(name="l", inputs=64, outputs=64, bias=False))),
        ),
    )
    assert replicated_parameters(job(model), Layout(x=2, y=4, z=8, data=2)) == 128 / 4


def test_biases_follow_the_outputs_and_positions_the_hidden_states():
    normal = linears(Linear(name="l", inputs=64, outputs=96))
    transposed = linears(Linear(name="l", inputs=64, outputs=96, transposed=True))
    positions = Model(
        name="p",
        sequence=8,
        blocks=(
            Block(
                name="b",
                layers=(
                    Embedding(name="e", vocabulary=128, width=64, learned_positions=32),
                    Linear(name="l", inputs=64, outputs=64, bias=False),
                ),
            ),
        ),
    )
    layout = Layout(x=2, y=4, z=8, data=2)
    assert replicated_parameters(job(normal), layout) == 96 / 2
    assert replicated_parameters(job(transposed), layout) == 96 / 4
    assert replicated_parameters(job(positions), layout) == 32 * 64 / 4


def test_a_tied_head_has_no_table_of_its_own():
    tied, untied = (job(gpt(tied=value)) for value in (True, False))
    difference = sharded_parameters(untied, Layout(x=2, y=2, z=2, data=1)) - sharded_parameters(
        tied, Layout(x=2, y=2, z=2, data=1)
    )
    assert difference == 51200 * 1024 / 8


def test_a_vocabulary_is_padded_so_that_x_and_y_hold_equal_parts():
    question = job(gpt(vocabulary=50257))
    assert [question.padded_vocabulary(50257, Layout(x=x, y=y, z=4, data=1)) for x, y in ((1, 1), (2, 1), (2, 4))] == [
        50304,
        50432,
        51200,
    ]
