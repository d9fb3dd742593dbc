"""Dropout is part of the model, not of the grid: the same elements are dropped wherever they are."""

from dataclasses import replace

import pytest

from gloo.beside_dense import Case, outcomes
from gloo.spawn import on_ranks

GRIDS = [(4, 1, 1, 1), (1, 4, 1, 1), (1, 1, 4, 1), (1, 1, 1, 4), (2, 2, 1, 1), (2, 1, 2, 1), (1, 2, 1, 2)]


@pytest.mark.parametrize("flash", [True, False])
def test_every_grid_drops_the_same_elements(flash):
    start = Case((1, 1, 1, 1), dropout=0.3, flash=flash)
    varied = [replace(start, sizes=(2, 1, 2, 1), micro_steps=3), replace(start, sizes=(1, 2, 2, 1), recompute="full")]
    cases = [
        *(replace(start, sizes=sizes) for sizes in GRIDS),
        *varied,
        replace(start, sizes=(2, 2, 1, 1), dropout=0.0),
    ]
    *dropped, whole = on_ranks(4, outcomes, cases)[0]
    for case, outcome in zip(cases, dropped, strict=False):
        assert outcome == pytest.approx(dropped[0], rel=1e-10), case
    assert whole[0] != pytest.approx(dropped[0][0], rel=1e-3)
