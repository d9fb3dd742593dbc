"""The question put to the model: what is trained and how (`Workload`), and on which machine (`Job`)."""

from dataclasses import dataclass

import numpy as np

from perfmodel.costs.costs import Costs
from perfmodel.costs.gemm import GemmRate
from perfmodel.errors import UsageError
from perfmodel.machines.machine import Dtype, Machine
from perfmodel.models.model import Model
from perfmodel.parallel.axes import BATCH_GROUP, REPLICA_GROUP, TENSOR_GROUP
from perfmodel.parallel.choices import MAX_COUNT
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.settings import CONTENTION, ResolvedSettings, Settings
from perfmodel.units import Count, Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One training job without grid and machine: everything that the rules of a grid depend on.

    `batch` is in sequences, for all devices together.
    """

    model: Model
    batch: int
    sequence: int
    settings: ResolvedSettings

    def __post_init__(self) -> None:
        """Counts are counts."""
        for name, value in (("batch", self.batch), ("sequence length", self.sequence)):
            if not 1 <= value <= MAX_COUNT:
                raise UsageError(f"the {name} is {value}, wanted 1 to {MAX_COUNT}")

    @classmethod
    def plain(
        cls, model: Model, *, batch: int, sequence: int | None = None, settings: Settings | None = None
    ) -> "Workload":
        """A workload that no machine is named for; the sequence length is the model's own unless given."""
        sized = (settings or Settings()).resolve("bf16")
        return Workload(model=model, batch=batch, sequence=_length(model, sequence), settings=sized)

    def accumulation(self, layout: Layout) -> Number:
        """Micro-steps of one step: batch / (shares * micro_batch), rounded up for rejected grids."""
        return np.ceil(self.batch / (layout.size(BATCH_GROUP) * layout.micro_batch))

    def rows(self, layout: Layout) -> Number:
        """Tokens that a device processes in a micro-step: m / Gz = micro_batch * sequence."""
        return 1.0 * layout.micro_batch * self.sequence

    def parts_between(self, layout: Layout) -> Number:
        """Into how many parts X splits the tokens between layers: itself under sequence parallelism, else 1."""
        return 1.0 * layout.x if self.settings.sequence_parallel else 1.0

    def state_shards(self, layout: Layout) -> Number:
        """Ranks of data among which the optimizer's states are divided: 1 where each keeps them all."""
        if self.settings.shards == "nothing":
            return 1.0
        ranks = layout.size(REPLICA_GROUP)
        return 1.0 * (np.gcd(ranks, self.settings.shard_ranks) if self.settings.shard_ranks else ranks)

    def padded_vocabulary(self, vocabulary: int, layout: Layout) -> Count:
        """Vocabulary padded so that x * y devices hold equal parts, each a multiple of `vocabulary_multiple` rows."""
        multiple = self.settings.vocabulary_multiple * layout.size(TENSOR_GROUP)
        return vocabulary if self.settings.vocabulary_multiple == 0 else -(-vocabulary // multiple) * multiple


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Workload):
    """A workload on a machine, with the machine's costs."""

    machine: Machine
    costs: Costs

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
        """A job; the sequence length is the model's own unless given."""
        device = machine.device
        sized = (settings or Settings()).resolve(
            device.dtype,
            host_time=device.host_time.value if device.host_time else None,
            contention=device.contention.value if device.contention else CONTENTION,
        )
        return cls(
            model=model,
            machine=machine,
            batch=batch,
            sequence=_length(model, sequence),
            settings=sized,
            costs=Costs.of(
                machine,
                fidelity=sized.fidelity,
                host_time=sized.host_time,
                contention=sized.contention,
                attention=sized.attention_kernels,
                tuned=sized.tuned_products,
            ),
        )

    @property
    def product_rate(self) -> GemmRate | None:
        """The rate of large products that times are based on; None at paper fidelity, which models no computation."""
        return None if self.settings.fidelity == "paper" else self.costs.rate

    @property
    def dtype(self) -> Dtype:
        """The number format of matrix products."""
        return self.machine.device.dtype


def _length(model: Model, sequence: int | None) -> int:
    return model.sequence if sequence is None else sequence
