"""What a token keeps for the backward pass: published equations, and layers one by one."""

from machines import gpt
from perfmodel.memory.activations import BytesPerToken, block_activations
from perfmodel.models.layers import Activation, Attention, Linear, Norm
from perfmodel.models.model import Block
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.settings import Settings


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
