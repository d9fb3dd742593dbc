"""Residual blocks of a U-Net on ranks give what torch's own convolutions give on one process."""

import pytest
import torch

from gloo.images import deviations
from gloo.spawn import on_ranks
from perfmodel.errors import UsageError
from perfmodel.launch.layers.convolution import Convolution, GroupNorm
from perfmodel.launch.training.groups import Axis, Grid
from perfmodel.launch.training.plan import Plan
from perfmodel.models.layers import Linear, Norm
from perfmodel.parallel.enumeration import placed
from perfmodel.parallel.layout import Layout

WIDTHS = [(16, 16, 3), (32, 16, 3), (16, 32, 1)]


def test_outputs_and_all_gradients_of_a_residual_block_are_those_of_plain_torch():
    layouts = placed(4, (0,))
    grids = [layouts.take(row) for row in range(len(layouts.x))]
    cases = [((one.x, one.y, one.z, one.data), *widths) for one in grids for widths in WIDTHS]
    for case, *of_ranks in zip(cases, *on_ranks(4, deviations, cases), strict=True):
        for found in of_ranks:
            assert max(found.values()) < 1e-12, (case, found)


def test_what_an_axis_would_cut_or_the_size_would_not_survive_is_refused():
    plan = Plan.of(Grid.of(Layout(x=1, y=1, z=1, data=1)))
    with pytest.raises(UsageError, match="kernel of 2; wanted an odd one"):
        Convolution(plan, Linear(name="convolution", inputs=4, outputs=4, kernel=2))
    with pytest.raises(UsageError, match="x 8 cannot split 16 channels in 4 groups evenly"):
        GroupNorm(Norm(name="norm", width=16), Axis(name="x", size=8), groups=4)


def test_a_kernel_of_one_is_a_linear_layer():
    plan, record = Plan.of(Grid.of(Layout(x=1, y=1, z=1, data=1))), Linear(name="convolution", inputs=4, outputs=6)
    layer = Convolution(plan, record)
    layer.weight.place(torch.randn(24), torch.zeros(24))
    layer.bias.place(torch.randn(6), torch.zeros(6))
    images = torch.randn(2, 3, 3, 4)
    expected = images @ layer.weight.values.view(6, 4).T + layer.bias.values
    assert torch.allclose(layer(images), expected, atol=1e-6)
