"""What every command about a training job is asked: the options of the job and of how its step is run and counted."""

import ctypes
import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfmodel.parallel.axes import AXES
from perfmodel.parallel.settings import AXONN_OVERLAPS, RECOMPUTES, WEIGHT_CACHES, Settings
from perfmodel_cli import options
from perfmodel_cli.option_groups import AxisLimits

if TYPE_CHECKING:
    from perfmodel.parallel.job import Job
    from perfmodel.search.search import Space

_AXONN = ",".join(sorted(AXONN_OVERLAPS))
_BYTES = {
    "activations": "activation_bytes",
    "weights": "weight_bytes",
    "gradients": "gradient_bytes",
    "data-gradients": "data_gradient_bytes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked about: model, machine, batch, and how the step is run and counted."""

    model: options.ModelName
    machine: options.MachineName
    batch: options.Batch
    seq: options.Sequence = None
    micro_batch: options.MicroBatch = "any"
    recompute: options.Recompute = options.RecomputeChoice.any
    weight_cache: options.WeightCache = options.CacheChoice.any
    placement: options.Placement = options.PlacementChoice.axonn
    fidelity: options.Fidelity = options.FidelityChoice.full
    optimizer: options.Optimizer = "adamw"
    flash_attention: options.Flash = True
    dropout: options.Dropout = False
    element_bytes: options.ElementBytes = ""
    vocabulary_multiple: options.VocabularyMultiple = 128
    overlap: options.OverlapNames = _AXONN
    flash_version: options.FlashVersion = 2
    host_time: options.HostTime = None
    contention: options.Contention = None
    ignore_memory: options.IgnoreMemory = False

    def job(self, limits: AxisLimits | None = None) -> "Job":
        """The job, its files read."""
        from perfmodel import models
        from perfmodel.machines import profiles
        from perfmodel.parallel.job import Job

        keep_freed_memory()
        limits = limits or AxisLimits()
        settings = Settings(
            fidelity=self.fidelity.value,
            optimizer=self.optimizer,
            flash_attention=self.flash_attention,
            dropout=self.dropout,
            vocabulary_multiple=self.vocabulary_multiple,
            ignore_memory=self.ignore_memory,
            overlap=options.overlaps(self.overlap),
            flash_version=self.flash_version,  # type: ignore[arg-type]
            host_time=options.seconds(self.host_time, "--host-time") if self.host_time is not None else None,
            contention=self.contention,
            fixed=options.assignments(limits.fix, AXES, "--fix"),
            maximum=options.assignments(limits.maximum, AXES, "--max"),
            **self._element_sizes(),
        )
        machine = profiles.load(self.machine)
        return Job.of(models.load(self.model), machine, batch=self.batch, sequence=self.seq, settings=settings)

    def space(self, gpus: int, top: int) -> "Space":
        """What is searched."""
        from perfmodel.parallel.layout import NAMED_PLACEMENTS
        from perfmodel.search.search import Space

        recomputes, caches = {name: name for name in RECOMPUTES}, {name: name for name in WEIGHT_CACHES}
        return Space(
            gpus=gpus,
            placements=NAMED_PLACEMENTS[self.placement.value],
            micro_batch=options.count_or_any(self.micro_batch, "--micro-batch"),
            recompute=recomputes.get(self.recompute.value),  # type: ignore[call-overload]
            weight_cache=caches.get(self.weight_cache.value) if self.weight_cache.value != "any" else None,  # type: ignore[call-overload]
            top=top,
        )

    def _element_sizes(self) -> dict[str, Any]:
        sizes = options.assignments(self.element_bytes, tuple(_BYTES), "--bytes")
        return {_BYTES[name]: size for name, size in sizes.items()}


def example(command: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add an example to a command's help, on a line that is never wrapped so that it can be pasted."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n\b\nExample: {command}"
        return function

    return add


# Of glibc's mallopt: free memory at the heap's end above which it is given back, and the size from which memory is
# mapped anew for each array.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST = 2**30 - 1


def keep_freed_memory() -> None:
    """Keep it, so that the next array finds its pages in place.

    A column of a search's block is as large as what glibc maps anew for each array, or larger. The kernel then clears
    every page of it again: 15,800 page faults a block of 2^14 rows, which took more than half of a search's time. A C
    library without `mallopt` does as it likes.
    """
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, _LARGEST)
        mallopt(_MMAP_THRESHOLD, _LARGEST)
