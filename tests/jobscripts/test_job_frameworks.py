"""Grids that frameworks can express: which, the nearest that they can, and which settings they have."""

import itertools
import math
from dataclasses import replace

import pytest

from job_requests import DEVICES, asked, load
from perfmodel.errors import NoGridError, PerfmodelError, UsageError
from perfmodel.jobscripts import build
from perfmodel.jobscripts.frameworks import FRAMEWORKS, nearest, problem
from perfmodel.parallel.axes import AXES
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.enumeration import shapes
from perfmodel.parallel.layout import PLACEMENTS, Layout
from perfmodel.search.search import Space

EXPRESSED = {
    "perfmodel": lambda _: True,
    "axonn-nanogpt": lambda _: True,
    "megatron-axonn": lambda _: True,
    "litgpt-axonn": lambda grid: grid.x == grid.gpus,
    "torchtitan": lambda grid: grid.y == 1 and (grid.x == 1 or grid.z > 1),
    "megatron-lm": lambda grid: grid.y == 1,
    "deepspeed": lambda grid: grid.x == grid.y == 1,
}


@pytest.mark.parametrize("launcher", EXPRESSED)
def test_a_framework_takes_the_grids_that_its_kinds_of_parallelism_make(launcher):
    every = shapes(DEVICES)
    grids = [every.take(row) for row in range(len(every.x))]
    assert len(grids) == math.comb(6 + 3, 3)
    taken = {grid.text() for grid in grids if not problem(FRAMEWORKS[launcher], asked(), grid)}
    assert taken == {grid.text() for grid in grids if EXPRESSED[launcher](grid)}


def test_all_frameworks_are_held_against_their_grids_here():
    assert set(EXPRESSED) == set(FRAMEWORKS)


@pytest.mark.parametrize(
    ("launcher", "grid", "order", "fits"),
    [
        ("megatron-axonn", (2, 2, 4, 4), ("y", "x", "z", "data"), True),
        ("megatron-axonn", (2, 2, 4, 4), ("x", "y", "z", "data"), False),
        ("megatron-axonn", (2, 1, 8, 4), ("x", "y", "z", "data"), True),  # Y splits nothing
        ("torchtitan", (2, 1, 8, 4), ("y", "x", "z", "data"), True),
        ("torchtitan", (2, 1, 8, 4), ("z", "x", "y", "data"), False),
        ("deepspeed", (1, 1, 8, 8), ("data", "z", "x", "y"), False),
        ("perfmodel", (2, 2, 4, 4), ("x", "y", "z", "data"), True),
        ("perfmodel", (2, 2, 4, 4), ("z", "y", "x", "data"), False),
    ],
)
def test_a_grid_whose_ranks_are_numbered_otherwise_is_not_expressed(launcher, grid, order, fits):
    layout = Layout.of(grid, placement=PLACEMENTS.index(order))
    reason = problem(FRAMEWORKS[launcher], asked(), layout)
    assert (reason == "") == fits
    assert fits or reason.startswith("numbers its ranks ")


@pytest.mark.parametrize(("launcher", "near"), [("torchtitan", "1x1x64x1"), ("deepspeed", "1x1x64x1")])
def test_a_grid_that_cannot_be_expressed_is_refused_with_the_nearest_that_can(launcher, near):
    job, space = asked(), Space(gpus=DEVICES)
    grid = Layout(x=1, y=2, z=32, data=1)
    with pytest.raises(PerfmodelError, match=f"{launcher} cannot run gpt-20b on 1x2x32x1: it .*express is {near}$"):
        build.chosen(job, space, launcher, grid)
    found = nearest(FRAMEWORKS[launcher], job, space, grid)
    assert not problem(FRAMEWORKS[launcher], job, found)
    changes = [abs(math.log2(found.size(axis) / grid.size(axis))) for axis in AXES]
    assert sum(changes) == 2


def test_a_framework_that_can_express_no_grid_that_fits_says_so():
    with pytest.raises(PerfmodelError, match="no grid that fits can be expressed"):
        build.chosen(asked(), Space(gpus=DEVICES), "litgpt-axonn", Layout(x=1, y=1, z=64, data=1))
    with pytest.raises(NoGridError, match=r"litgpt-axonn can express none of .* grids; the fastest, "):
        build.fastest(asked(), Space(gpus=DEVICES), "litgpt-axonn")


def test_the_fastest_grids_are_the_fastest_of_those_that_can_be_expressed():
    job, space = asked(), Space(gpus=DEVICES, top=5)
    every, none_left = build.fastest(job, replace(space, top=500), "perfmodel")
    ours, left_out = build.fastest(job, space, "torchtitan")
    assert none_left == []
    assert ours == [layout for layout in every if layout.y == 1][:5]
    assert [text.partition(":")[0] for text in left_out] == [
        layout.text() for layout in every[: every.index(ours[-1])] if layout.y > 1
    ]


@pytest.mark.parametrize("launcher", FRAMEWORKS)
def test_a_framework_is_asked_for_settings_that_it_has(launcher):
    framework, job = FRAMEWORKS[launcher], asked()
    grid = Layout(x=DEVICES, y=1, z=1, data=1) if launcher == "litgpt-axonn" else Layout(x=1, y=1, z=DEVICES, data=1)
    for recompute, cache in itertools.product(range(len(RECOMPUTES)), range(len(WEIGHT_CACHES))):
        mode = RECOMPUTES[recompute], WEIGHT_CACHES[cache]
        known = not framework.modes or mode in framework.modes
        assert (not problem(framework, job, replace(grid, recompute=recompute, weight_cache=cache))) == known


