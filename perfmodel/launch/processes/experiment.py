"""One run as plain numbers and text: one model on one grid with all settings, and the seat of each rank."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import Field, asdict, dataclass
from typing import Any, ClassVar, Literal, Protocol

from perfmodel import models
from perfmodel.errors import PerfmodelError, UsageError
from perfmodel.machines import profiles
from perfmodel.machines.machine import TRAINING_DTYPES
from perfmodel.models.model import Embedding, Model
from perfmodel.models.scaling import scaled
from perfmodel.parallel.axes import Shape
from perfmodel.parallel.choices import OVERLAPS, RECOMPUTES, WEIGHT_CACHES, Recompute, WeightCache
from perfmodel.parallel.job import Workload
from perfmodel.parallel.layout import PLACEMENTS, Layout
from perfmodel.parallel.rules import complaints, grid_rules, micro_batch_rule
from perfmodel.parallel.settings import Settings
from perfmodel.step.flops import model_flops

AUTO = "auto"  # as the device suggests: nccl and bf16 on GPUs, gloo and fp32 on processors
Backend = Literal["auto", "gloo", "nccl"]
Dtype = Literal["auto", "fp32", "bf16", "fp64"]
USUAL_DTYPES: dict[str, Dtype] = {"nccl": "bf16", "gloo": "fp32"}


class Assignment(Protocol):
    """What the ranks of one run do: plain numbers and text, which the module `worker` reads on each rank."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    worker: ClassVar[str]

    @property
    def ranks(self) -> int:
        """Processes in all."""

    def derived(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Further figures that follow from the record of a run."""


@dataclass(frozen=True, kw_only=True)  # no slots: two bases cannot both have them
class _OfModel:
    """The columns of a run that come before the sizes of the axes."""

    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment(Shape, _OfModel):
    """One run. The names are those of the columns that `perfmodel compare` reads (validation/measured_steps.py).

    The parts of `overlap` are joined by +. `placement` lists the axes, neighbouring ranks first. `tokens` is a file, or
    "" for drawn tokens. `load` and `save` are folders of checkpoints, or "" for none. `round` numbers repetitions.
    """

    worker: ClassVar[str] = "perfmodel.launch.processes.worker"

    batch_sequences: int
    scale_layers: int | None = None
    scale_hidden: str = ""
    machine: str = ""
    placement: str = ",".join(PLACEMENTS[0])
    sequence_length: int
    micro_batch: int = 1
    recompute: Recompute = "none"
    weight_cache: WeightCache = "none"
    overlap: str = "none"
    attention: Literal["flash", "materialized"] = "flash"
    dtype: Dtype = "auto"
    backend: Backend = "auto"
    tune: bool = False
    seed: int = 0
    tokens: str = ""
    load: str = ""
    save: str = ""
    steps: int = 10
    warmup: int = 3
    round: int = 1

    @property
    def grid(self) -> str:
        """Gx x Gy x Gz x Gdata."""
        return self.text()

    @property
    def ranks(self) -> int:
        """Processes in all."""
        return int(self.gpus)

    def layout(self) -> Layout:
        """The grid and how it is run, as a `Layout`."""
        return Layout(
            **self.sizes(),
            placement=PLACEMENTS.index(tuple(self.placement.split(","))),
            micro_batch=self.micro_batch,
            recompute=RECOMPUTES.index(self.recompute),
            weight_cache=WEIGHT_CACHES.index(self.weight_cache),
        )

    def workload(self) -> Workload:
        """What is trained and how, for the rules and for the ranks; it does not depend on the machine."""
        overlap = frozenset(kind for kind in OVERLAPS if kind in self.overlap.split("+"))
        settings = Settings(flash_attention=self.attention == "flash", overlap=overlap)
        model = model_of(self.model, self.scale_layers, self.scale_hidden)
        return Workload.plain(model, batch=self.batch_sequences, sequence=self.sequence_length, settings=settings)

    def refuse(self) -> None:
        """Raise with the first rule that the grid breaks, or if the named machine has no profile."""
        if self.machine:
            profiles.load(self.machine)  # checked now rather than after the run
        job, layout = self.workload(), self.layout()
        broken = complaints((*grid_rules(job), micro_batch_rule(job)), layout)
        if broken:
            raise PerfmodelError(f"{self.grid} cannot run {job.model.name}: {broken[0][1]}")
        for _, layer in job.model.layers():
            if isinstance(layer, Embedding) and 0 < layer.learned_positions < job.sequence:
                most = layer.learned_positions
                raise UsageError(
                    f"a sequence of {job.sequence} tokens, but {job.model.name} has {most} positions; "
                    f"wanted --seq of at most {most}"
                )

    def derived(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Rates, if the run completed."""
        return dict(self.rates(found["step_time_s"], found["dtype"])) if found.get("step_time_s") else {}

    def rates(self, step: float, dtype: str) -> dict[str, float | None]:
        """Tokens and FLOPs per second of all ranks, and MFU if a machine is named."""
        rate = float(model_flops(self.workload())) / step
        named = profiles.load(self.machine) if self.machine else None
        peak = named.device.peak.get(dtype) if named and dtype in TRAINING_DTYPES else None
        return {
            "tokens_per_s": self.batch_sequences * self.sequence_length / step,
            "model_flop_per_s": rate,
            "model_flops_utilization": None if peak is None else rate / (self.ranks * peak.value),
        }

    def answered_by(self, record: Mapping[str, Any]) -> bool:
        """Whether a record is of this run; backend "auto" matches any backend, and dtype "auto" its usual format."""
        asked = asdict(self)
        if self.dtype == AUTO:
            asked["dtype"] = USUAL_DTYPES.get(record.get("backend", ""))
        told = {"round": 1, **record}  # lines written before rounds existed lack it
        return all(told.get(name) == value for name, value in asked.items() if value != AUTO)


def model_of(name: str, layers: int | None, hidden: str) -> Model:
    """A model by its name, with another number of layers and its widths multiplied if asked for."""
    return scaled(models.load(name), layers=layers, hidden=hidden)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One rank's place in one run. `store` is where torch's ranks meet; `folder` holds what this rank reports.

    `threads` is the number of processor threads (None: as the environment says). With `own_devices` the launcher may
    have given each rank its own devices, so that the first visible one is this rank's.
    """

    rank: int
    world: int
    local_rank: int
    local_world: int
    store: str
    folder: str
    timeout: float
    threads: int | None
    own_devices: bool


def digest(experiments: Iterable[Assignment]) -> str:
    """A short text that differs if any setting of any run differs."""
    text = json.dumps([asdict(one) for one in experiments])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
