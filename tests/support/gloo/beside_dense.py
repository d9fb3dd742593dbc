"""Decoders on ranks beside the dense one: loss, final hidden states and every gradient of every rank."""

from dataclasses import dataclass, replace
from functools import cache

import torch

from gloo import dense
from gloo.case_a import cut
from perfmodel.launch.layers import decoder
from perfmodel.launch.training.groups import Grid
from perfmodel.launch.training.parameters import Weight, hold
from perfmodel.launch.training.plan import Plan
from perfmodel.models.model import Transformer
from perfmodel.parallel.choices import OVERLAPS
from perfmodel.parallel.layout import Layout

SEQUENCES, POSITIONS, VOCABULARY = 24, 6, 50  # three micro-steps of a sequence for each of 8 ranks
_GPT = Transformer(
    layers=2, hidden=64, heads=8, vocabulary=VOCABULARY, sequence=POSITIONS, feed_forward=128, learned_positions=8
)
_LLAMA = Transformer(
    layers=2,
    hidden=64,
    heads=16,
    vocabulary=VOCABULARY,
    sequence=POSITIONS,
    kv_heads=8,
    feed_forward=96,
    gated=True,
    rms_norm=True,
    bias=False,
    tied=False,
)
# Every size but the vocabulary is a multiple of 8, so that 8 ranks can split it along any axis.
SHAPES = {
    "gpt": _GPT,
    "llama": _LLAMA,
    "gpt, head of its own": replace(_GPT, tied=False, head_bias=True),
    "llama, tied": replace(_LLAMA, tied=True, qkv_bias=True),
    "four norms": replace(_LLAMA, norms=4, query_key_norm=True, head_dim=6),
    "one norm": replace(_GPT, norms=1, learned_positions=0, embedding_norm=True),
}
# Weights as small as training starts from leave attention almost even, and its gradients near nothing.
_LARGER = 4.0


@dataclass(frozen=True)
class Case:
    """One run; `sizes` are x, y, z, data."""

    sizes: tuple
    placement: int = 0
    shape: str = "gpt"
    dtype: str = "float64"
    micro_steps: int = 1
    recompute: str = "none"
    weight_cache: str = "none"
    overlap: tuple = OVERLAPS
    flash: bool = True
    dropout: float = 0.0
    autocast: bool = False

    @property
    def compared(self):
        """The format that the dense model is run in."""
        return "float32" if self.dtype == "bfloat16" else self.dtype


def deviations(rank, cases):
    """For each case what deviates most from the dense model on this rank, relative: (deviation, name)."""
    grid_of = cache(lambda sizes, placement: Grid.of(Layout.of(sizes, placement=placement), rank))
    return [_deviation(grid_of(case.sizes, case.placement), case) for case in cases]


