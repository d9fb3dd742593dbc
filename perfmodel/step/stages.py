"""A micro-step as a chain of stages: each linear layer with what precedes it, the computation and the collectives.

A stage is the unit of overlap: its weight is gathered before it, its forward all-reduce ends it, its gradients leave
it. Norms, attention and activations belong to the linear layer that follows them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from perfmodel.costs.collective import Role
from perfmodel.costs.gemm import LayerTimes
from perfmodel.costs.kernels import Part, layer_times
from perfmodel.models.layers import Attention, Embedding, Head, Linear
from perfmodel.numerics import spread
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.passes import Passes
from perfmodel.parallel.sharding import block_repeats
from perfmodel.step.layer_traffic import LayerTraffic
from perfmodel.step.traffic import Traffic
from perfmodel.units import Array, Seconds

_ROLES: tuple[Role, ...] = ("gather", "reduce", "reduce_back", "wait", "scatter", "data")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Stage:
    """Seconds of one call each: computation, and what is sent before, within and after it.

    `reduce` ends the forward pass and nothing hides it; `wait` is sent in the backward pass where nothing hides it;
    `reduce_back` may run beside `weight_gradient`, `scatter` beside what follows, `gather` beside what precedes.
    `again` is what selective recomputation repeats; `data` is sent once a step.
    """

    name: str
    forward: Seconds = 0.0
    input_gradient: Seconds = 0.0
    weight_gradient: Seconds = 0.0
    others_back: Seconds = 0.0
    again: Seconds = 0.0
    gather: Seconds = 0.0
    reduce: Seconds = 0.0
    reduce_back: Seconds = 0.0
    wait: Seconds = 0.0
    scatter: Seconds = 0.0
    data: Seconds = 0.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Segment:
    """Stages that repeat together; `checkpointed` ones are run forward again under full recomputation."""

    name: str
    stages: tuple[Stage, ...]
    repeat: int
    checkpointed: bool


@dataclass(slots=True, kw_only=True)
class _Pending:
    """Computation and statistics of layers that wait for the linear layer to come."""

    times: list[LayerTimes] = field(default_factory=list)
    again: Seconds = 0.0
    reduce: Seconds = 0.0
    wait: Seconds = 0.0

    def add(self, sent: LayerTraffic, times: LayerTimes) -> None:
        """A norm's statistics are sent forward and backward; attention may run again by itself."""
        self.times.append(times)
        if isinstance(sent.layer, Attention):
            self.again = self.again + times.forward
        if sent.sent:
            self.reduce = self.reduce + sent.seconds("reduce")
            self.wait = self.wait + sent.seconds("wait")


def segments(job: Job, layout: Layout, sent: Traffic) -> tuple[Segment, ...]:
    """The stages of a micro-step, for one layout or many; `sent` is the traffic of these layouts."""
    part, chip = _part(job, layout), job.costs.chip
    found: list[Segment] = []
    for block in job.model.blocks:
        stages: list[Stage] = []
        pending = _Pending()
        for each in (one for one in sent.layers if one.block is block):
            layer = each.layer
            vocabulary = job.padded_vocabulary(layer.vocabulary, layout) if isinstance(layer, Head) else 0
            times = layer_times(layer, part=part, chip=chip, vocabulary=vocabulary)
            if isinstance(layer, (Linear, Embedding, Head)):
                stages.append(_stage(each, times, pending))
                pending = _Pending()
            else:
                pending.add(each, times)
        if pending.times:  # what follows the last linear layer is a stage without weights
            stages.append(_stage(None, LayerTimes(), pending))
        found.append(
            Segment(
                name=block.name,
                stages=tuple(stages),
                repeat=block_repeats(block, layout),
                checkpointed=block.checkpointed,
            )
        )
    return tuple(found)


def _part(job: Job, layout: Layout) -> Part:
    """What one device does of every layer."""
    settings = job.settings
    return Part(
        rows=job.rows(layout),
        sequence=job.sequence,
        x=1.0 * layout.x,
        y=1.0 * layout.y,
        attention="flash" if settings.flash_attention else "materialized",
        dropout=settings.dropout,
        element=settings.activation_bytes,
        weight=settings.weight_bytes,
    )


def _stage(sent: LayerTraffic | None, times: LayerTimes, pending: _Pending) -> Stage:
    roles = {role: sent.seconds(role) for role in _ROLES} if sent else dict.fromkeys(_ROLES, 0.0)
    return Stage(
        name=sent.layer.name if sent else "rest",
        forward=times.forward + _total(one.forward for one in pending.times),
        input_gradient=times.input_gradient,
        weight_gradient=times.weight_gradient,
        others_back=_total(one.backward for one in pending.times),
        again=pending.again,
        gather=roles["gather"],
        reduce=roles["reduce"] + pending.reduce,
        reduce_back=roles["reduce_back"],
        wait=roles["wait"] + pending.wait,
        scatter=roles["scatter"],
        data=roles["data"],
    )


def spread_rows(parts: tuple[Segment, ...], back: Array, count: int) -> tuple[Segment, ...]:
    """The stages of more layouts: each row `back` times (see `numerics.spread`)."""
    return tuple(
        replace(part, stages=tuple(_spread_rows(stage, back, count) for stage in part.stages)) for part in parts
    )


def _spread_rows(stage: Stage, back: Array, count: int) -> Stage:
    columns: dict[str, Any] = {each.name: getattr(stage, each.name) for each in fields(Stage)}
    name = columns.pop("name")
    return Stage(name=name, **{key: spread(column, back, count) for key, column in columns.items()})


def _total(values: Iterable[Seconds]) -> Seconds:
    total: Seconds = 0.0
    for value in values:
        total = total + value
    return total


def computation(parts: tuple[Segment, ...], passes: Passes) -> Seconds:
    """Seconds of computation in a micro-step, alone."""
    total: Seconds = 0.0
    for segment in parts:
        rerun = 1.0 + passes.full * segment.checkpointed
        for stage in segment.stages:
            back = stage.input_gradient + stage.weight_gradient + stage.others_back + passes.selective * stage.again
            total = total + segment.repeat * (rerun * stage.forward + back)
    return total
