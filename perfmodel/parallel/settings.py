"""How a job runs and is counted, apart from its grid: framework, number formats, optimizer, what overlaps.

Most settings are None unless the user gives them: then the framework's trait counts, else the machine's figure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal

from perfmodel.costs.fidelity import Fidelity
from perfmodel.errors import UsageError
from perfmodel.frameworks import loading
from perfmodel.frameworks.framework import Format, Framework, KernelSet, ShardedState
from perfmodel.machines.attention import ATTENTION_KERNELS
from perfmodel.machines.machine import Dtype
from perfmodel.parallel.choices import OPTIMIZERS, OVERLAPS, Overlap
from perfmodel.units import parse

# Time that PyTorch under Megatron-DeepSpeed takes to issue a kernel, including its own work between kernels. Fitted to
# vTrain's runs of one sequence per micro-step on 2 A100, hidden 1024: 3.00 ms per layer of 72 kernels, 3.33 ms of 78.
HOST_TIME = parse("42 us", "s")

# Seconds lost per second of overlap between computation and communication.
# arXiv 2502.08145, fig. 5: computation takes 12.38 s with 4.8 s of communication beside it, 11.83 s alone.
CONTENTION = 0.115


# Bytes of gradients per all-reduce over data. On 2 to 64 A100 of Perlmutter NCCL's all-reduce reaches 67 to 98 % of its
# best rate at 64 MiB, 30 to 94 % at 8 MiB (NCCL tests, one to four GPUs on each of 1 to 16 nodes).
BUCKET = parse("64 MiB", "B")

# Where neither framework nor profile has a figure: device context and workspaces; NCCL's 4 MiB per channel and
# direction on 32 channels (both assumed).
RESERVE = parse("1.5 GiB", "B")
COMMUNICATOR = parse("256 MiB", "B")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The user's choices: bytes per element of what is stored and sent, and the switches of the step.

    What is None follows the framework (see `resolve`). Where products run in fp32, all sizes are 4 bytes.
    `weight_bytes`: of a gathered weight; `stored_weight_bytes`: of the shard that the optimizer updates.
    `gradient_bytes` is what the reduce-scatter over Z sends; `data_gradient_bytes` is what is summed over data. The
    paper counts 2 bytes everywhere.
    `shards`: what data parallelism shards (nothing, the optimizer's states as in ZeRO-1, gradients too), over
    `shard_ranks` ranks of data at most (0: all). `sequence_parallel`: X splits the sequence between layers.
    `vocabulary_multiple`: the vocabulary is padded to a multiple of this times x * y (Megatron-LM's 128); 0 = never.
    `reserve`: device context and workspaces; `communicator_buffer`: memory of one communicator; `slack`: share that
    the allocator reserves beyond what is allocated; `logit_bytes`: per logit at the peak of the loss.
    `kernels`: how they are built; `gaps`: share of their time that a step takes besides.
    `memory_margin`: share of a device's memory that no plan may use. `level`: factor on the step at full fidelity, from
    `level_rows` steps that the user measured.

    At full fidelity: `overlap`, what overlaps computation; `contention`, seconds lost per second of overlap, from 0
    (nothing is lost) to 1 (nothing is gained); `host_time`, seconds to issue a kernel. The last two come from the
    profile if None. `attention_kernel`: the framework's if None.
    `tuned_products`: products run in their best layout. `bucket`: bytes of gradients per call over data,
    0 if each weight is sent by itself; `bucket_per_rank`: bytes for each rank of data where that is more.
    `gather_unit`: one call over Z gathers or scatters a layer's weight, or those of a block.
    """

    fidelity: Fidelity = "full"
    framework: Framework | None = None
    activation_bytes: float | None = None
    weight_bytes: float | None = None
    stored_weight_bytes: float | None = None
    gradient_bytes: float | None = None
    data_gradient_bytes: float | None = None
    optimizer: str = "adamw"
    flash_attention: bool = True
    dropout: bool = False
    vocabulary_multiple: int = 128
    reserve: float | None = None
    communicator_buffer: float | None = None
    slack: float | None = None
    logit_bytes: float | None = None
    kernels: KernelSet | None = None
    gaps: float | None = None
    shards: ShardedState | None = None
    shard_ranks: int | None = None
    sequence_parallel: bool | None = None
    gather_unit: Literal["layer", "block"] | None = None
    overlap: frozenset[Overlap] | None = None
    contention: float | None = None  # this and the next are arrays where `uncertainty` samples them
    host_time: float | None = None
    attention_kernel: str | None = None
    tuned_products: bool = True
    bucket: float | None = None
    bucket_per_rank: float | None = None
    ignore_memory: bool = False
    memory_margin: float = 0.0
    level: float = 1.0
    level_rows: int = 0
    fixed: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    maximum: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        """Names exist and sizes are positive."""
        for axis, size in self.fixed.items():
            if size > self.maximum.get(axis, size):
                raise UsageError(f"{axis} is fixed to {size}, above its maximum of {self.maximum[axis]}")
        if self.optimizer not in OPTIMIZERS:
            raise UsageError(f"no optimizer is called {self.optimizer!r} (known: {', '.join(OPTIMIZERS)})")
        if self.attention_kernel not in (None, *ATTENTION_KERNELS):
            known = ", ".join(ATTENTION_KERNELS)
            raise UsageError(f"no attention kernel is called {self.attention_kernel!r} (known: {known})")
        self._check_shares()
        self._check_sizes()

    def _check_shares(self) -> None:
        if isinstance(self.contention, float) and not 0 <= self.contention <= 1:
            raise UsageError(f"a contention of {self.contention}: wanted 0 (nothing is lost) to 1 (nothing is won)")
        if isinstance(self.host_time, float) and not 0 <= self.host_time <= 1:
            raise UsageError(f"a host time of {self.host_time} s to issue a kernel: wanted 0 to 1 s")
        if not 0 <= self.memory_margin < 1:
            raise UsageError(f"a memory margin of {self.memory_margin}: wanted a share from 0 to below 1")

    def _check_sizes(self) -> None:
        names = ("activation_bytes", "weight_bytes", "stored_weight_bytes", "gradient_bytes", "data_gradient_bytes")
        sizes = tuple(size for size in (getattr(self, name) for name in names) if size is not None)
        if any(size <= 0 for size in sizes) or self.vocabulary_multiple < 0:
            raise UsageError(
                f"bytes per element are {sizes}, padding {self.vocabulary_multiple}: wanted positive sizes"
            )

    def resolve(
        self, dtype: Dtype, *, host_time: float | None = None, contention: float = CONTENTION
    ) -> "ResolvedSettings":
        """The settings of a job whose products run in `dtype`; weights stored in fp32 need no master copy.

        `host_time`, `contention`: the machine's. A trait counts where the user gives nothing; of the host's time, the
        machine's figure counts before the framework's.
        """
        framework = self.framework or loading.load()
        found = {setting.name: getattr(self, setting.name) for setting in fields(Settings)}
        own = {"framework": framework, "host_time": host_time, "contention": contention}
        for defaults in (own, _sizes(framework, dtype), _traits(framework)):
            found |= {name: value for name, value in defaults.items() if found[name] is None}
        return ResolvedSettings(**found, master_copy=found["stored_weight_bytes"] != _FP32)


