"""A micro-step as a chain of stages: each linear layer with what precedes it, the computation and the collectives.

A stage is the unit of overlap: its weight is gathered before it, its forward all-reduce ends it, its gradients leave
it. Norms, attention and activations belong to the linear layer that follows them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from perfmodel.costs.collective import Collective, Link
from perfmodel.costs.gemm import Chip, LayerTimes
from perfmodel.costs.kernels import Part, layer_times
from perfmodel.models.model import Attention, Block, Embedding, Head, Layer, Linear
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.step.traffic import layer_traffic
from perfmodel.units import Seconds


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


class _Clock:
    """Seconds of collectives, those of equal ones computed once: all norms of a model send the same buffer."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._known: dict[tuple[str, int, int], tuple[Collective, Seconds]] = {}

    def time(self, one: Collective) -> Seconds:
        """Seconds of one call; the collective is kept, so that no other buffer can have the identity of its own."""
        key = one.operation, id(one.link), id(one.buffer)
        if key not in self._known:
            self._known[key] = one, one.time
        return self._known[key][1]


@dataclass(slots=True, kw_only=True)
class _Pending:
    """Computation of layers that wait for the linear layer to come."""

    times: list[LayerTimes] = field(default_factory=list)
    again: Seconds = 0.0
    reduce: Seconds = 0.0
    wait: Seconds = 0.0

    def add(self, layer: Layer, times: LayerTimes, sent: tuple[Seconds, ...]) -> None:
        """`sent`: a norm's statistics, forward and backward."""
        self.times.append(times)
        if isinstance(layer, Attention):
            self.again = self.again + times.forward
        if sent:
            self.reduce, self.wait = self.reduce + sent[0], self.wait + sent[1]


def segments(job: Job, layout: Layout, chip: Chip, groups: dict[str, Link] | None = None) -> tuple[Segment, ...]:
    """The stages of a micro-step, for one layout or many."""
    settings = job.settings
    part = Part(
        rows=job.rows(layout),
        sequence=job.sequence,
        x=1.0 * layout.x,
        y=1.0 * layout.y,
        attention="flash" if settings.flash_attention else "materialized",
        dropout=settings.dropout,
        element=settings.activation_bytes,
        weight=settings.weight_bytes,
    )
    found: list[Segment] = []
    stages: list[Stage] = []
    pending = _Pending()
    owner: Block | None = None
    clock = _Clock()
    for block, layer, sent in layer_traffic(job, layout, groups):
        if owner is not None and block is not owner:
            found.append(_segment(owner, stages, pending))
            stages, pending = [], _Pending()
        owner = block
        vocabulary = job.padded_vocabulary(layer.vocabulary, layout) if isinstance(layer, Head) else 0
        times = layer_times(layer, part=part, chip=chip, vocabulary=vocabulary)
        seconds = tuple(clock.time(one) for one in sent)
        if isinstance(layer, (Linear, Embedding, Head)):
            stages.append(_stage(layer, times, _sent(layer, sent, seconds), pending))
            pending = _Pending()
        else:
            pending.add(layer, times, seconds)
    return (*found, *([_segment(owner, stages, pending)] if owner else []))


def _segment(block: Block, stages: list[Stage], pending: _Pending) -> Segment:
    """Close a block: what follows its last linear layer is a stage without weights."""
    if pending.times:
        stages = [*stages, _stage(None, LayerTimes(), {}, pending)]
    return Segment(name=block.name, stages=tuple(stages), repeat=block.repeat, checkpointed=block.checkpointed)


def _stage(layer: Layer | None, times: LayerTimes, sent: dict[str, Seconds], pending: _Pending) -> Stage:
    computed = {
        "forward": times.forward + _total(one.forward for one in pending.times),
        "input_gradient": times.input_gradient,
        "weight_gradient": times.weight_gradient,
        "others_back": _total(one.backward for one in pending.times),
        "again": pending.again,
    }
    waited = {name: sent.get(name, 0.0) + getattr(pending, name) for name in ("reduce", "wait")}
    return Stage(name=layer.name if layer else "rest", **(computed | sent | waited))


def _sent(layer: Layer, sent: tuple[Collective, ...], seconds: tuple[Seconds, ...]) -> dict[str, Seconds]:
    """Seconds of each collective of a layer by the part that it plays in its stage."""
    gather, *rest = seconds
    if isinstance(layer, Embedding):
        reduce, wait, scatter, data = rest
        return {"gather": gather, "reduce": reduce, "wait": wait, "scatter": scatter, "data": data}
    if isinstance(layer, Head):
        hidden, loss, reduce_back, *gradient = rest
        scatter, data = gradient or (0.0, 0.0)
        forward = hidden + loss * (sent[2].calls / sent[0].calls)
        return {"gather": gather, "reduce": forward, "reduce_back": reduce_back, "scatter": scatter, "data": data}
    reduce, reduce_back, scatter, data = rest
    return {"gather": gather, "reduce": reduce, "reduce_back": reduce_back, "scatter": scatter, "data": data}


def _total(values: Iterable[Seconds]) -> Seconds:
    total: Seconds = 0.0
    for value in values:
        total = total + value
    return total


def computation(parts: tuple[Segment, ...], *, full: Seconds, selective: Seconds) -> Seconds:
    """Seconds of computation in a micro-step, alone; `full` and `selective` are 1 where such recomputation runs."""
    total: Seconds = 0.0
    for segment in parts:
        rerun = 1.0 + full * segment.checkpointed
        for stage in segment.stages:
            back = stage.input_gradient + stage.weight_gradient + stage.others_back + selective * stage.again
            total = total + segment.repeat * (rerun * stage.forward + back)
    return total
