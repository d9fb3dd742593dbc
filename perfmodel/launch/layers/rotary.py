"""Rotary position embeddings (Su et al. 2021, arXiv 2104.09864), for decoders without learned positions.

Features i and i + half of a head are rotated by position * base^(-i / half), as the Llama models do. Rotation is
linear, so the backward pass needs only the angles, which all layers share.
"""

from typing import Any

import torch

_BASE = 10_000.0


def turns(
    positions: int, head_dim: int, *, device: torch.device, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine of each position's angles, positions x 1 x half a head; an odd last feature stays as it is."""
    half = head_dim // 2
    speeds = _BASE ** (-torch.arange(half, device=device, dtype=dtype) / half)
    angles = torch.arange(positions, device=device, dtype=dtype)[:, None, None] * speeds
    return angles.cos(), angles.sin()


def turned(heads: torch.Tensor, by: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """(sequences, positions, heads, features), each head rotated by its position."""
    found: torch.Tensor = _Turn.apply(heads, *by)  # type: ignore[no-untyped-call]
    return found


class _Turn(torch.autograd.Function):
    """The backward pass rotates back."""

    @staticmethod
    def forward(ctx: Any, heads: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(cosine, sine)
        return _turn(heads, cosine, sine)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        cosine, sine = ctx.saved_tensors
        return _turn(gradients[0], cosine, -sine), None, None


def _turn(heads: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    half = cosine.shape[-1]
    first, second, rest = heads[..., :half], heads[..., half : 2 * half], heads[..., 2 * half :]
    parts = first * cosine - second * sine, second * cosine + first * sine, rest
    return torch.cat([part.to(heads.dtype) for part in parts], -1)