_FP32, _BF16 = 4.0, 2.0
_BYTES: Mapping[Format, float] = MappingProxyType({"fp32": _FP32, "bf16": _BF16})


def _sizes(framework: Framework, dtype: Dtype) -> dict[str, float]:
    """Bytes per element by the framework's formats; 4 where products run in fp32."""
    formats = framework.formats
    if dtype == "fp32":
        return dict.fromkeys(("activation_bytes", "weight_bytes", "stored_weight_bytes", "gradient_bytes"), _FP32)
    found = {
        "activation_bytes": _BF16,
        "weight_bytes": _BYTES[formats.gathered_weight],
        "stored_weight_bytes": _BYTES[formats.stored_weight],
        "gradient_bytes": _BYTES[formats.scattered_gradient],
    }
    if formats.summed_gradient != formats.kept_gradient:
        found["data_gradient_bytes"] = _BYTES[formats.summed_gradient]
    return found


def _traits(framework: Framework) -> dict[str, Any]:
    """What a framework does, under the names of the settings."""
    spread, overlapping, kernels, held = framework.spread, framework.overlapping, framework.kernels, framework.held
    return {
        "overlap": frozenset(name for name in OVERLAPS if name in overlapping.hidden),
        "gather_unit": overlapping.unit,
        "bucket": overlapping.bucket.value if overlapping.bucket else BUCKET,
        "bucket_per_rank": overlapping.bucket_per_rank.value if overlapping.bucket_per_rank else 0.0,
        "shards": spread.shards_over_data,
        "shard_ranks": spread.shard_ranks or 0,
        "sequence_parallel": spread.sequence_parallel,
        "kernels": kernels.built,
        "gaps": kernels.gaps.value if kernels.gaps else 0.0,
        "host_time": kernels.host_time.value if kernels.host_time else HOST_TIME,
        "reserve": held.context.value if held.context else RESERVE,
        "communicator_buffer": held.communicator.value if held.communicator else COMMUNICATOR,
        "slack": held.slack.value if held.slack else 0.0,
        "logit_bytes": held.logit.value if held.logit else None,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSettings(Settings):
    """Settings with everything decided, as a job holds them; `logit_bytes` None: fp32 and the format of activations."""

    framework: Framework
    activation_bytes: float = _BF16
    weight_bytes: float = _BF16
    stored_weight_bytes: float = _BF16
    gradient_bytes: float = _BF16
    reserve: float = 0.0
    communicator_buffer: float = 0.0
    slack: float = 0.0
    kernels: KernelSet = "fused"
    gaps: float = 0.0
    shards: ShardedState = "nothing"
    shard_ranks: int = 0
    sequence_parallel: bool = False
    gather_unit: Literal["layer", "block"] = "layer"
    bucket: float = BUCKET
    bucket_per_rank: float = 0.0
    overlap: frozenset[Overlap] = frozenset()
    contention: float = CONTENTION
    host_time: float = HOST_TIME
    master_copy: bool = True

    @property
    def attention_kernels(self) -> tuple[str, ...]:
        """Attention kernels in order of preference."""
        return (self.attention_kernel,) if self.attention_kernel else self.framework.kernels.attention

    @property
    def kept_gradient_bytes(self) -> float:
        """Bytes per parameter of the accumulated gradient: the optimizer's, or less where the framework keeps less."""
        return min(OPTIMIZERS[self.optimizer].gradient, _BYTES[self.framework.formats.kept_gradient])

    @property
    def sent_gradient_bytes(self) -> float:
        """Bytes per parameter that is summed over data: 2 in the paper's model unless given."""
        if self.data_gradient_bytes is not None:
            return self.data_gradient_bytes
        return self.gradient_bytes if self.fidelity == "paper" else self.kept_gradient_bytes

    @property
    def optimizer_bytes(self) -> float:
        """Bytes per parameter of optimizer state."""
        optimizer = OPTIMIZERS[self.optimizer]
        return optimizer.state if self.master_copy else optimizer.state - optimizer.copy
