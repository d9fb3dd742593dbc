"""Steps of training on ranks beside the same steps of the dense decoder in plain torch."""

from functools import cache

import torch

from gloo import dense
from gloo.case_a import cut
from perfmodel.launch.layers import decoder
from perfmodel.launch.training.groups import Grid
from perfmodel.launch.training.parameters import copies, hold
from perfmodel.launch.training.plan import Plan
from perfmodel.launch.training.tokens import Drawn, batches
from perfmodel.launch.training.training import Trainer, Training
from perfmodel.models.model import Transformer
from perfmodel.parallel.layout import Layout

BATCH, STEPS, SEQUENCE = 24, 3, 5
SHAPES = {
    "gpt": Transformer(layers=1, hidden=32, heads=8, vocabulary=50, sequence=SEQUENCE, learned_positions=SEQUENCE),
    "llama": Transformer(
        layers=1, hidden=32, heads=8, vocabulary=50, sequence=SEQUENCE, kv_heads=4, feed_forward=48,
        gated=True, rms_norm=True, bias=False, tied=False, query_key_norm=True, head_bias=True,
    ),
}  # fmt: skip


def settings(clip):
    """Three steps move every weight by a good part of its own size.

    With an `eps` of the size of gradients AdamW sees their scale, and so clipping. With a small one it divides each by
    its own size: those of key biases, which are 0 but for rounding (softmax does not see a shift), would become steps.
    """
    return Training(learning_rate=0.02, eps=0.001, clip=clip)


def trainer(name, grid, dtype, *, accumulation=1, clip=None, overlap=()):
    """One that starts as the dense model does."""
    plan, shape = Plan.of(grid, overlap=frozenset(overlap)), SHAPES[name]
    multiple = 4 * grid.x.size * grid.y.size
    padded = -(-shape.vocabulary // multiple) * multiple
    model = decoder.build(shape.model(name), plan, padded_vocabulary=padded)
    flat = hold(model, device=torch.device("cpu"), dtype=dtype, seed=None)
    for held, values in zip(flat.held, flat.master.split([held.piece.elements for held in flat.held]), strict=True):
        start = first(name, flat.master.dtype)[held.piece.name]
        values.copy_(cut(held.piece, padded_with_zeros(start, held.piece.rows)))
    flat.publish()
    # Buckets smaller than the model, so that there are some.
    return Trainer(model, flat, plan, settings(clip), accumulation, bucket=1000)


def padded_with_zeros(matrix, rows):
    """A vocabulary's rows are padded."""
    return torch.cat((matrix, matrix.new_zeros(rows - len(matrix), matrix.shape[1])))


@cache
def first(name, dtype):
    """What training starts from."""
    return dense.start(SHAPES[name], dtype, larger=5.0)


@cache
def reference(name, dtype, clip):
    """(losses, gradient norms, parameters at the end) of the dense model with torch's AdamW."""
    chosen, shape = settings(clip), SHAPES[name]
    parameters = {one: start.clone().requires_grad_() for one, start in first(name, dtype).items()}
    decayed = [one for key, one in parameters.items() if key.endswith(".weight")]
    others = [one for key, one in parameters.items() if not key.endswith(".weight")]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": chosen.weight_decay}, {"params": others, "weight_decay": 0.0}],
        lr=chosen.learning_rate, betas=chosen.betas, eps=chosen.eps,
    )  # fmt: skip
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        sequences = source(name).read(step * BATCH, BATCH)
        loss, _ = dense.loss(shape, parameters, sequences[:, :-1], sequences[:, 1:])
        loss.backward()
        norm = torch.linalg.vector_norm(torch.stack([one.grad.norm() for one in parameters.values()]))
        for one in parameters.values():
            one.grad *= min(1.0, clip / norm) if clip else 1.0
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms, {key: one.detach() for key, one in parameters.items()}


def source(name):
    """Drawn tokens."""
    return Drawn(SHAPES[name].vocabulary, SEQUENCE)


def whole(held, values, grid):
    """A parameter put together from all ranks, padding included; copies are averaged."""
    piece = held.piece
    (row, column), (rows, columns) = piece.corner, piece.block
    flat = torch.zeros(rows * columns, dtype=values.dtype)
    flat[piece.offset : piece.offset + piece.elements] = values
    found = torch.zeros(piece.rows, piece.columns, dtype=values.dtype)
    found[row : row + rows, column : column + columns] = flat.view(rows, columns)
    for axis in (grid.xy, grid.z, grid.replicas):
        axis.all_reduce(found).wait()
    return found / (copies(grid, held.section) * grid.replicas.size)


def deviations(rank, cases):
    """For each case, the largest relative difference in losses, gradient norms and weights of three steps."""
    return [
        _deviation(Grid.of(Layout.of(sizes, placement=placement), rank), *rest) for sizes, placement, *rest in cases
    ]


def _deviation(grid, name, dtype_name, accumulation, clip, overlap):
    dtype = getattr(torch, dtype_name)
    losses, norms, parameters = reference(name, dtype, clip)
    mine = trainer(name, grid, dtype, accumulation=accumulation, clip=clip, overlap=overlap)
    worst = {"loss": 0.0, "norm": 0.0, "weights": 0.0}
    for step, (loss, norm) in enumerate(zip(losses, norms, strict=True)):
        outcome = mine.step(step, batches(source(name), grid, batch=BATCH, accumulation=accumulation, step=step))
        worst["loss"] = max(worst["loss"], abs(outcome.loss.item() / loss - 1))
        worst["norm"] = max(worst["norm"], abs(outcome.gradient_norm.item() / norm - 1))
    for held in mine.flat.held:
        found = whole(held, held.values.detach(), grid)
        expected = padded_with_zeros(parameters[held.piece.name], held.piece.rows)
        worst["weights"] = max(worst["weights"], ((found - expected).norm() / expected.norm()).item())
    return worst


def sent(rank, sizes, overlaps):
    """For each: bytes over data until the last backward pass has ended, by (operation, axis) after it, of sections."""
    return [_sent(Grid.of(Layout.of(sizes), rank), overlap) for overlap in overlaps]


def _sent(grid, overlap):
    mine = trainer("llama", grid, torch.float32, accumulation=3, clip=0.05, overlap=overlap)
    mine.gradients.begin()
    mine._passes(0, batches(source("llama"), grid, batch=BATCH, accumulation=3, step=0))
    early = grid.ledger.totals().get(("all-reduce", "data"), (0, 0))[1]
    before = grid.ledger.calls.copy()
    mine.gradients.finish()
    mine.gradients.norm()
    after = {key: size for key, (_, size) in grid.ledger.since(before).totals().items()}
    return early, after, {name: 4 * (end - start) for name, start, end in mine.flat.sections}
