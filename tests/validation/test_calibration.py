"""Calibration: known figures come back, undetermined ones are named, and what is written is what was fitted."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from perfmodel.errors import PerfmodelError, UsageError
from perfmodel.machines import profile_text, profiles
from perfmodel.sources import Source
from perfmodel.validation import (
    calibrated_profile,
    calibration,
    collectives,
    compare,
    fit_parameters,
    records,
    step_files,
)
from perfmodel.validation.calibration import calibrate, stated
from perfmodel.validation.identifiability import standard_errors, weakest
from perfmodel.validation.measured_steps import rows_of

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "runs.jsonl"
AXES = ["x", "y", "z", "data"]
HEADS = ["model", "sequence_length", *AXES, "batch_sequences", "micro_batch", "recompute", "overlap", "step_time_s"]
LARGE, SMALL = "4096,24,32,,,51200", "512,8,8,,,8192"
ALL = "all-reduce+reduce-scatter+all-gather+data"
GRIDS = [(1, 1, 4, 1), (4, 1, 1, 1), (1, 4, 1, 1), (2, 1, 2, 1), (2, 2, 1, 1), (1, 1, 1, 4), (1, 2, 1, 2)]
WIDE = [(1, 1, 16, 1), (4, 1, 4, 1), (2, 2, 4, 1), (1, 1, 4, 4), (4, 4, 1, 1), (2, 1, 8, 1), (1, 4, 2, 2)]
# Memory bandwidth is not among them: these steps say too little of it, so it stays as it is.
TRUTH = {
    "gemm": 0.8, "host-time": 1.6, "contention": 2.5,
    "network-latency": 1.7, "inside-bandwidth": 0.7, "between-bandwidth": 0.6,
}  # fmt: skip


def reading(machine, grids, models=(LARGE, SMALL)):
    """Rows of some grids that all took a second."""
    table = [
        [model, "1024", *map(str, grid), "64", "1", "none", overlap, "1"]
        for model in models
        for overlap in ("none", ALL)
        for grid in grids
    ]
    return rows_of("runs", HEADS, list(enumerate(table, start=2)), given={"machine": machine})


def rewritten(machine, factors, path):
    """A profile in which some figures are others, as a file."""
    known = profiles.load(machine)
    source = Source(kind="assumed", note="the truth of a test")
    changes = [
        change for one in fit_parameters.adjustments(known) for change in one.changed(factors.get(one.name, 1.0))
    ]
    head = {"format": 1, "name": path.stem, "base": machine, "title": "the truth", "sources": {"TRUE": asdict(source)}}
    path.write_text(profile_text.text(head | calibrated_profile.blocks(changes, "TRUE")), encoding="utf-8")
    return str(path)


def on(machine, rows):
    """The same rows on another machine."""
    return replace(rows, rows=tuple(replace(row, machine=machine) for row in rows.rows))


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    """Rows of perlmutter that take as long as on a machine with other figures."""
    file = rewritten("perlmutter", TRUTH, tmp_path_factory.mktemp("truth") / "truth.yaml")
    rows = reading("perlmutter", [*GRIDS, *WIDE])
    steps = {one.row.line: one.predicted for one in compare.compare(on(file, rows)).rows}
    return replace(rows, rows=tuple(replace(row, step=steps[row.line]) for row in rows.rows if row.line in steps))


def fitted(rows, names=()):
    found = calibrate(compare.compare(rows), profiles.load("perlmutter"), names)
    return found, {one.adjustment.name: one.factor for one in found.fitted}


def test_known_figures_come_back_within_a_percent(truth):
    found, factors = fitted(truth)
    assert set(factors) >= {"gemm", "host-time", "contention", "inside-bandwidth", "between-bandwidth"}
    assert factors == pytest.approx({name: TRUTH.get(name, 1.0) for name in factors}, rel=0.01)
    assert found.after.worst < 0.005
    assert found.held_out.mape < 0.01 < found.before.mape
    assert found.helps


def test_with_noise_and_gross_outliers_figures_come_back_within_their_errors(truth):
    generator = np.random.default_rng(5)
    noise = np.exp(0.05 * generator.standard_normal(len(truth.rows)))
    noise[generator.permutation(len(noise))[: len(noise) // 20]] *= 2.5
    rows = tuple(replace(row, step=row.step * by) for row, by in zip(truth.rows, noise, strict=True))
    found, factors = fitted(replace(truth, rows=rows), ("gemm", "host-time", "between-bandwidth"))
    assert set(factors) == {"gemm", "host-time", "between-bandwidth"}
    clean, exact = fitted(truth, ("gemm", "host-time", "between-bandwidth"))
    assert clean.before.mape > clean.after.mape
    assert factors == pytest.approx(exact, rel=0.06)
    spoiled = {row.line for row, by in zip(rows, noise, strict=True) if by > 2}
    assert spoiled <= {line for line, _ in found.outliers}


def test_what_no_row_depends_on_is_left_alone_and_named():
    rows = reading("perlmutter", [(1, 1, 1, 1)])
    found = calibrate(compare.compare(rows), profiles.load("perlmutter"))
    left = dict(found.left_alone)
    names = {"contention", "network-latency", "fabric-latency", "inside-bandwidth", "between-bandwidth"}
    assert {name for name, reason in left.items() if "depends on it" in reason} >= names


def test_two_that_do_the_same_are_not_both_fitted():
    alike = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 1.0], [1.0, 1.0, 2.0]])
    assert np.isinf(standard_errors(alike, 0.01)[:2]).all()
    place, reason = weakest(alike, 0.01, ["rate", "efficiency", "latency"])
    assert place in (0, 1)
    assert "cannot tell it from" in reason
    assert weakest(np.delete(alike, place, axis=1), 0.01, ["one", "latency"]) is None


def test_standard_errors_are_those_of_ordinary_least_squares():
    generator = np.random.default_rng(1)
    columns, truth = generator.standard_normal((40, 3)), np.array([0.3, -0.2, 0.1])
    values = columns @ truth + 0.05 * generator.standard_normal((4000, 40))
    solved = np.linalg.lstsq(columns, values.T, rcond=None)[0]
    assert standard_errors(columns, 0.05) == pytest.approx(solved.std(axis=1), rel=0.05)


def test_the_profile_that_is_written_predicts_what_was_fitted(truth, tmp_path):
    found, factors = fitted(truth)
    file, source = tmp_path / "mine.yaml", tmp_path / "runs.jsonl"
    source.touch()
    file.write_text(calibrated_profile.profile(found, "perlmutter", file, [str(source)]), encoding="utf-8")
    sizes = compare.compare(on(str(file), truth)).sizes
    assert (sizes.mape, sizes.worst) == pytest.approx((found.after.mape, found.after.worst), abs=1e-4)
    mine, base = profiles.load(str(file)), profiles.load("perlmutter")
    assert mine.device.gemm_sustained.value == pytest.approx(base.device.gemm_sustained.value * factors["gemm"])
    assert mine.device.contention.source.kind == "measured"
    assert f"fitted to {len(truth.rows)} steps" in mine.sources["FIT"].note
    assert mine.device.peak == base.device.peak


def test_no_figure_leaves_what_a_profile_allows():
    rows = reading("perlmutter", GRIDS, models=(LARGE,))
    faster = tuple(replace(one.row, step=0.7 * one.predicted) for one in compare.compare(rows).rows)
    found = calibrate(compare.compare(replace(rows, rows=faster)), profiles.load("perlmutter"))
    assert any(one.at_bound for one in found.fitted)
    for one in found.fitted:
        assert one.adjustment.low <= one.factor <= one.adjustment.high
    fit_parameters.adjusted(found.machine, found.changes(), "FIT", Source(kind="assumed", note="of a test"))


def test_every_shipped_machine_has_adjustments_that_can_be_written():
    for name in profiles.names():
        machine = profiles.load(name)
        for one in fit_parameters.adjustments(machine):
            for factor in (one.low, one.high):
                if name != "localhost-cpu" or one.name != "inside-bandwidth":
                    fit_parameters.adjusted(
                        machine, one.changed(factor), "FIT", Source(kind="assumed", note="of a test")
                    )
            assert one.low <= 1 <= one.high


def test_rows_that_do_not_say_what_ran_are_told():
    table = [[LARGE, "1024", "1", "1", "4", "1", "64", *cells, "none", "1"] for cells in (["", ""], ["1", "none"])]
    kept = stated(rows_of("runs", HEADS, list(enumerate(table, start=2)), given={"machine": "perlmutter"}))
    assert [row.line for row in kept.rows] == [3]
    assert kept.problems == ((2, "says nothing of micro_batch, recompute, so what ran is not known"),)
    assert kept.dropped == 1


def test_an_unknown_parameter_and_a_single_row_are_refused(truth):
    with pytest.raises(UsageError, match=r"no parameter is called 'gem' .*gemm"):
        fitted(truth, ("gem",))
    with pytest.raises(PerfmodelError, match="1 rows to fit to"):
        fitted(replace(truth, rows=truth.rows[:1]))


def test_a_fit_that_does_not_help_says_so(truth):
    found, _ = fitted(truth)
    assert "fell from" in records.sentence(found)
    worse = replace(found, held_out=replace(found.before, mape=2 * found.before.mape))
    assert "did not fall" in records.sentence(worse)
    with pytest.raises(PerfmodelError, match="no parameter, so there is no profile"):
        calibrated_profile.profile(replace(found, fitted=()), "perlmutter", Path("a.yaml"), ["runs"])


def test_groups_are_left_out_as_a_whole(truth):
    rows = compare.compare(truth).rows
    for fold in calibration._folds(rows):
        inside = {rows[place].group for place in fold}
        outside = {one.group for place, one in enumerate(rows) if place not in fold}
        assert not inside & outside


def test_collectives_that_were_timed_tell_what_noisy_steps_do_not(tmp_path):
    """Steps scatter by a factor of two, collectives do not: their bandwidth comes back, from them alone."""
    generator = np.random.default_rng(2)
    file = rewritten("localhost-cpu", {"inside-bandwidth": 0.6}, tmp_path / "truth.yaml")
    rows = step_files.read(EXAMPLE, machine=file)
    true = []
    for one in compare.compare(rows).rows:
        timed = tuple(term.predicted for term in collectives.terms(one))
        step = one.predicted * 2 ** generator.standard_normal()
        true.append(replace(one.row, step=step, timed=timed, machine="localhost-cpu"))
    found = {}
    for name, kept in (("steps", tuple(replace(row, timed=()) for row in true)), ("all", tuple(true))):
        compared = compare.compare(replace(rows, rows=kept))
        chosen = calibration._chosen(profiles.load("localhost-cpu"), ["inside-bandwidth"])
        problem = calibration._problem(compared.rows, chosen)
        found[name] = float(np.exp(problem.fit(np.arange(len(kept)), 0.05)[0]))
    assert abs(found["all"] - 0.6) < 0.06 < abs(found["steps"] - 0.6)
