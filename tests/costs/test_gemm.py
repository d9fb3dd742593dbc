"""Time of a matrix product: worked values at each of its limits, and what must hold whatever its shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines import machine
from perfmodel.costs.gemm import Chip, gemm, linear, waves

LAUNCH = 4e-6
A100 = Chip(gemm=271.2e12, memory=1.73e12, units=108)
SIDES = st.integers(64, 30_000)


def test_one_tile_on_one_unit_is_one_wave():
    assert waves(m=256, n=128, k=1, compute_units=1) == 1


def test_the_idle_units_of_the_last_wave_count_less_the_deeper_the_product():
    tiles = 109 / 108  # of 256 x 128: one more than there are units
    for k, idle in ((8192, 1 / 2), (24576, 1 / 4)):
        expected = tiles + (2 - tiles) * idle
        assert waves(m=256 * 109, n=128, k=k, compute_units=108) == pytest.approx(expected, rel=1e-12)


def test_tiles_are_laid_whichever_way_needs_fewer():
    assert waves(m=128, n=256, k=64, compute_units=1) == waves(m=256, n=128, k=64, compute_units=1) == 1


def test_a_thin_product_takes_as_long_as_its_bytes():
    chip = Chip(gemm=1e15, memory=1e12, units=0)
    moved = 2 * (1000 * 1 + 1 * 1000) + 2 * 1000 * 1000
    assert gemm(m=1000, n=1000, k=1, chip=chip) == pytest.approx(moved / 1e12 + LAUNCH, rel=1e-12)
    assert gemm(m=1000, n=1000, k=1, chip=chip, result=4) - gemm(m=1000, n=1000, k=1, chip=chip) == pytest.approx(2e-6)


def test_without_units_arithmetic_runs_at_the_rate():
    chip = Chip(gemm=1e12, memory=1e15, units=0)
    assert gemm(m=512, n=256, k=1024, chip=chip) == pytest.approx(2 * 512 * 256 * 1024 / 1e12 + LAUNCH, rel=1e-12)


@given(SIDES, SIDES, SIDES, st.sampled_from([1.0, 64.0, 108.0, 0.0]))
def test_no_product_is_faster_than_the_rate_of_large_ones(m, n, k, units):
    chip = Chip(gemm=271.2e12, memory=1.73e12, units=units)
    assert 2.0 * m * n * k / gemm(m=m, n=n, k=k, chip=chip) < chip.gemm


@given(SIDES, SIDES, SIDES, st.integers(1, 4096))
def test_more_to_multiply_is_never_faster(m, n, k, more):
    least = gemm(m=m, n=n, k=k, chip=A100)
    for larger in ({"m": m + more}, {"n": n + more}, {"k": k + more}):
        assert gemm(**{"m": m, "n": n, "k": k, **larger}, chip=A100) >= least * (1 - 1e-12)


@given(SIDES, SIDES, SIDES)
def test_the_result_may_be_laid_either_way(m, n, k):
    assert gemm(m=m, n=n, k=k, chip=A100) == pytest.approx(gemm(m=n, n=m, k=k, chip=A100), rel=1e-12)


def test_a_row_of_many_is_the_single_call():
    rows, widths = np.array([64, 4096, 8192, 100_000]), np.array([1024, 53_248, 128, 7168])
    many = gemm(m=rows, n=widths, k=4096, chip=A100)
    assert many.tolist() == [float(gemm(m=m, n=n, k=4096, chip=A100)) for m, n in zip(rows, widths, strict=True)]


def test_a_layer_is_three_products_and_the_worst_mode_slows_the_input_gradient():
    even = linear(rows=4096, inputs=4096, outputs=4096, chip=A100)
    assert even.forward == even.input_gradient == even.weight_gradient
    assert even.backward == 2 * even.forward
    slow = Chip(gemm=271.2e12, memory=1.73e12, units=108, worst_mode=3.0)
    assert linear(rows=4096, inputs=4096, outputs=4096, chip=slow).backward == 4 * even.forward


def test_a_chip_sustains_the_usual_shares_of_a_device_that_says_nothing():
    device = machine().device
    chip = Chip.of(device, gemm=80e12, host=1e-6)
    assert (chip.gemm, chip.memory, chip.units) == (0.93 * 80e12, 0.85 * 2e12, 0.0)
