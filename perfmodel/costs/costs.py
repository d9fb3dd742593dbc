"""The costs of a job on a machine: bandwidths, protocols, measured times, rates of products and of memory.

Everything that a prediction takes from a machine profile is in one record, created once per job from the machine and
the settings. Uncertainty and calibration scale it; nothing else changes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from perfmodel.costs.bandwidth import Bandwidths
from perfmodel.costs.collective import Link, ProtocolLink
from perfmodel.costs.fidelity import Fidelity
from perfmodel.costs.gemm import AttentionCost, Chip, GemmRate, attention_cost, gemm_rate
from perfmodel.costs.interpolated import MeasuredTable, measured_tables
from perfmodel.costs.nccl import Constants
from perfmodel.machines.machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """One number for each uncertain input: its relative standard deviation, or the factor of a sample.

    Any number may be a column of many samples instead, here and in `Costs`: every formula takes either.
    """

    inside: float
    between: float
    fabric_latency: float
    network_latency: float
    products: float
    memory: float
    issuing: float
    contention: float
    model: float
    tables: float  # last, because it is drawn separately

    @classmethod
    def all(cls, value: float) -> "Factors":
        """The same number for every input."""
        return cls(**dict.fromkeys((each.name for each in fields(cls)), value))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Costs:
    """The figures of one machine from which times are computed.

    `constants`, `tables`: for collectives at full fidelity; `link`: how the groups of an axis are timed.
    `host_time`: seconds to issue a kernel or a call.
    `contention`: seconds lost per second of overlap between computation and communication. `attention`: the attention
    kernel. `tuned`: whether products run in their best layout. `products` and `memory` multiply the rates of the
    profile: 1, or samples of their uncertainty.
    """

    machine: Machine
    bandwidths: Bandwidths
    constants: Constants
    tables: tuple[MeasuredTable, ...]
    link: type[Link]
    host_time: float
    contention: float
    attention: AttentionCost
    tuned: bool = True
    products: float = 1.0
    memory: float = 1.0

    @classmethod
    def of(
        cls,
        machine: Machine,
        *,
        fidelity: Fidelity,
        host_time: float,
        contention: float,
        attention: Sequence[str] = ("flash_2",),
        tuned: bool = True,
    ) -> "Costs":
        """Read the profile. Paper fidelity has the paper's bandwidths; only full fidelity has protocols and tables."""
        full = fidelity == "full"
        return cls(
            machine=machine,
            bandwidths=Bandwidths.of(machine, literal=fidelity == "paper"),
            constants=Constants.of(machine),
            tables=measured_tables(machine) if full else (),
            link=ProtocolLink if full else Link,
            host_time=host_time,
            contention=contention,
            attention=attention_cost(machine, attention),
            tuned=tuned,
        )

    @property
    def rate(self) -> GemmRate:
        """FLOP/s of large matrix products, and the source; raises PerfmodelError where the profile has none."""
        known = gemm_rate(self.machine)
        return replace(known, value=known.value * self.products)

    @property
    def chip(self) -> Chip:
        """The device figures that kernels need."""
        forward, backward = self.attention.rates
        device = Chip.of(
            self.machine.device,
            gemm=self.rate.value,
            host=self.host_time,
            attention=(forward * self.products, backward * self.products),
            tuned=self.tuned,
        )
        return replace(device, memory=device.memory * self.memory)

    def scaled(self, factors: Factors) -> "Costs":
        """The costs of a machine whose figures differ by these factors."""
        return replace(
            self,
            bandwidths=replace(
                self.bandwidths, factor=factors.inside, between=self.bandwidths.between * factors.between
            ),
            constants=_scaled_constants(self.constants, factors),
            tables=tuple(replace(table, factor=factors.tables) for table in self.tables),
            host_time=self.host_time * factors.issuing,
            contention=self.contention * factors.contention,
            products=factors.products,
            memory=factors.memory,
        )


def _scaled_constants(at: Constants, factors: Factors) -> Constants:
    latencies = {
        name: getattr(at, name) * factors.network_latency for name in ("network", "bulk", "ring", "far", "startup")
    }
    return replace(
        at,
        **latencies,
        fabric=at.fabric * factors.fabric_latency,
        channels=at.channels * factors.inside,
        switched=at.switched * factors.inside,
        tapered=at.tapered * factors.between,
    )
