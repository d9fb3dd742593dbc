"""Elements of parameters on one device, by what splits them."""

from perfmodel.models.model import Block, Embedding, Head, Layer, Linear, Norm
from perfmodel.parallel.axes import SHARD_GROUP, TENSOR_GROUP
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.units import Count, Number


def block_repeats(block: Block, layout: Layout) -> int:
    """How often a block occurs on one device; code that counts layers per device calls this.

    No current axis changes it. One that assigns layers to groups of devices would divide it, layout by layout.
    """
    del layout
    return block.repeat


def sharded_parameters(job: Job, layout: Layout) -> Number:
    """Elements on one device of what X, Y and Z split: weights of linear layers and vocabulary tables."""
    shards = 1.0 * layout.size(SHARD_GROUP)
    tables: Number = 0.0
    for block, layer in job.model.layers():
        if isinstance(layer, Embedding) or (isinstance(layer, Head) and not layer.tied):
            tables = (
                tables
                + block_repeats(block, layout) * 1.0 * job.padded_vocabulary(layer.vocabulary, layout) * layer.width
            )
    return (linear_weights(job, layout) + tables) / shards


def linear_weights(job: Job, layout: Layout) -> int:
    """Elements of the linear layers that one device works on, before anything splits them."""
    linear = ((block, layer) for block, layer in job.model.layers() if isinstance(layer, Linear))
    return sum(block_repeats(block, layout) * layer.weight for block, layer in linear)


def replicated_parameters(job: Job, layout: Layout) -> Number:
    """Elements on one device of what Z does not split: biases, norms, positions, by the axes that do split them."""
    split: dict[str, Number] = {"x": 0.0, "y": 0.0, TENSOR_GROUP: 0.0, "none": 0.0}
    for block in job.model.blocks:
        for layer, before in block.split():
            axis, elements = _replicated(layer, before)
            if isinstance(layer, Head) and layer.bias:
                elements = job.padded_vocabulary(layer.vocabulary, layout)
            split[axis] = split[axis] + block_repeats(block, layout) * elements
    held = split.pop("none")
    for group, whole in split.items():
        held = held + whole / (1.0 * layout.size(group))
    return held


def _replicated(layer: Layer, before: str) -> tuple[str, Count]:
    """(axes that split them, elements) of the parameters that Z does not split; `before` splits the features."""
    if isinstance(layer, Linear):
        return ("y" if layer.transposed else "x"), layer.replicated
    if isinstance(layer, Norm):
        return before, layer.parameters
    if isinstance(layer, Embedding):
        return "y", layer.learned_positions * layer.width
    if isinstance(layer, Head):
        return TENSOR_GROUP, 0  # its bias is as long as the padded vocabulary
    return "none", layer.parameters
