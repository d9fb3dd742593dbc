"""What the layers of a model send in a step, collective by collective.

For a linear layer with local rows m/Gz (arXiv 2502.08145, Algorithm 1 and Eqs. 1 to 6):

    all-gather of the weight over Z             k n / (Gx Gy) elements gathered         Eq. 1
    reduce-scatter of its gradient over Z       k n / (Gx Gy)                           Eq. 2
    all-reduce of the output over Y             m n / (Gz Gx)                           Eq. 3
    all-reduce of the input gradient over X     m k / (Gz Gy)                           Eq. 4
    all-reduce of the shard's gradient, data    k n / (Gx Gy Gz), once per step         Eq. 5

A transposed layer exchanges X and Y. At paper fidelity the sizes are exchanged in the whole hierarchy, as in the
authors' scripts, although no rank moves. At flat and full fidelity each group keeps its ranks. Embedding, head and
norms then send too (norms send statistics over the axis that splits their features). The all-reduce over data sends
buckets of many weights: at full fidelity, where a call has a start-up time, a layer's all-reduce is a share of a
bucket's.

Where data parallelism shards the optimizer (ZeRO-1), the all-reduce over data becomes a reduce-scatter, and the updated
weights are gathered: as many bytes, if both have the same format. Where it shards gradients too (ZeRO-2), every
micro-step scatters them. Over a part of data's ranks only, an all-reduce of shards among the copies follows.

With sequence parallelism (arXiv 2205.05198, section 4.2.2) X splits the sequence between layers. The all-reduce over X
of a transposed layer becomes a reduce-scatter, and an all-gather precedes the next normal layer; backward likewise.
A normal layer keeps its part of the input and gathers it once more for the weight's gradient.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from perfmodel.costs.collective import Collective, Link, Role, Term
from perfmodel.machines.collective_times import Operation
from perfmodel.models.layers import Embedding, Head, Layer, Linear, Norm
from perfmodel.models.model import Block
from perfmodel.parallel.axes import REPLICA_GROUP, TENSOR_GROUP
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.passes import Passes
from perfmodel.parallel.sharding import block_repeats, sharded_parameters
from perfmodel.traffic.links import COPIES, SHARDS, links
from perfmodel.units import Bytes, Number, Seconds

FP32 = 4  # loss, norms' statistics and the gradient norm are computed in fp32
_LOSS_REDUCES = 3  # maximum, target logit, sum of exponentials (vocabulary-parallel cross-entropy)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTraffic:
    """What one layer kind sends in a step (nothing, for some)."""

    block: Block
    layer: Layer
    sent: tuple[Collective, ...]

    def seconds(self, role: Role) -> Seconds:
        """Seconds that one pass of the layer sends in this role."""
        total: Seconds = 0.0
        for one in self.sent:
            if one.role == role:
                total = total + (one.each * one.time if one.each > 1 else one.time)
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """What all layers of one job and layout share, computed once.

    Sizes are floats, because dividing integers would convert them in every term. `sharded`: elements of all weights
    and tables on one device. `statistics`: buffers of norms.
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

    def repeats(self, block: Block) -> int:
        """How often a block occurs on one device."""
        return block_repeats(block, self.layout)

    @property
    def between(self) -> Number:
        """Into how many parts X splits the tokens between layers."""
        return self.job.parts_between(self.layout)


def layers(job: Job, layout: Layout, groups: dict[str, Link]) -> Iterator[LayerTraffic]:
    """What each kind of layer sends, in model order; `groups`: the links of the layout."""
    normal = _sharing(job, layout, groups)
    transposed = _transposed(normal)
    for block in job.model.blocks:
        for layer, before in block.split():
            sent: Iterator[Collective] = iter(())
            if isinstance(layer, Linear):
                sent = _linear(transposed if layer.transposed else normal, block, layer)
            elif job.settings.fidelity != "paper":
                sent = _around(normal, block, layer, before)
            yield LayerTraffic(block=block, layer=layer, sent=tuple(sent))


