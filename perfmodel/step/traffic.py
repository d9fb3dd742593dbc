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
from dataclasses import dataclass, field, replace

import numpy as np

from perfmodel.costs.collective import Collective, Link, Term
from perfmodel.models.model import Attention, Block, Embedding, Head, Layer, Linear, Norm
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.settings import FORWARD_PASSES, WEIGHT_GATHERS
from perfmodel.parallel.sharding import replicated_parameters, sharded_parameters
from perfmodel.units import Bytes, Count, Number, Seconds

_GATHERS = np.array(WEIGHT_GATHERS)
_PASSES = np.array(FORWARD_PASSES)
_FP32 = 4  # loss, norms' statistics and the gradient norm are computed in fp32
_SCALARS = (("gradient norm", "xy"), ("gradient norm", "z"), ("loss", "z"), ("loss", "data"))  # one a step
_LOSS_REDUCES = 3  # maximum, target logit, sum of exponentials (vocabulary-parallel cross-entropy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Communication:
    """Seconds a step, by what is sent; the total is the sum (Eq. 6 over the network)."""

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
    gathers: Count
    passes: Count
    sharded: Number
    statistics: dict[tuple[object, ...], Bytes] = field(default_factory=dict)


def links(job: Job, layout: Layout) -> dict[str, Link]:
    """The groups of x, y, z, data and of x and y joined."""
    gpus = layout.gpus
    found = {}
    for axis in ("x", "y", "z", "data", "xy"):
        size, inner = layout.size(axis), layout.inner(axis)
        bandwidth = job.bandwidths.of_group(inner=inner, size=size, gpus=gpus)
        crosses = np.logical_not(job.bandwidths.contained(inner=inner, size=size, gpus=gpus))
        found[axis] = Link(axis=axis, size=1.0 * size, inner=inner, bandwidth=bandwidth, crosses=crosses)
        if job.constants is not None:
            from perfmodel.costs.nccl import path  # noqa: PLC0415 - as in Job

            inside = np.logical_not(crosses)
            along = path(job.constants, inner=inner, size=size, inside=inside, bandwidth=bandwidth)
            measured = tuple(held for held in (table.held(along) for table in job.tables) if len(held.rows))
            found[axis] = replace(found[axis], path=along, measured=measured, issue=job.settings.host_time)
    return found


def communicate(job: Job, layout: Layout) -> Communication:
    """Seconds of communication of a step on one layout or many."""
    terms: dict[str, Seconds] = dict.fromkeys(Communication.__dataclass_fields__, 0.0)
    for collective in _joined(traffic(job, layout)) if job.constants is None else traffic(job, layout):
        terms[collective.term] = terms[collective.term] + collective.total
    return Communication(**terms)


def _joined(every: Iterator[Collective]) -> Iterator[Collective]:
    """Without latency all calls of one operation over one link take what one with all their bytes would."""
    found: dict[tuple[str, str, int], Collective] = {}
    for one in every:
        key, sent = (one.term, one.operation, id(one.link)), one.calls * one.buffer
        before = found.get(key)
        found[key] = replace(one, buffer=sent if before is None else before.buffer + sent, calls=1)
    yield from found.values()


