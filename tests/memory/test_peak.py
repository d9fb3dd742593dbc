"""The moment of a micro-step that holds most: what is kept, gathered and in flight then."""

from dataclasses import replace

import numpy as np
import pytest

from machines import gpt, job, linears
from perfmodel.memory.per_device import memory_per_device
from perfmodel.models.layers import Head, Linear
from perfmodel.models.model import Block, Model
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.layout import Layout

NONE, SELECTIVE, FULL = (RECOMPUTES.index(mode) for mode in ("none", "selective", "full"))
FORWARD = WEIGHT_CACHES.index("forward")


def test_full_recomputation_keeps_the_input_of_each_block_and_one_block_whole():
    model = linears(
        Linear(name="in", inputs=64, outputs=256),
        Linear(name="out", inputs=256, outputs=64, transposed=True),
        repeat=6,
        sequence=1000,
    )
    found = memory_per_device(job(model, batch=3), Layout(x=1, y=1, z=1, data=1, micro_batch=3, recompute=FULL))
    assert found.activations == 6 * 3000 * 64 * 2
    assert found.recomputed_block == 3000 * 256 * 2  # its input is kept already


def test_blocks_that_are_not_checkpointed_keep_everything_in_every_mode():
    model = linears(Linear(name="in", inputs=64, outputs=256), repeat=6, sequence=1000, checkpointed=False)
    modes = np.array([NONE, SELECTIVE, FULL])
    found = memory_per_device(job(model), Layout.of(np.ones((4, 3), dtype=int), micro_batch=1, recompute=modes))
    assert found.activations.tolist() == [6 * 1000 * 64 * 2] * 3
    assert found.recomputed_block.tolist() == [0, 0, 0]


def test_selective_recomputation_drops_scores_only():
    question = job(gpt(), flash_attention=False)
    none, selective = (
        memory_per_device(question, Layout(x=2, y=1, z=1, data=1, recompute=mode)) for mode in (NONE, SELECTIVE)
    )
    scores = 4 * 1024 * 16 * 1024 * 2 / 2  # layers * tokens * heads * keys * bytes / x
    assert none.activations - selective.activations == scores
    assert selective.total < none.total


def test_gathered_weights_are_alive_by_caching_mode():
    model = linears(*(Linear(name=f"l{i}", inputs=64, outputs=64 * i, bias=False) for i in (1, 2, 3)), repeat=5)
    question = job(model, weight_bytes=2, gradient_bytes=4)
    first, second, third, block = 64 * 64, 64 * 128, 64 * 192, 64 * 384
    # Where three gradients are under way: at the first layer of the last block, or at the last layer of the one before.
    waiting = (first + second + third) * 4 * (1 + 1 / 4)
    expected = {
        ("none", "none"): third + second,
        ("none", "forward"): 4 * block + first,
        ("full", "none"): third + second,
        ("full", "forward"): block + first,
        ("full", "all"): 4 * block + first,
    }
    for (recompute, cache), alive in expected.items():
        layout = Layout(
            x=2,
            y=1,
            z=4,
            data=1,
            placement=0,
            micro_batch=1,
            recompute=RECOMPUTES.index(recompute),
            weight_cache=WEIGHT_CACHES.index(cache),
        )
        found = memory_per_device(replace(question, sequence=1), layout)
        assert found.gathered_weights == (2 * alive + waiting) / 2, (recompute, cache)


def test_without_z_there_is_no_gathered_weight_but_the_gradient_of_a_product_where_it_needs_another_format():
    model = linears(Linear(name="only", inputs=64, outputs=64, bias=False))
    mixed, single = job(model), job(model, activation_bytes=4, weight_bytes=4, gradient_bytes=4)
    assert memory_per_device(mixed, Layout(x=2, y=2, z=1, data=2)).gathered_weights == 64 * 64 * 2 / 4
    assert memory_per_device(single, Layout(x=2, y=2, z=1, data=2)).gathered_weights == 0


def test_logits_are_split_over_x_and_y_and_kept_once_more_in_fp32():
    found = memory_per_device(job(), Layout(x=2, y=4, z=1, data=1, micro_batch=3))
    assert found.logits == 3 * 1024 * 51200 / 8 * (2 + 4)


def test_a_head_reads_hidden_states_that_are_whole_on_every_rank_of_y():
    model = Model(
        name="head",
        sequence=8,
        blocks=(
            Block(name="b", layers=(Linear(name="l", inputs=64, outputs=64),)),
            Block(name="h", layers=(Head(name="head", vocabulary=256, width=64),), repeat=1, checkpointed=False),
        ),
    )
    with_head = memory_per_device(job(model), Layout(x=1, y=4, z=1, data=1)).activations
    without = memory_per_device(
        job(linears(Linear(name="l", inputs=64, outputs=64), sequence=8)), Layout(x=1, y=4, z=1, data=1)
    ).activations
    assert with_head - without == 8 * 64 * 2


def test_the_vocabulary_s_table_and_its_gradient_are_gathered_where_they_are_more_than_the_layers():
    small_layers = gpt(hidden=64, heads=4, layers=2)
    layout = Layout(x=1, y=2, z=2, data=1, recompute=FULL, weight_cache=WEIGHT_CACHES.index("none"))
    ahead = 64 * 192 * 2 / 2  # the first weight of the block that is run again
    assert memory_per_device(job(small_layers), layout).gathered_weights == 51200 * 64 * (2 + 2) / 2 + ahead


def test_cached_weights_stay_while_the_loss_is_computed():
    model = gpt(hidden=64, heads=4, layers=3)
    layers = 3 * 12 * 64 * 64
    layout = Layout(x=1, y=1, z=2, data=1, recompute=NONE, weight_cache=FORWARD)
    assert memory_per_device(job(model), layout).gathered_weights == layers * 2 + 51200 * 64 * (2 + 2)


def test_a_block_that_starts_with_a_transposed_layer_keeps_an_input_split_over_x():
    model = linears(Linear(name="down", inputs=64, outputs=16, transposed=True), sequence=8)
    found = [
        memory_per_device(job(model), Layout(x=x, y=y, z=1, data=1, recompute=FULL)).activations
        for x, y in ((2, 1), (1, 2))
    ]
    assert found == [8 * 64 * 2 / 2, 8 * 64 * 2]


def test_the_largest_block_is_the_one_that_recomputation_holds_wherever_it_stands():
    wide, narrow = (
        Block(name="wide", layers=(Linear(name="w", inputs=256, outputs=64),)),
        Block(name="narrow", layers=(Linear(name="n", inputs=64, outputs=64),)),
    )
    for blocks in ((wide, narrow), (narrow, wide)):
        question = job(Model(name="two", sequence=800, blocks=blocks))
        found = memory_per_device(question, Layout(x=1, y=1, z=1, data=1, recompute=FULL))
        assert found.in_flight == 800 * (64 + 256 + 256) * 2  # gradients in and out, and of the residual


@pytest.mark.parametrize("cache", WEIGHT_CACHES)
def test_no_more_weights_are_alive_than_there_are(cache):
    model = linears(Linear(name="only", inputs=64, outputs=64, bias=False))
    layout = Layout(x=1, y=1, z=2, data=1, recompute=FULL, weight_cache=WEIGHT_CACHES.index(cache))
    assert memory_per_device(job(model, gradient_bytes=1), layout).gathered_weights == 64 * 64 * 2 + 64 * 64 * (
        1 + 1 / 2
    )
