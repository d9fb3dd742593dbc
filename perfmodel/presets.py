"""Models known by name, each with the page its sizes come from."""

from dataclasses import dataclass

from perfmodel.unet import UNet
from perfmodel.workload import Model, Transformer


@dataclass(frozen=True, slots=True)
class Preset:
    """The sizes of a published model, and where they are published."""

    shape: Transformer | UNet
    source: str


_SC24 = "arXiv 2502.08145, table II"
_SCRIPTS = "Megatron-AxoNN, branch gordon-bell-perlmutter, launch scripts"
_LLAMA_2 = "arXiv 2307.09288, and the config.json of the release"
_LLAMA_3 = "arXiv 2407.21783, table 3, and the config.json of the release"
_QWEN = "arXiv 2412.15115, table 1, and the config.json of the release"
_OWN = "our choice"


def _gpt(layers: int, hidden: int, heads: int, source: str) -> Preset:
    """A GPT as AxoNN trains it: GELU, LayerNorm, biases, learned positions, tied head."""
    shape = Transformer(layers, hidden, heads, vocabulary=51200, sequence=2048, learned_positions=2048)
    return Preset(shape, source)


def _llama(
    *,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    feed_forward: int,
    vocabulary: int,
    sequence: int,
    source: str,
) -> Preset:
    """RMSNorm, SwiGLU, no biases, own head."""
    shape = Transformer(
        layers, hidden, heads, vocabulary, sequence, kv_heads, feed_forward=feed_forward,
        gated=True, rms_norm=True, bias=False, tied=False,
    )  # fmt: skip
    return Preset(shape, source)


def _llama_2(layers: int, hidden: int, heads: int, kv_heads: int, feed_forward: int) -> Preset:
    return _llama(
        layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads, feed_forward=feed_forward,
        vocabulary=32000, sequence=4096, source=_LLAMA_2,
    )  # fmt: skip


def _llama_3(layers: int, hidden: int, heads: int, feed_forward: int) -> Preset:
    return _llama(
        layers=layers, hidden=hidden, heads=heads, kv_heads=8, feed_forward=feed_forward,
        vocabulary=128256, sequence=8192, source=_LLAMA_3,
    )  # fmt: skip


def _qwen(layers: int, hidden: int, heads: int, kv_heads: int, feed_forward: int) -> Preset:
    """As Llama, with biases for queries, keys and values only."""
    shape = Transformer(
        layers, hidden, heads, 152064, 4096, kv_heads, feed_forward=feed_forward,
        gated=True, rms_norm=True, bias=False, qkv_bias=True, tied=False,
    )  # fmt: skip
    return Preset(shape, _QWEN)


PRESETS: dict[str, Preset] = {
    "gpt-tiny": Preset(Transformer(4, 256, 8, vocabulary=8192, sequence=256, learned_positions=256), _OWN),
    "gpt-5b": _gpt(24, 4096, 32, _SC24),
    "gpt-10b": _gpt(32, 5120, 40, _SC24),
    "gpt-20b": _gpt(32, 7168, 56, _SC24),
    "gpt-40b": _gpt(38, 9216, 72, _SC24),
    "gpt-50b": _gpt(48, 9216, 72, _SCRIPTS),
    "gpt-60b": _gpt(56, 9216, 72, _SC24),
    "gpt-80b": _gpt(42, 12288, 96, _SC24),
    "gpt-100b": _gpt(53, 12288, 96, _SCRIPTS),
    "gpt-160b": _gpt(84, 12288, 96, _SC24),
    "gpt-320b": _gpt(96, 16384, 128, _SC24),
    "gpt-640b": _gpt(192, 16384, 128, _SC24),
    "gpt3-175b": _gpt(96, 12288, 96, "arXiv 2005.14165, table 2.1; vocabulary padded as in arXiv 2104.04473"),
    "megatron-22b": _gpt(48, 6144, 64, "arXiv 2205.05198, table 3"),
    "llama-2-7b": _llama_2(32, 4096, 32, 32, 11008),
    "llama-2-13b": _llama_2(40, 5120, 40, 40, 13824),
    "llama-2-70b": _llama_2(80, 8192, 64, 8, 28672),
    "llama-3-8b": _llama_3(32, 4096, 32, 14336),
    "llama-3-70b": _llama_3(80, 8192, 64, 28672),
    "llama-3-405b": _llama_3(126, 16384, 128, 53248),
    "mistral-7b": _llama(
        layers=32, hidden=4096, heads=32, kv_heads=8, feed_forward=14336, vocabulary=32000, sequence=8192,
        source="arXiv 2310.06825, table 1",
    ),
    "qwen2.5-7b": _qwen(28, 3584, 28, 4, 18944),
    "qwen2.5-72b": _qwen(80, 8192, 64, 8, 29568),
    "unet-7b": Preset(UNet(channels=2048, image=64), _OWN),
    "unet-28b": Preset(UNet(channels=4096, image=64), _OWN),
}  # fmt: skip


def model(name: str) -> Model:
    """The preset called `name`; the caller knows that there is one."""
    return PRESETS[name].shape.model(name)
