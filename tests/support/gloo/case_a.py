"""Case A on ranks: the layers of a GELU MLP, weights and inputs cut out of matrices that every rank draws."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import gelu

from perfmodel.launch.layers.linear import Linear
from perfmodel.launch.training.groups import Grid
from perfmodel.launch.training.parameters import hold
from perfmodel.launch.training.plan import Plan
from perfmodel.models.layers import Linear as Layer
from perfmodel.parallel.layout import Layout


def case_a(rank, grids):
    """Norms of output, input gradient and weight gradients for each (x, y, z), gathered on every rank."""
    torch.manual_seed(1234)
    first, second = torch.randn(4096, 1024) * 0.02, torch.randn(1024, 4096) * 0.02
    inputs, gradient = torch.randn(512, 1024), torch.randn(512, 1024) * 0.01
    return [_norms(Grid.of(Layout.of((*sizes, 1)), rank), (first, second), inputs, gradient) for sizes in grids]


def _norms(grid, weights, inputs, gradient):
    plan = Plan.of(grid)
    layers = (
        Linear(plan, Layer(name="up", inputs=1024, outputs=4096, bias=False)),
        Linear(plan, Layer(name="down", inputs=4096, outputs=1024, transposed=True, bias=False)),
    )
    hold(nn.ModuleList(layers), device=torch.device("cpu"), dtype=torch.float32)
    for layer, whole in zip(layers, weights, strict=True):
        layer.weight.values.data.copy_(cut(layer.weight.piece, whole))
    mine = grid.y.part(grid.z.part(inputs, 0), 1).clone().requires_grad_()
    plan.schedule.begin()
    outputs = layers[1](gelu(layers[0](mine)))
    outputs.backward(grid.y.part(grid.z.part(gradient, 0), 1))
    plan.schedule.finish()
    return {
        "y": (whole := _joined(grid, outputs.detach())).norm().item(),
        "first": whole[0, 0].item(),
        "dX": _joined(grid, mine.grad).norm().item(),
        "dW1": joined(layers[0].weight).norm().item(),
        "dW2": joined(layers[1].weight).norm().item(),
    }


def cut(piece, whole):
    """This rank's shard of a whole matrix."""
    (row, column), (rows, columns) = piece.corner, piece.block
    flat = whole[row : row + rows, column : column + columns].reshape(-1)
    return flat[piece.offset : piece.offset + piece.elements]


def joined(weight):
    """The whole gradient of a weight, put together from all ranks."""
    piece, whole = weight.piece, torch.zeros(weight.piece.rows, weight.piece.columns)
    (row, column), (rows, columns) = piece.corner, piece.block
    flat = torch.zeros(rows * columns)
    flat[piece.offset : piece.offset + piece.elements] = weight.gradient
    whole[row : row + rows, column : column + columns] = flat.view(rows, columns)
    dist.all_reduce(whole)
    return whole


def _joined(grid, part):
    """What is split over Z (rows) and Y (columns), a copy over X."""
    rows = [torch.empty_like(part) for _ in range(grid.y.size)]
    if grid.y.size > 1:
        dist.all_gather(rows, part.contiguous(), group=grid.y.group)
    else:
        rows = [part]
    wide = torch.cat(rows, 1)
    return grid.z.all_gather(wide)[0] if grid.z.size == 1 else _waited(*grid.z.all_gather(wide))


def _waited(whole, pending):
    pending.wait()
    return whole
