"""Models as plain records: layers add up to the counts above them, and closed forms stand where they hold."""

import json

import pytest

from perfmodel import models
from perfmodel.models.records import model_record, model_summary

NAMES = ("gpt-20b", "llama-3-8b", "unet-7b")


@pytest.mark.parametrize("name", NAMES)
def test_the_layers_of_a_record_add_up(name):
    found = model_record(models.load(name))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    layers = found["layers"]
    assert sum(layer["repeat"] * layer["parameters"] for layer in layers) == found["parameters"]
    forward = sum(layer["repeat"] * layer["forward_flop"] for layer in layers)
    assert forward == pytest.approx(found["forward_flop_per_sequence"], rel=1e-12)
    assert found["step_flop_per_sequence"] == 3 * found["forward_flop_per_sequence"]


def test_closed_forms_stand_beside_a_gpt_alone():
    gpt, llama, unet = (model_record(models.load(name)) for name in NAMES)
    assert gpt["closed_form_parameters"] == pytest.approx(gpt["parameters"], rel=1e-3)
    assert gpt["closed_form_step_flop_per_sequence"] == pytest.approx(gpt["step_flop_per_sequence"], rel=1e-3)
    for other in (llama, unet):
        assert other["closed_form_parameters"] is other["closed_form_step_flop_per_sequence"] is None


def test_a_line_of_the_list_has_sizes_where_the_model_is_a_transformer():
    assert model_summary(models.load("llama-3-8b")) == {
        "name": "llama-3-8b",
        "parameters": 8030261248,
        "layers": 32,
        "hidden": 4096,
        "heads": 32,
        "sequence_length": 8192,
    }
    unet = model_summary(models.load("unet-7b"))
    assert (unet["layers"], unet["hidden"], unet["heads"]) == (None, None, None)
    assert unet["parameters"] > 10**9
