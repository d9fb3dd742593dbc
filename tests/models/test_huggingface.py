"""Configs of released models, their numbers written down here, give the published parameter counts."""

import json

import pytest

from perfmodel import models
from perfmodel.errors import PerfmodelError
from perfmodel.models.architectures import ARCHITECTURES, LONGEST_SEQUENCE

LLAMA_KEYS = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "vocab_size",
    "max_position_embeddings",
)
GPT2_KEYS = ("n_embd", "n_layer", "n_head", "n_positions", "vocab_size")
GPT_NEO_KEYS = ("hidden_size", "num_layers", "num_heads", "max_position_embeddings", "vocab_size")
OPT_KEYS = (
    "hidden_size",
    "ffn_dim",
    "num_hidden_layers",
    "num_attention_heads",
    "max_position_embeddings",
    "vocab_size",
    "word_embed_proj_dim",
)
TIED = {"tie_word_embeddings": True}
FALCON = {"multi_query": True, "parallel_attn": True, "new_decoder_architecture": False, "bias": False}


def llama(kind, *sizes, **others):
    return {"model_type": kind, **dict(zip(LLAMA_KEYS, sizes, strict=True)), **others}


def gpt2(kind, *sizes, **others):
    return {"model_type": kind, **dict(zip(GPT2_KEYS, sizes, strict=True)), **others}


def gpt_neo(*sizes):
    return {"model_type": "gpt_neo", "intermediate_size": None, **dict(zip(GPT_NEO_KEYS, sizes, strict=True))}


def opt(*sizes, **others):
    return {"model_type": "opt", **dict(zip(OPT_KEYS, sizes, strict=True)), **others}


