"""Grids in the flags of frameworks: what each can express, with which batch, and what else it is told."""

import json
import math
import re
from dataclasses import replace

import pytest

from job_requests import load, plan, question
from perfmodel import models
from perfmodel.errors import NoGridError, PerfmodelError, UsageError
from perfmodel.job import Job
from perfmodel.jobscripts import build, flags
from perfmodel.jobscripts.frameworks import FRAMEWORKS, nearest, problem
from perfmodel.layout import AXES, PLACEMENTS, Layout, shapes
from perfmodel.search import Space

GPUS = 64


def asked(model="gpt-20b", machine="perlmutter", gpus=GPUS, batch=None):
    return Job.of(models.load(model), load(machine), batch=batch or 8 * gpus)


def told(launcher, layout, job=None, **changes):
    """Flags of a run as a mapping; a flag without a value is True."""
    job = job or asked()
    made = flags.run(replace(plan("perlmutter", GPUS, launcher, **changes), job=job), layout, "out.jsonl")
    words = [word.partition("=") for word in made.command if word.startswith("--")]
    return {name: value or True for name, _, value in words}


def numbers(found, *names):
    return [int(found[name]) for name in names]


EXPRESSED = {
    "perfmodel": lambda _: True,
    "axonn-nanogpt": lambda _: True,
    "megatron-axonn": lambda _: True,
    "litgpt-axonn": lambda grid: grid.x == grid.gpus,
    "torchtitan": lambda grid: grid.y == 1,
    "megatron-lm": lambda grid: grid.y == 1,
    "deepspeed": lambda grid: grid.x == grid.y == 1,
}


@pytest.mark.parametrize("launcher", EXPRESSED)
def test_a_framework_takes_the_grids_that_its_kinds_of_parallelism_make(launcher):
    every = shapes(GPUS)
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
    layout = Layout(*grid, placement=PLACEMENTS.index(order))
    reason = problem(FRAMEWORKS[launcher], asked(), layout)
    assert (reason == "") == fits
    assert fits or reason.startswith("numbers its ranks ")


@pytest.mark.parametrize(("launcher", "near"), [("torchtitan", "1x1x64x1"), ("deepspeed", "1x1x64x1")])
def test_a_grid_that_cannot_be_expressed_is_refused_with_the_nearest_that_can(launcher, near):
    job, space = asked(), Space(gpus=GPUS)
    grid = Layout(1, 2, 32, 1)
    with pytest.raises(PerfmodelError, match=f"{launcher} cannot run gpt-20b on 1x2x32x1: it .*express is {near}$"):
        build.chosen(job, space, launcher, grid)
    found = nearest(FRAMEWORKS[launcher], job, space, grid)
    assert not problem(FRAMEWORKS[launcher], job, found)
    changes = [abs(math.log2(found.size(axis) / grid.size(axis))) for axis in AXES]
    assert sum(changes) == 2


def test_a_framework_that_can_express_no_grid_that_fits_says_so():
    with pytest.raises(PerfmodelError, match="no grid that fits suits it"):
        build.chosen(asked(), Space(gpus=GPUS), "litgpt-axonn", Layout(1, 1, 64, 1))
    with pytest.raises(NoGridError, match=r"litgpt-axonn can express none of .* grids; the fastest, "):
        build.fastest(asked(), Space(gpus=GPUS), "litgpt-axonn")


def test_the_fastest_grids_are_the_fastest_of_those_that_can_be_expressed():
    job, space = asked(), Space(gpus=GPUS, top=5)
    every, none_left = build.fastest(job, replace(space, top=500), "perfmodel")
    ours, left_out = build.fastest(job, space, "torchtitan")
    assert none_left == []
    assert ours == [layout for layout in every if layout.y == 1][:5]
    assert [text.partition(":")[0] for text in left_out] == [
        layout.text() for layout in every[: every.index(ours[-1])] if layout.y > 1
    ]


def test_a_grid_that_cannot_run_at_all_is_refused_before_any_framework():
    with pytest.raises(NoGridError, match=r"56 attention heads cannot be split evenly by x 16.*nearest that can is "):
        build.chosen(asked(), Space(gpus=GPUS), "torchtitan", Layout(16, 1, 4, 1))


def test_a_framework_is_refused_where_it_is_not_known_to_run():
    with pytest.raises(PerfmodelError, match="megatron-lm is not known to run on Intel Max 1550 tile"):
        build.fastest(asked(machine="aurora", gpus=12, batch=96), Space(gpus=12), "megatron-lm")


