"""Time of one ring collective."""

import numpy as np
import pytest

from perfmodel.costs.ring import all_gather, all_reduce, reduce_scatter

COLLECTIVES = [all_gather, reduce_scatter, all_reduce]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_one_rank_communicates_nothing(collective):
    assert collective(1e9, size=1, bandwidth=1e9) == 0


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_nothing_costs_nothing(collective):
    assert collective(0.0, size=8, bandwidth=1e9) == 0


@pytest.mark.parametrize(("collective", "passes"), [(all_gather, 1), (reduce_scatter, 1), (all_reduce, 2)])
def test_large_rings_send_the_buffer_once_or_twice(collective, passes):
    assert collective(1e9, size=10**6, bandwidth=1e9) == pytest.approx(passes, rel=1e-5)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_arrays_of_sizes_give_an_array_of_times(collective):
    sizes = np.array([1, 2, 4, 8])
    assert collective(1e9, size=sizes, bandwidth=1e9).tolist() == [
        collective(1e9, size=size, bandwidth=1e9) for size in sizes.tolist()
    ]


def test_the_paper_s_equations_with_numbers():
    # arXiv 2502.08145, Eqs. 1 to 3 with k n / (Gx Gy) = 12 elements of 2 bytes, m n / (Gz Gx) = 20, beta 1 B/s.
    assert all_gather(24.0, size=4, bandwidth=1.0) == (4 - 1) * 24 / 4
    assert reduce_scatter(24.0, size=4, bandwidth=1.0) == 3 / 4 * 24
    assert all_reduce(40.0, size=4, bandwidth=1.0) == 2 * 3 / 4 * 40
