"""Statistics of norms are those of all features, however many ranks split them and however large the mean is."""

import pytest
import torch

from gloo.spawn import on_ranks
from gloo.split_norms import errors
from perfmodel.launch.layers.norms import Norm, fused
from perfmodel.launch.training.parameters import hold
from perfmodel.models import layers

MEANS = [0.0, 1e4]
ULP = 2.0**-10  # between neighbouring numbers in fp32 at 1e4


def test_a_large_mean_costs_no_more_than_the_last_digit_of_the_inputs():
    for of_rank in on_ranks(4, errors, MEANS):
        small_layer, small_rms, large_layer, large_rms = of_rank
        assert max(*small_layer, *small_rms) < 1e-6
        assert max(large_layer) < 2 * ULP  # the mean is rounded on each rank, then as a whole
        assert max(large_rms) < 1e-6


@pytest.mark.parametrize("shifted", [True, False])
def test_torchs_own_kernels_give_the_same_where_nothing_is_split(shifted):
    norm = Norm(layers.Norm(name="norm", width=48, bias=shifted))
    hold(norm, device=torch.device("cpu"), dtype=torch.float64)
    for values in norm.parameters():
        values.data += torch.linspace(-0.5, 0.5, 48)
    inputs, gradient = torch.randn(2, 7, 48, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = [inputs.clone().requires_grad_() for _ in range(2)]
    outputs = norm(found[0]), fused(found[1], norm.scale(), norm.shift() if norm.shift is not None else None)
    for one in outputs:
        one.backward(gradient)
    torch.testing.assert_close(*outputs)
    torch.testing.assert_close(found[0].grad, found[1].grad)
