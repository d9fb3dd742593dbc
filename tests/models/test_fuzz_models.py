"""Whatever stands in a file, reading it ends in a model or in our own error, in one piece and in short time."""

import json
import random
import re

import pytest

from perfmodel import models
from perfmodel.errors import PerfmodelError
from perfmodel.models.architectures import ARCHITECTURES
from perfmodel.models.model import Model

CONFIGS = 5000
FILES = 1000
GOOD = [
    {
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 100,
        "max_position_embeddings": 32,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "rope_scaling": {"factor": 8.0, "rope_type": "llama3"},
        "architectures": ["LlamaForCausalLM"],
    },
    {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 32, "vocab_size": 100},
    {
        "model_type": "falcon",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_kv_heads": 2,
        "vocab_size": 100,
        "new_decoder_architecture": True,
    },
    {
        "model_type": "opt",
        "hidden_size": 64,
        "ffn_dim": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 32,
        "vocab_size": 100,
        "word_embed_proj_dim": 64,
    },
    {"model_type": "llava", "text_config": {"model_type": "mistral", "vocab_size": 100}, "vision_config": {"a": [1]}},
]
BLOCKS = """\
format: 1
name: hybrid
sequence: 8
blocks:
  - name: only
    repeat: 3
    checkpointed: false
    layers:
      - embedding: {name: e, vocabulary: 10, width: 4, learned_positions: 8}
      - norm: {name: n, width: 4, bias: false}
      - linear: {name: up, inputs: 4, outputs: 12, kernel: 3, positions: 0.25}
      - attention: {name: a, heads: 2, kv_heads: 1, head_dim: 2}
      - activation: {name: g, width: 12, gated: true}
      - linear: {name: down, inputs: 12, outputs: 4, transposed: true}
      - head: {name: h, vocabulary: 10, width: 4, tied: false}
"""
SIZES = """\
format: 1
name: small
transformer:
  layers: 2
  hidden: 8
  heads: 2
  kv_heads: null
  vocabulary: 10
  sequence: 4
  gated: true
"""
ODD = [
    None, True, False, 0, 1, -1, 3, 7, 2**31, 2**31 + 1, 2**63, 10**400, 1.5, 64.0, 1e308, float("nan"), float("inf"),
    "", "64", "null", "\x00", "\ud800", "x" * 300, [], [64], {}, {"a": 1}, {"model_type": "llama"}, *ARCHITECTURES,
]  # fmt: skip
TOKENS = [
    "", " ", ":", "-", "{", "}", "[", "]", "\n", "\t", "'", '"', "#", "&a", "*a", "<<: *a", "!!int ", "!x ", "|", ">",
    "null", "~", "true", "yes", "1e9", "1e999", "-1", "0", "0x10", "1_000", "12:30:00", ".nan", ".inf", "9" * 400,
    "2147483649", "0.5", "\x00", "\ufeff", "\u2028", "é", "name", "layers", "blocks", "transformer", "linear", "repeat",
    "---\n", "...\n", "? ", "%",
]  # fmt: skip


def places(values):
    """Every (container, key) of a tree."""
    for key, value in list(values.items()) if isinstance(values, dict) else list(enumerate(values)):
        yield values, key
        if isinstance(value, (dict, list)):
            yield from places(value)


def mutate_tree(values, chance):
    for _ in range(chance.randint(1, 2)):
        spots = list(places(values))
        if not spots:
            return
        container, key = chance.choice(spots)
        action = chance.randrange(5)
        if action == 0:
            del container[key]
        elif action == 1:
            container[key] = {"model_type": container[key], "text_config": container[key]}
        elif action == 2:
            container[key] = [container[key]]
        elif action == 3 and isinstance(container, dict):
            container[chance.choice(["text_config", "num_experts", "head_dim", "n_inner", "hidden_size"])] = odd(chance)
        else:
            container[key] = odd(chance)


def odd(chance):
    return json.loads(json.dumps(chance.choice(ODD)))


def mutate_text(text, chance, tokens):
    for _ in range(chance.randint(1, 3)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice([0, 0, 1, 2, 8, 40]))
        text = text[:start] + chance.choice(tokens) * chance.choice([1, 1, 1, 2, 50]) + text[end:]
    return text


def mutate_bytes(data, chance):
    changed = bytearray(data)
    for _ in range(chance.randint(1, 5)):
        if changed:
            changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def config(chance):
    values = json.loads(json.dumps(chance.choice(GOOD)))
    if chance.random() < 0.02:
        opening = chance.choice(["[", '{"a":', '{"text_config":', "[[{"])
        return (opening * chance.choice([50, 900, 1100, 100_000])).encode()
    mutate_tree(values, chance)
    data = json.dumps(values).encode()
    if chance.random() < 0.1:
        data = mutate_text(data.decode(), chance, TOKENS).encode("utf-8", "surrogatepass")
    return mutate_bytes(data, chance) if chance.random() < 0.1 else data


def model_file(chance):
    if chance.random() < 0.01:
        return (chance.choice(["[", "{a: ", "- "]) * chance.choice([30, 60, 1000])).encode()
    text = chance.choice([BLOCKS, SIZES])
    if chance.random() < 0.5:  # one word or number, so that the rest is read as well
        words = list(re.finditer(r"[\w.]+", text))
        word = chance.choice(words)
        other = chance.choice([*TOKENS, *(found[0] for found in words)])
        return f"{text[: word.start()]}{other}{text[word.end() :]}".encode("utf-8", "surrogatepass")
    data = mutate_text(text, chance, TOKENS).encode("utf-8", "surrogatepass")
    return mutate_bytes(data, chance) if chance.random() < 0.2 else data


def outcomes(make, name, count, folder):
    """(models, errors) after reading `count` files; every error is a sentence that names the file."""
    path = folder / name
    read, refused = 0, 0
    for seed in range(count):
        data = make(random.Random(seed))  # noqa: S311 - repeatable is what it must be
        path.write_bytes(data)
        try:
            model = models.load(str(path))
        except PerfmodelError as error:
            refused += 1
            message = str(error)
        except Exception as error:  # noqa: BLE001 - the failing file is what one wants to see
            pytest.fail(f"seed {seed}: {type(error).__name__}: {error}\n{data[:500]!r}")
        else:
            read += 1
            message = str(path)
            assert isinstance(model, Model)
            assert 0 < model.parameters <= 2**53
            assert model.forward_flops(model.sequence) < float("inf")
        assert str(path) in message, (seed, data)
        assert len(message) < 4000, (seed, data)
    return read, refused


def test_mutated_configs_end_in_a_model_or_our_error(tmp_path):
    read, refused = outcomes(config, "config.json", CONFIGS, tmp_path)
    assert min(read, refused) > CONFIGS / 10


def test_mutated_model_files_end_in_a_model_or_our_error(tmp_path):
    read, refused = outcomes(model_file, "model.yaml", FILES, tmp_path)
    assert min(read, refused) > FILES / 20


@pytest.mark.parametrize("good", GOOD, ids=lambda values: values["model_type"])
def test_what_is_mutated_is_good_to_begin_with(good, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(good))
    assert models.load(str(path)).parameters > 0


@pytest.mark.parametrize("good", [BLOCKS, SIZES])
def test_the_files_that_are_mutated_are_good_to_begin_with(good, tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text(good)
    assert models.load(str(path)).parameters > 0
