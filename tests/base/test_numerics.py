"""Arithmetic that knows nothing of the subject, against plain loops and scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perfmodel.numerics import divisors, isotonic, kendall, ranks, spearman

NUMBERS = st.lists(st.integers(-5, 5).map(float), min_size=2, max_size=12)


@given(st.integers(1, 3000))
def test_divisors_are_all_that_divide(number):
    assert divisors(number) == [one for one in range(1, number + 1) if number % one == 0]


def test_a_large_power_of_two_has_few_divisors():
    assert divisors(2**40) == [2**power for power in range(41)]


@given(NUMBERS)
def test_what_ascends_never_falls_and_stays_as_it_is(values):
    found = isotonic(np.array(values))
    assert np.all(np.diff(found) >= 0)
    assert isotonic(found).tolist() == found.tolist()
    assert isotonic(np.sort(values)).tolist() == sorted(values)


def test_a_gross_outlier_changes_nothing_but_itself():
    times = np.arange(1.0, 10.0)
    disturbed = times.copy()
    disturbed[3] = 1e6
    assert (isotonic(disturbed) != times).sum() <= 1


@given(NUMBERS)
def test_equal_values_share_the_mean_of_their_ranks(values):
    assert ranks(np.array(values)).tolist() == stats.rankdata(values).tolist()


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=12))
def test_correlations_of_ranks_are_those_of_scipy(pairs):
    one, other = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    if min(np.ptp(one), np.ptp(other)) == 0:
        return  # without an order there is no correlation
    assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other).statistic, abs=1e-12)
    assert kendall(one, other) == pytest.approx(stats.kendalltau(one, other).statistic, abs=1e-12)
