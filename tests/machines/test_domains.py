"""Which groups stay inside a node."""

import numpy as np
import pytest

from perfmodel.machines.domains import contained


@pytest.mark.parametrize("domain", [1, 4, 6, 8])
@pytest.mark.parametrize("inner", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [2, 3, 4, 8])
def test_a_group_is_contained_where_none_of_its_blocks_straddles_a_boundary(domain, inner, size):
    block = inner * size
    starts = np.arange(0, 24 * domain, block)
    whole = np.all(starts // domain == (starts + block - 1) // domain)
    assert bool(contained(inner=inner, size=size, domain=domain)) == whole


def test_a_job_inside_one_domain_crosses_nothing():
    assert contained(inner=1, size=3, domain=8, gpus=6)
    assert not contained(inner=1, size=3, domain=8, gpus=9)
    many = contained(inner=np.array([1, 1, 2]), size=np.array([3, 4, 8]), domain=8, gpus=np.array([6, 16, 16]))
    assert many.tolist() == [True, True, False]
