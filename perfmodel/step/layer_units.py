"""A micro-step as a chain of layer units: a linear layer with the layers before it, their kernels and collectives.

A layer unit is the unit of overlap: its weight is gathered before it, its forward all-reduce ends it, and its gradients
leave it. Norms, attention and activations belong to the linear layer that follows them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from perfmodel.costs.collective import Role
from perfmodel.costs.gemm import LayerTimes
from perfmodel.costs.kernel_sets import KERNEL_SETS
from perfmodel.costs.kernels import DeviceShare, layer_times
from perfmodel.models.layers import Attention, Embedding, Head, Linear
from perfmodel.numerics import expand_rows
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.passes import Passes
from perfmodel.parallel.sharding import block_repeats
from perfmodel.traffic.per_layer import LayerTraffic
from perfmodel.traffic.per_step import Traffic
from perfmodel.units import Array, Seconds

_ROLES: tuple[Role, ...] = ("gather", "reduce", "reduce_back", "wait", "scatter", "data")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LayerUnit:
    """Seconds per call: computation, and communication before, within and after it.

    `reduce` ends the forward pass and nothing hides it; nothing hides `wait` in the backward pass either.
    `reduce_back` may overlap `weight_gradient`, `scatter` what follows, `gather` what precedes.
    `again` is what selective recomputation repeats, `again_most` what recomputation of operations does; `data` is sent
    once per step.
    """

    name: str
    forward: Seconds = 0.0
    input_gradient: Seconds = 0.0
    weight_gradient: Seconds = 0.0
    others_back: Seconds = 0.0
    again: Seconds = 0.0
    again_most: Seconds = 0.0
    gather: Seconds = 0.0
    reduce: Seconds = 0.0
    reduce_back: Seconds = 0.0
    wait: Seconds = 0.0
    scatter: Seconds = 0.0
    data: Seconds = 0.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BlockUnits:
    """Units that repeat together; `checkpointed` ones run forward again under full recomputation."""

    name: str
    units: tuple[LayerUnit, ...]
    repeat: int
    checkpointed: bool


@dataclass(slots=True, kw_only=True)
class _Pending:
    """Computation and statistics of the layers before the next linear layer."""

    times: list[LayerTimes] = field(default_factory=list)
    again: Seconds = 0.0
    again_most: Seconds = 0.0
    reduce: Seconds = 0.0
    wait: Seconds = 0.0

    def add(self, sent: LayerTraffic, times: LayerTimes) -> None:
        """A norm's statistics are sent forward and backward; attention may be recomputed by itself."""
        self.times.append(times)
        if isinstance(sent.layer, Attention):
            self.again = self.again + times.forward
        else:
            self.again_most = self.again_most + times.forward
        if sent.sent:
            self.reduce = self.reduce + sent.seconds("reduce")
            self.wait = self.wait + sent.seconds("wait")


def block_units(job: Job, layout: Layout, sent: Traffic) -> tuple[BlockUnits, ...]:
    """The layer units of a micro-step by block, for one layout or many; `sent` is the traffic of these layouts."""
    part, chip = _part(job, layout), job.costs.chip
    found: list[BlockUnits] = []
    for block in job.model.blocks:
        units: list[LayerUnit] = []
        pending = _Pending()
        for each in (one for one in sent.layers if one.block is block):
            layer = each.layer
            vocabulary = job.padded_vocabulary(layer.vocabulary, layout) if isinstance(layer, Head) else 0
            times = layer_times(layer, part=part, chip=chip, vocabulary=vocabulary).longer(1.0 + job.settings.gaps)
            if isinstance(layer, (Linear, Embedding, Head)):
                units.append(_unit(each, times, pending))
                pending = _Pending()
            else:
                pending.add(each, times)
        if pending.times:  # what follows the last linear layer is a unit without weights
            units.append(_unit(None, LayerTimes(), pending))
        found.append(
            BlockUnits(
                name=block.name,
                units=tuple(units),
                repeat=block_repeats(block, layout),
                checkpointed=block.checkpointed,
            )
        )
    return tuple(found)


def _part(job: Job, layout: Layout) -> DeviceShare:
    """The share of every layer that one device computes."""
    settings = job.settings
    return DeviceShare(
        rows=job.rows(layout),
        sequence=job.sequence,
        x=1.0 * layout.x,
        y=1.0 * layout.y,
        attention="flash" if settings.flash_attention else "materialized",
        dropout=settings.dropout,
        element=settings.activation_bytes,
        weight=settings.weight_bytes,
        between=job.parts_between(layout),
        rotary=job.model.rotary,
        kernels=KERNEL_SETS[settings.kernels],
    )


def _unit(sent: LayerTraffic | None, times: LayerTimes, pending: _Pending) -> LayerUnit:
    roles = {role: sent.seconds(role) for role in _ROLES} if sent else dict.fromkeys(_ROLES, 0.0)
    return LayerUnit(
        name=sent.layer.name if sent else "rest",
        forward=times.forward + _total(one.forward for one in pending.times),
        input_gradient=times.input_gradient,
        weight_gradient=times.weight_gradient,
        others_back=_total(one.backward for one in pending.times),
        again=pending.again,
        again_most=pending.again_most + 0.5 * times.forward,
        gather=roles["gather"],
        reduce=roles["reduce"] + pending.reduce,
        reduce_back=roles["reduce_back"],
        wait=roles["wait"] + pending.wait,
        scatter=roles["scatter"],
        data=roles["data"],
    )


def expand_block_rows(parts: tuple[BlockUnits, ...], back: Array, count: int) -> tuple[BlockUnits, ...]:
    """The same for more layouts: row i of the result is row `back[i]` (see `numerics.expand_rows`)."""
    return tuple(replace(part, units=tuple(_expand_rows(unit, back, count) for unit in part.units)) for part in parts)


def _expand_rows(unit: LayerUnit, back: Array, count: int) -> LayerUnit:
    columns: dict[str, Any] = {each.name: getattr(unit, each.name) for each in fields(LayerUnit)}
    name = columns.pop("name")
    return LayerUnit(name=name, **{key: expand_rows(column, back, count) for key, column in columns.items()})


def _total(values: Iterable[Seconds]) -> Seconds:
    total: Seconds = 0.0
    for value in values:
        total = total + value
    return total


def computation(parts: tuple[BlockUnits, ...], passes: Passes) -> Seconds:
    """Seconds of computation in a micro-step, without communication."""
    total: Seconds = 0.0
    for block in parts:
        rerun = 1.0 + passes.full * block.checkpointed
        for unit in block.units:
            again = passes.selective * unit.again + block.checkpointed * passes.operations * unit.again_most
            back = unit.input_gradient + unit.weight_gradient + unit.others_back + again
            total = total + block.repeat * (rerun * unit.forward + back)
    return total
