"""Time of a step from its layer units: what overlaps what, in closed form over arrays.

Windows are local (arXiv 2502.08145, section V-D). While a unit runs, the weight of the next one is gathered: the next
begins when both are done. The all-reduce of an input gradient overlaps the product of the weight gradient.
Reduce-scatters queue behind one another and overlap the rest of the backward pass, which waits for them at its end.
One that is not overlapped has the links of Z to itself, so no gather overlaps it either.
Nothing hides forward all-reduces, or what embedding and loss send. `timeline` simulates the same rules as events.

Two things that overlap slow each other: together they take max(a, b) + contention * min(a, b).
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np

from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.passes import Passes
from perfmodel.step.layer_units import BlockUnits, LayerUnit
from perfmodel.units import Number, Seconds


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Mode:
    """Which passes a layout runs, what overlaps what, and whether the weights of a block are gathered together."""

    passes: Passes
    overlap: frozenset[str]
    contention: float
    whole_blocks: bool = False

    @classmethod
    def of(cls, job: Job, layout: Layout) -> "Mode":
        """The mode of a layout of a job."""
        settings = job.settings
        return cls(
            passes=Passes.of(layout),
            overlap=settings.overlap,
            contention=job.costs.contention,
            whole_blocks=settings.gather_unit == "block",
        )

    def beside(self, first: Seconds, second: Seconds, kind: str) -> Seconds:
        """Seconds that two things take: overlapped if `kind` is, else one after the other.

        >>> passes = Passes(full=0.0, selective=0.0, operations=0.0, gather_again=0.0, gather_back=0.0)
        >>> mode = Mode(passes=passes, overlap=frozenset({"all-gather"}), contention=0.1)
        >>> float(mode.beside(2.0, 1.0, "all-gather"))
        2.1
        """
        if kind not in self.overlap:
            return first + second
        return np.maximum(first, second) + self.contention * np.minimum(first, second)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class UnitPass:
    """One pass of one layer unit: its own time, the gather that it needs first, and the messages that it leaves.

    `waited`: a reduce-scatter that nothing overlaps.
    """

    alone: Seconds
    gather: Seconds = 0.0
    waited: Seconds = 0.0
    scatter: Seconds = 0.0
    data: Seconds = 0.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RepeatedPasses:
    """A sequence of passes that runs `repeat` times.

    `rerun`: how many passes at its start are recomputation; they run where `full` is 1 and are skipped where it is 0.
    """

    passes: tuple[UnitPass, ...]
    repeat: int
    rerun: int = 0
    full: Number = 0.0

    @property
    def first_gather(self) -> Seconds:
        """The gather that must finish before the sequence starts."""
        return self.full * self.passes[0].gather + (1.0 - self.full) * self.passes[self.rerun].gather

    def windows(self, following: Seconds, mode: Mode) -> list[Seconds]:
        """Seconds of each pass overlapped with the gather of the next; `following` is the gather after the last."""
        gathers = [*(one.gather for one in self.passes[1:]), following]
        found = [
            one.waited + mode.beside(one.alone, gather, "all-gather")
            for one, gather in zip(self.passes, gathers, strict=True)
        ]
        return [self.full * window for window in found[: self.rerun]] + found[self.rerun :]


# A sequence of passes with its windows when it repeats, and when the next sequence follows.
Chained: TypeAlias = tuple[RepeatedPasses, list[Seconds], list[Seconds]]


def forward_alone(unit: LayerUnit) -> Seconds:
    """A forward pass without its gather."""
    return unit.forward + unit.reduce


def backward_alone(unit: LayerUnit, mode: Mode, *, checkpointed: bool) -> Seconds:
    """A backward pass without gather and scatter: dI, then dW with the all-reduce of dI, then the preceding layers."""
    gradients = unit.input_gradient + mode.beside(unit.weight_gradient, unit.reduce_back, "all-reduce")
    return unit.wait + again(unit, mode, checkpointed=checkpointed) + gradients + unit.others_back


def again(unit: LayerUnit, mode: Mode, *, checkpointed: bool) -> Seconds:
    """What a backward pass computes again where parts of a block are recomputed."""
    return mode.passes.selective * unit.again + checkpointed * mode.passes.operations * unit.again_most


def forward_passes(blocks: tuple[BlockUnits, ...], mode: Mode) -> list[RepeatedPasses]:
    """The forward pass of a micro-step."""
    return [
        RepeatedPasses(
            passes=_together([UnitPass(alone=forward_alone(unit), gather=unit.gather) for unit in block.units], mode),
            repeat=block.repeat,
        )
        for block in blocks
    ]


def _together(passes: list[UnitPass], mode: Mode) -> tuple[UnitPass, ...]:
    """The passes of a block as one, where its weights are gathered together."""
    if not mode.whole_blocks or not passes:
        return tuple(passes)
    return (UnitPass(**{each.name: _total([getattr(one, each.name) for one in passes]) for each in fields(UnitPass)}),)


def backward_passes(blocks: tuple[BlockUnits, ...], mode: Mode) -> list[RepeatedPasses]:
    """The backward pass of a micro-step, with recomputation before each repeat of a checkpointed block.

    Embedding and head keep the table that they gathered in the forward pass.
    """
    groups = []
    for block in reversed(blocks):
        rerun: list[UnitPass] = []
        if block.checkpointed:
            rerun = [
                UnitPass(alone=forward_alone(unit), gather=mode.passes.gather_again * unit.gather)
                for unit in block.units
            ]
        kept, waited = 1.0 * block.checkpointed, 1.0 * ("reduce-scatter" not in mode.overlap)
        back = [
            UnitPass(
                alone=backward_alone(unit, mode, checkpointed=block.checkpointed),
                gather=kept * mode.passes.gather_back * unit.gather,
                waited=waited * unit.scatter,
                scatter=(1.0 - waited) * unit.scatter,
                data=unit.data,
            )
            for unit in reversed(block.units)
        ]
        first, last = _together(rerun, mode), _together(back, mode)
        groups.append(
            RepeatedPasses(passes=(*first, *last), repeat=block.repeat, rerun=len(first), full=mode.passes.full)
        )
    return groups


def chain(groups: list[RepeatedPasses], mode: Mode) -> list[Chained]:
    """Every sequence with its windows when it repeats, and when the next sequence follows."""
    following = [*(group.first_gather for group in groups[1:]), 0.0]
    return [
        (group, group.windows(group.first_gather, mode), group.windows(after, mode))
        for group, after in zip(groups, following, strict=True)
    ]


def micro_step(blocks: tuple[BlockUnits, ...], mode: Mode) -> Seconds:
    """Seconds of one forward and backward pass: the first gather, all windows, and what the queue of scatters adds."""
    ahead, back = forward_passes(blocks, mode), backward_passes(blocks, mode)
    seconds: Seconds = ahead[0].first_gather
    chained = chain([*ahead, *back], mode)
    for group, inside, out in chained:
        seconds = seconds + (group.repeat - 1) * _total(inside) + _total(out)
    if "reduce-scatter" in mode.overlap:
        tail, sent = _scatters(chained[len(ahead) :])
        seconds = seconds + tail + mode.contention * (sent - np.minimum(tail, sent))
    return seconds


def _scatters(back: list[Chained]) -> tuple[Seconds, Seconds]:
    """(how long queued reduce-scatters outlast a backward pass, their own time).

    Gathers use the same links, those of Z: both together take at least the sum of their times.
    """
    time, sent, gathered = _backward_totals(back)
    return np.maximum(_tail(back, lambda one: one.scatter), sent + gathered - time), sent


def _backward_totals(back: list[Chained]) -> tuple[Seconds, Seconds, Seconds]:
    """(time, scatters, gathers) of a backward pass."""
    time: Seconds = 0.0
    sent: Seconds = 0.0
    gathered: Seconds = 0.0
    for group, inside, out in back:
        time = time + (group.repeat - 1) * _total(inside) + _total(out)
        sent = sent + group.repeat * _total([one.scatter for one in group.passes])
        gathered = gathered + group.repeat * _total([one.gather for one in group.passes])
    return time, sent, gathered


def data_reduce(blocks: tuple[BlockUnits, ...], mode: Mode) -> Seconds:
    """Seconds that the all-reduces over data add to a step: all at its end, or what outlasts the last micro-step.

    Their queue overlaps that of the scatters, so it adds only what outlasts it.
    """
    queued = _total([block.repeat * unit.data for block in blocks for unit in block.units])
    if "data" not in mode.overlap:
        return queued
    back = chain(backward_passes(blocks, mode), mode)
    tail, waited = _tail(back, lambda one: one.data), _scatters(back)[0]
    return np.maximum(tail - waited, 0.0) + mode.contention * (queued - tail)


def update_gather(blocks: tuple[BlockUnits, ...], mode: Mode, gathered: Seconds, *, hidden: bool) -> Seconds:
    """Seconds that gathering updated weights adds to a step: all, or what outlasts the first forward pass."""
    if not hidden:
        return gathered
    forward: Seconds = 0.0
    for group, inside, out in chain(forward_passes(blocks, mode), mode):
        forward = forward + (group.repeat - 1) * _total(inside) + _total(out)
    exposed = np.maximum(gathered - forward, 0.0)
    return exposed + mode.contention * (gathered - exposed)


def _tail(back: list[Chained], sent: Callable[[UnitPass], Seconds]) -> Seconds:
    """Seconds that a queue of messages lasts beyond the backward pass.

    Each pass leaves a message at its end. The queue ends at the latest of (end of pass k + all messages from k on),
    over all k. Relative to the end of the backward pass that is the messages from k on, minus the time after k. From
    one repeat of a block to the next this changes by a constant, so the last, the last but one and the first suffice.
    """
    tail: Seconds = 0.0
    after: Seconds = 0.0
    queued: Seconds = 0.0
    for group, inside, out in reversed(back):
        last, time_out, messages = _latest(group, out, sent)
        tail = np.maximum(tail, last + queued - after)
        if group.repeat > 1:
            earlier, time_in, _ = _latest(group, inside, sent)
            before = earlier + queued + messages - after - time_out
            between = (group.repeat - 2) * (messages - time_in)
            tail = np.maximum(tail, before + np.maximum(0.0, between))
            after = after + (group.repeat - 1) * time_in
        after = after + time_out
        queued = queued + group.repeat * messages
    return tail


def _latest(
    group: RepeatedPasses, windows: list[Seconds], sent: Callable[[UnitPass], Seconds]
) -> tuple[Seconds, Seconds, Seconds]:
    """(max over passes of messages from it on minus the time after it, time of the sequence, its messages)."""
    latest: Seconds = -np.inf
    time: Seconds = 0.0
    messages: Seconds = 0.0
    for one, window in zip(reversed(group.passes), reversed(windows), strict=True):
        messages = messages + sent(one)
        latest = np.maximum(latest, messages - time)
        time = time + window
    return latest, time, messages


def _total(values: list[Seconds]) -> Seconds:
    total: Seconds = 0.0
    for value in values:
        total = total + value
    return total