# Sizes as released (null: the key is not there), and the published number of parameters.
RELEASED = {
    "llama-2-7b": (llama("llama", 4096, 11008, 32, 32, None, 32000, 4096), 6_738_415_616),
    "llama-3-8b": (llama("llama", 4096, 14336, 32, 32, 8, 128256, 8192), 8_030_261_248),
    "llama-3.2-1b": (llama("llama", 2048, 8192, 16, 32, 8, 128256, 131072, head_dim=64, **TIED), 1_235_814_400),
    "mistral-7b-v0.1": (llama("mistral", 4096, 14336, 32, 32, 8, 32000, 32768, sliding_window=4096), 7_241_732_096),
    "mistral-nemo-12b": (llama("mistral", 5120, 14336, 40, 32, 8, 131072, 1024000, head_dim=128), 12_247_782_400),
    "qwen2.5-0.5b": (llama("qwen2", 896, 4864, 24, 14, 2, 151936, 32768, **TIED), 494_032_768),
    "qwen2.5-7b": (llama("qwen2", 3584, 18944, 28, 28, 4, 152064, 131072), 7_615_616_512),
    "qwen2.5-72b": (llama("qwen2", 8192, 29568, 80, 64, 8, 152064, 131072), 72_706_203_648),
    "qwen3-0.6b": (llama("qwen3", 1024, 3072, 28, 16, 8, 151936, 40960, head_dim=128, **TIED), 596_049_920),
    "qwen3-8b": (llama("qwen3", 4096, 12288, 36, 32, 8, 151936, 40960, head_dim=128), 8_190_735_360),
    "gemma-2b": (llama("gemma", 2048, 16384, 18, 8, 1, 256000, 8192, head_dim=256), 2_506_172_416),
    "gemma-7b": (llama("gemma", 3072, 24576, 28, 16, 16, 256000, 8192, head_dim=256), 8_537_680_896),
    "gemma-2-2b": (llama("gemma2", 2304, 9216, 26, 8, 4, 256000, 8192, head_dim=256), 2_614_341_888),
    "gemma-2-9b": (llama("gemma2", 3584, 14336, 42, 16, 8, 256000, 8192, head_dim=256), 9_241_705_984),
    "gemma-3-1b": (llama("gemma3_text", 1152, 6912, 26, 4, 1, 262144, 32768, head_dim=256), 999_885_952),
    "phi-3-mini-4k": (llama("phi3", 3072, 8192, 32, 32, 32, 32064, 4096), 3_821_079_552),
    "granite-3.0-2b": (llama("granite", 2048, 8192, 40, 32, 8, 49155, 4096, **TIED), 2_533_531_648),
    "command-r-v01": (llama("cohere", 8192, 22528, 40, 64, 64, 256000, 8192), 34_980_831_232),
    "stablelm-3b-4e1t": (llama("stablelm", 2560, 6912, 32, 32, 32, 50304, 4096), 2_795_443_200),
    "stablelm-2-1.6b": (llama("stablelm", 2048, 5632, 24, 32, 32, 100352, 4096, use_qkv_bias=True), 1_644_515_328),
    "starcoder2-3b": (llama("starcoder2", 3072, 12288, 30, 24, 2, 49152, 16384), 3_030_371_328),
    "starcoder2-7b": (llama("starcoder2", 4608, 18432, 32, 36, 4, 49152, 16384), 7_173_923_840),
    "phi-2": (llama("phi", 2560, 10240, 32, 32, None, 51200, 2048), 2_779_683_840),
    "gpt-neox-20b": (llama("gpt_neox", 6144, 24576, 44, 64, None, 50432, 2048), 20_554_567_680),
    "pythia-70m": (llama("gpt_neox", 512, 2048, 6, 8, None, 50304, 2048), 70_426_624),
    "pythia-6.9b": (llama("gpt_neox", 4096, 16384, 32, 32, None, 50432, 2048), 6_857_302_016),
    "gpt2": (gpt2("gpt2", 768, 12, 12, 1024, 50257), 124_439_808),
    "gpt2-xl": (gpt2("gpt2", 1600, 48, 25, 1024, 50257), 1_557_611_200),
    "starcoder": (gpt2("gpt_bigcode", 6144, 40, 48, 8192, 49152, n_inner=24576), 15_517_456_384),
    "gpt-j-6b": (gpt2("gptj", 4096, 28, 16, 2048, 50400, n_inner=None, tie_word_embeddings=False), 6_050_882_784),
    "gpt-neo-125m": (gpt_neo(768, 12, 12, 2048, 50257), 125_198_592),
    "gpt-neo-2.7b": (gpt_neo(2560, 32, 20, 2048, 50257), 2_651_307_520),
    "opt-125m": (opt(768, 3072, 12, 12, 2048, 50272, 768), 125_239_296),
    "opt-6.7b": (opt(4096, 16384, 32, 32, 2048, 50272, 4096, do_layer_norm_before=True), 6_658_473_984),
    "bloom-560m": (
        {"model_type": "bloom", "hidden_size": 1024, "n_layer": 24, "n_head": 16, "vocab_size": 250880},
        559_214_592,
    ),
    "bloom-7b1": (
        {"model_type": "bloom", "n_embed": 4096, "n_layer": 30, "num_attention_heads": 32, "vocab_size": 250880},
        7_069_016_064,
    ),
    "falcon-7b": (
        {"model_type": "falcon", "hidden_size": 4544, "n_layer": 32, "n_head": 71, "vocab_size": 65024, **FALCON},
        6_921_720_704,
    ),
    "falcon-40b": (
        {
            "model_type": "falcon",
            "hidden_size": 8192,
            "num_hidden_layers": 60,
            "num_attention_heads": 128,
            "num_kv_heads": 8,
            "vocab_size": 65024,
            **FALCON,
            "new_decoder_architecture": True,
        },
        41_303_293_952,
    ),
    "falcon-rw-1b": (
        {
            "model_type": "falcon",
            "hidden_size": 2048,
            "num_hidden_layers": 24,
            "num_attention_heads": 32,
            "vocab_size": 50304,
            **FALCON,
            "multi_query": False,
            "parallel_attn": False,
            "bias": True,
        },
        1_311_625_216,
    ),
}
# Sizes are left out in the text part where they are the architecture's defaults (LLaVA 1.5, Gemma 3 4B).
LLAVA = {
    "model_type": "llava",
    "text_config": {"model_type": "llama", "max_position_embeddings": 4096, "vocab_size": 32064},
    "tie_word_embeddings": False,
}
GEMMA_3_4B = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
    },
}
SMALL = llama("llama", 64, 128, 2, 4, 2, 100, 32)