def built(grid, case):
    """(model, its flat tensors), with the parameters of the dense model."""
    overlap = frozenset(case.overlap)
    plan = Plan.of(grid, overlap=overlap, weight_cache=case.weight_cache, recompute=case.recompute)
    plan = replace(plan, dropout=case.dropout)
    rows = 4 * grid.xy.size
    padded = -(-VOCABULARY // rows) * rows
    dtype = getattr(torch, case.dtype)
    model = decoder.build(SHAPES[case.shape].model("tiny"), plan, padded_vocabulary=padded, flash=case.flash)
    flat = hold(model, device=torch.device("cpu"), dtype=dtype)
    parameters = _dense(case.shape, case.compared)[2]
    for held in flat.held:
        if isinstance(held, Weight):
            held.values.data.mul_(_LARGER)
            off = _relative(held.values.data, parameters, held.piece)
            assert off <= torch.finfo(dtype).eps, f"{held.piece.name} starts otherwise"
        else:
            held.values.data.copy_(_shard(held.piece, parameters))
    return model, flat


@cache
def _dense(shape, dtype):
    """Tokens, targets, parameters, and (loss, hidden states, gradients) of the dense model."""
    generator = torch.Generator().manual_seed(1)
    tokens, targets = torch.randint(VOCABULARY, (2, SEQUENCES, POSITIONS), generator=generator)
    parameters = dense.start(SHAPES[shape], getattr(torch, dtype), larger=_LARGER)
    return tokens, targets, parameters, dense.gradients(SHAPES[shape], parameters, tokens, targets)


def outcomes(rank, cases):
    """For each case (loss, gradient of the final norm's scale added up)."""
    return [_outcome(Grid.of(Layout.of(case.sizes, placement=case.placement), rank), case) for case in cases]


def evaluations(rank, cases):
    """For each case the losses (trained, evaluated, trained) of one model, which nothing changes between."""
    return [_evaluated(Grid.of(Layout.of(case.sizes, placement=case.placement), rank), case) for case in cases]


def _evaluated(grid, case):
    tokens, targets, _, _ = _dense(case.shape, case.compared)
    model, flat = built(grid, case)
    share, found = _share(grid, torch.stack((tokens, targets)), 1, 0), []
    for training in (True, False, True, True):
        flat.clear()
        model.schedule.begin()
        with torch.set_grad_enabled(training):
            loss = model(*share, scale=1.0)
        if training:
            loss.backward()
        model.schedule.finish()
        flat.complete()
        found.append((loss.item(), flat.gradient.norm().item()))
    return found


def _outcome(grid, case):
    _, flat, loss = _passed(grid, case)
    scale = next(held.gradient for held in flat.held if held.piece.name == "final norm.scale").sum()
    grid.y.all_reduce(scale).wait()
    return loss.item(), scale.item()


def _passed(grid, case):
    """(final hidden states, flat tensors with the summed gradient, loss) of one step's forward and backward passes."""
    tokens, targets, _, _ = _dense(case.shape, case.compared)
    model, flat = built(grid, case)
    seen, loss = [], torch.zeros((), dtype=flat.gradient.dtype)
    model.final_norm.register_forward_hook(lambda _, __, outputs: seen.append(outputs.detach()))
    flat.clear()
    for micro_step in range(case.micro_steps):
        model.schedule.begin()
        share = _share(grid, torch.stack((tokens, targets)), case.micro_steps, micro_step)
        with torch.autocast("cpu", torch.bfloat16, enabled=case.autocast):
            part = model(*share, scale=1 / tokens.numel(), micro_step=micro_step)
        part.backward()
        loss += part.detach()
    model.schedule.finish()
    flat.complete()
    _sum(grid, flat, loss)
    return torch.cat(seen), flat, loss


def _deviation(grid, case):
    _, _, _, (loss, hidden, gradients) = _dense(case.shape, case.compared)
    found_hidden, flat, found_loss = _passed(grid, case)
    assert torch.isfinite(flat.gradient).all(), "NaN compares as equal to anything"
    wanted = torch.cat([_share(grid, hidden[None], case.micro_steps, one)[0] for one in range(case.micro_steps)])
    difference = (found_hidden - grid.y.part(wanted, -1)).abs().max() / hidden.abs().max()
    found = [(abs(found_loss / loss - 1).item(), "loss"), (difference.item(), "hidden states")]
    return max(found + [(_relative(held.gradient, gradients, held.piece), held.piece.name) for held in flat.held])


def _share(grid, whole, micro_steps, micro_step):
    """This rank's sequences, the second dimension: micro-steps outermost, then data, then Z."""
    return grid.z.part(grid.replicas.part(whole.chunk(micro_steps, 1)[micro_step], 1), 1)


def _sum(grid, flat, loss):
    """What a training step sums, with plain collectives."""
    grid.z.all_reduce(flat.gradient[flat.section("sharded").stop :]).wait()
    grid.x.all_reduce(flat.gradient[flat.section("partial")]).wait()
    grid.replicas.all_reduce(flat.gradient).wait()
    grid.z.all_reduce(loss).wait()
    grid.replicas.all_reduce(loss).wait()


def _shard(piece, whole):
    """This rank's part of a dense parameter; rows of padding are zero."""
    padded = torch.zeros(piece.rows, piece.columns, dtype=whole[piece.name].dtype)
    padded[: len(whole[piece.name])] = whole[piece.name]
    return cut(piece, padded)


def _relative(mine, whole, piece):
    """Largest difference on this rank over the largest element of the whole parameter."""
    return ((mine - _shard(piece, whole)).abs().max() / whole[piece.name].abs().max()).item()
