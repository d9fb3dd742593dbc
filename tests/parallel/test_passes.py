"""How often passes run and weights are gathered, by recomputation and weight cache."""

import numpy as np
import pytest

from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.passes import Passes

# All-gathers of a block's weights in a micro-step: for every pass, for every forward pass, once.
GATHERS = {"none": (2, 1, 1), "selective": (2, 1, 1), "full": (3, 2, 1), "operations": (2, 1, 1)}


@pytest.mark.parametrize("recompute", RECOMPUTES)
@pytest.mark.parametrize("cache", WEIGHT_CACHES)
def test_gathers_and_forward_passes_are_those_of_the_mode(recompute, cache):
    mode = {"recompute": RECOMPUTES.index(recompute), "weight_cache": WEIGHT_CACHES.index(cache)}
    found = Passes.of(Layout(x=1, y=1, z=4, data=1, **mode))
    assert found.gathers == GATHERS[recompute][WEIGHT_CACHES.index(cache)]
    assert found.forward == (2 if recompute == "full" else 1)
    assert found.gathers_once == GATHERS["none"][WEIGHT_CACHES.index(cache)]


def test_modes_of_many_layouts_are_arrays():
    ones = np.ones(3, dtype=int)
    many = Layout(x=ones, y=ones, z=ones, data=ones, recompute=np.array([0, 1, 2]), weight_cache=np.array([2, 0, 1]))
    assert Passes.of(many).gathers.tolist() == [1, 2, 2]
