"""The question put to the model: which model, on which machine, with which batch and settings."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.costs.bandwidth import Bandwidths
from perfmodel.errors import UsageError
from perfmodel.machines.machine import Dtype, Machine
from perfmodel.models.model import Model
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.settings import CONTENTION, HOST_TIME, MOST, Settings, Sized
from perfmodel.units import Count, Number

if TYPE_CHECKING:
    from perfmodel.costs.interpolated import MeasuredTable
    from perfmodel.costs.nccl import Constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One training job, its grid still open. `batch` is in sequences, for all devices together.

    `constants` and `tables` are what full fidelity knows of the machine's collectives.
    """

    model: Model
    machine: Machine
    batch: int
    sequence: int
    settings: Sized
    bandwidths: Bandwidths
    constants: "Constants | None" = None
    tables: "tuple[MeasuredTable, ...]" = ()

    @classmethod
    def of(
        cls,
        model: Model,
        machine: Machine,
        *,
        batch: int,
        sequence: int | None = None,
        settings: Settings | None = None,
    ) -> "Job":
        """Put a job together; the sequence length is the model's own unless given."""
        length = model.sequence if sequence is None else sequence
        for name, value in (("batch", batch), ("sequence length", length)):
            if not 1 <= value <= MOST:
                raise UsageError(f"the {name} is {value}, wanted 1 to {MOST}")
        device = machine.device
        counted = (settings or Settings()).sized(
            device.dtype,
            host_time=device.host_time.value if device.host_time else HOST_TIME,
            contention=device.contention.value if device.contention else CONTENTION,
        )
        bandwidths = Bandwidths.of(machine, literal=counted.fidelity == "paper")
        if counted.fidelity != "full":
            return cls(
                model=model, machine=machine, batch=batch, sequence=length, settings=counted, bandwidths=bandwidths
            )
        from perfmodel.costs.interpolated import measured_tables  # noqa: PLC0415 - 3 ms that other fidelities do without
        from perfmodel.costs.nccl import Constants  # noqa: PLC0415 - as above

        constants, tables = Constants.of(machine), measured_tables(machine)
        return cls(
            model=model,
            machine=machine,
            batch=batch,
            sequence=length,
            settings=counted,
            bandwidths=bandwidths,
            constants=constants,
            tables=tables,
        )

    def accumulation(self, layout: Layout) -> Number:
        """Micro-steps of one step: batch / (z * data * micro_batch), a whole one where a rejected grid splits it."""
        return np.ceil(self.batch / (layout.z * layout.data * layout.micro_batch))

    def rows(self, layout: Layout) -> Number:
        """Tokens that one device's slice of Z processes in a micro-step: m / Gz = micro_batch * sequence."""
        return 1.0 * layout.micro_batch * self.sequence

    def padded_vocabulary(self, vocabulary: int, layout: Layout) -> Count:
        """Vocabulary padded so that x * y devices hold equal parts, each a multiple of `vocabulary_multiple` rows."""
        multiple = self.settings.vocabulary_multiple * layout.x * layout.y
        return vocabulary if self.settings.vocabulary_multiple == 0 else -(-vocabulary // multiple) * multiple

    @property
    def dtype(self) -> Dtype:
        """The number format of matrix products."""
        return self.machine.device.dtype
