"""The peak of a micro-step: memory of tokens and gathered weights while the loss or a backward pass runs.

Three kinds of moments can be the peak. While the gradient of the logits is computed, everything that the forward pass
keeps is held, with the logits and the table. In the backward pass of a block, all blocks up to it are still kept and
gradients are in flight through one of its layers. At the end, the embedding's gradient is added to that of a tied head,
which has been held since the loss.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np

from perfmodel.memory.activations import (
    BytesPerToken,
    InFlightSettings,
    attention_forward_in_flight,
    block_activations,
    block_input,
    in_flight,
    operations_kept,
    stored,
)
from perfmodel.models.model import Attention, Block, Embedding, Head, Linear
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.sharding import block_repeats, linear_weights
from perfmodel.units import Bytes, Count, Number

_FP32 = 4
_SCATTERS = 2  # reduce-scatters in progress, each with a whole gradient, besides the one just started


# Elements by recomputation mode and weight cache mode.
Table: TypeAlias = tuple[tuple[float, float, float], ...]
_NOTHING: Table = ((0.0, 0.0, 0.0),) * len(RECOMPUTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Bytes by term at one moment."""

    activations: Bytes
    recomputed_block: Bytes
    in_flight: Bytes
    gathered_weights: Bytes
    logits: Bytes

    @property
    def total(self) -> Bytes:
        """The sum of all terms."""
        return self.activations + self.recomputed_block + self.in_flight + self.gathered_weights + self.logits

    def or_larger(self, other: "Moment") -> "Moment":
        """The larger of two, layout by layout."""
        larger = other.total > self.total
        names = [f.name for f in fields(Moment)]
        return Moment(**{name: np.where(larger, getattr(other, name), getattr(self, name)) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """What all moments of one job and layout share, computed once: tokens over X and Y, bytes per element of weights.

    `of_gathered`, `of_gradient`: bytes per element of the weight before X and Y split it. `of_table`: bytes of a whole
    table's gradient while it is sent; `gradient_of_table`: while it is not.
    """

    job: Job
    layout: Layout
    rows: Number
    flight: InFlightSettings
    sharded: Number
    mode: Count
    over_x: Number
    over_y: Number
    of_gathered: Bytes
    of_gradient: Bytes
    of_table: Bytes
    gradient_of_table: Bytes
    gathered_table: Bytes

    def repeats(self, block: Block) -> int:
        """How often a block occurs on one device."""
        return block_repeats(block, self.layout)

    def tokens(self, each: BytesPerToken) -> Bytes:
        """Bytes of all tokens of a micro-step."""
        return self.rows * each.whole + self.over_y * each.over_y + self.over_x * (each.over_x + each.scores)

    def weights(self, gathered: Table, gradients: Number = 0.0, tables: Number = 0.0) -> Bytes:
        """Bytes of gathered weights, and of gradients of layers and tables that are being scattered.

        A reduce-scatter holds what it sends and what it receives. If Z is 1, nothing is gathered, and a product in the
        format of the accumulated gradient is written directly into it.
        """
        held = self.of_gathered * np.array(gathered, dtype=float).ravel()[self.mode] + self.of_gradient * gradients
        return held + self.of_table * tables if tables else held


def peak_moment(job: Job, layout: Layout) -> Moment:
    """The moment of a micro-step that needs the most memory, for one layout or many."""
    at = _setting(job, layout)
    found: Moment | None = None
    for moment in _moments(at):
        found = moment if found is None else found.or_larger(moment)
    assert found is not None  # noqa: S101 - a model has layers
    return found


def _setting(job: Job, layout: Layout) -> _Setting:
    settings = job.settings
    rows, sharded, tensor = job.rows(layout), 1.0 * (layout.z > 1), 1.0 * layout.x * layout.y
    flight = InFlightSettings(
        element=settings.activation_bytes,
        flash=settings.flash_attention,
        sequences=1.0 * layout.micro_batch,
        sequence=job.sequence,
        rotary=job.model.rotary,
        split=1.0 * (np.asarray(layout.recompute) != RECOMPUTES.index("selective")),
    )
    table = _table(job, layout)
    unsent = settings.gradient_bytes / tensor
    sent = unsent * (1.0 + sharded / layout.z)
    return _Setting(
        job=job,
        layout=layout,
        rows=rows,
        flight=flight,
        sharded=sharded,
        mode=np.asarray(layout.recompute) * len(WEIGHT_CACHES) + layout.weight_cache,
        over_x=rows / layout.x,
        over_y=rows / (layout.y * job.parts_between(layout)),
        of_gathered=sharded * settings.weight_bytes / tensor,
        of_gradient=sent if flight.copies else sent * sharded,
        of_table=sent * table,
        gradient_of_table=unsent * table,
        gathered_table=sharded * table * settings.weight_bytes / tensor,
    )


def _moments(at: _Setting) -> Iterator[Moment]:
    job = at.job
    before: Bytes = 0.0
    for block in job.model.blocks:
        stored, again = _stored(at, block)
        before = before + stored
        yield _moment(at, block, before, again, last=True)
        if at.repeats(block) > 1:  # two more gradients are in progress
            earlier = before - stored / at.repeats(block)
            yield _moment(at, block, earlier, again, last=False)
    heads = [layer for layer in job.model.layers() if isinstance(layer[1], Head)]
    if heads:
        yield _loss(at, before)
    if any(isinstance(layer, Embedding) for _, layer in job.model.layers()):
        yield _end(at)


def _moment(at: _Setting, block: Block, stored: Bytes, again: Bytes, *, last: bool) -> Moment:
    """The backward pass of a block's last repeat, or the one before, with what is stored and recomputed."""
    flying, weights = _backward(at, block, last=last)
    return Moment(
        activations=stored,
        recomputed_block=again,
        in_flight=flying,
        gathered_weights=weights,
        logits=0.0 * at.layout.x,
    )


def _stored(at: _Setting, block: Block) -> tuple[Bytes, Bytes]:
    """(kept by all repeats of a block, added by the one that is recomputed), by recomputation mode."""
    everything = block_activations(block, at.job.settings, at.job.sequence)
    between = at.job.parts_between(at.layout)
    full, lean = everything.on(at.layout, between=between), everything.on(at.layout, between=between, scores=False)
    if not block.checkpointed:
        return at.rows * at.repeats(block) * full, 0.0 * at.rows * full
    least = block_input(block, at.job.settings).on(at.layout, between=between)
    some = least + operations_kept(block, at.job.settings).on(at.layout, between=between)
    stored = np.minimum(some, full)
    for mode, kept in enumerate((full, lean, least)):  # in the order of RECOMPUTES
        stored = np.where(np.asarray(at.layout.recompute) == mode, kept, stored)
    return at.rows * at.repeats(block) * stored, at.rows * (full - stored)


def _backward(at: _Setting, block: Block, *, last: bool) -> tuple[Bytes, Bytes]:
    """(in flight, weights) at the peak of the backward pass of a block's last repeat, or the one before.

    What later layers kept is already freed, so it is subtracted from what is in flight.
    """
    most: Bytes | None = None
    weights: Bytes = 0.0
    for one in _undominated(list(_candidates(at, block, last=last))):
        held = at.weights(one.gathered, one.gradients, one.tables)
        both = held + at.tokens(one.tokens)
        weights = held if most is None else np.where(both > most, held, weights)
        most = both if most is None else np.maximum(most, both)
    waiting = _heads(at)[0] * at.sharded * at.gradient_of_table
    return (0.0 * at.rows if most is None else most - weights), weights + waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A moment of a block's backward pass: bytes per token, and elements of weights by recomputation and cache."""

    tokens: BytesPerToken
    gathered: Table
    gradients: float
    tables: float

    @property
    def figures(self) -> tuple[Number, ...]:
        """Everything that its memory depends on."""
        tokens = self.tokens
        every = tokens.over_y, tokens.over_x, tokens.scores, tokens.whole, self.gradients, self.tables
        return (*every, *(elements for row in self.gathered for elements in row))

    def within(self, other: "_Candidate") -> bool:
        """Whether another needs at least as much on every grid."""
        return all(_at_most(*pair) for pair in zip(self.figures, other.figures, strict=True))


def _at_most(mine: Number, theirs: Number) -> bool:
    lower: Any = mine <= theirs
    return lower if isinstance(lower, bool) else bool(np.all(lower))


def _undominated(found: list[_Candidate]) -> list[_Candidate]:
    """Drop those that another covers: few are left, and arithmetic on many layouts is what costs time."""
    kept_on: list[_Candidate] = []
    for one in found:
        if not any(one.within(other) for other in kept_on):
            kept_on = [other for other in kept_on if not other.within(one)] + [one]
    return kept_on


def _candidates(at: _Setting, block: Block, *, last: bool) -> Iterator[_Candidate]:
    """Layers from last to first, each with the gathered weights and the gradients in progress while it runs."""
    residual, freed = block_input(block, at.job.settings), BytesPerToken()
    linears = [layer.weight for layer in block.layers if isinstance(layer, Linear)]
    allowed = _SCATTERS if "reduce-scatter" in at.job.settings.overlap else 0
    queue = [(1.0 * weight, 0.0) for weight in reversed(linears)]
    if last:
        queue = [(0.0, _heads(at)[1])] if block.checkpointed else []
    left, queue = len(linears), queue[-allowed:] if allowed else []
    entering, tables_entering = sum(weight for weight, _ in queue), sum(table for _, table in queue)
    for layer, before in reversed(list(block.split())):
        gathered = _gathered(at, block, left, at_work=isinstance(layer, Linear), last=last)
        if isinstance(layer, Linear):
            queue.append((1.0 * layer.weight, 0.0))
            left -= 1
        gradients, tables = sum(weight for weight, _ in queue), sum(table for _, table in queue)
        for made in in_flight(layer, before, at.flight):
            yield _Candidate(tokens=made - freed + residual, gathered=gathered, gradients=gradients, tables=tables)
        if isinstance(layer, Attention):
            again = attention_forward_in_flight(layer, at.flight) - freed + residual
            yield _Candidate(tokens=again, gathered=gathered, gradients=entering, tables=tables_entering)
        freed = freed + stored(layer, before, at.job.settings, at.job.sequence)
        queue = queue[-allowed:] if allowed else []


def _heads(at: _Setting) -> tuple[float, float]:
    """(1 if a tied table's gradient is held throughout the backward pass, 1 if an untied one is being sent)."""
    heads = [layer for _, layer in at.job.model.layers() if isinstance(layer, Head)]
    return 1.0 * any(head.tied for head in heads), 1.0 * any(not head.tied for head in heads)


def _gathered(at: _Setting, block: Block, left: int, *, at_work: bool, last: bool) -> Table:
    """Elements of gathered weights while the backward pass of a block has `left` linear layers left."""
    linears = [layer.weight for layer in block.layers if isinstance(layer, Linear)]
    if not linears:
        return _cached(at)
    ahead = "all-gather" in at.job.settings.overlap
    use = linears[left - 1] if at_work else 0
    following = left - 1 - at_work
    same = linears[following] if following >= 0 else 0
    again = at.repeats(block) > (1 if last else 2)
    wrapped = {False: linears[-1] * again, True: linears[0] * again}
    none, full = (use + ahead * (same or wrapped[mode]) for mode in (False, True))
    remaining = sum(linears[:left])
    everything = linear_weights(at.job, at.layout) - sum(linears[left:]) - (0 if last else sum(linears))
    return (
        (none, everything, everything),
        (none, everything, everything),
        (full, remaining + ahead * wrapped[True], everything),
        (none, everything, everything),
    )


def _cached(at: _Setting) -> Table:
    """Elements of layer weights that are held while the loss is computed: cached or prefetched."""
    every = linear_weights(at.job, at.layout)
    blocks = [b for b in at.job.model.blocks if any(isinstance(v, Linear) for v in b.layers)]
    last = [layer.weight for layer in blocks[-1].layers if isinstance(layer, Linear)]
    ahead = "all-gather" in at.job.settings.overlap
    kept_on, again = (ahead * last[-1], every, every), (ahead * last[0], ahead * last[0], every)
    return kept_on, kept_on, again, kept_on


def _loss(at: _Setting, kept_in_all: Bytes) -> Moment:
    """While the head's gradients are computed; the logits of several heads are held together."""
    settings, vocabulary, width = at.job.settings, 0.0 * at.rows, 0
    for block, layer in at.job.model.layers():
        if isinstance(layer, Head):
            vocabulary = vocabulary + at.repeats(block) * 1.0 * at.job.padded_vocabulary(layer.vocabulary, at.layout)
            width = max(width, layer.width)
    copied = settings.activation_bytes if at.flight.copies else 0 * settings.activation_bytes
    element = settings.logit_bytes or _FP32 + copied
    logits = at.rows * vocabulary / (1.0 * at.layout.x * at.layout.y) * element
    tied, untied = _heads(at)
    weights = at.weights(_cached(at), tables=untied) + tied * at.gradient_of_table + at.gathered_table
    part = (at.layout.y > 1) / (1.0 * at.layout.y)  # the preceding layer's part of the hidden states' gradient
    hidden = at.rows * width * settings.activation_bytes * (1.0 + part)
    return Moment(
        activations=kept_in_all,
        recomputed_block=0.0 * logits,
        in_flight=hidden,
        gathered_weights=weights,
        logits=logits,
    )


def _end(at: _Setting) -> Moment:
    """While the embedding's gradient is sent: two layers' gradients are in progress, and that of a tied table."""
    settings = at.job.settings
    first = next(block for block in at.job.model.blocks if any(isinstance(layer, Linear) for layer in block.layers))
    weights = [layer.weight for layer in first.layers if isinstance(layer, Linear)]
    queue = sum(weights[:_SCATTERS]) if "reduce-scatter" in settings.overlap else 0
    embedding = next(layer for _, layer in at.job.model.layers() if isinstance(layer, Embedding))
    hidden = at.rows * embedding.width * settings.activation_bytes
    flying = hidden + hidden / (1.0 * at.layout.y)
    waiting = _heads(at)[0] * at.sharded * at.gradient_of_table
    return Moment(
        activations=0.0 * hidden,
        recomputed_block=0.0 * hidden,
        in_flight=flying,
        gathered_weights=at.weights(_NOTHING, queue, 1.0) + waiting,
        logits=0.0 * hidden,
    )


def _table(job: Job, layout: Layout) -> Number:
    """Elements of the model's largest vocabulary table, padded."""
    largest: Number = 0.0
    for _, layer in job.model.layers():
        if isinstance(layer, (Embedding, Head)):
            largest = np.maximum(largest, 1.0 * job.padded_vocabulary(layer.vocabulary, layout) * layer.width)
    return largest