GRID = Layout(2, 4, 8, 1, micro_batch=4)


def test_axonns_axes_are_row_column_and_depth():
    found = told("axonn-nanogpt", GRID)
    assert numbers(found, "--G_intra_r", "--G_intra_c", "--G_intra_d") == [2, 4, 8]
    found = told("megatron-axonn", GRID)
    names = [f"--{axis}-tensor-model-parallel-size" for axis in ("row", "column", "depth")]
    assert numbers(found, *names) == [2, 4, 8]


@pytest.mark.parametrize("layout", [GRID, Layout(1, 1, 32, 2, micro_batch=2), Layout(1, 1, 8, 8, micro_batch=1)])
def test_megatron_axonns_micro_batch_is_of_a_data_group(layout):
    found = told("megatron-axonn", layout)
    micro, batch = numbers(found, "--micro-batch-size", "--global-batch-size")
    assert micro % layout.z == 0
    assert micro * layout.data * int(asked().accumulation(layout)) == batch == 512


@pytest.mark.parametrize("layout", [GRID, Layout(1, 1, 32, 2, micro_batch=2), Layout(2, 1, 8, 4, micro_batch=4)])
def test_every_rank_of_easy_mode_takes_sequences_of_its_own(layout):
    found = told("axonn-nanogpt", layout)
    size, steps = numbers(found, "--batch_size", "--gradient_accumulation_steps")
    assert steps % layout.gpus == 0, "the script divides it by its ranks"
    assert size * steps == 512


def test_a_batch_that_ranks_cannot_share_is_refused():
    assert problem(FRAMEWORKS["axonn-nanogpt"], asked(batch=96), Layout(2, 4, 8, 1)).startswith("gives every rank ")
    assert not problem(FRAMEWORKS["megatron-axonn"], asked(batch=96), Layout(2, 4, 8, 1))


def test_litgpt_is_all_of_x():
    found = told("litgpt-axonn", Layout(64, 1, 1, 1))
    assert numbers(found, "--devices", "--num_nodes") == [4, 16]
    assert numbers(found, "--train.global_batch_size", "--train.micro_batch_size")[0] == 512


@pytest.mark.parametrize("layout", [Layout(2, 1, 8, 4, micro_batch=4), Layout(1, 1, 64, 1), Layout(4, 1, 1, 16)])
def test_torchtitan_has_a_degree_for_each_axis_and_a_batch_for_each_share(layout):
    found = told("torchtitan", layout)
    names = ("tensor_parallel_degree", "data_parallel_shard_degree", "data_parallel_replicate_degree")
    assert numbers(found, *(f"--parallelism.{name}" for name in names)) == [layout.x, layout.z, layout.data]
    local, batch = numbers(found, "--training.local_batch_size", "--training.global_batch_size")
    assert local * layout.z * layout.data * int(asked().accumulation(layout)) == batch == 512


def test_torchtitan_keeps_weights_where_the_weight_cache_does():
    kept = [told("torchtitan", replace(GRID, weight_cache=cache)) for cache in (0, 1, 2)]
    assert [found["--parallelism.fsdp_reshard_after_forward"] for found in kept] == ["always", "never", "never"]


@pytest.mark.parametrize(
    ("layout", "sharded", "replicas"),
    [
        (Layout(4, 1, 1, 16), False, None),
        (Layout(4, 1, 16, 1), True, None),
        (Layout(4, 1, 8, 2), True, "2"),
    ],
)
def test_megatron_lm_shards_over_z_and_replicates_over_data(layout, sharded, replicas):
    found = told("megatron-lm", layout)
    assert found["--tensor-model-parallel-size"] == "4"
    assert ("--use-megatron-fsdp" in found) == sharded
    assert found.get("--num-distributed-optimizer-instances") == replicas
    made = flags.run(plan("perlmutter", GPUS, "megatron-lm"), layout, "out.jsonl")
    assert bool(made.unset) == sharded


def test_megatron_lm_is_told_a_decoder_that_is_no_gpt():
    found = told("megatron-lm", Layout(1, 1, 64, 1), asked("llama-3-8b"))
    assert numbers(found, "--num-query-groups", "--ffn-hidden-size", "--kv-channels") == [8, 14336, 128]
    flagged = {"--swiglu", "--disable-bias-linear", "--group-query-attention", "--untie-embeddings-and-output-weights"}
    assert flagged <= set(found)
    assert found["--position-embedding-type"] == "rope"
    gpt = told("megatron-lm", Layout(1, 1, 64, 1))
    assert not flagged & set(gpt)
    assert "--position-embedding-type" not in gpt


