"""Steps of training on ranks beside the same steps of a dense model: a stack of linear layers on numbers."""

import torch
from torch import nn
from torch.nn.functional import gelu

from perfmodel import layers
from perfmodel.launch.groups import Grid
from perfmodel.launch.linear import Linear
from perfmodel.launch.parameters import copies, hold
from perfmodel.launch.plan import Plan
from perfmodel.launch.training import Trainer, Training
from perfmodel.layout import Layout

WIDTH, MIDDLE, ROWS = 16, 32, 48
RECORDS = [
    layers.Linear("up", WIDTH, MIDDLE),
    layers.Linear("down", MIDDLE, WIDTH, transposed=True),
    layers.Linear("again up", WIDTH, MIDDLE, bias=False),
    layers.Linear("again down", MIDDLE, WIDTH, transposed=True),
]
STEPS = 3


class Stack(nn.Module):
    """Normal and transposed layers in turn; the loss is the mean square over what a step is given as targets."""

    def __init__(self, plan):
        super().__init__()
        self.plan, self.linears = plan, nn.ModuleList(Linear(plan, record, std=0.2) for record in RECORDS)

    def forward(self, inputs, targets, *, scale, **_):
        y = self.plan.grid.y
        hidden = y.part(inputs, 1)
        for linear in self.linears:
            hidden = gelu(linear(hidden))
        mine = (hidden - y.part(targets, 1)).square().sum() * scale
        whole = mine.detach().clone()
        y.all_reduce(whole).wait()
        return mine + (whole - mine.detach())


class Dense:
    """The same in plain torch, with torch's own AdamW and clipping."""

    def __init__(self, dtype, settings):
        start = Stack(Plan.of(Grid.of(Layout(1, 1, 1, 1))))
        flat = hold(start, device=torch.device("cpu"), dtype=dtype)
        self.parameters = {
            held.piece.name: held.values.detach().reshape(held.piece.rows, held.piece.columns).clone().requires_grad_()
            for held in flat.held
        }
        weights = [one for name, one in self.parameters.items() if name.endswith("weight")]
        others = [one for name, one in self.parameters.items() if not name.endswith("weight")]
        groups = [{"params": weights, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}]
        self.clip = settings.clip
        self.optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate, betas=settings.betas, eps=settings.eps)

    def step(self, inputs, targets):
        self.optimizer.zero_grad()
        hidden = inputs
        for record in RECORDS:
            hidden = hidden @ self.parameters[f"{record.name}.weight"].T
            if record.bias:
                hidden = hidden + self.parameters[f"{record.name}.bias"].T
            hidden = gelu(hidden)
        loss = (hidden - targets).square().mean()
        loss.backward()
        norm = torch.linalg.vector_norm(torch.stack([one.grad.norm() for one in self.parameters.values()]))
        for one in self.parameters.values():
            one.grad *= min(1.0, self.clip / norm) if self.clip else 1.0
        self.optimizer.step()
        return loss.item(), norm.item()


def numbers(step, dtype):
    """Inputs and targets of a step, drawn alike on every rank."""
    generator = torch.Generator().manual_seed(step)
    return torch.randn(2, ROWS, WIDTH, generator=generator, dtype=torch.float64).to(dtype)


def rank_batches(grid, inputs, targets, accumulation):
    """This rank's rows: micro-steps are outermost, then data, then z."""
    shares = [torch.stack((inputs, targets)).chunk(accumulation, 1)[one] for one in range(accumulation)]
    return [tuple(grid.z.part(grid.data.part(share, 1), 1)) for share in shares]


def whole(held, values, grid):
    """A parameter put together from all ranks; copies are averaged."""
    piece = held.piece
    (row, column), (rows, columns) = piece.corner, piece.block
    flat = torch.zeros(rows * columns, dtype=values.dtype)
    flat[piece.offset : piece.offset + piece.elements] = values
    found = torch.zeros(piece.rows, piece.columns, dtype=values.dtype)
    found[row : row + rows, column : column + columns] = flat.view(rows, columns)
    for axis in (grid.xy, grid.z, grid.data):
        axis.all_reduce(found).wait()
    return found / (copies(grid, held.section) * grid.data.size)


def deviations(rank, cases):
    """For each case, the largest relative difference in weights, losses and gradient norms after three steps."""
    return [_deviation(Grid.of(Layout(*sizes, placement), rank), *rest) for sizes, placement, *rest in cases]


def _deviation(grid, dtype_name, accumulation, clip, overlap):
    dtype = getattr(torch, dtype_name)
    settings = Training(learning_rate=0.01, clip=clip)
    dense, plan = Dense(dtype, settings), Plan.of(grid, overlap=frozenset(overlap))
    stack = Stack(plan)
    flat = hold(stack, device=torch.device("cpu"), dtype=dtype)
    # Buckets smaller than the model, so that there are some.
    trainer = Trainer(stack, flat, plan, settings, accumulation, bucket=1000)
    worst = {"loss": 0.0, "norm": 0.0, "weights": 0.0}
    for step in range(STEPS):
        inputs, targets = numbers(step, dtype)
        loss, norm = dense.step(inputs, targets)
        outcome = trainer.step(step, rank_batches(grid, inputs, targets, accumulation))
        worst["loss"] = max(worst["loss"], abs(outcome.loss.item() / loss - 1))
        worst["norm"] = max(worst["norm"], abs(outcome.gradient_norm.item() / norm - 1))
    for held in flat.held:
        expected, found = dense.parameters[held.piece.name].detach(), whole(held, held.values.detach(), grid)
        worst["weights"] = max(worst["weights"], ((found - expected).norm() / expected.norm()).item())
    return worst
