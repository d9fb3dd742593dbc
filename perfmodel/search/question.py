"""The question of a search as a user puts it: names, paths or records, and options by the command line's names.

The commands and the functions of `perfmodel.api` both ask through it, so that they have the same defaults and refuse
the same things.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfmodel import models
from perfmodel.costs.fidelity import FIDELITIES
from perfmodel.errors import UsageError
from perfmodel.frameworks import loading
from perfmodel.frameworks.framework import Framework
from perfmodel.machines import profiles
from perfmodel.machines.machine import Machine
from perfmodel.models.model import Model
from perfmodel.parallel.axes import AXES, MAX_DEVICES
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import NAMED_PLACEMENTS
from perfmodel.parallel.option_values import assignments, choice, count_or_any, number, overlaps, seconds, whole
from perfmodel.parallel.settings import Settings
from perfmodel.search.roomier import TOLERANCE
from perfmodel.search.scaling import Batch
from perfmodel.search.search import Space

_ANY = "any"
_BYTES = {
    "activations": "activation_bytes",
    "weights": "weight_bytes",
    "gradients": "gradient_bytes",
    "data-gradients": "data_gradient_bytes",
}


def as_is(name: str) -> str:
    """An option's name in Python."""
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A model on a machine, and how the step is run and counted.

    `spelled`: how the user spells an option, for messages. `fix` and `max`: sizes of axes, and their largest sizes.
    """

    model: str | Path | Model
    machine: str | Path | Machine
    batch: int
    seq: int | None = None
    micro_batch: int | str = _ANY
    recompute: str = _ANY
    weight_cache: str = _ANY
    placement: str = "axonn"
    fidelity: str = "full"
    optimizer: str = "adamw"
    flash_attention: bool = True
    dropout: bool = False
    bytes: str | Mapping[str, int] = ""
    vocabulary_multiple: int = 128
    overlap: str | Iterable[str] | None = None
    framework: str | Framework | None = None
    attention_kernel: str | None = None
    tuned_products: bool = True
    host_time: str | float | None = None
    contention: float | None = None
    ignore_memory: bool = False
    memory_margin: float = 0.07
    fix: str | Mapping[str, int] = field(default_factory=dict)
    max: str | Mapping[str, int] = field(default_factory=dict)
    spelled: Callable[[str], str] = as_is

    def job(self) -> Job:
        """The job; this reads the files."""
        batch, settings = whole(self.batch, self.spelled("batch")), self._settings()
        sequence = None if self.seq is None else whole(self.seq, self.spelled("seq"))
        machine = machine_of(self.machine)
        return Job.of(model_of(self.model), machine, batch=batch, sequence=sequence, settings=settings)

    def space(self, gpus: int, top: int) -> Space:
        """The search space."""
        return Space(
            gpus=gpus,
            placements=NAMED_PLACEMENTS[self._chosen("placement", NAMED_PLACEMENTS)],
            micro_batch=count_or_any(self.micro_batch, self.spelled("micro_batch")),
            recompute=self._unless_any("recompute", RECOMPUTES),
            weight_cache=self._unless_any("weight_cache", WEIGHT_CACHES),
            top=whole(top, self.spelled("top")),
            tolerance=TOLERANCE if self.fidelity == "full" else 0.0,
        )

    def _settings(self) -> Settings:
        sizes: dict[str, Any] = assignments(self.bytes, tuple(_BYTES), self.spelled("bytes"))
        return Settings(
            fidelity=self._chosen("fidelity", FIDELITIES),
            optimizer=self.optimizer,
            flash_attention=self.flash_attention,
            dropout=self.dropout,
            vocabulary_multiple=whole(self.vocabulary_multiple, self.spelled("vocabulary_multiple")),
            ignore_memory=self.ignore_memory,
            memory_margin=number(self.memory_margin, self.spelled("memory_margin")),
            overlap=None if self.overlap is None else overlaps(self.overlap, self.spelled("overlap")),
            framework=framework_of(self.framework),
            attention_kernel=self.attention_kernel,
            tuned_products=self.tuned_products,
            host_time=None if self.host_time is None else seconds(self.host_time, self.spelled("host_time")),
            contention=None if self.contention is None else number(self.contention, self.spelled("contention")),
            fixed=assignments(self.fix, AXES, self.spelled("fix")),
            maximum=assignments(self.max, AXES, self.spelled("max")),
            **{_BYTES[name]: size for name, size in sizes.items()},
        )

    def _chosen(self, name: str, allowed: Iterable[str]) -> Any:
        return choice(getattr(self, name), allowed, self.spelled(name))

    def _unless_any(self, name: str, allowed: Iterable[str]) -> Any:
        found = self._chosen(name, (_ANY, *allowed))
        return None if found == _ANY else found


def model_of(given: str | Path | Model) -> Model:
    """A model by its name or path, or one that is loaded."""
    return given if isinstance(given, Model) else models.load(_text(given, "model"))


def machine_of(given: str | Path | Machine) -> Machine:
    """A machine by its name or the path of its profile, or one that is loaded."""
    return given if isinstance(given, Machine) else profiles.load(_text(given, "machine"))


def framework_of(given: str | Path | Framework | None) -> Framework:
    """A framework by its name or path, one that is loaded, or the project's own launcher."""
    if given is None:
        return loading.load()
    return given if isinstance(given, Framework) else loading.load(_text(given, "framework"))


def _text(given: str | Path, name: str) -> str:
    if not isinstance(given, (str, Path)):
        raise UsageError(f"{name} is a {type(given).__name__}, wanted a name, a path, or a loaded {name}")
    return str(given)


def device_count(machine: Machine, gpus: int | None, nodes: int | None, spelled: Callable[[str], str] = as_is) -> int:
    """The number of devices, given directly or in whole nodes."""
    if (gpus is None) == (nodes is None):
        raise UsageError(f"give either {spelled('gpus')} or {spelled('nodes')}")
    name, given, unit = ("nodes", nodes, machine.node_devices) if gpus is None else ("gpus", gpus, 1)
    count = whole(given, spelled(name))
    if not 1 <= count <= MAX_DEVICES // unit:
        raise UsageError(f"{spelled(name)} is {count}, wanted 1 to {MAX_DEVICES // unit}")
    return count * unit


def scaled_batch(whole_batch: int | None, per_gpu: float | None, spelled: Callable[[str], str] = as_is) -> Batch:
    """The batch of a sweep: the same for every count, or a number of sequences per GPU."""
    try:
        return Batch(whole_batch, per_gpu)
    except (UsageError, TypeError):
        raise UsageError(f"give either {spelled('batch')} or {spelled('batch_per_gpu')}, above 0") from None
