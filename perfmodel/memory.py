"""Bytes that one device holds at the fullest moment of a step, term by term.

Stored tensors follow Korthikanti et al. 2022 (arXiv 2205.05198, section 4), with their tensor degree t replaced by X
for what a layer keeps between its two products and by Y for the hidden states between layers; both are split over Z
with the batch. With flash attention no scores are kept.
"""

from dataclasses import dataclass, fields

import numpy as np

from perfmodel.job import Job
from perfmodel.layout import Layout
from perfmodel.parameters import replicated_parameters, sharded_parameters
from perfmodel.settings import Sized
from perfmodel.sources import Figure
from perfmodel.units import Bytes, Count, Number
from perfmodel.workload import Activation, Attention, Block, Embedding, Head, Layer, Linear, Norm

_MASK = 1  # bytes an element of a dropout mask
_FP32 = 4


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one device, each term on its own; the total is their sum."""

    weights: Bytes
    gradients: Bytes
    optimizer: Bytes
    activations: Bytes
    recomputed_block: Bytes
    gathered_weights: Bytes
    logits: Bytes
    communicators: Bytes
    reserve: Bytes

    @property
    def total(self) -> Bytes:
        """All terms together."""
        total: Bytes = 0.0
        for term in fields(self):
            total = total + getattr(self, term.name)
        return total


@dataclass(frozen=True, slots=True)
class PerToken:
    """Bytes a token of the sequence: `over_y` is split over Y, `over_x` over X, `scores` (attention) over X too."""

    over_y: float = 0.0
    over_x: float = 0.0
    scores: float = 0.0
    whole: float = 0.0

    def __add__(self, other: "PerToken") -> "PerToken":
        """Term by term."""
        return PerToken(
            self.over_y + other.over_y, self.over_x + other.over_x, self.scores + other.scores, self.whole + other.whole
        )

    def on(self, layout: Layout, *, scores: bool = True) -> Number:
        """Bytes a token on one device."""
        over_x = self.over_x + (self.scores if scores else 0.0)
        return self.whole + self.over_y / (1.0 * layout.y) + over_x / (1.0 * layout.x)


def occupy(job: Job, layout: Layout) -> Memory:
    """Bytes a device holds, for one layout or many."""
    settings, device = job.settings, job.machine.device
    parameters = sharded_parameters(job, layout) + replicated_parameters(job, layout)
    stored, recomputed = _activations(job, layout)
    return Memory(
        weights=parameters * settings.weight_bytes,
        gradients=parameters * settings.kept_gradient_bytes,
        optimizer=parameters * settings.optimizer_bytes,
        activations=stored,
        recomputed_block=recomputed,
        gathered_weights=_gathered(job, layout),
        logits=_logits(job, layout),
        communicators=_held(device.communicator_buffer, settings.communicator_buffer) * _communicators(layout),
        reserve=0.0 * layout.x + _held(device.reserve, settings.reserve),
    )


def _held(figure: Figure | None, otherwise: float) -> float:
    """What the profile says of a device, or the assumption made for GPUs."""
    return figure.value if figure else otherwise


def capacity(job: Job) -> float:
    """Bytes of one device."""
    return job.machine.device.memory.value


def block_activations(block: Block, settings: Sized, sequence: int) -> PerToken:
    """Bytes a token that one block keeps for its backward pass when nothing is recomputed."""
    kept = PerToken()
    for layer, before in block.split():
        kept = kept + _kept(layer, before, settings, sequence)
    return kept


def _kept(layer: Layer, before: str, settings: Sized, sequence: int) -> PerToken:
    """Every product keeps its input; norm and activation keep theirs; attention keeps queries, keys, values."""
    size = settings.activation_bytes
    if isinstance(layer, Linear):
        inputs = layer.positions * layer.inputs * size
        mask = layer.positions * layer.outputs * _MASK if settings.dropout and layer.transposed else 0.0
        return PerToken(over_x=inputs, over_y=mask) if layer.transposed else PerToken(over_y=inputs)
    if isinstance(layer, Norm):
        return PerToken(**{f"over_{before}": layer.positions * layer.width * size})
    if isinstance(layer, Activation):
        return PerToken(**{f"over_{before}": layer.positions * layer.width * (2 if layer.gated else 1) * size})
    if isinstance(layer, Attention):
        projected = (layer.heads + 2 * layer.kv_heads) * layer.head_dim * size
        return PerToken(over_x=projected, scores=_scores(layer, settings, sequence))
    if isinstance(layer, Head):
        return PerToken(whole=layer.width * size)
    return PerToken()


def _scores(layer: Attention, settings: Sized, sequence: int) -> float:
    """Softmax output, and with dropout its mask and result, a token; flash attention keeps a sum a head instead."""
    if settings.flash_attention:
        return layer.heads * _FP32
    size = settings.activation_bytes
    return layer.heads * sequence * (2 * size + _MASK if settings.dropout else size)


def _block_input(block: Block, settings: Sized) -> PerToken:
    """Bytes a token of the hidden states that enter a block, all that full recomputation keeps of it."""
    first = block.layers[0]
    width = first.inputs if isinstance(first, Linear) else getattr(first, "width", 0)
    size = getattr(first, "positions", 1.0) * width * settings.activation_bytes
    return PerToken(over_x=size) if isinstance(first, Linear) and first.transposed else PerToken(over_y=size)


def _activations(job: Job, layout: Layout) -> tuple[Bytes, Bytes]:
    """(kept from forward to backward, the block being recomputed), by the layout's recomputation mode."""
    kept: list[Number] = [0.0, 0.0, 0.0]
    recomputed: list[Number] = [0.0, 0.0, 0.0]
    for block in job.model.blocks:
        everything = block_activations(block, job.settings, job.sequence)
        full, lean = everything.on(layout), everything.on(layout, scores=False)
        least = _block_input(block, job.settings).on(layout) if block.checkpointed else full
        modes = (full, lean if block.checkpointed else full, least)
        kept = [total + block.repeat * mode for total, mode in zip(kept, modes, strict=True)]
        if block.checkpointed:
            recomputed = [0.0, np.maximum(recomputed[1], full - lean), np.maximum(recomputed[2], full)]
    rows = job.rows(layout)
    return rows * _by_mode(kept, layout), rows * _by_mode(recomputed, layout)


