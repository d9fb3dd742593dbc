"""The rules a grid must keep: each breaks where it should, and says what would be right."""

import numpy as np
import pytest

from machines import four_layers, gpt, job, linears, machine
from perfmodel.models.layers import Linear
from perfmodel.parallel.enumeration import placed
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.rules import complaints, first_broken, grid_rules, micro_batch_rule
from perfmodel.search.search import Space, rank

GROUPED = gpt(heads=24, kv_heads=8, hidden=1536, vocabulary=50257)


def names(question, layout):
    return [name for name, _ in complaints(grid_rules(question), layout)]


def sentence(question, layout, name):
    return dict(complaints(grid_rules(question), layout))[name]


def test_a_grid_that_keeps_every_rule_has_no_complaints():
    assert names(job(), Layout(x=2, y=2, z=2, data=2)) == []


@pytest.mark.parametrize(
    ("rule", "layout", "chosen"),
    [
        ("heads", Layout(x=5, y=1, z=1, data=1), {}),
        ("kv_heads", Layout(x=3, y=1, z=1, data=1), {}),
        ("width_x", Layout(x=7, y=1, z=1, data=1), {}),
        ("width_y", Layout(x=1, y=5, z=1, data=1), {}),
        ("weight_shards", Layout(x=1, y=1, z=5, data=1), {}),
        ("vocabulary_padding", Layout(x=1, y=1024, z=1, data=1), {}),
        ("vocabulary", Layout(x=2, y=1, z=1, data=1), {"vocabulary_multiple": 0}),
        ("batch", Layout(x=1, y=1, z=4, data=32), {}),
        ("fixed_by_user", Layout(x=2, y=1, z=1, data=1), {"fixed": {"x": 1}}),
        ("above_user_maximum", Layout(x=2, y=1, z=8, data=1), {"maximum": {"z": 4}}),
    ],
)
def test_every_rule_can_be_broken_and_is_named(rule, layout, chosen):
    assert rule in names(job(GROUPED, **chosen), layout)


def test_sentences_name_the_numbers_and_the_nearest_that_would_do():
    question = job(GROUPED, batch=48, maximum={"z": 4}, fixed={"data": 2})
    assert sentence(question, Layout(x=5, y=1, z=1, data=2), "heads") == (
        "24 attention heads cannot be split evenly by x 5; 4 or 6 would divide"
    )
    assert sentence(question, Layout(x=16, y=1, z=1, data=2), "kv_heads") == (
        "8 key-value heads cannot be split evenly by x 16; 8 would divide"
    )
    assert sentence(question, Layout(x=1, y=1, z=32, data=2), "batch") == (
        "48 sequences per step cannot be split evenly by z 32 * data 2 = 64; 48 would divide"
    )
    assert sentence(question, Layout(x=1, y=1, z=8, data=2), "above_user_maximum") == "z is 8, asked for z at most 4"
    assert sentence(question, Layout(x=1, y=1, z=1, data=1), "fixed_by_user") == "data is 1, asked for data = 2"
    assert sentence(question, Layout(x=1, y=1024, z=1, data=2), "vocabulary_padding") == (
        "a vocabulary of 50257 padded to a multiple of 128 * x * y would have 131072 rows; "
        "x * y of at most 785 keeps it within twice its size"
    )


def test_a_vocabulary_is_padded_to_no_more_than_twice_its_size_up_to_the_x_y_that_the_sentence_names():
    padded = {
        y: "vocabulary_padding" in names(job(GROUPED), Layout(x=1, y=y, z=1, data=1)) for y in (512, 785, 786, 1024)
    }
    assert padded == {512: False, 785: False, 786: True, 1024: True}


def test_padding_to_exactly_twice_the_vocabulary_is_allowed():
    question = job(gpt(vocabulary=1024))
    assert question.padded_vocabulary(1024, Layout(x=16, y=1, z=1, data=1)) == 2 * 1024
    assert "vocabulary_padding" not in names(question, Layout(x=16, y=1, z=1, data=1))
    assert "vocabulary_padding" in names(question, Layout(x=1, y=32, z=1, data=1))


@pytest.mark.parametrize("shape", [(1, 5, 1, 1), (7, 1, 1, 1), (1, 1, 5, 1)])
def test_a_width_that_divides_nothing_is_told_with_its_layer(shape):
    text = " ".join(text for _, text in complaints(grid_rules(job(GROUPED)), Layout.of(shape)))
    assert "cannot be split evenly by" in text
    assert "would divide" in text


