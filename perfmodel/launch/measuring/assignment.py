"""The request for a measurement, in plain numbers and text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from perfmodel.errors import UsageError
from perfmodel.launch.processes.experiment import AUTO, Backend

_PRODUCTS = ("fp32", "bf16", "fp16")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementRequest:
    """What ranks are asked to measure.

    `lines` is the file for all results, `largest` the size of the largest message in bytes.
    `dtypes` are the number formats of products, joined by +, or "auto" for those of the device; collectives use the
    first. `budget` is the time in seconds after which no new point is started. `scheduler` and `partition` are those of
    the job that this runs in.
    """

    worker: ClassVar[str] = "perfmodel.launch.measuring.worker"

    ranks: int
    lines: str
    budget: float
    rounds: int
    largest: float
    dtypes: str
    backend: Backend
    scheduler: str = "none"
    partition: str = ""

    def __post_init__(self) -> None:
        """Raise if products cannot be measured in one of the formats."""
        if unknown := [name for name in self.dtypes.split("+") if name not in (*_PRODUCTS, AUTO)]:
            raise UsageError(f"products in {unknown[0]!r} are not measured; wanted some of {', '.join(_PRODUCTS)}")

    def derived(self, found: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - the lines hold everything
        """Nothing, since all results are in the lines."""
        return {}
