"""How a job runs and is counted, apart from its grid: number formats, optimizer, recomputation, weight cache."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Literal

from perfmodel.costs.fidelity import Fidelity
from perfmodel.errors import UsageError
from perfmodel.machines.machine import Dtype
from perfmodel.parallel.choices import AXONN_OVERLAPS, OPTIMIZERS, Overlap
from perfmodel.units import GIBI, KIBI, parse

# Time that PyTorch under Megatron-DeepSpeed takes to issue a kernel, including its own work between kernels. Fitted to
# vTrain's runs of one sequence per micro-step on 2 A100, hidden 1024: 3.00 ms per layer of 72 kernels, 3.33 ms of 78.
HOST_TIME = parse("42 us", "s")

# Seconds lost per second of overlap between computation and communication.
# arXiv 2502.08145, fig. 5: computation takes 12.38 s with 4.8 s of communication beside it, 11.83 s alone.
CONTENTION = 0.115


# Bytes of gradients per all-reduce over data. On 2 to 64 A100 of Perlmutter NCCL's all-reduce reaches 67 to 98 % of its
# best rate at 64 MiB, 30 to 94 % at 8 MiB (NCCL tests, one to four GPUs on each of 1 to 16 nodes).
BUCKET = parse("64 MiB", "B")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The user's choices: bytes per element of what is stored and sent, and the switches of the step.

    Sizes that are None follow the number format of the job (see `sized`): 2 bytes, or 4 where products run in fp32.
    `gradient_bytes` is what the reduce-scatter over Z sends; `data_gradient_bytes` is what the all-reduce over data
    sends (None: the optimizer's accumulated gradient). The paper counts 2 bytes everywhere.
    `vocabulary_multiple`: the vocabulary is padded to a multiple of this times x * y (Megatron-LM's 128); 0 = never.
    `reserve`: CUDA context, library workspaces and allocator slack (assumed). `communicator_buffer`: memory of one
    NCCL communicator, 4 MiB per channel and direction on 32 channels (assumed).

    At full fidelity: `overlap`, what overlaps computation; `contention`, seconds lost per second of overlap, from 0
    (nothing is lost) to 1 (nothing is gained); `host_time`, seconds to issue a kernel. The last two come from the
    profile if None. `flash_version`: of the attention kernel. `bucket`: bytes of gradients per all-reduce over data, 0
    if each weight is sent by itself.
    """

    fidelity: Fidelity = "full"
    activation_bytes: float | None = None
    weight_bytes: float | None = None
    gradient_bytes: float | None = None
    data_gradient_bytes: float | None = None
    optimizer: str = "adamw"
    flash_attention: bool = True
    dropout: bool = False
    vocabulary_multiple: int = 128
    reserve: float = 1.5 * GIBI
    communicator_buffer: float = 2 * 32 * 4 * KIBI**2
    overlap: frozenset[Overlap] = AXONN_OVERLAPS
    contention: float | None = None  # this and the next are arrays where `uncertainty` samples them
    host_time: float | None = None
    flash_version: Literal[1, 2] = 2
    bucket: float = BUCKET
    ignore_memory: bool = False
    fixed: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    maximum: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        """Names exist and sizes are positive."""
        for axis, size in self.fixed.items():
            if size > self.maximum.get(axis, size):
                raise UsageError(f"{axis} is fixed to {size}, above its maximum of {self.maximum[axis]}")
        if self.flash_version not in (1, 2):
            raise UsageError(f"flash version {self.flash_version}: wanted 1 or 2")
        if isinstance(self.contention, float) and not 0 <= self.contention <= 1:
            raise UsageError(f"a contention of {self.contention}: wanted 0 (nothing is lost) to 1 (nothing is won)")
        if isinstance(self.host_time, float) and not 0 <= self.host_time <= 1:
            raise UsageError(f"a host time of {self.host_time} s to issue a kernel: wanted 0 to 1 s")
        if self.optimizer not in OPTIMIZERS:
            raise UsageError(f"no optimizer is called {self.optimizer!r} (known: {', '.join(OPTIMIZERS)})")
        given = (self.activation_bytes, self.weight_bytes, self.gradient_bytes, self.data_gradient_bytes)
        sizes = tuple(size for size in given if size is not None)
        if any(size <= 0 for size in sizes) or self.vocabulary_multiple < 0:
            raise UsageError(
                f"bytes per element are {sizes}, padding {self.vocabulary_multiple}: wanted positive sizes"
            )

    def resolve(
        self, dtype: Dtype, *, host_time: float = HOST_TIME, contention: float = CONTENTION
    ) -> "ResolvedSettings":
        """The settings of a job whose products run in `dtype`; weights in fp32 need no master copy.

        `host_time`, `contention`: the machine's, used if the user gives none.
        """
        chosen = {setting.name: getattr(self, setting.name) for setting in fields(Settings)}
        for name, own in (("host_time", host_time), ("contention", contention)):
            chosen[name] = own if chosen[name] is None else chosen[name]
        size = 4.0 if dtype == "fp32" else 2.0
        for name in ("activation_bytes", "weight_bytes", "gradient_bytes"):
            chosen[name] = size if chosen[name] is None else chosen[name]
        return ResolvedSettings(**chosen, master_copy=dtype != "fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSettings(Settings):
    """Settings with every size decided, as a job holds them."""

    activation_bytes: float = 2
    weight_bytes: float = 2
    gradient_bytes: float = 2
    contention: float = CONTENTION
    host_time: float = HOST_TIME
    master_copy: bool = True

    @property
    def kept_gradient_bytes(self) -> float:
        """Bytes per parameter of the accumulated gradient."""
        return OPTIMIZERS[self.optimizer].gradient

    @property
    def sent_gradient_bytes(self) -> float:
        """Bytes per parameter that the data-parallel all-reduce sends: 2 in the paper's model unless given."""
        if self.data_gradient_bytes is not None:
            return self.data_gradient_bytes
        return self.gradient_bytes if self.fidelity == "paper" else self.kept_gradient_bytes

    @property
    def optimizer_bytes(self) -> float:
        """Bytes per parameter of optimizer state."""
        optimizer = OPTIMIZERS[self.optimizer]
        return optimizer.state if self.master_copy else optimizer.state - optimizer.copy
