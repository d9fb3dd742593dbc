"""What every command about a training job is asked: the options of the job and of how its step is run and counted."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from perfmodel_cli.options import shared
from perfmodel_cli.options.groups import AxisLimits
from perfmodel_cli.texts import spelled

if TYPE_CHECKING:
    from perfmodel import search
    from perfmodel.parallel.job import Job
    from perfmodel.search.search import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked about: model, machine, batch, and how the step is run and counted."""

    model: shared.ModelName
    machine: shared.MachineName
    batch: shared.Batch
    seq: shared.Sequence = None
    micro_batch: shared.MicroBatch = "any"
    recompute: shared.Recompute = shared.RecomputeChoice.any
    weight_cache: shared.WeightCache = shared.CacheChoice.any
    placement: shared.Placement = shared.PlacementChoice.axonn
    fidelity: shared.Fidelity = shared.FidelityChoice.full
    optimizer: shared.Optimizer = "adamw"
    flash_attention: shared.Flash = True
    dropout: shared.Dropout = False
    bytes: shared.ElementBytes = ""
    vocabulary_multiple: shared.VocabularyMultiple = 128
    framework: shared.FrameworkName = None
    overlap: shared.OverlapNames = None
    attention_kernel: shared.AttentionKernel = None
    tuned_products: shared.TunedProducts = True
    host_time: shared.HostTime = None
    contention: shared.Contention = None
    ignore_memory: shared.IgnoreMemory = False
    memory_margin: shared.MemoryMargin = 0.07

    def job(self, limits: AxisLimits | None = None, measured: str = "") -> "Job":
        """The job, its files read; `measured`: a file of steps that set the level of predictions."""
        keep_freed_memory()
        job = self.put(**({"fix": limits.fix, "max": limits.maximum} if limits else {})).job()
        if not measured:
            return job
        from pathlib import Path

        from perfmodel.validation import level, step_files

        return level.at_level(job, step_files.read(Path(measured)))

    def space(self, gpus: int, top: int) -> "Space":
        """What is searched."""
        return self.put().space(gpus, top)

    def put(self, **limits: Any) -> "search.question.Question":
        """The same question as a record of the library."""
        from perfmodel.search import question

        own = {each.name: getattr(self, each.name) for each in fields(Question)}
        given: dict[str, Any] = {
            name: value.value if isinstance(value, StrEnum) else value for name, value in own.items()
        }
        return question.Question(**given, **limits, spelled=spelled)


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
    every page of it again: 15,800 page faults per block of 2^14 rows, which took more than half of a search's time. A C
    library without `mallopt` is left as it is.
    """
    with suppress(AttributeError, OSError):
        import ctypes

        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, _LARGEST)
        mallopt(_MMAP_THRESHOLD, _LARGEST)
