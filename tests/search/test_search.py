"""Searching: what is tried, what is kept, in which order."""

from dataclasses import replace

import numpy as np
import pytest

from machines import EVERY_SHAPE, four_layers, gpt, job, linears, machine, with_bandwidths
from perfmodel import models
from perfmodel.errors import UsageError
from perfmodel.machines import profiles
from perfmodel.memory.per_device import capacity, memory_per_device
from perfmodel.models.model import Transformer
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import NAMED_PLACEMENTS, Layout
from perfmodel.parallel.settings import Settings
from perfmodel.search.search import Space, _order, rank, rounded
from perfmodel.step.flops import compute_time
from perfmodel.step.predict import predict, step_time
from perfmodel.traffic.per_step import communication_time

ALL = 10**6
FULL = [("full", "none"), ("full", "forward"), ("full", "all")]


def test_every_grid_is_either_ranked_or_rejected_once():
    found = rank(job(), Space(gpus=64, placements=NAMED_PLACEMENTS["any"], top=ALL))
    assert found.searched == found.feasible + sum(found.rejected.values())
    assert len(found) == len({found.layouts.take(row).text() for row in range(len(found))})


def test_rows_are_in_order_of_step_time_and_every_one_is_as_predicted_alone():
    question = job()
    found = rank(question, Space(gpus=64, top=ALL))
    steps = found.prediction.step
    assert np.all(np.diff(steps) >= -1e-11 * steps[1:])
    for row in range(len(found)):
        assert predict(question, found.layouts.take(row)).step == steps[row]


@pytest.mark.parametrize("name", ["gpt-20b", "gpt3-175b", "llama-3-8b"])
def test_every_row_fits_in_memory_unless_memory_is_ignored(name):
    question = Job.of(models.load(name), profiles.load("perlmutter"), batch=1024)
    found = rank(question, Space(gpus=256, top=ALL))
    assert np.all(found.prediction.memory.total <= capacity(question))
    ignoring = rank(
        replace(question, settings=replace(question.settings, ignore_memory=True)), Space(gpus=256, top=ALL)
    )
    assert len(ignoring) > len(found)
    assert "memory" not in ignoring.rejected


def test_top_keeps_the_first_rows_of_the_whole_ranking():
    whole, three = (rank(job(), Space(gpus=64, placements=NAMED_PLACEMENTS["any"], top=top)) for top in (ALL, 3))
    assert len(three) == 3
    assert [three.layouts.take(i) for i in range(3)] == [whole.layouts.take(i) for i in range(3)]
    assert (three.feasible, three.rejected) == (whole.feasible, whole.rejected)


def test_the_answer_does_not_depend_on_the_size_of_the_blocks(monkeypatch):
    space = Space(gpus=48, placements=NAMED_PLACEMENTS["any"], top=ALL)
    question = job(batch=48, where=machine(4, memory=2.6e9))
    whole = rank(question, space)
    monkeypatch.setattr("perfmodel.search.search.BLOCK_ROWS", 100)
    parts = rank(question, space)
    assert [parts.layouts.take(i) for i in range(len(parts))] == [whole.layouts.take(i) for i in range(len(whole))]
    assert (parts.rejected, parts.evaluated, parts.shortfall) == (whole.rejected, whole.evaluated, whole.shortfall)


def test_asking_twice_gives_the_same_answer():
    first, second = (rank(job(), Space(gpus=64, placements=NAMED_PLACEMENTS["any"], top=ALL)) for _ in range(2))
    assert [first.layouts.take(i) for i in range(len(first))] == [second.layouts.take(i) for i in range(len(second))]


def test_ties_go_to_less_memory_then_larger_data_z_y_then_placement_micro_batch_and_mode():
    # Columns: time, memory, x, y, z, data, placement, micro-batch, recompute, cache; rows in the documented order.
    rows = [
        (1, 5, 9, 1, 1, 1, 0, 1, 0, 0),
        (2, 4, 1, 1, 1, 8, 3, 1, 0, 0),
        (2, 5, 1, 1, 2, 4, 3, 1, 0, 0),
        (2, 5, 1, 2, 1, 4, 3, 1, 0, 0),
        (2, 5, 2, 1, 1, 4, 0, 1, 0, 0),
        (2, 5, 2, 1, 1, 4, 1, 8, 2, 1),
        (2, 5, 2, 1, 1, 4, 1, 4, 0, 1),
        (2, 5, 2, 1, 1, 4, 1, 4, 1, 0),
        (2, 5, 2, 1, 1, 4, 1, 4, 1, 1),
    ]
    table = np.array(rows, dtype=float)
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(table)
        assert shuffled[_order(shuffled)].tolist() == table.tolist()


