"""Bytes on a device: published memory figures, and each term on its own."""

from dataclasses import fields, replace

import numpy as np
import pytest

from machines import golden, gpt, job, linears, machine
from perfmodel import models
from perfmodel.machines import profiles
from perfmodel.memory.activations import BytesPerToken, block_activations
from perfmodel.memory.per_device import Memory, capacity, memory_per_device
from perfmodel.models.layers import Activation, Attention, Embedding, Head, Linear, Norm
from perfmodel.models.model import Block, Model, Transformer
from perfmodel.parallel.choices import OPTIMIZERS, RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.enumeration import placed
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.rules import first_broken, grid_rules
from perfmodel.parallel.settings import Settings
from perfmodel.parallel.sharding import replicated_parameters, sharded_parameters
from perfmodel.units import GIBI

NONE, SELECTIVE, FULL = (RECOMPUTES.index(mode) for mode in ("none", "selective", "full"))
FORWARD = WEIGHT_CACHES.index("forward")


def decoder(row):
    sizes = {"vocabulary": 51200, "sequence": 2048, "learned_positions": 2048}
    return Transformer(layers=int(row["layers"]), hidden=int(row["hidden"]), heads=int(row["heads"]), **sizes).model(
        row["model"]
    )


def smallest_that_fits(question):
    """The smallest power of two of tensor ranks with a grid that keeps the rules and fits, one sequence at a time."""
    for degree in (2**power for power in range(12)):
        grids = placed(degree, (0,))
        grids = grids.take((grids.data == 1) & (first_broken(grid_rules(question), grids) == len(grid_rules(question))))
        ones = np.ones_like(grids.x)
        grids = replace(grids, micro_batch=ones, recompute=FULL * ones, weight_cache=FORWARD * ones)
        if np.any(memory_per_device(question, grids).total <= capacity(question)):
            return degree
    return None


@pytest.mark.parametrize("row", golden("minimum_tensor_degrees"), ids=lambda row: row["model"])
def test_smallest_tensor_degrees_are_the_authors_within_a_factor_of_two(row):
    question = Job.of(decoder(row), profiles.load("perlmutter"), batch=8192, settings=Settings())
    assert int(row["least"]) / 2 <= smallest_that_fits(question) <= 2 * int(row["least"])


def test_nine_of_the_ten_smallest_tensor_degrees_are_exactly_the_authors():
    perlmutter = profiles.load("perlmutter")
    found = [
        smallest_that_fits(Job.of(decoder(row), perlmutter, batch=8192)) == int(row["least"])
        for row in golden("minimum_tensor_degrees")
    ]
    assert sum(found) == 9


@pytest.fixture
def korthikanti():
    """{recomputation: memory} of the 22B of Korthikanti et al.: tensor degree 8, micro-batch 4."""
    model = Transformer(
        layers=48, hidden=6144, heads=64, vocabulary=51200, sequence=2048, learned_positions=2048
    ).model("22B")
    question = job(model, machine(8), batch=4, flash_attention=False, dropout=True)
    modes = enumerate(RECOMPUTES)
    return {
        mode: memory_per_device(question, Layout(x=8, y=1, z=1, data=1, micro_batch=4, recompute=index))
        for index, mode in modes
    }


@pytest.mark.parametrize("row", golden("korthikanti_22b"), ids=lambda row: row["quantity"])
def test_a_22b_with_tensor_degree_8_holds_what_korthikanti_report_within_a_tenth(korthikanti, row):
    none, selective, full = (korthikanti[mode] for mode in RECOMPUTES)
    found = {
        "weights_gradients_optimizer_GiB": (none.weights + none.gradients + none.optimizer) / GIBI,
        "activations_GiB": none.activations / GIBI,
        "full_percent": 100 * full.activations / none.activations,
        "selective_percent": 100 * selective.activations / none.activations,
    }
    assert found[row["quantity"]] == pytest.approx(float(row["value"]), rel=0.1)


