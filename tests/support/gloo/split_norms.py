"""Norms of rows whose features ranks of Y split, beside torch's own in fp64."""

import torch
from torch.nn.functional import layer_norm, rms_norm

from perfmodel.launch.layers.norms import Norm
from perfmodel.launch.training.groups import Grid
from perfmodel.launch.training.parameters import hold
from perfmodel.models import layers
from perfmodel.parallel.layout import Layout

WIDTH = 64


def errors(rank, means):
    """For each mean of the inputs, LayerNorm then RMSNorm: largest error of outputs and of the inputs' gradient."""
    y = Grid.of(Layout(x=1, y=4, z=1, data=1), rank).y
    return [_errors(y, mean, shifted) for mean in means for shifted in (True, False)]


def _errors(y, mean, shifted):
    generator = torch.Generator().manual_seed(3)
    inputs, gradient = torch.randn(2, 16, WIDTH, generator=generator)
    inputs = inputs + mean
    norm = Norm(layers.Norm(name="norm", width=WIDTH, bias=shifted), y)
    hold(norm, device=torch.device("cpu"), dtype=torch.float32)
    mine, exact = y.part(inputs, 1).clone().requires_grad_(), inputs.double().requires_grad_()
    outputs = norm(mine)
    outputs.backward(y.part(gradient, 1))
    wanted = (layer_norm if shifted else rms_norm)(exact, (WIDTH,), eps=1e-5)
    wanted.backward(gradient.double())
    found = (outputs.detach(), y.part(wanted.detach(), 1)), (mine.grad, y.part(exact.grad, 1))
    return [(one - other).abs().max().item() for one, other in found]
