"""Decoders on every grid of 2, 4 and 8 ranks give the loss and the gradients of a dense model in plain torch."""

from dataclasses import replace
from itertools import combinations, product

import pytest
import torch

from gloo.beside_dense import SHAPES, Case, deviations, evaluations
from gloo.spawn import on_ranks
from perfmodel.errors import UsageError
from perfmodel.launch.layers.decoder import build
from perfmodel.launch.training.groups import Axis, Grid
from perfmodel.launch.training.parameters import hold
from perfmodel.launch.training.plan import Plan
from perfmodel.models import load
from perfmodel.parallel.choices import OVERLAPS, RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.enumeration import placed
from perfmodel.parallel.layout import PLACEMENTS, Layout

AXONN, PAPER = 0, 1
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
ROUGH = 0.05  # of the largest element of a gradient, where products run in bf16
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
    worst = [(max(of_ranks), case) for case, *of_ranks in found]
    assert [
        one for one in worst if one[0][0] > (ROUGH if one[1].autocast else TOLERANCE.get(one[1].dtype, ROUGH))
    ] == []


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


@pytest.mark.parametrize("mixed", [{"dtype": "bfloat16"}, {"dtype": "float32", "autocast": True}])
def test_products_in_bf16_come_near_whether_weights_or_autocast_are(mixed):
    sizes_of_4, shapes = [(2, 2, 1, 1), (1, 2, 2, 1), (2, 1, 1, 2)], ("gpt", "llama")
    check(4, [Case(sizes, shape=shape, recompute="full", **mixed) for sizes in sizes_of_4 for shape in shapes])


def test_a_loss_without_gradients_is_the_same_and_leaves_training_as_it_was():
    cases = [Case((2, 1, 2, 1), weight_cache="all", recompute="full"), Case((1, 1, 4, 1), shape="llama")]
    for first, evaluated, second, third in on_ranks(4, evaluations, cases)[0]:
        assert evaluated == (pytest.approx(first[0], rel=1e-12), 0.0)
        assert second == pytest.approx(first, rel=1e-12)
        assert third == pytest.approx(first, rel=1e-12)


def test_what_cannot_be_run_is_refused():
    plan = Plan.of(Grid.of(Layout(x=1, y=1, z=1, data=1)))
    split = replace(plan.grid, x=Axis(name="x", size=2))
    with pytest.raises(UsageError, match="1 key-value heads, which x 2 cannot split evenly"):
        build(replace(SHAPES["llama"], kv_heads=1).model("one"), replace(plan, grid=split), padded_vocabulary=52)
    with pytest.raises(UsageError, match="unet-7b is not a decoder"):
        build(load("unet-7b"), plan, padded_vocabulary=0)
    model = build(SHAPES["gpt"].model("gpt"), plan, padded_vocabulary=52)
    tokens = torch.zeros(1, 9, dtype=torch.int64)
    hold(model, device=torch.device("cpu"), dtype=torch.float32)
    with pytest.raises(UsageError, match="9 tokens, but the model has 8 learned positions"):
        model(tokens, tokens, scale=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "sizes", "placement"), [(r, *grid) for r in (2, 4, 8) for grid in grids(r)])
def test_every_pair_of_settings_on_every_grid(ranks, sizes, placement):
    factors = {name: values for name, values in FACTORS.items() if name != "sizes"}
    check(ranks, [replace(Case(sizes, placement), **row) for row in pairs(factors)])


def test_the_placements_compared_are_those_meant():
    assert PLACEMENTS[AXONN] == ("y", "x", "z", "data")
    assert PLACEMENTS[PAPER] == ("x", "y", "z", "data")