def test_a_block_keeps_what_korthikanti_s_equation_says_a_token():
    # s b h (10 + 24 / t + 5 a s / (h t)) with dropout and kept scores (arXiv 2205.05198, eq. 2).
    hidden, heads, sequence, tensor = 1024, 16, 512, 4
    model = gpt(hidden=hidden, heads=heads, sequence=sequence)
    settings = Settings(flash_attention=False, dropout=True).resolve("bf16")
    found = block_activations(model.blocks[1], settings, sequence).on(Layout(x=tensor, y=1, z=1, data=1))
    statistics = 2 * 2 * 4  # of two norms, in fp32, which the equation leaves out
    assert found == hidden * (10 + 24 / tensor + 5 * heads * sequence / (hidden * tensor)) + statistics


def test_without_dropout_there_are_no_masks():
    model = gpt(hidden=1024, heads=16, sequence=512)
    settings = Settings(flash_attention=False, dropout=False).resolve("bf16")
    found = block_activations(model.blocks[1], settings, 512).on(Layout(x=1, y=1, z=1, data=1))
    assert found == 1024 * (8 + 24 + 2 * 16 * 512 / 1024) + 2 * 2 * 4


def test_flash_attention_keeps_one_fp32_number_a_head_instead_of_scores():
    block = Block(name="b", layers=(Attention(name="a", heads=16, kv_heads=16, head_dim=64),))
    kept = block_activations(block, Settings().resolve("bf16"), sequence=4096)
    assert kept.scores == 16 * 4
    assert kept.over_x == 3 * 16 * 64 * 2


def test_grouped_queries_keep_fewer_keys_and_values():
    block = Block(name="b", layers=(Attention(name="a", heads=32, kv_heads=8, head_dim=128),))
    assert block_activations(block, Settings().resolve("bf16"), sequence=4096).over_x == (32 + 8 + 8) * 128 * 2


def test_gated_activations_keep_both_inputs_and_norms_theirs():
    block = Block(
        name="b",
        layers=(
            Norm(name="n", width=100),
            Linear(name="l", inputs=100, outputs=600),
            Activation(name="act", width=300, gated=True),
        ),
    )
    kept = block_activations(block, Settings().resolve("bf16"), sequence=1)
    assert (kept.over_y, kept.over_x) == (200 + 200, 1200)


def test_hidden_states_are_split_over_y_and_the_middle_of_the_block_over_x():
    kept = BytesPerToken(over_y=8.0, over_x=6.0, scores=2.0, whole=1.0)
    assert kept.on(Layout(x=2, y=4, z=1, data=1)) == 1 + 8 / 4 + 8 / 2
    assert kept.on(Layout(x=2, y=4, z=1, data=1), scores=False) == 1 + 8 / 4 + 6 / 2
    assert (kept + kept).on(Layout(x=2, y=4, z=1, data=1)) == 2 * kept.on(Layout(x=2, y=4, z=1, data=1))


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


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_cost_their_bytes_a_parameter(name):
    model = linears(Linear(name="layer", inputs=64, outputs=64, bias=False))
    found = memory_per_device(job(model, optimizer=name), Layout(x=1, y=1, z=1, data=1))
    assert found.weights == 2 * 4096
    assert found.gradients == OPTIMIZERS[name].gradient * 4096
    assert found.optimizer == OPTIMIZERS[name].state * 4096


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


def test_a_communicator_is_counted_for_each_axis_that_is_split():
    settings = {"communicator_buffer": 7.0, "reserve": 5.0}
    found = [
        memory_per_device(job(**settings), layout)
        for layout in (Layout(x=1, y=1, z=1, data=1), Layout(x=2, y=1, z=8, data=1), Layout(x=2, y=2, z=2, data=2))
    ]
    assert [memory.communicators for memory in found] == [0, 14, 28]
    assert [memory.reserve for memory in found] == [5, 5, 5]


def test_the_total_is_the_sum_of_the_terms():
    found = memory_per_device(job(), Layout(x=2, y=2, z=2, data=2))
    assert found.total == sum(getattr(found, term.name) for term in fields(Memory))


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


def test_capacity_is_the_device_s_memory():
    assert capacity(job(where=machine(memory=12e9))) == 12e9


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
