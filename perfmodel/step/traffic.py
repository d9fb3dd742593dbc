"""The collectives of one training step: what is sent, by which group, over which bandwidth, how often.

For a linear layer with local rows m/Gz (arXiv 2502.08145, Algorithm 1 and Eqs. 1 to 6):

    all-gather of the weight over Z             k n / (Gx Gy) elements gathered         Eq. 1
    reduce-scatter of its gradient over Z       k n / (Gx Gy)                           Eq. 2
    all-reduce of the output over Y             m n / (Gz Gx)                           Eq. 3
    all-reduce of the input gradient over X     m k / (Gz Gy)                           Eq. 4
    all-reduce of the shard's gradient, data    k n / (Gx Gy Gz), once a step           Eq. 5

A transposed layer exchanges X and Y. At paper fidelity this is done to the letter: the sizes change places in the
whole hierarchy, as in the authors' scripts, although no rank moves. At flat fidelity each group keeps its ranks, and
all that a step sends is counted: embedding and head, and what is small (norms' statistics over the axis that splits
their features, gradients of what Z does not split, the gradient norm, the loss). A dry run of the launch code sends
exactly these bytes. Gradients leave for data in buckets of many weights, which at full fidelity, where a call has a
start-up time, a layer's all-reduce is a share of.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace

import numpy as np

from perfmodel.costs.collective import Collective, Link, Role, Term
from perfmodel.machines.collective_times import Operation
from perfmodel.models.layers import Attention, Embedding, Head, Layer, Linear, Norm
from perfmodel.models.model import Block
from perfmodel.numerics import repeats
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.passes import Passes
from perfmodel.parallel.sharding import replicated_parameters, sharded_parameters
from perfmodel.units import Bytes, Number, Seconds

_FP32 = 4  # loss, norms' statistics and the gradient norm are computed in fp32
_SCALARS = (("gradient norm", "xy"), ("gradient norm", "z"), ("loss", "z"), ("loss", "data"))  # one a step
_LOSS_REDUCES = 3  # maximum, target logit, sum of exponentials (vocabulary-parallel cross-entropy)
_GROUPS = ("x", "y", "z", "data", "xy")
_PLACELESS = ("micro_batch", "recompute", "weight_cache")  # of a layout's columns, those that move no rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Communication:
    """Seconds per step, by what is sent; the total is the sum (Eq. 6 over the network)."""

    weight_gather: Seconds
    gradient_scatter: Seconds
    forward_reduce: Seconds
    backward_reduce: Seconds
    data_reduce: Seconds
    vocabulary: Seconds
    small: Seconds

    @property
    def total(self) -> Seconds:
        """All of a step's communication."""
        tensor = self.weight_gather + self.gradient_scatter + self.forward_reduce + self.backward_reduce
        return tensor + self.data_reduce + self.vocabulary + self.small


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTraffic:
    """What one layer kind sends in a step (nothing, for some)."""

    block: Block
    layer: Layer
    sent: tuple[Collective, ...]

    def seconds(self, role: Role) -> Seconds:
        """Seconds of one pass of the layer that are sent in a role."""
        total: Seconds = 0.0
        for one in self.sent:
            if one.role == role:
                total = total + (one.each * one.time if one.each > 1 else one.time)
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """All collectives of a step: what each layer kind sends, and what ends the step.

    The printed terms, the step, explain, the timeline, calibration and the dry run read this one record.
    """

    layers: tuple[LayerTraffic, ...]
    ending: tuple[Collective, ...]

    def __iter__(self) -> Iterator[Collective]:
        """Every collective, layer kind by layer kind, then what ends the step."""
        for each in self.layers:
            yield from each.sent
        yield from self.ending

    def communication(self) -> Communication:
        """Seconds per step by what is sent."""
        terms: dict[str, Seconds] = dict.fromkeys(Communication.__dataclass_fields__, 0.0)
        for one in self:
            terms[one.term] = terms[one.term] + one.total
        return Communication(**terms)

    def ending_time(self) -> Seconds:
        """Seconds of what ends the step."""
        total: Seconds = 0.0
        for one in self.ending:
            total = total + one.time
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """What every layer of one job and layout shares, computed once.

    The sizes are floats: dividing whole numbers would convert them anew in every term. `sharded`: elements on a
    device of all weights and tables. `statistics`: buffers of norms.
    """

    job: Job
    layout: Layout
    x: Number
    y: Number
    z: Number
    links: dict[str, Link]
    accumulation: Number
    rows: Number
    passes: Passes
    sharded: Number
    statistics: dict[tuple[object, ...], Bytes] = field(default_factory=dict)