def test_grids_of_equal_time_stand_in_order_of_memory_and_then_of_data_z_and_y():
    # Links so fast that nothing takes time.
    question = job(linears(*four_layers(4096)), machine(64), fidelity="paper")
    still = with_bandwidths(question, inside=np.full_like(question.costs.bandwidths.inside, np.inf))
    found = rank(still, Space(gpus=4, top=ALL))
    assert set(found.prediction.step.tolist()) == {0.0}
    rows = [found.layouts.take(i) for i in range(len(found))]
    keys = [(found.prediction.memory.total[i], -row.data, -row.z, -row.y) for i, row in enumerate(rows)]
    assert keys == sorted(keys)


@pytest.mark.parametrize("where", EVERY_SHAPE, ids=lambda where: where.name)
@pytest.mark.parametrize("fidelity", ["paper", "flat"])
def test_the_best_of_any_order_is_never_slower_than_the_best_of_one(where, fidelity):
    question = job(gpt(vocabulary=50304), where, batch=72, fidelity=fidelity)
    any_order, axonn, paper = (
        rank(question, Space(gpus=72, placements=NAMED_PLACEMENTS[name])) for name in ("any", "axonn", "paper")
    )
    best = any_order.prediction.step[0]
    assert best <= axonn.prediction.step[0] * (1 + 1e-12)
    assert best <= paper.prediction.step[0] * (1 + 1e-12)


@pytest.mark.parametrize("devices", [3, 4, 6, 8, 12])
@pytest.mark.parametrize("gpus", [24, 60, 192, 1000])
def test_nodes_and_counts_that_are_no_powers_of_two_are_ranked(devices, gpus):
    question = job(gpt(hidden=1920, heads=15, vocabulary=50256), machine(devices), batch=3 * gpus)
    found = rank(question, Space(gpus=gpus))
    assert len(found) == 10
    assert np.all(np.isfinite(found.prediction.step))
    assert set((found.layouts.gpus).tolist()) == {gpus}


def test_one_gpu_has_one_grid():
    found = rank(job(), Space(gpus=1, placements=NAMED_PLACEMENTS["any"]))
    assert (found.searched, len(found), found.layouts.take(0).text()) == (1, 1, "1x1x1x1")


def test_fixed_axes_and_maxima_hold_in_every_row():
    found = rank(job(fixed={"x": 2}, maximum={"z": 4, "data": 8}), Space(gpus=64, top=ALL))
    assert len(found) > 0
    assert set(found.layouts.x.tolist()) == {2}
    assert max(found.layouts.z.tolist()) <= 4
    assert max(found.layouts.data.tolist()) <= 8
    assert found.rejected["fixed_by_user"] > 0
    assert found.rejected["above_user_maximum"] > 0


@pytest.mark.parametrize(
    ("asked", "flash", "expected"),
    [
        ({}, True, [("none", "none"), ("none", "forward"), *FULL]),
        ({"recompute": "selective"}, True, [("selective", "none"), ("selective", "forward")]),
        ({"weight_cache": "none"}, True, [("none", "none"), ("full", "none")]),
        ({"recompute": "none", "weight_cache": "all"}, True, [("none", "all")]),
        ({"recompute": "full"}, False, FULL),
    ],
)
def test_modes_worth_trying_are_tried(asked, flash, expected):
    names = Space(gpus=8, **asked).modes(Settings(flash_attention=flash))
    recomputes, caches = ("none", "selective", "full"), ("none", "forward", "all")
    assert [(recomputes[r], caches[c]) for r, c in names] == expected


def test_selective_recomputation_is_tried_where_scores_are_kept():
    tried = Space(gpus=8).modes(Settings(flash_attention=False))
    assert {recompute for recompute, _ in tried} == {0, 1, 2}


def test_the_shortfall_is_that_of_the_grid_that_comes_nearest():
    question = job(where=machine(8, memory=1.5e9))
    found = rank(question, Space(gpus=8, top=ALL))
    assert len(found) == 0
    assert found.shortfall is not None
    lacking = memory_per_device(question, found.shortfall.layout).total - 1.5e9
    assert lacking == found.shortfall.missing
    larger = job(where=machine(8, memory=1.5e9 + lacking))
    assert rank(larger, Space(gpus=8, top=ALL)).feasible > 0


def test_grids_that_fit_have_no_shortfall():
    assert rank(job(), Space(gpus=8)).shortfall is None
    some = rank(job(where=machine(4, memory=3.2e9), batch=48), Space(gpus=16))
    assert some.feasible > 0
    assert some.rejected["memory"] > 0
    assert some.shortfall is not None
    assert 0 < some.shortfall.missing == memory_per_device(some.job, some.shortfall.layout).total - 3.2e9


