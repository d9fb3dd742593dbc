"""Decoders on every grid of 2, 4 and 8 ranks give the loss and the gradients of a dense model in plain torch."""

from dataclasses import replace
from itertools import combinations, product

import pytest

from gloo.beside_dense import SHAPES, Case, deviations
from gloo.spawn import on_ranks
from perfmodel.layout import PLACEMENTS, placed
from perfmodel.settings import OVERLAPS, RECOMPUTES, WEIGHT_CACHES

AXONN, PAPER = 0, 1
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
FACTORS = {
    "sizes": [(2, 1, 2, 2), (2, 2, 2, 1), (1, 2, 2, 2)],
    "shape": list(SHAPES),
    "dtype": list(TOLERANCE),
    "micro_steps": [1, 3],
    "recompute": list(RECOMPUTES),
    "weight_cache": list(WEIGHT_CACHES),
    "overlap": [(), *((one,) for one in OVERLAPS), OVERLAPS],
    "flash": [True, False],
}


def grids(ranks):
    """(sizes, placement) of every factorization, in both placements where they differ."""
    found = placed(ranks, (AXONN, PAPER))
    return [
        ((int(one.x), int(one.y), int(one.z), int(one.data)), int(one.placement))
        for one in map(found.take, range(len(found.x)))
    ]


def pairs(factors):
    """Few settings among which every two values of different factors meet, chosen greedily."""
    open_pairs = {
        ((one, first), (other, second))
        for one, other in combinations(factors, 2)
        for first, second in product(factors[one], factors[other])
    }
    chosen = []
    while open_pairs:
        row = dict(min(open_pairs, key=repr))
        for factor in factors:
            if factor not in row:
                row[factor] = max(factors[factor], key=lambda value: len(_met({**row, factor: value}, open_pairs)))
        open_pairs -= _met(row, open_pairs)
        chosen.append(row)
    return chosen


def _met(row, open_pairs):
    return {pair for pair in open_pairs if all(name in row and row[name] == value for name, value in pair)}


def check(ranks, cases):
    """Every rank of every case is as near to the dense model as its number format allows."""
    found = zip(cases, *on_ranks(ranks, deviations, cases), strict=True)
    worst = [(case, max(of_ranks)) for case, *of_ranks in found]
    assert [(case, worst) for case, worst in worst if not worst[0] <= TOLERANCE[case.dtype]] == []


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_every_grid_gives_the_loss_and_gradients_of_the_dense_model(ranks):
    alternating = [("gpt", "float64"), ("llama", "float32")], [("gpt", "float32"), ("llama", "float64")]
    check(
        ranks,
        [
            Case(sizes, placement, shape, dtype, micro_steps=3)
            for index, (sizes, placement) in enumerate(grids(ranks))
            for shape, dtype in alternating[index % 2]
        ],
    )


def test_every_pair_of_settings_gives_the_loss_and_gradients_of_the_dense_model():
    check(8, [Case(**row) for row in pairs(FACTORS)])


def test_every_two_settings_meet_in_some_case():
    rows = pairs(FACTORS)
    for one, other in combinations(FACTORS, 2):
        assert {(row[one], row[other]) for row in rows} == set(product(FACTORS[one], FACTORS[other]))


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "sizes", "placement"), [(r, *grid) for r in (2, 4, 8) for grid in grids(r)])
def test_every_pair_of_settings_on_every_grid(ranks, sizes, placement):
    factors = {name: values for name, values in FACTORS.items() if name != "sizes"}
    check(ranks, [replace(Case(sizes, placement), **row) for row in pairs(factors)])


def test_the_placements_compared_are_those_meant():
    assert PLACEMENTS[AXONN] == ("y", "x", "z", "data")
    assert PLACEMENTS[PAPER] == ("x", "y", "z", "data")
