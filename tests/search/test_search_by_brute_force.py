"""The search against brute force: plain loops over every grid, order, micro-batch and mode, one layout at a time."""

from collections import Counter
from dataclasses import replace
from itertools import permutations, product
from math import frexp, ldexp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines import EVERY_SHAPE, four_layers, gpt, job, linears, machine
from perfmodel.models.layers import Activation, Attention, Embedding, Head, Linear, Norm
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.layout import PLACEMENTS, Layout
from perfmodel.search.search import Space, rank
from perfmodel.step.predict import predict

ANY = tuple(range(len(PLACEMENTS)))


def grids(gpus):
    """Ordered (x, y, z, data) by trying every number."""
    numbers = [n for n in range(1, gpus + 1) if gpus % n == 0]
    return [grid for grid in product(numbers, repeat=4) if grid[0] * grid[1] * grid[2] * grid[3] == gpus]


def distinct_orders(grid, placements):
    """Placements that move a rank against every earlier one: axes of size 1 have no place."""
    seen = {}
    for code in placements:
        order = tuple(axis for axis in PLACEMENTS[code] if grid[["x", "y", "z", "data"].index(axis)] > 1)
        seen.setdefault(order, code)
    return list(seen.values())


def broken(question, grid):
    """The first rule that a grid breaks, worked out in plain words; None if it keeps them all."""
    x, y, z, data = grid
    attention = [layer for _, layer in question.model.layers() if isinstance(layer, Attention)]
    over_x, over_y, weights = widths(question.model)
    rules = [
        *bounds(question.settings, grid),
        ("heads", any(layer.heads % x for layer in attention)),
        ("kv_heads", any(layer.kv_heads % x for layer in attention)),
        ("width_x", any(width % x for width in over_x)),
        ("width_y", any(width % y for width in over_y)),
        ("weight_shards", any(weight % (x * y * z) for weight in weights)),
        *vocabulary(question, x * y),
        *tables(question, x * y, z),
        ("batch", question.batch % (z * data) != 0),
    ]
    return next((name for name, breaks in rules if breaks), None)


def bounds(chosen, grid):
    for axis, size in zip(("x", "y", "z", "data"), grid, strict=True):
        yield "fixed_by_user", size != chosen.fixed.get(axis, size)
        yield "above_user_maximum", size > chosen.maximum.get(axis, size)


def widths(model):
    """What x splits, what y splits, and the weights."""
    layers = [layer for _, layer in model.layers()]
    linear = [layer for layer in layers if isinstance(layer, Linear)]
    over_x = [layer.inputs if layer.transposed else layer.outputs for layer in linear]
    over_y = [layer.outputs if layer.transposed else layer.inputs for layer in linear]
    over_y += [layer.width for layer in layers if isinstance(layer, Embedding | Head)]
    for block in model.blocks:
        for place, layer in enumerate(block.layers):
            if isinstance(layer, Activation | Norm):
                before = [other for other in block.layers[:place] if isinstance(other, Linear | Embedding | Head)]
                normal = before and isinstance(before[-1], Linear) and not before[-1].transposed
                (over_x if normal else over_y).append(layer.width)
    return over_x, over_y, [layer.inputs * layer.outputs * layer.kernel**2 for layer in linear]


