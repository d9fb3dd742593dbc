"""One number fitted to one published step of a machine: what it is, and what it is held against."""

from functools import cache

import pytest

from perfmodel.errors import PerfmodelError
from perfmodel.validation import published


@cache
def fits():
    return published.fits()


@cache
def found():
    return published.validate()


def test_a_root_is_where_a_rising_function_is_zero():
    assert published.root(lambda x: x**3 - 0.2, 0.0, 1.0) == pytest.approx(0.2 ** (1 / 3), abs=0.0005)


@pytest.mark.parametrize("always", [1.0, -1.0])
def test_where_nothing_fits_it_is_said(always):
    with pytest.raises(PerfmodelError, match="nothing from 0 to 1 fits"):
        published.root(lambda _: always, 0.0, 1.0)


def test_one_run_a_machine_is_fitted_and_it_is_the_largest_that_is_published():
    assert [fit.row["machine"] for fit in fits()] == ["perlmutter", "frontier"]
    for fit in fits():
        same = [
            row for row in published.rows() if row["check"] == fit.row["check"] and row["machine"] == fit.row["machine"]
        ]
        assert int(fit.row["gpus"]) == max(int(row["gpus"]) for row in same)


def test_the_fitted_run_is_met_by_its_fit():
    for fit in fits():
        assert 0 < fit.contention < 1
        assert published.predicted(fit.row, fit.contention).error == pytest.approx(0, abs=0.001)


def test_no_figure_of_the_fitted_runs_is_scored():
    for one, after in zip(found(), published.refitted(found(), fits()), strict=True):
        fitted_run = any(
            one.row["machine"] == fit.row["machine"] and one.row["published"] == fit.row["published"] for fit in fits()
        )
        assert not (fitted_run and after)


def test_only_steps_on_a_machine_with_a_fit_are_predicted_anew():
    anew = {one.row["check"] for one, after in zip(found(), published.refitted(found(), fits()), strict=True) if after}
    assert anew == {"batch time", "overlap ladder", "nanoGPT", "batch time (LitGPT)", "overlap ladder (LitGPT)"}


def test_what_overlaps_nothing_on_a_given_grid_is_not_changed_by_a_fit():
    one = published.validate("nanoGPT")
    assert [after.predicted for after in published.refitted(one, fits())] == [one[0].predicted]
