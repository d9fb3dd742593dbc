"""Random numbers that depend on a seed, a stream and an element's index, and on nothing else.

A generator can return its n-th number only after the n - 1 numbers before it. Ranks that hold different parts of one
matrix would therefore each have to draw all of it. Here the index is hashed (SplitMix64; Steele, Lea and Flood 2014),
so that a rank draws only its own elements. Every grid starts from the same model and drops the same elements.
"""

import hashlib
import math
from dataclasses import dataclass

import torch

_WEYL = 0x9E3779B97F4A7C15 - (1 << 64)  # as signed 64-bit numbers, in which torch multiplies modulo 2^64
_FIRST = 0xBF58476D1CE4E5B9 - (1 << 64)
_SECOND = 0x94D049BB133111EB - (1 << 64)
_BITS = 53  # of a float64's significand
CHUNK = 1 << 20  # elements drawn at once: their hashes take 16 bytes each


def key(seed: int, stream: str) -> int:
    """A signed 64-bit number for a seed and the name of what is drawn."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{stream}".encode(), digest_size=8).digest(), "little", signed=True)


def _hash(index: torch.Tensor) -> torch.Tensor:
    """SplitMix64 of 64-bit integers."""
    mixed = index * _WEYL
    mixed = (mixed ^ _shifted(mixed, 30)) * _FIRST
    mixed = (mixed ^ _shifted(mixed, 27)) * _SECOND
    return mixed ^ _shifted(mixed, 31)


def _shifted(number: torch.Tensor, bits: int) -> torch.Tensor:
    """Shifted right as if it had no sign."""
    return (number >> bits) & ((1 << (64 - bits)) - 1)


def uniform(index: torch.Tensor, key: int) -> torch.Tensor:
    """Uniform numbers in (0, 1), float64, one per index.

    >>> uniform(torch.arange(3), key(1, "weights")).tolist()
    [0.9153, 0.1011, 0.0945]
    """
    bits = _shifted(_hash(_hash(index) ^ key), 64 - _BITS)
    return (bits.to(torch.float64) + 0.5) * 2.0**-_BITS


def normal(index: torch.Tensor, key: int) -> torch.Tensor:
    """Standard normal numbers, float64, one per index (Box and Muller 1958)."""
    radius = torch.sqrt(-2.0 * torch.log(uniform(2 * index, key)))
    return radius * torch.cos(2.0 * math.pi * uniform(2 * index + 1, key))


def fill_normal(flat: torch.Tensor, index: "Index", key: int, std: float) -> None:
    """Fill a flat tensor with normal numbers, drawn by the index of each element in the whole matrix."""
    for start in range(0, flat.numel(), CHUNK):
        places = torch.arange(start, min(start + CHUNK, flat.numel()), device=flat.device)
        flat[start : start + len(places)] = (std * normal(index(places), key)).to(flat.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """Converts places in a rank's flat shard to indices in the whole matrix.

    The whole matrix has `columns` columns. The rank's block starts at (`row`, `column`) and is `width` wide, and its
    shard starts at element `offset` of the flattened block.
    """

    columns: int
    width: int
    row: int = 0
    column: int = 0
    offset: int = 0

    def __call__(self, places: torch.Tensor) -> torch.Tensor:
        """Indices of the elements at `places`."""
        inside = places + self.offset
        return (self.row + inside // self.width) * self.columns + self.column + inside % self.width
