"""Embeddings and heads in a block that repeats count as often as the block, as if they were written out."""

import pytest

from machines import job
from perfmodel.memory.per_device import memory_per_device
from perfmodel.models.layers import Embedding, Head, Linear
from perfmodel.models.model import Block, Model
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.sharding import sharded_parameters
from perfmodel.step.predict import predict
from perfmodel.traffic.per_step import communication_time

LAYOUTS = [
    Layout(x=1, y=1, z=1, data=1),
    Layout(x=2, y=2, z=2, data=2, micro_batch=2),
    Layout(x=1, y=1, z=8, data=1, recompute=2, weight_cache=1),
]
LAYERS = {
    "embedding": Embedding(name="embedding", vocabulary=1000, width=64, learned_positions=8),
    "tied head": Head(name="head", vocabulary=1000, width=64, bias=True),
    "own head": Head(name="head", vocabulary=1000, width=64, tied=False),
}


def repeated_and_written_out(layer, times=3):
    """The same model twice: a block of one layer that repeats, and as many blocks of it."""
    trunk = Block(name="trunk", layers=(Linear(name="linear", inputs=64, outputs=64),))
    repeated = Model(
        name="repeated", sequence=8, blocks=(trunk, Block(name="vocabulary", layers=(layer,), repeat=times))
    )
    written = Model(
        name="written out",
        sequence=8,
        blocks=(trunk, *(Block(name=f"vocabulary {i}", layers=(layer,)) for i in range(times))),
    )
    return job(repeated), job(written)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_vocabularies_that_repeat_hold_and_send_what_they_do_written_out(name, layout):
    repeated, written = repeated_and_written_out(LAYERS[name])
    assert repeated.model.parameters == written.model.parameters
    assert sharded_parameters(repeated, layout) == sharded_parameters(written, layout)
    assert memory_per_device(repeated, layout) == memory_per_device(written, layout)
    assert communication_time(repeated, layout).vocabulary == pytest.approx(
        communication_time(written, layout).vocabulary
    )
    assert predict(repeated, layout).ring_latency == pytest.approx(predict(written, layout).ring_latency)


def test_all_parameters_of_heads_that_repeat_are_held():
    question = job(repeated_and_written_out(LAYERS["own head"])[0].model, vocabulary_multiple=0)
    held = memory_per_device(question, Layout(x=1, y=1, z=1, data=1)).weights / question.settings.weight_bytes
    assert held == question.model.parameters