@pytest.mark.parametrize("launcher", ["axonn-nanogpt", "megatron-axonn"])
def test_a_decoder_that_is_no_gpt_is_refused_where_only_gpt_is_trained(launcher):
    assert problem(FRAMEWORKS[launcher], asked("llama-3-8b"), Layout(1, 1, 64, 1)).startswith(
        "trains GPT decoders alone"
    )


def test_a_model_that_is_no_decoder_is_refused():
    assert problem(FRAMEWORKS["megatron-lm"], asked("unet-7b"), Layout(1, 1, 64, 1)).startswith("trains decoders")


@pytest.mark.parametrize(
    ("layout", "zero"),
    [
        (Layout(1, 1, 1, 64), {"stage": 0}),
        (Layout(1, 1, 64, 1), {"stage": 3}),
        (Layout(1, 1, 8, 8), {"stage": 3, "mics_shard_size": 8}),
    ],
)
def test_deepspeed_is_given_a_file_with_its_stage_and_batch(layout, zero):
    made = flags.run(plan("perlmutter", GPUS, "deepspeed"), layout, "out.jsonl")
    ((name, text),) = made.files
    assert f"--deepspeed_config={name}" in made.command
    settings = json.loads(text)
    assert settings["zero_optimization"] == zero
    micro, steps = settings["train_micro_batch_size_per_gpu"], settings["gradient_accumulation_steps"]
    assert micro * steps * GPUS == settings["train_batch_size"] == question("perlmutter", GPUS).batch


@pytest.mark.parametrize("launcher", ["megatron-axonn", "megatron-lm"])
def test_recomputation_is_megatrons(launcher):
    modes = [told(launcher, replace(Layout(1, 1, 64, 1), recompute=mode)) for mode in (0, 1, 2)]
    assert [found.get("--recompute-granularity") for found in modes] == [None, "selective", "full"]
    assert modes[2]["--recompute-num-layers"] == "1"


def test_amd_leaves_out_what_megatron_axonn_has_not_there():
    assert "--use-amd" not in told("megatron-axonn", GRID)
    assert "--use-amd" in told("megatron-axonn", GRID, asked(machine="frontier"))


def test_axonns_overlap_is_the_jobs():
    job = asked()
    none = replace(job, settings=replace(job.settings, overlap=frozenset({"all-gather"})))
    all_three = {"--overlap-axonn-comm", "--overlap-axonn-reduce-scatter", "--overlap-axonn-all-gather"}
    assert all_three <= set(told("megatron-axonn", GRID))
    assert all_three & set(told("megatron-axonn", GRID, none)) == {"--overlap-axonn-all-gather"}


def test_the_launcher_is_told_every_setting_of_the_grid():
    layout = Layout(2, 1, 8, 4, placement=1, micro_batch=4, recompute=2, weight_cache=1)
    found = told("perfmodel", layout, steps=7, warmup=2, seconds=90)
    wanted = {
        "--grid": "2x1x8x4", "--batch": "512", "--seq": "2048", "--micro-batch": "4", "--recompute": "full",
        "--weight-cache": "forward", "--placement": "paper", "--overlap": "all-reduce,reduce-scatter,all-gather",
        "--steps": "7", "--warmup": "2", "--timeout": "90", "--backend": "nccl", "--out": "out.jsonl", "--resume": True,
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize("launcher", [name for name, one in FRAMEWORKS.items() if one.needs])
def test_what_no_flag_made_here_can_say_is_asked_for(launcher):
    with pytest.raises(UsageError, match=re.escape(f"--launcher {launcher} needs --arguments with ")):
        flags.run(plan("perlmutter", GPUS, launcher, arguments=()), Layout(64, 1, 1, 1), "out.jsonl")


def test_deepspeed_needs_a_script():
    with pytest.raises(UsageError, match="needs --program, the script that trains"):
        flags.run(plan("perlmutter", GPUS, "deepspeed", program=()), Layout(1, 1, 64, 1), "out.jsonl")


def test_what_the_user_adds_comes_last_and_so_wins():
    made = flags.run(plan("perlmutter", GPUS, "megatron-lm", arguments=("--lr=1", "--bf16")), Layout(1, 1, 64, 1), "o")
    assert made.command[-2:] == ("--lr=1", "--bf16")