def test_the_fastest_grids_of_a_framework_have_its_settings():
    job, space = asked("llama-3-8b"), Space(gpus=DEVICES, top=40)
    found, left_out = build.fastest(job, space, "megatron-lm")
    modes = {(RECOMPUTES[int(one.recompute)], WEIGHT_CACHES[int(one.weight_cache)]) for one in found}
    assert modes <= set(FRAMEWORKS["megatron-lm"].modes)
    assert not any("has no recompute" in reason for reason in left_out)
    ours, _ = build.fastest(job, space, "perfmodel")
    assert {WEIGHT_CACHES[int(one.weight_cache)] for one in ours} != {"none"}


def test_settings_that_a_framework_has_not_are_refused_with_those_that_it_has():
    wanted = "torchtitan has no --recompute selective --weight-cache any; wanted .*none with none"
    with pytest.raises(UsageError, match=wanted):
        build.fastest(asked(), Space(gpus=DEVICES, recompute="selective"), "torchtitan")
    with pytest.raises(UsageError, match="megatron-lm has no --recompute any --weight-cache all; wanted "):
        build.chosen(
            asked(), Space(gpus=DEVICES, weight_cache="all"), "megatron-lm", Layout(x=1, y=1, z=DEVICES, data=1)
        )


@pytest.mark.parametrize("launcher", ["axonn-nanogpt", "litgpt-axonn", "torchtitan"])
def test_attention_that_a_framework_has_not_is_refused(launcher):
    grid = Layout(x=DEVICES, y=1, z=1, data=1) if launcher == "litgpt-axonn" else Layout(x=1, y=1, z=DEVICES, data=1)
    assert problem(FRAMEWORKS[launcher], asked(flash_attention=False), grid).endswith("needs --flash-attention")


def test_a_grid_that_cannot_run_at_all_is_refused_before_any_framework():
    with pytest.raises(NoGridError, match=r"56 attention heads cannot be split evenly by x 16.*nearest that can is "):
        build.chosen(asked(), Space(gpus=DEVICES), "torchtitan", Layout(x=16, y=1, z=4, data=1))


def test_a_framework_is_refused_where_it_is_not_known_to_run():
    with pytest.raises(PerfmodelError, match="megatron-lm is not known to run on Intel Max 1550 tile"):
        build.fastest(asked(machine="aurora", gpus=12, batch=96), Space(gpus=12), "megatron-lm")


@pytest.mark.parametrize("machine", ["alps", "delta", "polaris", "summit", "tuolumne", "vista"])
def test_litgpt_is_refused_where_a_rank_sees_its_own_device_alone(machine):
    devices = 2 * load(machine).node_devices
    reason = f"litgpt-axonn needs ranks that see .* on {machine} each sees only its own"
    with pytest.raises(PerfmodelError, match=reason):
        build.fastest(asked(machine=machine, gpus=devices), Space(gpus=devices), "litgpt-axonn")


def test_a_batch_that_ranks_cannot_share_is_refused():
    assert problem(FRAMEWORKS["axonn-nanogpt"], asked(batch=96), Layout(x=2, y=4, z=8, data=1)).startswith(
        "gives every rank "
    )
    assert not problem(FRAMEWORKS["megatron-axonn"], asked(batch=96), Layout(x=2, y=4, z=8, data=1))


def test_torchtitan_splits_over_x_beside_z_alone():
    torchtitan = FRAMEWORKS["torchtitan"]
    assert problem(torchtitan, asked(), Layout(x=4, y=1, z=1, data=16)).startswith("splits over X only together with Z")
    assert problem(torchtitan, asked("gpt-tiny", gpus=4), Layout(x=4, y=1, z=1, data=1)).startswith(
        "splits over X only together with Z"
    )
    whole = asked("gpt-tiny", machine="localhost-cpu", gpus=4)  # in fp32 there is no precision to mix
    assert problem(torchtitan, whole, Layout(x=4, y=1, z=1, data=1)) == ""
    assert problem(torchtitan, asked(sequence=1000), Layout(x=16, y=1, z=4, data=1)) == (
        "splits sequences of tokens by 2 * X, and 1000 is not a multiple of 32"
    )


@pytest.mark.parametrize("launcher", ["axonn-nanogpt", "megatron-axonn"])
def test_a_decoder_that_is_no_gpt_is_refused_where_only_gpt_is_trained(launcher):
    assert problem(FRAMEWORKS[launcher], asked("llama-3-8b"), Layout(x=1, y=1, z=64, data=1)).startswith(
        "only trains GPT decoders"
    )


def test_a_model_that_is_no_decoder_is_refused():
    assert problem(FRAMEWORKS["megatron-lm"], asked("unet-7b"), Layout(x=1, y=1, z=64, data=1)).startswith(
        "only trains decoders"
    )


@pytest.mark.parametrize(
    ("overlap", "grid", "reason"),
    [
        (
            {"all-gather"},
            Layout(x=2, y=4, z=8, data=1),
            "overlaps reduce-scatters and all-gathers only with all-reduces",
        ),
        ({"all-reduce", "data"}, Layout(x=1, y=1, z=32, data=2), "overlaps nothing over data"),
        ({"all-reduce", "data"}, Layout(x=2, y=4, z=8, data=1), ""),  # a grid without data
        (set(), Layout(x=2, y=4, z=8, data=1), ""),
    ],
)
def test_what_megatron_axonn_cannot_overlap_is_refused(overlap, grid, reason):
    found = problem(FRAMEWORKS["megatron-axonn"], asked(overlap=frozenset(overlap)), grid)
    assert found.startswith(reason)
    assert bool(found) == bool(reason)