def vocabulary(question, tensor):
    multiple = question.settings.vocabulary_multiple
    for _, layer in question.model.layers():
        if isinstance(layer, Embedding | Head) and multiple:
            padded = -(-layer.vocabulary // (multiple * tensor)) * multiple * tensor
            yield "vocabulary_padding", padded > 2 * layer.vocabulary
        elif isinstance(layer, Embedding | Head):
            yield "vocabulary", layer.vocabulary % tensor != 0


def tables(question, tensor, z):
    """Rows a device of x and y holds, padded, times the width are cut by z."""
    multiple = question.settings.vocabulary_multiple
    for _, layer in question.model.layers():
        if isinstance(layer, Embedding | Head):
            rows = -(-layer.vocabulary // (multiple * tensor)) * multiple if multiple else layer.vocabulary // tensor
            yield "weight_shards", (rows * layer.width) % z != 0


def modes(question, space):
    """(recompute, cache) pairs: what is asked for, or those worth a try."""
    for recompute, cache in product(RECOMPUTES[:3], WEIGHT_CACHES):  # what the project's own launcher has
        if space.recompute not in (None, recompute) or space.weight_cache not in (None, cache):
            continue
        if space.recompute is None and recompute == "selective" and question.settings.flash_attention:
            continue
        if space.weight_cache is None and cache == "all" and recompute != "full":
            continue
        yield RECOMPUTES.index(recompute), WEIGHT_CACHES.index(cache)


def fitting(question, space, at):
    """[(time, memory, layout)] of one placed grid that fit; None if no micro-batch does."""
    share = question.batch // (at.z * at.data)
    micro_batches = [space.micro_batch] if space.micro_batch else range(1, share + 1)
    tried = [
        replace(at, micro_batch=micro, recompute=recompute, weight_cache=cache)
        for micro, (recompute, cache) in product(micro_batches, modes(question, space))
        if share % micro == 0
    ]
    found = [(layout, predict(question, layout)) for layout in tried]
    most = float("inf") if question.settings.ignore_memory else question.machine.device.memory.value
    rows = [(float(p.step), float(p.memory.total), layout) for layout, p in found if p.memory.total <= most]
    return rows if tried else None


def best_of(rows):
    """The best of one grid's rows in the documented order."""
    return min(rows, key=order)


def rounded(value):
    """To 30 binary digits, so that numbers that differ by rounding only are tied."""
    mantissa, exponent = frexp(value)
    return ldexp(round(mantissa * 2**30), exponent - 30)


def order(row):
    """Time; less memory; larger data, z, y; placement; larger micro-batch; less recomputation, less caching."""
    time, memory, at = rounded(row[0]), rounded(row[1]), row[2]
    return time, memory, -at.data, -at.z, -at.y, at.placement, -at.micro_batch, at.recompute, at.weight_cache


def brute_force(question, space):
    """(ranked rows in order, {reason: count}, grids searched)."""
    reasons, rows, searched = Counter(), {}, 0
    for grid in grids(space.gpus):
        for placement in distinct_orders(grid, space.placements):
            searched += 1
            if reason := broken(question, grid):
                reasons[reason] += 1
                continue
            found = fitting(question, space, Layout.of(grid, placement=placement))
            if found:
                rows.setdefault(grid, []).extend(found)
            else:
                reasons["micro_batch" if found is None else "memory"] += 1
    return sorted(map(best_of, rows.values()), key=order), reasons, searched


QUESTIONS = {
    "plain": ({}, {"gpus": 16}),
    "paper": ({"fidelity": "paper"}, {"gpus": 24, "placements": (0, 1)}),
    "every order": ({}, {"gpus": 8, "placements": ANY}),
    "odd": ({}, {"gpus": 36, "placements": (1,)}),
    "sixty": ({"vocabulary_multiple": 0}, {"gpus": 60}),
    "sixty-four": ({"flash_attention": False}, {"gpus": 64}),
    "micro-batch": ({}, {"gpus": 32, "micro_batch": 4}),
    "modes": ({}, {"gpus": 16, "recompute": "full", "weight_cache": "none"}),
    "selective": ({}, {"gpus": 16, "recompute": "selective"}),
    "ignoring memory": ({"ignore_memory": True}, {"gpus": 16}),
    "bounds": ({"fixed": {"x": 2}, "maximum": {"z": 4, "data": 8}}, {"gpus": 32}),
    "none fits": ({"fixed": {"z": 5}}, {"gpus": 16}),
}
MEMORY = {"odd": 2.5e9, "sixty": 2.1e9, "sixty-four": 2.5e9, "micro-batch": 3e9, "bounds": 3e9}  # so that some fit
SHAPES = {"odd": (gpt(hidden=1152, heads=18, vocabulary=50256), 6), "sixty": (linears(*four_layers(960)), 12)}


@pytest.mark.parametrize("name", QUESTIONS)
def test_best_ranking_and_counts_are_those_of_brute_force(name):
    chosen, space = QUESTIONS[name]
    model, devices = SHAPES.get(name, (gpt(), 4))
    question = job(model, machine(devices, memory=MEMORY.get(name, 3.2e9)), batch=48, **chosen)
    space = Space(top=10**6, **space)
    expected, reasons, searched = brute_force(question, space)
    found = rank(question, space)
    assert [found.layouts.take(row) for row in range(len(found))] == [layout for _, _, layout in expected]
    assert found.prediction.step.tolist() == pytest.approx([time for time, _, _ in expected], rel=1e-11)
    assert dict(found.rejected) == dict(reasons)
    assert found.searched == searched == found.feasible + sum(found.rejected.values())


def test_a_micro_batch_is_not_chosen_for_the_last_digit_of_its_time():
    # Without z nothing at flat fidelity depends on the micro-batch but rounding, so the least memory decides.
    question = job(gpt(), machine(8), batch=720, fidelity="flat")
    found = rank(question, Space(gpus=8, top=100))
    assert set(found.layouts.micro_batch[found.layouts.z == 1].tolist()) == {1}


@settings(max_examples=25)
@given(
    gpus=st.sampled_from([1, 2, 6, 8, 12, 18]),
    where=st.sampled_from(EVERY_SHAPE),
    batch=st.sampled_from([1, 6, 30, 36]),
    placements=st.lists(st.sampled_from(ANY), min_size=1, max_size=4, unique=True).map(tuple),
    fidelity=st.sampled_from(["paper", "flat", "full"]),
    heads=st.sampled_from([(8, 8), (12, 4), (6, 3)]),
    top=st.sampled_from([1, 3, 1000]),
)
def test_any_question_is_answered_as_by_brute_force(*, gpus, where, batch, placements, fidelity, heads, top):
    model = gpt(layers=2, hidden=192, heads=heads[0], kv_heads=heads[1], head_dim=24, vocabulary=3000, sequence=128)
    question = job(model, where, batch=batch, fidelity=fidelity)
    space = Space(gpus=gpus, placements=placements, top=top)
    expected, reasons, searched = brute_force(question, space)
    found = rank(question, space)
    assert [found.layouts.take(row) for row in range(len(found))] == [layout for _, _, layout in expected[:top]]
    assert (dict(found.rejected), found.searched) == (dict(reasons), searched)


def test_brute_force_itself_finds_all_orders():
    assert len(distinct_orders((2, 2, 2, 2), ANY)) == len(list(permutations(range(4))))
    assert len(distinct_orders((2, 1, 2, 1), ANY)) == 2
    assert distinct_orders((1, 1, 1, 1), ANY) == [0]