def _sharing(job: Job, layout: Layout, groups: dict[str, Link]) -> Sharing:
    return Sharing(
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


def _transposed(normal: Sharing) -> Sharing:
    """With x and y exchanged; at paper fidelity their sizes are exchanged in the hierarchy too."""
    exchanged = normal.layout.exchanged()
    if normal.job.settings.fidelity == "paper":
        groups = links(normal.job, exchanged)
        groups |= {"x": replace(groups["x"], axis="y"), "y": replace(groups["y"], axis="x")}  # named after their ranks
    else:
        groups = normal.links | {"x": normal.links["y"], "y": normal.links["x"]}
    return replace(normal, layout=exchanged, x=normal.y, y=normal.x, links=groups)


def _linear(at: Sharing, block: Block, layer: Linear) -> Iterator[Collective]:
    """The five collectives of a linear layer; a transposed layer comes with x and y already exchanged in `at`."""
    sizes, part = at.job.settings, layer.weight / (at.x * at.y)
    steps = at.repeats(block) * at.accumulation
    rows = at.rows * layer.positions
    gathers = at.passes.gathers if block.checkpointed else at.passes.gathers_once
    forward = steps * at.passes.forward if block.checkpointed else steps
    yield Collective(
        layer=layer.name, role="gather", term="weight_gather", operation="all-gather", link=at.links["z"],
        buffer=part * sizes.weight_bytes, calls=steps * gathers, bucket=_unit(at, block, sizes.weight_bytes),
    )  # fmt: skip
    output = Collective(
        layer=layer.name, role="reduce", term="forward_reduce", operation="all-reduce", link=at.links["y"],
        buffer=rows * layer.outputs / at.x * sizes.activation_bytes, calls=forward,
    )  # fmt: skip
    back = Collective(
        layer=layer.name, role="reduce_back", term="backward_reduce", operation="all-reduce", link=at.links["x"],
        buffer=rows * layer.inputs / at.y * sizes.activation_bytes, calls=steps,
    )  # fmt: skip
    if not sizes.sequence_parallel:
        yield from (output, back)
    elif layer.transposed:
        yield replace(output, operation="reduce-scatter")
        yield replace(output, operation="all-gather", role="wait", term="backward_reduce", calls=steps)
        yield back
    else:
        yield replace(back, operation="all-gather", role="reduce", term="forward_reduce", calls=forward)
        yield output
        yield replace(back, operation="all-gather")  # of the input, once more, for the weight's gradient
        yield replace(back, operation="reduce-scatter")
    yield from _weight_gradient(at, layer.name, part, at.repeats(block), block=block)


def _unit(at: Sharing, block: Block | None, size: Bytes) -> "Bytes | None":
    """Bytes of the call over Z that sends a weight: None where each weight has its own, else those of its block."""
    if block is None or at.job.settings.gather_unit == "layer":
        return None
    return sum(layer.weight for layer in block.layers if isinstance(layer, Linear)) / (at.x * at.y) * size


def _weight_gradient(
    at: Sharing, name: str, elements: Number, repeat: int, term: Term | None = None, block: Block | None = None
) -> Iterator[Collective]:
    """The reduce-scatter over Z of every micro-step, and the sum over data."""
    yield Collective(
        layer=name, role="scatter", term=term or "gradient_scatter", operation="reduce-scatter", link=at.links["z"],
        buffer=elements * at.job.settings.gradient_bytes, calls=repeat * at.accumulation,
        bucket=_unit(at, block, at.job.settings.gradient_bytes),
    )  # fmt: skip
    for one in _over_data(at, name, elements / at.z, repeat):
        yield replace(one, term=term) if term else one


def _over_data(at: Sharing, name: str, shard: Number, repeat: int) -> Iterator[Collective]:
    """The sum over data once per step, or the parts of it that a sharded optimizer needs; `shard`: elements."""
    sizes = at.job.settings
    data = partial(
        _bucketed, at, layer=name, role="data", term="data_reduce", link=at.links[REPLICA_GROUP],
        elements=shard, size=sizes.sent_gradient_bytes, calls=repeat,
    )  # fmt: skip
    if sizes.shards == "nothing":
        yield data(operation="all-reduce")
        return
    scatter = data
    if sizes.shards == "gradients":
        scatter = partial(data, role="scatter", calls=repeat * at.accumulation)
    within: dict[str, Any] = {}
    if sizes.shard_ranks:
        within = {"link": at.links[SHARDS]}
        yield data(operation="all-reduce", link=at.links[COPIES], elements=shard / at.links[SHARDS].size)
    yield scatter(operation="reduce-scatter", **within)
    yield data(operation="all-gather", role="update", term="update_gather", size=sizes.weight_bytes, **within)


def _bucketed(at: Sharing, *, elements: Number, size: Bytes, **sent: Any) -> Collective:
    """A collective over data of a layer's elements, as its share of a bucket's call.

    A bucket takes whole weights until it is full, or until none are left.
    """
    sizes, buffer = at.job.settings, elements * size
    bucket = None
    if sizes.fidelity == "full":
        least = np.maximum(sizes.bucket, sizes.bucket_per_rank * at.links[REPLICA_GROUP].size)
        bucket = np.minimum(np.maximum(buffer, least), at.sharded * size)
    return Collective(buffer=buffer, bucket=bucket, **sent)


def _around(at: Sharing, block: Block, layer: Layer, before: str) -> Iterator[Collective]:
    """What layers other than linear ones send."""
    if isinstance(layer, Embedding):
        yield from _embedding(at, block, layer)
    elif isinstance(layer, Head):
        yield from _head(at, block, layer)
    elif isinstance(layer, Norm) and not layer.grouped:
        yield from _norm(at, block, layer, before)


def _norm(at: Sharing, block: Block, layer: Norm, before: str) -> Iterator[Collective]:
    """Statistics over the axis that splits the features, in fp32.

    LayerNorm gathers a mean and a sum of squared deviations per row and rank (combined as in Chan, Golub and LeVeque
    1983, so no digits are lost). RMSNorm sums one number per row. The backward pass sums as many numbers per row.
    """
    link, numbers = at.links[before], 2 if layer.bias else 1
    steps = at.repeats(block) * at.accumulation
    rows = at.rows / at.between
    summed = at.statistics.setdefault((numbers, layer.positions), rows * (layer.positions * numbers * FP32))
    forward = steps * at.passes.forward if block.checkpointed else steps
    gathered = at.statistics.setdefault((before, layer.positions), summed * link.size) if layer.bias else summed
    yield Collective(
        layer=layer.name, role="reduce", term="small", operation="all-gather" if layer.bias else "all-reduce",
        link=link, buffer=gathered, calls=forward,
    )  # fmt: skip
    yield Collective(
        layer=layer.name, role="wait", term="small", operation="all-reduce", link=link, buffer=summed, calls=steps
    )


def _table(at: Sharing, vocabulary: int, width: int) -> Number:
    """Elements of one gathered part of a vocabulary table; its rows are split over x and y."""
    return 1.0 * at.job.padded_vocabulary(vocabulary, at.layout) * width / (at.x * at.y)


def _embedding(at: Sharing, block: Block, layer: Embedding) -> Iterator[Collective]:
    """Masked look-up in the local part of the table, summed over x and y; the gradient is gathered over y.

    Under sequence parallelism the sum is scattered over the sequence, and its gradient gathered over x too.
    """
    part, hidden = _table(at, layer.vocabulary, layer.width), _hidden(at, layer.width)
    send = _of_table(at, block, layer)
    gathered = part * at.job.settings.weight_bytes
    yield send(role="gather", operation="all-gather", link=at.links["z"], buffer=gathered)
    split = at.job.settings.sequence_parallel
    summed: Operation = "reduce-scatter" if split else "all-reduce"
    yield send(role="reduce", operation=summed, link=at.links[TENSOR_GROUP], buffer=hidden)
    yield send(role="wait", operation="all-gather", link=at.links[TENSOR_GROUP if split else "y"], buffer=hidden)
    yield from _weight_gradient(at, layer.name, part, at.repeats(block), "vocabulary")


def _head(at: Sharing, block: Block, layer: Head) -> Iterator[Collective]:
    """Hidden states gathered over y, logits split over x and y, loss reduced over both; a tied table is sent once."""
    part, hidden = _table(at, layer.vocabulary, layer.width), _hidden(at, layer.width)
    send = _of_table(at, block, layer)
    gathered, joined = part * at.job.settings.weight_bytes, at.links[TENSOR_GROUP]
    loss = at.repeats(block) * at.accumulation * _LOSS_REDUCES
    yield send(role="gather", operation="all-gather", link=at.links["z"], buffer=gathered)
    split = at.job.settings.sequence_parallel
    yield send(role="reduce", operation="all-gather", link=at.links[TENSOR_GROUP if split else "y"], buffer=hidden)
    yield send(
        role="reduce", operation="all-reduce", link=joined, buffer=at.rows * FP32, calls=loss, each=_LOSS_REDUCES
    )
    summed: Operation = "reduce-scatter" if split else "all-reduce"
    yield send(role="reduce_back", operation=summed, link=joined, buffer=hidden)
    if not layer.tied:
        yield from _weight_gradient(at, layer.name, part, at.repeats(block), "vocabulary")


def _hidden(at: Sharing, width: int) -> Bytes:
    """Bytes of hidden states that only Z and data split."""
    return at.rows * width * at.job.settings.activation_bytes


def _of_table(at: Sharing, block: Block, layer: Embedding | Head) -> Callable[..., Collective]:
    """A factory of the collectives that an embedding or a head sends in every micro-step."""
    return partial(Collective, layer=layer.name, term="vocabulary", calls=at.repeats(block) * at.accumulation)
