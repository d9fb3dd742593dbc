"""The Hugging Face architectures that can be counted exactly: which key means what, and which defaults hold.

Key names and defaults are those of the configuration classes of the transformers library, read at the files
`src/transformers/models/*/configuration_*.py` of github.com/huggingface/transformers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from perfmodel.errors import PerfmodelError
from perfmodel.models.config import Config
from perfmodel.models.model import Transformer

# Long-context models allow hundreds of thousands of positions, but are mostly trained on 4 to 8 thousand.
LONGEST_SEQUENCE = 8192
_SEQUENCE_WHERE_UNSAID = 2048
_OPT_OFFSET = 2  # OPT's position table has two unused rows first
_NOT_COUNTED = "perfmodel does not count that variant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """How to read the config.json of one `model_type`."""

    read: Callable[[Config], Transformer]
    features: str
    # The released model whose exact parameter count the tests compare.
    checked: str
    # Defaults of the configuration class, for the text part of a larger model, which leaves them out.
    assumed: Mapping[str, int] = field(default_factory=dict)


def _sequence(positions: int) -> int:
    return min(positions, LONGEST_SEQUENCE)


def _llama(config: Config, *, tied: bool = False, head_dim: int | None = None) -> Transformer:
    """RMSNorm, SwiGLU, no biases: most other architectures are variants of it."""
    found = config.optional_size("head_dim")
    return Transformer(
        layers=config.size("num_hidden_layers"),
        hidden=config.size("hidden_size"),
        heads=config.size("num_attention_heads"),
        vocabulary=config.size("vocab_size"),
        sequence=_sequence(config.size("max_position_embeddings")),
        kv_heads=config.optional_size("num_key_value_heads"),
        head_dim=found if found is not None else head_dim,
        feed_forward=config.size("intermediate_size"),
        gated=True,
        rms_norm=True,
        bias=False,
        tied=config.flag("tie_word_embeddings", default=tied),
    )


def _llama_biased(config: Config) -> Transformer:
    attention = config.flag("attention_bias", default=False)
    mlp = config.flag("mlp_bias", default=False)
    return replace(_llama(config), bias=mlp, qkv_bias=attention, output_bias=attention)


def _qwen2(config: Config) -> Transformer:
    return replace(_llama(config), qkv_bias=True)


def _qwen3(config: Config) -> Transformer:
    attention = config.flag("attention_bias", default=False)
    return replace(_llama(config, head_dim=128), qkv_bias=attention, output_bias=attention, query_key_norm=True)


def _gemma(config: Config) -> Transformer:
    attention = config.flag("attention_bias", default=False)
    return replace(_llama(config, tied=True, head_dim=256), qkv_bias=attention, output_bias=attention)


def _gemma2(config: Config) -> Transformer:
    return replace(_gemma(config), norms=4)


def _gemma3(config: Config) -> Transformer:
    return replace(_gemma2(config), query_key_norm=True)


def _cohere(config: Config) -> Transformer:
    config.refuse("use_qk_norm", but=False, why=_NOT_COUNTED)
    attention = config.flag("attention_bias", default=False)
    return replace(_llama(config, tied=True), qkv_bias=attention, output_bias=attention, norms=1)


def _stablelm(config: Config) -> Transformer:
    config.refuse("qk_layernorm", but=False, why=_NOT_COUNTED)
    qkv_bias = config.flag("use_qkv_bias", default=False)
    norms = 1 if config.flag("use_parallel_residual", default=False) else 2
    return replace(_llama(config), rms_norm=False, qkv_bias=qkv_bias, norms=norms)


def _starcoder2(config: Config) -> Transformer:
    bias = config.flag("use_bias", default=True)
    return replace(_llama(config, tied=True), gated=False, rms_norm=False, bias=bias)


def _phi(config: Config) -> Transformer:
    config.refuse("qk_layernorm", but=False, why=_NOT_COUNTED)
    return replace(
        _llama(config), gated=False, rms_norm=False, bias=True, norms=1, head_bias=True,
    )  # fmt: skip


def _gpt_neox(config: Config) -> Transformer:
    attention = config.flag("attention_bias", default=True)
    return Transformer(
        layers=config.size("num_hidden_layers"),
        hidden=config.size("hidden_size"),
        heads=config.size("num_attention_heads"),
        vocabulary=config.size("vocab_size"),
        sequence=_sequence(config.size("max_position_embeddings")),
        feed_forward=config.optional_size("intermediate_size"),
        qkv_bias=attention,
        output_bias=attention,
        tied=config.flag("tie_word_embeddings", default=False),
    )


def _gpt2(config: Config) -> Transformer:
    config.refuse("add_cross_attention", but=False, why=_NOT_COUNTED)
    positions = config.size("n_positions")
    return Transformer(
        layers=config.size("n_layer", "num_hidden_layers"),
        hidden=config.size("n_embd", "hidden_size"),
        heads=config.size("n_head", "num_attention_heads"),
        vocabulary=config.size("vocab_size"),
        sequence=_sequence(positions),
        feed_forward=config.optional_size("n_inner"),
        learned_positions=positions,
        tied=config.flag("tie_word_embeddings", default=True),
    )


def _gpt_bigcode(config: Config) -> Transformer:
    multi_query = config.flag("multi_query", default=True)
    return replace(_gpt2(config), kv_heads=1 if multi_query else None)


def _gptj(config: Config) -> Transformer:
    tied = config.flag("tie_word_embeddings", default=False)
    return replace(
        _gpt2(config), qkv_bias=False, output_bias=False, norms=1, learned_positions=0, tied=tied, head_bias=True
    )


def _gpt_neo(config: Config) -> Transformer:
    positions = config.size("max_position_embeddings")
    return Transformer(
        layers=config.size("num_layers", "num_hidden_layers"),
        hidden=config.size("hidden_size"),
        heads=config.size("num_heads", "num_attention_heads"),
        vocabulary=config.size("vocab_size"),
        sequence=_sequence(positions),
        feed_forward=config.optional_size("intermediate_size"),
        qkv_bias=False,
        learned_positions=positions,
        tied=config.flag("tie_word_embeddings", default=True),
    )


def _opt(config: Config) -> Transformer:
    hidden = config.size("hidden_size")
    projected = config.size("word_embed_proj_dim", default=hidden)
    if projected != hidden:
        raise PerfmodelError(f"word_embed_proj_dim is {projected} where hidden_size is {hidden}: {_NOT_COUNTED}")
    config.refuse("do_layer_norm_before", but=True, why=_NOT_COUNTED)
    config.refuse("_remove_final_layer_norm", but=False, why=_NOT_COUNTED)
    config.refuse("layer_norm_elementwise_affine", but=True, why=_NOT_COUNTED)
    positions = config.size("max_position_embeddings")
    return Transformer(
        layers=config.size("num_hidden_layers"),
        hidden=hidden,
        heads=config.size("num_attention_heads"),
        vocabulary=config.size("vocab_size"),
        sequence=_sequence(positions),
        feed_forward=config.size("ffn_dim"),
        bias=config.flag("enable_bias", default=True),
        learned_positions=positions + _OPT_OFFSET,
        tied=config.flag("tie_word_embeddings", default=True),
    )


def _bloom(config: Config) -> Transformer:
    return Transformer(
        layers=config.size("n_layer", "num_hidden_layers"),
        hidden=config.size("hidden_size", "n_embed"),
        heads=config.size("n_head", "num_attention_heads"),
        vocabulary=config.size("vocab_size"),
        sequence=_sequence(config.size("seq_length", default=_SEQUENCE_WHERE_UNSAID)),
        embedding_norm=True,
        tied=config.flag("tie_word_embeddings", default=True),
    )


def _falcon(config: Config) -> Transformer:
    new = config.flag("new_decoder_architecture", default=False)
    heads = config.size("num_attention_heads", "n_head")
    multi_query = config.flag("multi_query", default=True)
    kv_heads = config.size("num_kv_heads", "n_head_kv", default=heads) if new else 1 if multi_query else heads
    norms = config.size("num_ln_in_parallel_attn", default=2) if new else 2
    if not new and config.flag("parallel_attn", default=True):
        norms = 1
    return Transformer(
        layers=config.size("num_hidden_layers", "n_layer"),
        hidden=config.size("hidden_size", "n_embed"),
        heads=heads,
        vocabulary=config.size("vocab_size"),
        sequence=_sequence(config.size("max_position_embeddings", default=_SEQUENCE_WHERE_UNSAID)),
        kv_heads=kv_heads,
        feed_forward=config.optional_size("ffn_hidden_size"),
        bias=config.flag("bias", default=False),
        norms=norms,
        tied=config.flag("tie_word_embeddings", default=True),
    )


_SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "max_position_embeddings",
)


def _assumed(*sizes: int | None) -> dict[str, int]:
    """Sizes in the order of _SIZES; None if the class derives it from another size."""
    return {name: size for name, size in zip(_SIZES, sizes, strict=True) if size is not None}


def _architecture(
    read: Callable[[Config], Transformer], features: str, checked: str, assumed: Mapping[str, int] | None = None
) -> Architecture:
    return Architecture(read=read, features=features, checked=checked, assumed=assumed or {})


ARCHITECTURES: dict[str, Architecture] = {
    "bloom": _architecture(_bloom, "LayerNorm, GELU, biases, a norm after the embedding, tied", "bloom-7b1"),
    "cohere": _architecture(_cohere, "LayerNorm without shift, one per block, SwiGLU, tied", "command-r-v01"),
    "falcon": _architecture(_falcon, "LayerNorm, one or two per block, GELU, few key-value heads, tied", "falcon-40b"),
    "gemma": _architecture(
        _gemma, "RMSNorm, GeGLU, own head size, tied", "gemma-2b", _assumed(256000, 3072, 24576, 28, 16, 16, 8192)
    ),
    "gemma2": _architecture(
        _gemma2, "gemma with four norms per block", "gemma-2-9b", _assumed(256000, 2304, 9216, 26, 8, 4, 8192)
    ),
    "gemma3_text": _architecture(
        _gemma3, "gemma2 with query and key norms", "gemma-3-1b", _assumed(262208, 2304, 9216, 26, 8, 4, 131072)
    ),
    "gpt2": _architecture(_gpt2, "LayerNorm, GELU, biases, learned positions, tied", "gpt2-xl"),
    "gpt_bigcode": _architecture(_gpt_bigcode, "gpt2 with one key-value head", "starcoder"),
    "gpt_neo": _architecture(_gpt_neo, "gpt2 without biases for queries, keys and values", "gpt-neo-2.7b"),
    "gpt_neox": _architecture(_gpt_neox, "LayerNorm, GELU, biases, untied", "gpt-neox-20b"),
    "gptj": _architecture(_gptj, "one norm per block, biases in the MLP and the head only, untied", "gpt-j-6b"),
    "granite": _architecture(_llama_biased, "as llama", "granite-3.0-2b"),
    "llama": _architecture(
        _llama_biased, "RMSNorm, SwiGLU, grouped queries, biases where asked for, untied unless said", "llama-3-8b",
        _assumed(32000, 4096, 11008, 32, 32, None, 2048),
    ),
    "mistral": _architecture(
        _llama, "as llama, never biases; the sliding window is not exploited", "mistral-nemo-12b",
        _assumed(32000, 4096, 14336, 32, 32, 8, 131072),
    ),
    "opt": _architecture(_opt, "LayerNorm, ReLU, biases, learned positions (two more than named), tied", "opt-6.7b"),
    "phi": _architecture(_phi, "LayerNorm, one per block, GELU, biases also in the head, untied", "phi-2"),
    "phi3": _architecture(_llama, "as llama, never biases", "phi-3-mini-4k"),
    "qwen2": _architecture(
        _qwen2, "as llama, biases for queries, keys and values", "qwen2.5-7b",
        _assumed(151936, 4096, 22016, 32, 32, 32, 32768),
    ),
    "qwen3": _architecture(
        _qwen3, "as llama, own head size, query and key norms", "qwen3-8b",
        _assumed(151936, 4096, 22016, 32, 32, 32, 32768),
    ),
    "stablelm": _architecture(_stablelm, "LayerNorm, SwiGLU, biases as qwen2 where asked for", "stablelm-2-1.6b"),
    "starcoder2": _architecture(_starcoder2, "LayerNorm, GELU, biases, grouped queries, tied", "starcoder2-7b"),
}  # fmt: skip
