"""Models known by name, each with the page its sizes come from."""

from dataclasses import dataclass
from functools import partial

from perfmodel.models.model import Model, Transformer
from perfmodel.models.unet import UNet


@dataclass(frozen=True, slots=True)
class Preset:
    """The sizes of a published model, and where they are published."""

    shape: Transformer | UNet
    source: str


_SC24 = "arXiv 2502.08145, table II"
_SCRIPTS = "Megatron-AxoNN, branch gordon-bell-perlmutter, launch scripts"
_LLAMA_2 = "arXiv 2307.09288, and the config.json of the release"
_LLAMA_3 = "arXiv 2407.21783, table 3, and the config.json of the release"
_QWEN_2 = "arXiv 2412.15115, table 1, and the config.json of the release"
_OWN = "our choice"

# GELU, LayerNorm, biases, learned positions, tied head; RMSNorm, SwiGLU, no biases, a head of its own.
_gpt = partial(Transformer, vocabulary=51200, sequence=2048, learned_positions=2048)
_llama = partial(Transformer, gated=True, rms_norm=True, bias=False, tied=False)
_llama_2 = partial(_llama, vocabulary=32000, sequence=4096)
_llama_3 = partial(_llama, vocabulary=128256, sequence=8192, kv_heads=8)
_qwen_2 = partial(_llama, vocabulary=152064, sequence=4096, qkv_bias=True)

PRESETS: dict[str, Preset] = {
    "gpt-tiny": Preset(
        Transformer(layers=4, hidden=256, heads=8, vocabulary=8192, sequence=256, learned_positions=256), _OWN
    ),
    "gpt-5b": Preset(_gpt(layers=24, hidden=4096, heads=32), _SC24),
    "gpt-10b": Preset(_gpt(layers=32, hidden=5120, heads=40), _SC24),
    "gpt-20b": Preset(_gpt(layers=32, hidden=7168, heads=56), _SC24),
    "gpt-40b": Preset(_gpt(layers=38, hidden=9216, heads=72), _SC24),
    "gpt-50b": Preset(_gpt(layers=48, hidden=9216, heads=72), _SCRIPTS),
    "gpt-60b": Preset(_gpt(layers=56, hidden=9216, heads=72), _SC24),
    "gpt-80b": Preset(_gpt(layers=42, hidden=12288, heads=96), _SC24),
    "gpt-100b": Preset(_gpt(layers=53, hidden=12288, heads=96), _SCRIPTS),
    "gpt-160b": Preset(_gpt(layers=84, hidden=12288, heads=96), _SC24),
    "gpt-320b": Preset(_gpt(layers=96, hidden=16384, heads=128), _SC24),
    "gpt-640b": Preset(_gpt(layers=192, hidden=16384, heads=128), _SC24),
    "gpt3-175b": Preset(
        _gpt(layers=96, hidden=12288, heads=96), "arXiv 2005.14165, table 2.1; vocabulary of arXiv 2104.04473"
    ),
    "megatron-22b": Preset(_gpt(layers=48, hidden=6144, heads=64), "arXiv 2205.05198, table 3"),
    "llama-2-7b": Preset(_llama_2(layers=32, hidden=4096, heads=32, feed_forward=11008), _LLAMA_2),
    "llama-2-13b": Preset(_llama_2(layers=40, hidden=5120, heads=40, feed_forward=13824), _LLAMA_2),
    "llama-2-70b": Preset(_llama_2(layers=80, hidden=8192, heads=64, kv_heads=8, feed_forward=28672), _LLAMA_2),
    "llama-3-8b": Preset(_llama_3(layers=32, hidden=4096, heads=32, feed_forward=14336), _LLAMA_3),
    "llama-3-70b": Preset(_llama_3(layers=80, hidden=8192, heads=64, feed_forward=28672), _LLAMA_3),
    "llama-3-405b": Preset(_llama_3(layers=126, hidden=16384, heads=128, feed_forward=53248), _LLAMA_3),
    "mistral-7b": Preset(
        _llama(layers=32, hidden=4096, heads=32, vocabulary=32000, sequence=8192, kv_heads=8, feed_forward=14336),
        "arXiv 2310.06825, table 1",
    ),
    "qwen2.5-7b": Preset(_qwen_2(layers=28, hidden=3584, heads=28, kv_heads=4, feed_forward=18944), _QWEN_2),
    "qwen2.5-72b": Preset(_qwen_2(layers=80, hidden=8192, heads=64, kv_heads=8, feed_forward=29568), _QWEN_2),
    "unet-7b": Preset(UNet(channels=2048, image=64), _OWN),
    "unet-28b": Preset(UNet(channels=4096, image=64), _OWN),
}


def model(name: str) -> Model:
    """The preset called `name`, which must exist."""
    return PRESETS[name].shape.model(name)
