"""Evidence by set, and its coverage with each set left out."""

import pytest

from perfmodel.validation.steps import scores as step_scores
from perfmodel.validation.steps.evidence import coverage, evidence
from published_steps import write


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Five sets of three grids, each slower than predicted by a factor of its own."""
    folder = tmp_path_factory.mktemp("sets")
    grids = ({"tp": "1", "dp": "8"}, {"tp": "2", "dp": "4"}, {"tp": "4", "dp": "2"})
    plain, _ = step_scores.scored([write(folder / "plain.csv", *grids)])
    paths = []
    for number, factor in enumerate((0.95, 1.0, 1.05, 1.1, 1.15)):
        steps = [grid | {"step_s": f"{factor * one.predicted:.9f}"} for grid, one in zip(grids, plain, strict=True)]
        paths.append(write(folder / f"set{number}.csv", *steps))
    return step_scores.scored(paths)[0]


def test_a_set_is_known_by_its_mean_and_scatter(rows):
    found = evidence(rows)
    assert [one.set for one in found] == [f"set{number}" for number in range(5)]
    assert {(one.framework, one.device, one.rows) for one in found} == {("megatron-lm", "A100", 3)}
    assert found[3].mean == pytest.approx(0.0953, abs=1e-3)
    assert all(one.spread == pytest.approx(0.0, abs=1e-3) for one in found)


def test_sets_alike_cover_one_another(rows):
    inside, width = coverage(rows, evidence(rows))
    assert inside >= 0.6  # the range of four sets is too short for the extremes
    assert 1.1 < width < 2
