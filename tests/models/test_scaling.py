"""A decoder made smaller keeps the width of its heads where it can, and all else that it is."""

import pytest

from perfmodel import models
from perfmodel.errors import PerfmodelError
from perfmodel.models.scaling import scaled


@pytest.mark.parametrize("factor", ["0.25", "1/4", "2"])
def test_every_width_is_scaled_and_a_head_keeps_its_own(factor):
    whole, part = (
        model.transformer for model in (models.load("llama-3-70b"), scaled(models.load("llama-3-70b"), hidden=factor))
    )
    ratio = part.hidden / whole.hidden
    assert ratio == {"0.25": 0.25, "1/4": 0.25, "2": 2}[factor]
    assert part.feed_forward / whole.feed_forward == part.heads / whole.heads == part.kv_heads / whole.kv_heads == ratio
    assert part.head_width == whole.head_width
    assert (part.layers, part.vocabulary, part.gated) == (whole.layers, whole.vocabulary, whole.gated)


def test_heads_that_cannot_be_fewer_are_narrower():
    part = scaled(models.load("qwen2.5-7b"), hidden="1/8").transformer  # 28 heads
    assert (part.heads, part.head_width, part.kv_heads) == (28, 16, 4)


def test_key_value_heads_divide_the_heads_and_one_is_left():
    for factor in ("1/32", "1/4", "3/4"):
        part = scaled(models.load("llama-3-70b"), hidden=factor).transformer
        assert part.kv_heads >= 1
        assert part.heads % part.kv_heads == 0


def test_layers_are_counted_and_nothing_else_changes():
    assert scaled(models.load("gpt-20b"), layers=2).transformer.layers == 2
    assert scaled(models.load("gpt-20b")) == models.load("gpt-20b")
    two, four = (scaled(models.load("gpt-20b"), layers=layers).parameters for layers in (2, 4))
    assert four - two == 2 * (12 * 7168**2 + 13 * 7168)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("unet-7b", {"layers": 2}, "unet-7b is not a decoder"),
        ("gpt-tiny", {"hidden": "0.3"}, "width of 256, of which 3/10 is 76.8"),
        ("gpt-tiny", {"hidden": "0"}, "wanted a factor greater than 0"),
        ("gpt-tiny", {"hidden": "1/0"}, "wanted a factor greater than 0"),
        ("gpt-tiny", {"hidden": "half"}, "wanted a factor greater than 0"),
    ],
)
def test_what_cannot_be_scaled_is_refused(name, options, sentence):
    with pytest.raises(PerfmodelError, match=sentence):
        scaled(models.load(name), **options)
