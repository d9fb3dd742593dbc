"""What a framework does in a step: how it spreads a model, what overlaps, what it stores and sends, its kernels.

A framework is data like a machine: one YAML file each in `data/`. Its traits are the defaults of `settings.Settings`;
what the user sets by an option replaces them. Every block names its source, and every figure may name one of its own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from perfmodel.errors import PerfmodelError
from perfmodel.sources import Figure, Source

FORMAT = 1
BLOCKS = ("spread", "overlapping", "formats", "kernels", "held")
Plain = Annotated[Figure, "1"]
Size = Annotated[Figure, "B"]
Time = Annotated[Figure, "s"]

Format = Literal["fp32", "bf16"]
ShardedState = Literal["nothing", "optimizer", "gradients"]
KernelSet = Literal["eager", "fused", "compiled"]

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How the framework spreads a model.

    `axes`: those that may be larger than 1; none named: all. `uneven_shards`: weights that Z does not divide are padded
    or refused. `sequence_parallel`: hidden states between layers are split over X, along the sequence. `vocabulary`:
    tables are split over X and Y, or every rank of these keeps the whole. `shards_over_data`: what ranks of the data
    axis do not all keep: nothing, the optimizer's states (ZeRO-1), gradients too (ZeRO-2). `shard_ranks`: over how many
    ranks of data that is sharded at most; none for all. `micro_batch`: sequences per rank and micro-step that it
    runs by default; published runs are predicted with it, and searches try others too.
    """

    source: str
    axes: tuple[str, ...] = ()
    uneven_shards: Literal["padded", "refused"] = "refused"
    sequence_parallel: bool = False
    vocabulary: Literal["split", "whole"] = "split"
    shards_over_data: ShardedState = "nothing"
    shard_ranks: int | None = None
    micro_batch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlapping:
    """What overlaps computation, and what one call sends.

    `hidden`: names of `choices.OVERLAPS`. `unit`: what one call gathers or scatters over Z, a layer's weight or those
    of a block; the next unit is gathered while one computes. `parameter_gather`: whether the gather of updated weights
    over data (ZeRO-1) hides behind the next forward pass. `bucket`: bytes of gradients per call over data, at least;
    `bucket_per_rank`: bytes for each rank of data, where that is more.
    """

    source: str
    hidden: tuple[str, ...]
    unit: Literal["layer", "block"] = "layer"
    parameter_gather: bool = False
    bucket: Size | None = None
    bucket_per_rank: Size | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """Formats of what is stored and sent, where products run in 16 bits.

    `stored_weight`: of the shard that the optimizer updates; fp32 makes a master copy unnecessary. `gathered_weight`:
    as sent over Z. `scattered_gradient`: as summed over Z. `summed_gradient`: as summed over data.
    """

    source: str
    stored_weight: Format = "bf16"
    gathered_weight: Format = "bf16"
    scattered_gradient: Format = "bf16"
    summed_gradient: Format = "fp32"
    kept_gradient: Format = "fp32"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """How kernels that are no matrix products are built, and what the host needs to issue one.

    `built`: a set of `costs.kernel_sets`. `gaps`: what a step takes beyond its kernels, as a share of their time: idle
    moments between them, data, logging, the slowest of many ranks. `attention`: kernels of a device's profile, of which
    the first that it has is used. `recomputes`, `weight_caches`: names of `choices`.
    """

    source: str
    built: KernelSet
    gaps: Annotated[Figure, "1", "0"] | None = None
    host_time: Time | None = None
    attention: tuple[str, ...] = ("flash_2",)
    recomputes: tuple[str, ...] = ("none", "full")
    weight_caches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Memory beside tensors.

    `context`: of the device's context and of libraries' workspaces. `communicator`: of one communicator. `slack`: what
    the allocator reserves beyond what is allocated, as a share. `logit`: bytes per logit at the peak of the loss.
    """

    source: str
    context: Size | None = None
    communicator: Size | None = None
    slack: Annotated[Figure, "1", "0"] | None = None
    logit: Plain | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """One framework with its traits; `release`: the version that was read."""

    format: int
    name: str
    title: str
    release: str
    sources: Mapping[str, Source]
    spread: Spread
    overlapping: Overlapping
    formats: Formats
    kernels: Kernels
    held: Held
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        """Refuse another format, an odd name, and blocks whose source is not listed."""
        if self.format != FORMAT:
            raise PerfmodelError(f"format {self.format}: this program reads format {FORMAT}")
        if not _NAME.fullmatch(self.name):
            raise PerfmodelError(f"the name {self.name!r} is not of lower-case letters, digits, dots and dashes")
        for block in BLOCKS:
            key = getattr(self, block).source
            if key not in self.sources:
                raise PerfmodelError(f"{block} names the source {key}, which the file does not list")
