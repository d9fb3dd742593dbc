"""A decoder as the model counts it: built from the same records of layers that the analytical model sizes.

Hidden states between layers are split over Y and replicated over X, so that residuals need no communication.
"""

import torch
from torch import nn

from perfmodel.errors import UsageError
from perfmodel.launch.layers import recompute
from perfmodel.launch.layers.block import DecoderBlock, record
from perfmodel.launch.layers.norms import Norm, exact
from perfmodel.launch.layers.rotary import turns
from perfmodel.launch.layers.vocabulary import Embedding, Head
from perfmodel.launch.training.plan import MicroStep, Plan, first_sequence
from perfmodel.models import layers
from perfmodel.models.model import Model
from perfmodel.parallel.sharding import block_repeats


def build(model: Model, plan: Plan, *, padded_vocabulary: int, flash: bool = True) -> "Decoder":
    """A decoder on this rank; its parameters have no memory until `parameters.hold` allocates it.

    `padded_vocabulary` is that of `Job.padded_vocabulary`; without `flash` the scores of attention are stored.
    """
    if model.transformer is None:
        raise UsageError(f"{model.name} is not a decoder, and only decoders can be run")
    return Decoder(model, plan, padded_vocabulary=padded_vocabulary, flash=flash)


class Decoder(nn.Module):
    """Tokens and targets to the loss; `schedule` is told where a micro-step begins and ends.

    Positions are learned or rotary; `rotary` is the width of the heads.
    """

    def __init__(self, model: Model, plan: Plan, *, padded_vocabulary: int, flash: bool) -> None:
        """See `build`."""
        super().__init__()
        self.plan, self.schedule = plan, plan.schedule
        stem, body, top = ({layer.name: layer for layer in block.layers} for block in model.blocks)
        tokens, blocks = record(stem, "embedding", layers.Embedding), model.blocks[1].repeat
        self.embedding = Embedding(plan, tokens, padded=padded_vocabulary)
        first = [layer for layer in stem.values() if isinstance(layer, layers.Norm)]
        self.embedding_norm = Norm(first[0], plan.grid.y) if first else None
        self.blocks = nn.ModuleList(
            DecoderBlock(plan, body, name=f"{model.blocks[1].name}.{index}", blocks=blocks, flash=flash)
            for index in range(block_repeats(model.blocks[1], plan.grid.layout))
        )
        self.final_norm = Norm(record(top, "final norm", layers.Norm), plan.grid.y)
        head = record(top, "head", layers.Head)
        self.head = Head(plan, head, padded=padded_vocabulary, tied_to=self.embedding.table if head.tied else None)
        heads = record(body, "attention", layers.Attention)
        self.rotary = None if tokens.learned_positions else heads.head_dim

    def forward(
        self, tokens: torch.Tensor, targets: torch.Tensor, *, scale: float, step: int = 0, micro_step: int = 0
    ) -> torch.Tensor:
        """`scale` times the sum of the losses of this rank's tokens; both are (sequences, positions)."""
        hidden = self.embedding(tokens)
        if self.embedding_norm is not None:
            hidden = self.embedding_norm(hidden)
        at = self._at(hidden, step, micro_step)
        for block in self.blocks:
            if self.plan.recompute == "full":
                hidden = recompute.again(self.plan, block, hidden, at)
            else:
                hidden = block(hidden, at)
        loss: torch.Tensor = self.head(self.final_norm(hidden), targets, scale)
        return loss

    def _at(self, hidden: torch.Tensor, step: int, micro_step: int) -> MicroStep:
        """What all blocks need to know about the micro-step."""
        sequences, positions, _ = hidden.shape
        first = first_sequence(self.plan.grid, micro_batch=sequences, micro_step=micro_step)
        if self.rotary is None:
            return MicroStep(step, first)
        return MicroStep(step, first, turns(positions, self.rotary, device=hidden.device, dtype=exact(hidden.dtype)))