def test_transposed_layers_split_inputs_over_x_and_outputs_over_y():
    question = job(linears(Linear(name="down", inputs=12, outputs=35, transposed=True)))
    assert names(question, Layout(x=3, y=5, z=1, data=1)) == []
    assert names(question, Layout(x=5, y=3, z=1, data=1)) == ["width_x", "width_y"]
    normal = job(linears(Linear(name="up", inputs=12, outputs=35)))
    assert names(normal, Layout(x=5, y=3, z=1, data=1)) == []


def test_the_first_broken_rule_counts_and_kept_ones_come_out_last():
    question = job(GROUPED)
    rules = grid_rules(question)
    many = Layout(x=np.array([2, 5, 1]), y=np.array([2, 1, 1]), z=np.array([1, 1, 1]), data=np.array([1, 1, 128]))
    first = first_broken(rules, many)
    assert [rules[i].name if i < len(rules) else "kept" for i in first] == ["kept", "heads", "batch"]


def test_a_micro_batch_must_divide_a_device_s_share():
    rule = micro_batch_rule(job(batch=48))
    assert not rule.broken(Layout(x=1, y=1, z=2, data=4, micro_batch=3))
    assert rule.broken(Layout(x=1, y=1, z=2, data=4, micro_batch=4))
    assert rule.sentence(Layout(x=1, y=1, z=2, data=4, micro_batch=4)) == (
        "48 sequences per step cannot be split evenly by z 2 * data 4 * micro_batch 4 = 32; 24 or 48 would divide"
    )


def test_a_model_without_attention_has_no_rule_on_heads():
    assert {rule.name for rule in grid_rules(job(linears(*four_layers(64))))} == {
        "width_x",
        "width_y",
        "weight_shards",
        "batch",
    }


EMPTIED = {
    "heads": (gpt(heads=1, hidden=1024, layers=1), {"fixed": {"x": 8}}, {"gpus": 8}),
    "kv_heads": (gpt(heads=16, kv_heads=1), {"fixed": {"x": 8}}, {"gpus": 8}),
    "width_x": (linears(Linear(name="l", inputs=64, outputs=63)), {"fixed": {"x": 8}}, {"gpus": 8}),
    "width_y": (linears(Linear(name="l", inputs=63, outputs=64)), {"fixed": {"y": 8}}, {"gpus": 8}),
    "weight_shards": (linears(Linear(name="l", inputs=63, outputs=63)), {"fixed": {"z": 8}}, {"gpus": 8}),
    "vocabulary_padding": (gpt(vocabulary=128), {"fixed": {"y": 8}}, {"gpus": 8}),
    "vocabulary": (gpt(vocabulary=50257), {"fixed": {"y": 8}, "vocabulary_multiple": 0}, {"gpus": 8}),
    "batch": (gpt(), {"fixed": {"data": 128}}, {"gpus": 128}),
    "micro_batch": (gpt(), {}, {"gpus": 8, "micro_batch": 7}),
    "above_user_maximum": (gpt(), {"maximum": {"x": 1, "y": 1, "z": 1, "data": 1}}, {"gpus": 8}),
    "memory": (gpt(), {"reserve": 81e9}, {"gpus": 8}),
}


@pytest.mark.parametrize("rule", EMPTIED)
def test_a_rule_that_empties_the_set_is_what_the_last_grids_were_rejected_for(rule):
    model, chosen, space = EMPTIED[rule]
    found = rank(job(model, machine(8), **chosen), Space(**space))
    assert len(found) == found.feasible == 0
    assert list(found.rejected)[-1] == rule
    assert sum(found.rejected.values()) == found.searched == len(placed(space["gpus"], (0,)).x)


def test_a_vocabulary_s_table_is_cut_into_flat_shards_too():
    question = job(gpt(hidden=7168, heads=56, vocabulary=51200), batch=49)
    assert names(question, Layout(x=1, y=1, z=49, data=1)) == ["weight_shards"]
    assert sentence(question, Layout(x=1, y=1, z=49, data=1), "weight_shards") == (
        "367001600 elements of the padded vocabulary table cannot be split evenly by x 1 * y 1 * z 49 = 49; "
        "40 or 50 would divide"
    )
    assert names(question, Layout(x=1, y=1, z=7, data=1)) == []


def test_padding_can_make_a_table_divide():
    split = Layout(x=1, y=1, z=1024, data=1)
    for multiple, found in ((128, []), (0, ["weight_shards"])):
        question = job(gpt(hidden=256, heads=1, vocabulary=50257), batch=1024, vocabulary_multiple=multiple)
        assert names(question, split) == found