def traffic(job: Job, layout: Layout) -> Traffic:
    """Everything that is sent in a step, for one layout or many."""
    groups = links(job, layout)
    return Traffic(layers=tuple(_layers(job, layout, groups)), ending=tuple(_ending(job, layout, groups)))


def links(job: Job, layout: Layout) -> dict[str, Link]:
    """The groups of x, y, z, data and of x and y joined; they depend on sizes and placement alone."""
    place = (getattr(layout, each.name) for each in fields(layout) if each.name not in _PLACELESS)
    found = repeats(place)
    few = layout if found is None else layout.take(found[0])
    gpus = few.gpus
    made = {
        axis: job.costs.link.of(job.costs, axis=axis, size=few.size(axis), inner=few.inner(axis), gpus=gpus)
        for axis in _GROUPS
    }
    if found is None:
        return made
    return {axis: link.spread(found[1], len(found[0])) for axis, link in made.items()}


def communicate(job: Job, layout: Layout) -> Communication:
    """Seconds of communication of a step on one layout or many."""
    return traffic(job, layout).communication()


def ring_latency(job: Job, sent: Traffic) -> Seconds:
    """Seconds that the hops of a step's rings would add: steps of each ring * the profile's latency of one hop.

    Neither paper nor flat fidelity counts it; it is shown beside the step so that a reader sees where the bandwidths
    alone mislead. A ring over d domains takes d of its hops between them, and an all-reduce goes round twice.
    """
    fabric, network = job.machine.fabric.latency, job.machine.network.latency
    inside, between = (figure.value if figure else 0.0 for figure in (fabric, network))
    seconds: Seconds = 0.0
    for collective in sent:
        link = collective.link
        steps = link.size - 1
        domains = -(-link.size * link.inner // job.machine.domain)
        crossing = np.where(link.crosses, np.minimum(steps, domains), 0)
        rounds = 2 if collective.operation == "all-reduce" else 1
        seconds = seconds + collective.calls * rounds * (crossing * between + (steps - crossing) * inside)
    return seconds


def _layers(job: Job, layout: Layout, groups: dict[str, Link]) -> Iterator[LayerTraffic]:
    normal = _setting(job, layout, groups)
    transposed = _transposed(normal)
    for block in job.model.blocks:
        for layer, before in block.split():
            sent: Iterator[Collective] = iter(())
            if isinstance(layer, Linear):
                sent = _linear(transposed if layer.transposed else normal, block, layer)
            elif job.settings.fidelity != "paper":
                sent = _around(normal, block, layer, before)
            yield LayerTraffic(block=block, layer=layer, sent=tuple(sent))


def _ending(job: Job, layout: Layout, groups: dict[str, Link]) -> Iterator[Collective]:
    """What is sent once per step: gradients of what Z does not split, the gradient norm, the loss."""
    if job.settings.fidelity == "paper":
        return
    elements, sizes = replicated_parameters(job, layout), job.settings
    scales = sum(b.repeat * layer.parameters for b, layer in job.model.layers() if isinstance(layer, Attention))
    sent: list[tuple[str, str, Bytes]] = []
    if scales:
        sent.append(("scales of queries and keys", "x", scales * sizes.kept_gradient_bytes))
    if np.any(elements):
        sent.append(("biases, norms, positions", "z", elements * sizes.kept_gradient_bytes))
        sent.append(("biases, norms, positions", "data", elements * sizes.sent_gradient_bytes))
    sent += [(name, axis, _FP32) for name, axis in _SCALARS]
    for name, axis, buffer in sent:
        yield Collective(
            layer=name, role="end", term="small", operation="all-reduce", link=groups[axis], buffer=buffer, calls=1
        )


def _setting(job: Job, layout: Layout, groups: dict[str, Link]) -> _Setting:
    return _Setting(
        job=job,
        layout=layout,
        x=1.0 * layout.x,
        y=1.0 * layout.y,
        z=1.0 * layout.z,
        links=groups,
        accumulation=job.accumulation(layout),
        rows=job.rows(layout),
        passes=Passes.of(layout),
        sharded=sharded_parameters(job, layout),
    )


def _transposed(normal: _Setting) -> _Setting:
    """The roles of x and y exchanged; at paper fidelity their sizes change places in the hierarchy too."""
    exchanged = normal.layout.exchanged()
    if normal.job.settings.fidelity == "paper":
        groups = links(normal.job, exchanged)
        groups |= {"x": replace(groups["x"], axis="y"), "y": replace(groups["y"], axis="x")}  # called by their ranks
    else:
        groups = normal.links | {"x": normal.links["y"], "y": normal.links["x"]}
    return replace(normal, layout=exchanged, x=normal.y, y=normal.x, links=groups)


def _linear(at: _Setting, block: Block, layer: Linear) -> Iterator[Collective]:
    """The five collectives of a linear layer; a transposed layer comes with x and y already exchanged in `at`."""
    sizes, part = at.job.settings, layer.weight / (at.x * at.y)
    steps = block.repeat * at.accumulation
    rows = at.rows * layer.positions
    gathers = at.passes.gathers if block.checkpointed else at.passes.gathers_once
    yield Collective(
        layer=layer.name, role="gather", term="weight_gather", operation="all-gather", link=at.links["z"],
        buffer=part * sizes.weight_bytes, calls=steps * gathers,
    )  # fmt: skip
    yield Collective(
        layer=layer.name, role="reduce", term="forward_reduce", operation="all-reduce", link=at.links["y"],
        buffer=rows * layer.outputs / at.x * sizes.activation_bytes,
        calls=steps * at.passes.forward if block.checkpointed else steps,
    )  # fmt: skip
    yield Collective(
        layer=layer.name, role="reduce_back", term="backward_reduce", operation="all-reduce", link=at.links["x"],
        buffer=rows * layer.inputs / at.y * sizes.activation_bytes, calls=steps,
    )  # fmt: skip
    yield from _weight_gradient(at, layer.name, part, block.repeat)


def _weight_gradient(
    at: _Setting, name: str, elements: Number, repeat: int, term: Term | None = None
) -> Iterator[Collective]:
    """The reduce-scatter over Z of every micro-step and the all-reduce over data at the step's end.

    A bucket over data takes whole weights until it is full, or all there are.
    """
    sizes = at.job.settings
    scattered, summed = elements * sizes.gradient_bytes, elements / at.z * sizes.sent_gradient_bytes
    yield Collective(
        layer=name, role="scatter", term=term or "gradient_scatter", operation="reduce-scatter", link=at.links["z"],
        buffer=scattered, calls=repeat * at.accumulation,
    )  # fmt: skip
    bucket = None
    if sizes.fidelity == "full":
        bucket = np.minimum(np.maximum(summed, sizes.bucket), at.sharded * sizes.sent_gradient_bytes)
    yield Collective(
        layer=name, role="data", term=term or "data_reduce", operation="all-reduce", link=at.links["data"],
        buffer=summed, calls=repeat, bucket=bucket,
    )  # fmt: skip


def _around(at: _Setting, block: Block, layer: Layer, before: str) -> Iterator[Collective]:
    """What layers send that are not linear."""
    if isinstance(layer, Embedding):
        yield from _embedding(at, block, layer)
    elif isinstance(layer, Head):
        yield from _head(at, block, layer)
    elif isinstance(layer, Norm) and not layer.grouped:
        yield from _norm(at, block, layer, before)


def _norm(at: _Setting, block: Block, layer: Norm, before: str) -> Iterator[Collective]:
    """Statistics over the axis that splits the features, in fp32.

    LayerNorm gathers a mean and a sum of squared deviations of every row and rank (joined after Chan, Golub and LeVeque
    1983, no digits are lost), RMSNorm sums one number per row. Backward each sums as many numbers per row.
    """
    link, numbers = at.links[before], 2 if layer.bias else 1
    steps = block.repeat * at.accumulation
    summed = at.statistics.setdefault((numbers, layer.positions), at.rows * (layer.positions * numbers * _FP32))
    forward = steps * at.passes.forward if block.checkpointed else steps
    gathered = at.statistics.setdefault((before, layer.positions), summed * link.size) if layer.bias else summed
    yield Collective(
        layer=layer.name, role="reduce", term="small", operation="all-gather" if layer.bias else "all-reduce",
        link=link, buffer=gathered, calls=forward,
    )  # fmt: skip
    yield Collective(
        layer=layer.name, role="wait", term="small", operation="all-reduce", link=link, buffer=summed, calls=steps
    )


def _table(at: _Setting, vocabulary: int, width: int) -> Number:
    """Elements of a gathered part of a vocabulary table, whose rows are split over x and y."""
    return 1.0 * at.job.padded_vocabulary(vocabulary, at.layout) * width / (at.x * at.y)


def _embedding(at: _Setting, block: Block, layer: Embedding) -> Iterator[Collective]:
    """Masked look-up in the part of the table held, summed over x and y; the gradient is gathered over y."""
    part, hidden = _table(at, layer.vocabulary, layer.width), _hidden(at, layer.width)
    gather = part * at.job.settings.weight_bytes
    yield _of_table(at, block, layer, role="gather", operation="all-gather", axis="z", buffer=gather)
    yield _of_table(at, block, layer, role="reduce", operation="all-reduce", axis="xy", buffer=hidden)
    yield _of_table(at, block, layer, role="wait", operation="all-gather", axis="y", buffer=hidden)
    yield from _weight_gradient(at, layer.name, part, block.repeat, "vocabulary")


def _head(at: _Setting, block: Block, layer: Head) -> Iterator[Collective]:
    """Hidden states gathered over y, logits split over x and y, loss reduced over both; a tied table sends once."""
    part, hidden = _table(at, layer.vocabulary, layer.width), _hidden(at, layer.width)
    gather = part * at.job.settings.weight_bytes
    yield _of_table(at, block, layer, role="gather", operation="all-gather", axis="z", buffer=gather)
    yield _of_table(at, block, layer, role="reduce", operation="all-gather", axis="y", buffer=hidden)
    yield _of_table(
        at, block, layer, role="reduce", operation="all-reduce", axis="xy", buffer=at.rows * _FP32, each=_LOSS_REDUCES
    )
    yield _of_table(at, block, layer, role="reduce_back", operation="all-reduce", axis="xy", buffer=hidden)
    if not layer.tied:
        yield from _weight_gradient(at, layer.name, part, block.repeat, "vocabulary")


def _hidden(at: _Setting, width: int) -> Bytes:
    """Bytes of hidden states that no axis but Z and data splits."""
    return at.rows * width * at.job.settings.activation_bytes


def _of_table(
    at: _Setting, block: Block, layer: Embedding | Head, *, role: Role, operation: Operation, axis: str, buffer: Bytes,
    each: int = 1,
) -> Collective:  # fmt: skip
    """A collective of every micro-step of an embedding or a head."""
    return Collective(
        layer=layer.name, role=role, term="vocabulary", operation=operation, link=at.links[axis], buffer=buffer,
        calls=block.repeat * at.accumulation * each, each=each,
    )  # fmt: skip