@pytest.mark.parametrize(
    ("name", "value"), [("gpus", 0), ("gpus", -4), ("micro_batch", 0), ("top", 0), ("gpus", 2**70)]
)
def test_counts_that_nobody_can_mean_are_refused(name, value):
    with pytest.raises(UsageError, match=str(value)):
        Space(**({"gpus": 8} | {name: value}))


@pytest.mark.parametrize(("name", "value"), [("batch", 0), ("batch", -1), ("sequence", 0)])
def test_batches_and_lengths_that_nobody_can_mean_are_refused(name, value):
    with pytest.raises(UsageError, match=f"is {value}"):
        job(**({"batch": 8} | {name: value}))


def huge():
    """10^12 parameters."""
    shape = {"vocabulary": 131072, "sequence": 4096}
    return Transformer(layers=128, hidden=25600, heads=160, **shape).model("one-trillion")


def test_a_trillion_parameters_and_a_huge_batch_do_not_overflow():
    # 6 * 1e12 * 1.6e7 * 2^10 is far above 2^63; integers would wrap round in silence.
    question = job(huge(), machine(8, memory=1e15), batch=2**22)
    assert question.model.parameters > 1e12
    rate = question.costs.rate
    many = Layout.of((np.array(axis, dtype=np.int64) for axis in ([8, 16], [8, 4], [64, 8], [4, 32])), micro_batch=1)
    flops = 3 * 2**22 * question.model.forward_flops(4096)
    copies = 3 * 2**22 * question.model.attention_flops(4096) * np.array([7, 3])
    assert compute_time(question, many, rate).tolist() == pytest.approx(
        ((flops + copies) / (16384 * rate.value)).tolist()
    )
    for record in (communication_time(question, many), memory_per_device(question, many)):
        for name in record.__dataclass_fields__:
            assert np.all(np.asarray(getattr(record, name)) >= 0), name
    found = rank(question, Space(gpus=16384, top=3))
    assert np.all(found.prediction.step > flops / (16384 * rate.value))


def test_tokens_of_many_layouts_do_not_overflow():
    question = job(batch=2**39, sequence=2**39)
    assert question.rows(Layout(x=1, y=1, z=1, data=1, micro_batch=np.array([1, 2**30]))).tolist() == [2.0**39, 2.0**69]


def test_counts_of_gpus_far_beyond_any_machine_still_multiply_out():
    found = rank(job(linears(*four_layers(2**20)), machine(8, memory=1e18), batch=2**30), Space(gpus=2**40, top=1))
    assert int(found.layouts.gpus[0]) == 2**40
    assert step_time(found.job, found.layouts.take(0)) > 0


def test_grids_whose_times_differ_in_the_last_digit_only_are_ranked_by_memory():
    question = Job.of(
        models.load("gpt-5b"),
        profiles.load("perlmutter"),
        batch=64,
        settings=Settings(fidelity="paper", ignore_memory=True),
    )
    found = rank(question, Space(gpus=16))
    grids = [found.layouts.take(row).text() for row in range(len(found))]
    one, other = grids.index("4x1x1x4"), grids.index("4x1x4x1")
    assert found.prediction.step[one] == pytest.approx(found.prediction.step[other], rel=1e-15)
    assert one < other


def test_rounding_forgets_last_digits_and_keeps_differences_that_count():
    values = np.array([0.0, 3e-9, 1.0, 2.0**-40, 7e18, 1e-300])
    assert rounded(values * (1 + 2**-50)).tolist() == rounded(values).tolist()
    assert np.all(rounded(values[1:] * (1 + 2**-28)) > rounded(values[1:]))
    assert rounded(values).tolist() == pytest.approx(values.tolist(), rel=2**-30)


def test_a_grid_that_fits_only_when_nothing_is_cached_is_found():
    model = linears(*four_layers(8192), repeat=2, sequence=64)
    leanest = Layout(x=1, y=1, z=8, data=1, recompute=2, weight_cache=0)
    needs = float(memory_per_device(job(model, batch=8), leanest).total)
    assert needs < memory_per_device(job(model, batch=8), replace(leanest, weight_cache=1)).total
    found = rank(job(model, machine(8, memory=needs + 1), batch=8, fixed={"z": 8}), Space(gpus=8))
    assert [(row.z, row.weight_cache) for row in (found.layouts.take(0),)] == [(8, 0)]
    assert len(found) == 1
