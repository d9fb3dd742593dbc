"""How fast the attention kernels of a device are."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated

from perfmodel.sources import Figure

FlopRate = Annotated[Figure, "flop/s"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionRate:
    """FLOP/s of one attention kernel at long sequences and heads of 128, the causal half counted once."""

    forward: FlopRate
    backward: FlopRate


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionRates:
    """The kernels that run on a device, in 16-bit formats."""

    flash_1: AttentionRate | None = None
    flash_2: AttentionRate | None = None
    flash_3: AttentionRate | None = None
    cudnn: AttentionRate | None = None

    def first(self, names: Sequence[str]) -> tuple[str, AttentionRate] | None:
        """The first of some kernels that the device has, else the first that it has at all."""
        for name in (*names, "flash_2", "flash_3", "cudnn", "flash_1"):
            rate: AttentionRate | None = getattr(self, name)
            if rate:
                return name, rate
        return None


ATTENTION_KERNELS = tuple(each.name for each in fields(AttentionRates))