def ring_latency(job: Job, layout: Layout) -> Seconds:
    """Seconds that the hops of a step's rings would add: steps of each ring * the profile's latency of one hop.

    Neither paper nor flat fidelity counts it; it is shown beside the step so that a reader sees where the bandwidths
    alone mislead. A ring over d domains takes d of its hops between them, and an all-reduce goes round twice.
    """
    fabric, network = job.machine.fabric.latency, job.machine.network.latency
    inside, between = (figure.value if figure else 0.0 for figure in (fabric, network))
    seconds: Seconds = 0.0
    for collective in traffic(job, layout):
        link = collective.link
        steps = link.size - 1
        domains = -(-link.size * link.inner // job.machine.domain)
        crossing = np.where(link.crosses, np.minimum(steps, domains), 0)
        rounds = 2 if collective.operation == "all-reduce" else 1
        seconds = seconds + collective.calls * rounds * (crossing * between + (steps - crossing) * inside)
    return seconds


def traffic(job: Job, layout: Layout) -> Iterator[Collective]:
    """Every collective of a step, layer kind by layer kind, then what ends the step."""
    groups = links(job, layout)
    for _, _, sent in layer_traffic(job, layout, groups):
        yield from sent
    yield from step_traffic(job, layout, groups)


def layer_traffic(
    job: Job, layout: Layout, groups: dict[str, Link] | None = None
) -> Iterator[tuple[Block, Layer, tuple[Collective, ...]]]:
    """Every layer kind with its block and what it sends in a step (nothing, for some)."""
    normal = _setting(job, layout, groups or links(job, layout))
    transposed = _transposed(normal)
    for block in job.model.blocks:
        for layer, before in block.split():
            if isinstance(layer, Linear):
                yield block, layer, tuple(linear(transposed if layer.transposed else normal, block, layer))
            elif job.settings.fidelity == "paper":
                yield block, layer, ()
            else:
                yield block, layer, tuple(_around(normal, block, layer, before))


def step_traffic(job: Job, layout: Layout, groups: dict[str, Link]) -> Iterator[Collective]:
    """What is sent once a step: gradients of what Z does not split, the gradient norm, the loss."""
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
        yield Collective(layer=name, term="small", operation="all-reduce", link=groups[axis], buffer=buffer, calls=1)


def _setting(job: Job, layout: Layout, groups: dict[str, Link]) -> _Setting:
    gathers = _GATHERS[layout.recompute, layout.weight_cache]
    return _Setting(
        job=job,
        layout=layout,
        x=1.0 * layout.x,
        y=1.0 * layout.y,
        z=1.0 * layout.z,
        links=groups,
        accumulation=job.accumulation(layout),
        rows=job.rows(layout),
        gathers=gathers,
        passes=_PASSES[layout.recompute],
        sharded=sharded_parameters(job, layout),
    )


def _transposed(normal: _Setting) -> _Setting:
    """The roles of x and y exchanged; at paper fidelity their sizes change places in the hierarchy too."""
    if normal.job.settings.fidelity == "paper":
        groups = links(normal.job, normal.layout.exchanged())
        groups |= {"x": replace(groups["x"], axis="y"), "y": replace(groups["y"], axis="x")}  # called by their ranks
    else:
        groups = normal.links | {"x": normal.links["y"], "y": normal.links["x"]}
    return _setting(normal.job, normal.layout.exchanged(), groups)


def linear(at: _Setting, block: Block, layer: Linear) -> Iterator[Collective]:
    """The five collectives of a linear layer; a transposed layer comes with x and y already exchanged in `at`."""
    sizes, part = at.job.settings, layer.weight / (at.x * at.y)
    steps = block.repeat * at.accumulation
    rows = at.rows * layer.positions
    gathers = at.gathers if block.checkpointed else _GATHERS[0, at.layout.weight_cache]  # 0: nothing is recomputed
    yield Collective(
        layer=layer.name, term="weight_gather", operation="all-gather", link=at.links["z"],
        buffer=part * sizes.weight_bytes, calls=steps * gathers,
    )  # fmt: skip
    yield Collective(
        layer=layer.name, term="forward_reduce", operation="all-reduce", link=at.links["y"],
        buffer=rows * layer.outputs / at.x * sizes.activation_bytes,
        calls=steps * (at.passes if block.checkpointed else 1),
    )  # fmt: skip
    yield Collective(
        layer=layer.name, term="backward_reduce", operation="all-reduce", link=at.links["x"],
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
    steps = repeat * at.accumulation
    yield Collective(
        layer=name,
        term=term or "gradient_scatter",
        operation="reduce-scatter",
        link=at.links["z"],
        buffer=scattered,
        calls=steps,
    )
    bucket = None
    if sizes.fidelity == "full":
        bucket = np.minimum(np.maximum(summed, sizes.bucket), at.sharded * sizes.sent_gradient_bytes)
    yield Collective(
        layer=name,
        term=term or "data_reduce",
        operation="all-reduce",
        link=at.links["data"],
        buffer=summed,
        calls=repeat,
        bucket=bucket,
    )


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
    1983, no digits are lost), RMSNorm sums one number a row. Backward each sums as many numbers a row.
    """
    link, numbers = at.links[before], 2 if layer.bias else 1
    steps = block.repeat * at.accumulation
    summed = at.statistics.setdefault((numbers, layer.positions), at.rows * (layer.positions * numbers * _FP32))
    forward = steps * at.passes if block.checkpointed else steps
    if layer.bias:
        gathered = at.statistics.setdefault((before, layer.positions), summed * link.size)
        yield Collective(
            layer=layer.name, term="small", operation="all-gather", link=link, buffer=gathered, calls=forward
        )
    else:
        yield Collective(
            layer=layer.name, term="small", operation="all-reduce", link=link, buffer=summed, calls=forward
        )
    yield Collective(layer=layer.name, term="small", operation="all-reduce", link=link, buffer=summed, calls=steps)


def _table(at: _Setting, vocabulary: int, width: int) -> Number:
    """Elements of a gathered part of a vocabulary table, whose rows are split over x and y."""
    return 1.0 * at.job.padded_vocabulary(vocabulary, at.layout) * width / (at.x * at.y)


def _embedding(at: _Setting, block: Block, layer: Embedding) -> Iterator[Collective]:
    """Masked look-up in the part of the table held, summed over x and y; the gradient is gathered over y."""
    sizes, part = at.job.settings, _table(at, layer.vocabulary, layer.width)
    hidden = at.rows * layer.width * sizes.activation_bytes
    once = block.repeat * at.accumulation
    yield Collective(
        layer=layer.name,
        term="vocabulary",
        operation="all-gather",
        link=at.links["z"],
        buffer=part * sizes.weight_bytes,
        calls=once,
    )
    yield Collective(
        layer=layer.name, term="vocabulary", operation="all-reduce", link=at.links["xy"], buffer=hidden, calls=once
    )
    yield Collective(
        layer=layer.name, term="vocabulary", operation="all-gather", link=at.links["y"], buffer=hidden, calls=once
    )
    yield from _weight_gradient(at, layer.name, part, block.repeat, "vocabulary")


def _head(at: _Setting, block: Block, layer: Head) -> Iterator[Collective]:
    """Hidden states gathered over y, logits split over x and y, loss reduced over both; a tied table sends once."""
    sizes, part = at.job.settings, _table(at, layer.vocabulary, layer.width)
    hidden = at.rows * layer.width * sizes.activation_bytes
    once = block.repeat * at.accumulation
    yield Collective(
        layer=layer.name,
        term="vocabulary",
        operation="all-gather",
        link=at.links["z"],
        buffer=part * sizes.weight_bytes,
        calls=once,
    )
    yield Collective(
        layer=layer.name, term="vocabulary", operation="all-gather", link=at.links["y"], buffer=hidden, calls=once
    )
    yield Collective(
        layer=layer.name,
        term="vocabulary",
        operation="all-reduce",
        link=at.links["xy"],
        buffer=at.rows * _FP32,
        calls=once * _LOSS_REDUCES,
    )
    yield Collective(
        layer=layer.name, term="vocabulary", operation="all-reduce", link=at.links["xy"], buffer=hidden, calls=once
    )
    if not layer.tied:
        yield from _weight_gradient(at, layer.name, part, block.repeat, "vocabulary")
