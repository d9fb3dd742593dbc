"""The options that every command about a training job shares, written once and added to a command's own.

`@asks` gives a command the parameters of `Question` in front of its own, and hands it the filled Question;
`@asks_for(Another)` does so with another record of options.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfmodel.errors import UsageError
from perfmodel.parallel.settings import AXONN_OVERLAPS, RECOMPUTES, WEIGHT_CACHES, Settings
from perfmodel_cli import options

if TYPE_CHECKING:
    from perfmodel.parallel.job import Job
    from perfmodel.search.search import Space
import ctypes
from contextlib import suppress

_AXES = ("x", "y", "z", "data")
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

    def job(self, *, fix: str = "", maximum: str = "") -> "Job":
        """The job, its files read."""
        from perfmodel import models
        from perfmodel.machines import profiles
        from perfmodel.parallel.job import Job

        keep_freed_memory()
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
            fixed=options.assignments(fix, _AXES, "--fix"),
            maximum=options.assignments(maximum, _AXES, "--max"),
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


def gpu_count(devices_per_node: int, gpus: int | None, nodes: int | None) -> int:
    """Devices asked for, by --gpus or by --nodes."""
    from perfmodel.parallel.layout import MOST_DEVICES

    if (gpus is None) == (nodes is None):
        raise UsageError("give either --gpus or --nodes")
    name, count = ("--gpus", gpus) if gpus is not None else ("--nodes", nodes)
    unit = 1 if gpus is not None else devices_per_node
    if count is None or not 1 <= count <= MOST_DEVICES // unit:
        raise UsageError(f"{name} is {count}, wanted 1 to {MOST_DEVICES // unit}")
    return count * unit


def asks_for(kind: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the fields of a record of options to a command's parameters; it is called with that record first.

    A parameter of the command's own that has a field's name stands in its place, and goes to both.
    """

    def add(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command).parameters.values())[1:]
        fields = inspect.signature(kind).parameters
        names, own_names = set(fields), {parameter.name for parameter in own}
        shared = [parameter for parameter in fields.values() if parameter.name not in own_names]
        keyword_only = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*shared, *own)]

        def run(**given: Any) -> None:
            asked = kind(**{name: value for name, value in given.items() if name in names})
            command(asked, **{name: value for name, value in given.items() if name in own_names})

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in keyword_only}
        return run

    return add


asks = asks_for(Question)


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
