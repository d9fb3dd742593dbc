"""The prediction of a step: its terms, at any fidelity."""

from dataclasses import dataclass

from perfmodel.memory.per_device import Memory
from perfmodel.traffic.per_step import Communication
from perfmodel.units import Number, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Time and memory of one step; below full fidelity no sum contains `ring_latency` (see `traffic.per_step`).

    `compute` and `utilization` are None at paper fidelity, which models no computation. `least`: seconds that the bytes
    of a step need on the link that is loaded most; None below full fidelity, where nothing overlaps.
    """

    communication: Communication
    compute: "Seconds | None"
    exposed_communication: Seconds
    memory: Memory
    utilization: "Number | None"
    ring_latency: Seconds
    least: "Seconds | None" = None

    @property
    def step(self) -> Seconds:
        """Seconds per step: what grids are ranked by."""
        return self.exposed_communication if self.compute is None else self.compute + self.exposed_communication
