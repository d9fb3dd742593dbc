"""The MLP that shows the algorithm at its least: on one rank it gives what plain torch gives, gradients included."""

import torch
from torch.nn.functional import gelu

from perfmodel.launch.layers.mlp import Mlp
from perfmodel.launch.training.groups import Grid
from perfmodel.launch.training.parameters import hold
from perfmodel.launch.training.plan import Plan
from perfmodel.parallel.layout import Layout


def test_on_one_rank_it_is_linear_layers_with_gelu_between_them():
    torch.manual_seed(1)
    plan = Plan.of(Grid.of(Layout(x=1, y=1, z=1, data=1)))
    layers = Mlp(plan, (6, 8, 4), bias=False)
    hold(layers, device=torch.device("cpu"), dtype=torch.float64)
    first, second = torch.randn(6, 8, dtype=torch.float64), torch.randn(8, 4, dtype=torch.float64)
    for linear, weight in zip(layers.linears, (first, second), strict=True):
        linear.weight.values.data.copy_(weight.t().reshape(-1))  # outputs x inputs, as torch has them
    inputs = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    alone = inputs.detach().clone().requires_grad_()
    plan.schedule.begin()
    outputs, expected = layers(inputs), gelu(alone @ first) @ second
    outputs.sum().backward()
    plan.schedule.finish()
    expected.sum().backward()
    torch.testing.assert_close(outputs, expected)
    torch.testing.assert_close(inputs.grad, alone.grad)