@pytest.fixture
def write(tmp_path):
    def written(values, name="config.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(values if isinstance(values, str) else json.dumps(values), encoding="utf-8")
        return str(path)

    return written


def without(values, *keys):
    return {key: value for key, value in values.items() if key not in keys}


def refusal(path):
    with pytest.raises(PerfmodelError) as caught:
        models.load(path)
    message = str(caught.value)
    assert message.startswith(path)
    assert "\n" not in message
    return message.removeprefix(path).removeprefix(": ")


@pytest.mark.parametrize("name", RELEASED)
def test_a_released_model_has_its_published_number_of_parameters(name, write):
    config, parameters = RELEASED[name]
    assert models.load(write(config)).parameters == parameters


@pytest.mark.parametrize("name", RELEASED)
def test_a_config_without_its_nulls_means_the_same(name, write):
    config, parameters = RELEASED[name]
    assert models.load(write(without(config, *[k for k in config if config[k] is None]))).parameters == parameters


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_is_checked_against_the_model_it_names(name):
    assert RELEASED[ARCHITECTURES[name].checked][0]["model_type"] == name


@pytest.mark.parametrize("name", [name for name in models.names() if name in RELEASED])
def test_a_preset_is_the_model_of_its_config(name, write):
    assert models.load(write(RELEASED[name][0])).blocks == models.load(name).blocks


def test_a_text_part_that_leaves_out_defaults_is_complete(write):
    llava, gemma = models.load(write(LLAVA)), models.load(write(GEMMA_3_4B))
    assert llava.parameters == 6_738_415_616 + 64 * 2 * 4096
    assert gemma.parameters == 3_880_263_168
    assert llava.name.endswith(" (text part)")


@pytest.mark.parametrize("key", ["text_config", "llm_config", "language_config"])
def test_the_text_part_is_found_under_each_of_its_names(key, write):
    assert models.load(write({"model_type": "sees", key: SMALL})).blocks == models.load(write(SMALL)).blocks


def test_a_tied_head_may_be_told_outside_the_text_part(write):
    tied = models.load(write({**LLAVA, **TIED}))
    assert models.load(write(LLAVA)).parameters - tied.parameters == 32064 * 4096


def test_attention_and_mlp_biases_are_counted(write):
    plain = models.load(write(SMALL)).parameters
    attention = models.load(write({**SMALL, "attention_bias": True})).parameters
    mlp = models.load(write({**SMALL, "mlp_bias": True})).parameters
    assert attention - plain == 2 * (64 + 2 * 2 * 16 + 64)
    assert mlp - plain == 2 * (2 * 128 + 64)


def test_the_head_size_may_differ_from_the_width_over_the_heads(write):
    wide = models.load(write({**SMALL, "head_dim": 32})).parameters
    assert wide - models.load(write(SMALL)).parameters == 2 * 64 * (8 * 16 + 4 * 16)


def test_missing_key_value_heads_are_as_many_as_heads(write):
    given = models.load(write({**SMALL, "num_key_value_heads": 4}))
    assert models.load(write(without(SMALL, "num_key_value_heads"))).blocks == given.blocks


@pytest.mark.parametrize(
    ("positions", "sequence"), [(32, 32), (8192, 8192), (131072, LONGEST_SEQUENCE), (2**31, LONGEST_SEQUENCE)]
)
def test_the_sequence_is_what_the_model_can_read_up_to_8192(positions, sequence, write):
    assert models.load(write({**SMALL, "max_position_embeddings": positions})).sequence == sequence


def test_a_model_is_called_after_its_folder_or_its_file(write):
    assert models.load(write(SMALL, "my-llama/config.json")).name == "my-llama"
    assert models.load(write(SMALL, "other.json")).name == "other"


def test_a_config_in_the_current_folder_is_called_after_its_architecture(write, monkeypatch, tmp_path):
    write(SMALL)
    monkeypatch.chdir(tmp_path)
    assert models.load("config.json").name == "llama"


def test_a_byte_order_mark_is_let_pass(write):
    text = json.dumps(SMALL)
    assert models.load(write("\ufeff" + text)).parameters == models.load(write(text)).parameters


@pytest.mark.parametrize("place", ["", '"text_config": {"a": 1, '])
def test_a_key_given_twice_is_refused_by_name(write, place):
    doubled = json.dumps(SMALL).replace(
        "{", f'{{{place}"hidden_size": 1, "hidden_size": 2{"}, " if place else ", "}', 1
    )
    with pytest.raises(PerfmodelError, match=r"config\.json: the key hidden_size is given twice"):
        models.load(write(doubled))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"model_type": "mixtral", "num_local_experts": 8},
            "mixtral is a mixture of experts (8 experts, num_local_experts); perfmodel models dense decoders",
        ),
        (
            {"model_type": "qwen2_moe", "num_experts": 60},
            "qwen2_moe is a mixture of experts (60 experts, num_experts); perfmodel models dense decoders",
        ),
        (
            {"model_type": "deepseek_v3", "n_routed_experts": 256},
            "deepseek_v3 is a mixture of experts (256 experts, n_routed_experts); perfmodel models dense decoders",
        ),
        (
            {"model_type": "llama4", "text_config": {"model_type": "llama4_text", "num_local_experts": 16}},
            "llama4_text is a mixture of experts (16 experts, text_config.num_local_experts)",
        ),
        (
            {**SMALL, "num_local_experts": 4},
            "llama is a mixture of experts (4 experts, num_local_experts); perfmodel models dense decoders",
        ),
        ({"model_type": "t5"}, f"model_type is 't5'; supported are {', '.join(ARCHITECTURES)}"),
        (
            {"model_type": "llava", "text_config": {"model_type": "x"}},
            f"text_config.model_type is 'x'; supported are {', '.join(ARCHITECTURES)}",
        ),
        ({"model_type": "llava", "text_config": {}}, "missing text_config.model_type, which names the architecture"),
        ({"hidden_size": 1}, "missing model_type, which names the architecture"),
        ({"model_type": 7}, "model_type is 7, wanted a text"),
        (without(SMALL, "hidden_size"), "missing hidden_size"),
        (without(RELEASED["gpt2"][0], "n_layer"), "missing n_layer or num_hidden_layers"),
        ({**SMALL, "hidden_size": "4096"}, "hidden_size is '4096', wanted a whole number from 1 to 2147483648"),
        ({**SMALL, "hidden_size": 4096.0}, "hidden_size is 4096.0, wanted a whole number from 1 to 2147483648"),
        ({**SMALL, "vocab_size": -1}, "vocab_size is -1, wanted a whole number from 1 to 2147483648"),
        ({**SMALL, "vocab_size": 2**40}, "vocab_size is 1099511627776, wanted a whole number from 1 to 2147483648"),
        ({**SMALL, "num_hidden_layers": [2]}, "num_hidden_layers is a list, wanted a whole number from 1"),
        ({**SMALL, "num_hidden_layers": {}}, "num_hidden_layers is an object, wanted a whole number from 1"),
        ({**SMALL, "num_hidden_layers": True}, "num_hidden_layers is true, wanted a whole number from 1"),
        ({**SMALL, "num_hidden_layers": None}, "missing num_hidden_layers"),
        ({**SMALL, "vocab_size": float("nan")}, "vocab_size is nan, wanted a whole number from 1"),
        ({**SMALL, "vocab_size": float("inf")}, "vocab_size is inf, wanted a whole number from 1"),
        ({**SMALL, "tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes', wanted true or false"),
        ({**SMALL, "mlp_bias": 1}, "mlp_bias is 1, wanted true or false"),
        ({**SMALL, "num_attention_heads": 3}, "hidden 64 is no multiple of 3 heads; give head_dim if that is meant"),
        ({**SMALL, "num_key_value_heads": 3}, "4 heads are not a multiple of 3 key-value heads"),
        (
            {**RELEASED["opt-125m"][0], "word_embed_proj_dim": 512},
            "word_embed_proj_dim is 512 where hidden_size is 768: perfmodel does not count that variant",
        ),
        (
            {**RELEASED["opt-125m"][0], "do_layer_norm_before": False},
            "do_layer_norm_before is false: perfmodel does not count that variant",
        ),
        (
            {**RELEASED["stablelm-2-1.6b"][0], "qk_layernorm": True},
            "qk_layernorm is true: perfmodel does not count that variant",
        ),
        ([1], "wanted an object with keys, found a list"),
        (3, "wanted an object with keys, found 3"),
        (None, "wanted an object with keys, found null"),
    ],
)
def test_a_config_that_cannot_be_counted_is_refused_in_one_sentence(config, message, write):
    assert refusal(write(config)).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1: not JSON: Expecting value at column 1"),
        ('{"a": 1,\n "b" 2}', "2: not JSON: Expecting ':' delimiter at column 6"),
        ("[" * 100_000, "nested too deeply"),
        ('{"model_type": "llama", "hidden_size": ' + "9" * 5000 + "}", "a number has thousands of digits"),
        ('{"model_type": "\\ud800"}', "model_type is '\\ud800'; supported are "),
        (f'{{"model_type": "{"x" * 500}"}}', "model_type is 'xxx"),
    ],
)
def test_a_file_that_is_no_json_is_refused_in_one_sentence(text, message, write):
    assert refusal(write(text)).removeprefix(":").startswith(message)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(b'{"model_type": "\xff"}')
    assert refusal(str(path)) == " is not UTF-8 text (byte 16)"


def test_a_file_that_is_not_there_is_refused(tmp_path):
    assert refusal(str(tmp_path / "config.json")) == " cannot be read: No such file or directory"
