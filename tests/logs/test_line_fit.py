"""The line through times of calls: what made them is found again, whatever a few of them say."""

import random

import numpy as np
import pytest

from perfmodel.logs import nccl_tests
from perfmodel.logs.combined import combine
from perfmodel.logs.line_fit import fit
from perfmodel.logs.samples import Told
from perfmodel.machines import profiles
from synthetic_logs import Truth
from synthetic_logs import nccl_tests as text_of

TRUTHS = (
    Truth("all_gather", 2, 4, 40e-6, 70e9),
    Truth("all_gather", 4, 4, 65e-6, 68e9),
    Truth("all_reduce", 8, 4, 120e-6, 50e9),
    Truth("reduce_scatter", 4, 4, 55e-6, 66e9),
)
PERLMUTTER = profiles.load("perlmutter")
SENT = np.geomspace(1e3, 1e9, 25)


def fitted(texts):
    logs = [nccl_tests.read(text, f"{place}.log", Told()) for place, text in enumerate(texts)]
    return combine(logs, PERLMUTTER, "LOGS").parts


def noisy(seed, *, share=0.1, gross=0.05):
    """Ten percent of noise, and one time in twenty that is out by a factor."""
    chance = random.Random(seed)  # noqa: S311
    return lambda: chance.choice([0.1, 8, 20]) if chance.random() < gross else max(0.1, chance.gauss(1, share))


def test_four_exact_logs_give_back_what_made_them():
    for part, truth in zip(fitted(map(text_of, TRUTHS)), TRUTHS, strict=True):
        assert part.line.alpha == pytest.approx(truth.alpha, rel=0.01)
        assert part.line.beta == pytest.approx(truth.beta, rel=0.01)
        assert part.outliers == ()


@pytest.mark.parametrize("seed", range(5))
def test_noise_and_gross_outliers_do_not_spoil_four_logs_of_eight_repeats(seed):
    noise = noisy(seed)
    texts = [text_of(truth, noise=noise, cycles=8) for truth in TRUTHS]
    for part, truth in zip(fitted(texts), TRUTHS, strict=True):
        assert part.line.alpha == pytest.approx(truth.alpha, rel=0.05)
        assert part.line.beta == pytest.approx(truth.beta, rel=0.05)


def test_outliers_are_named_with_their_line():
    chosen = {7: 5.0, 20: 0.2}
    times = 30e-6 + SENT / 60e9
    times[list(chosen)] *= list(chosen.values())
    assert fit(SENT, times).outliers == tuple(chosen)


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    chance = np.random.default_rng(5)
    held = np.zeros(2)
    for _ in range(300):
        line = fit(np.repeat(SENT, 4), (30e-6 + np.repeat(SENT, 4) / 60e9) * chance.lognormal(0, 0.1, 4 * len(SENT)))
        held += (
            line.alpha_interval[0] <= 30e-6 <= line.alpha_interval[1],
            line.beta_interval[0] <= 60e9 <= line.beta_interval[1],
        )
    assert (held / 300 > 0.90).all()
    assert (held / 300 < 0.99).all()


def test_large_sizes_alone_leave_the_start_open_and_say_so():
    chance = np.random.default_rng(1)
    sent = np.geomspace(1e9, 4e9, 8)
    line = fit(sent, (30e-6 + sent / 60e9) * chance.lognormal(0, 0.05, 8))
    assert line.alpha_interval[0] == 0.0
    assert line.alpha_interval[1] > 100e-6


def test_one_size_gives_no_line_and_two_points_no_interval():
    assert fit(np.array([1e6, 1e6]), np.array([1e-4, 2e-4])) is None
    line = fit(np.array([1e6, 1e8]), np.array([1e-4, 2e-3]))
    assert (line.alpha_interval, line.beta_interval) == (None, None)
    assert line.alpha + 1e8 / line.beta == pytest.approx(2e-3)


def test_half_of_the_points_may_be_anything():
    times = 30e-6 + SENT / 60e9
    times[::3] *= 30
    line = fit(SENT, times)
    assert line.alpha == pytest.approx(30e-6, rel=0.01)
    assert line.beta == pytest.approx(60e9, rel=0.01)