def _by_mode(values: list[Number], layout: Layout) -> Number:
    """The entry of each layout's own recomputation mode."""
    return np.where(layout.recompute == 0, values[0], np.where(layout.recompute == 1, values[1], values[2]))


def _gathered(job: Job, layout: Layout) -> Bytes:
    """Weights gathered over Z that are alive at once, and gradients waiting to be scattered; none with Z = 1.

    Without caching: the layer in use and the one prefetched. Cached from a forward to its backward pass: all layers,
    or under full recomputation the block being recomputed and one more layer. Cached always: all layers. Or, where
    that is more, what is cached while the loss is computed, with the vocabulary's table and its gradient.
    """
    settings, tensor = job.settings, 1.0 * layout.x * layout.y
    blocks = [(b.repeat, [layer.weight for layer in b.layers if isinstance(layer, Linear)]) for b in job.model.blocks]
    largest = max(weight for _, weights in blocks for weight in weights)
    everything = sum(repeat * sum(weights) for repeat, weights in blocks)
    one_block = max(sum(weights) for _, weights in blocks) + largest
    in_use, one_block = min(2 * largest, everything), min(one_block, everything)
    stored, full = (in_use, everything, everything), (in_use, one_block, everything)
    alive = np.array([stored, stored, full], dtype=float)[layout.recompute, layout.weight_cache]
    cached = np.where(alive == everything, alive, 0.0)
    in_layers = alive * settings.weight_bytes + 2.0 * largest * settings.gradient_bytes
    at_loss = cached * settings.weight_bytes + _table(job, layout) * (settings.weight_bytes + settings.gradient_bytes)
    return np.where(layout.z > 1, np.maximum(in_layers, at_loss) / tensor, 0.0)


def _table(job: Job, layout: Layout) -> Number:
    """Elements of the model's largest vocabulary table, padded."""
    largest: Number = 0.0
    for _, layer in job.model.layers():
        if isinstance(layer, (Embedding, Head)):
            largest = np.maximum(largest, 1.0 * job.padded_vocabulary(layer.vocabulary, layout) * layer.width)
    return largest


def _logits(job: Job, layout: Layout) -> Bytes:
    """Logits of a micro-step in the activation format and their fp32 copy, which the loss turns into the gradient.

    Those of several heads are alive together: the backward pass starts from the sum of their losses.
    """
    vocabulary: Number = 0.0
    for block, layer in job.model.layers():
        if isinstance(layer, Head):
            vocabulary = vocabulary + block.repeat * 1.0 * job.padded_vocabulary(layer.vocabulary, layout)
    return job.rows(layout) * vocabulary / (layout.x * layout.y) * (job.settings.activation_bytes + _FP32)


def _communicators(layout: Layout) -> Count:
    """Groups of more than one rank that a device belongs to."""
    return (layout.x > 1) * 1 + (layout.y > 1) * 1 + (layout.z > 1) * 1 + (layout.data > 1) * 1
