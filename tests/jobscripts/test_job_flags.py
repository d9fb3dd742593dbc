"""Grids in the flags of frameworks: with which batch, and what else each is told."""

import json
import re
from dataclasses import replace

import pytest

from job_requests import DEVICES, asked, plan, question, told
from perfmodel.errors import UsageError
from perfmodel.jobscripts import flags
from perfmodel.jobscripts.frameworks import FRAMEWORKS, problem
from perfmodel.parallel.choices import RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.layout import Layout

GRID = Layout(x=2, y=4, z=8, data=1, micro_batch=4)

# All-gathers of a weight in a micro-step, by recomputation and weight cache.
WEIGHT_GATHERS = ((2, 1, 1), (2, 1, 1), (3, 2, 1))


def numbers(found, *names):
    return [int(found[name]) for name in names]


def test_axonns_axes_are_row_column_and_depth():
    found = told("axonn-nanogpt", GRID)
    assert numbers(found, "--G_intra_r", "--G_intra_c", "--G_intra_d") == [2, 4, 8]
    found = told("megatron-axonn", GRID)
    names = [f"--{axis}-tensor-model-parallel-size" for axis in ("row", "column", "depth")]
    assert numbers(found, *names) == [2, 4, 8]


@pytest.mark.parametrize(
    "layout", [GRID, Layout(x=1, y=1, z=32, data=2, micro_batch=2), Layout(x=1, y=1, z=8, data=8, micro_batch=1)]
)
def test_megatron_axonns_micro_batch_is_of_a_data_group(layout):
    found = told("megatron-axonn", layout)
    micro, batch = numbers(found, "--micro-batch-size", "--global-batch-size")
    assert micro % layout.z == 0
    assert micro * layout.data * int(asked().accumulation(layout)) == batch == 512


@pytest.mark.parametrize(
    "layout", [GRID, Layout(x=1, y=1, z=32, data=2, micro_batch=2), Layout(x=2, y=1, z=8, data=4, micro_batch=4)]
)
def test_every_rank_of_easy_mode_takes_sequences_of_its_own(layout):
    found = told("axonn-nanogpt", layout)
    size, steps = numbers(found, "--batch_size", "--gradient_accumulation_steps")
    assert steps % layout.gpus == 0, "the script divides it by its ranks"
    assert size * steps == 512


def test_nanogpt_is_told_the_model_that_is_predicted_and_runs_as_many_steps():
    found = told("axonn-nanogpt", GRID, steps=7, warmup=2)
    assert found["--max_iters"] == "8"  # the script stops after one more
    wanted = {"--bias": "True", "--dropout": "0.0", "--dtype": "bfloat16", "--compile": "False", "--eval_iters": "1"}
    assert {name: found[name] for name in wanted} == wanted
    assert told("axonn-nanogpt", GRID, asked(dropout=True))["--dropout"] == "0.1"


def test_the_number_format_is_the_jobs():
    half, whole = asked(machine="summit", gpus=66), asked(machine="localhost-cpu", gpus=DEVICES)
    assert (half.dtype, whole.dtype) == ("fp16", "fp32")
    grid = Layout(x=1, y=1, z=8, data=1)
    names = {
        "axonn-nanogpt": ("--dtype", "float16", "float32"),
        "litgpt-axonn": ("--precision", "16-mixed", "32-true"),
        "megatron-axonn": ("--fp16", True, None),
        "megatron-lm": ("--fp16", True, None),
    }
    for launcher, (name, in_half, in_whole) in names.items():
        assert told(launcher, grid, half).get(name) == in_half
        assert told(launcher, grid, whole).get(name) == in_whole
        assert "--bf16" not in {**told(launcher, grid, half), **told(launcher, grid, whole)}
    assert problem(FRAMEWORKS["torchtitan"], half, grid) == "trains in bf16 or fp32, not in fp16"
    assert told("torchtitan", grid, whole)["--training.mixed_precision_param"] == "float32"
    (zero,) = flags.run(replace(plan("summit", 66, "deepspeed"), job=half), grid, "out.jsonl").files
    settings = json.loads(zero[1])
    assert (settings["fp16"], settings["bf16"]) == ({"enabled": True}, {"enabled": False})


def test_litgpt_is_all_of_x():
    found = told("litgpt-axonn", Layout(x=64, y=1, z=1, data=1))
    assert numbers(found, "--devices", "--num_nodes") == [4, 16]
    assert numbers(found, "--train.global_batch_size", "--train.micro_batch_size")[0] == 512
    made = flags.run(plan("perlmutter", DEVICES, "litgpt-axonn"), Layout(x=64, y=1, z=1, data=1), "out.jsonl")
    assert [variable[:2] for variable in made.environment] == [("WANDB_MODE", "offline")]


@pytest.mark.parametrize(
    "layout",
    [Layout(x=2, y=1, z=8, data=4, micro_batch=4), Layout(x=1, y=1, z=64, data=1), Layout(x=1, y=1, z=1, data=64)],
)
def test_torchtitan_has_a_degree_for_each_axis_and_a_batch_for_each_share(layout):
    found = told("torchtitan", layout)
    names = ("tensor_parallel_degree", "data_parallel_shard_degree", "data_parallel_replicate_degree")
    assert numbers(found, *(f"--parallelism.{name}" for name in names)) == [layout.x, layout.z, layout.data]
    local, batch = numbers(found, "--training.local_batch_size", "--training.global_batch_size")
    assert local * layout.z * layout.data * int(asked().accumulation(layout)) == batch == 512


@pytest.mark.parametrize("mode", FRAMEWORKS["torchtitan"].modes)
def test_torchtitan_keeps_weights_where_they_are_gathered_once(mode):
    recompute, cache = RECOMPUTES.index(mode[0]), WEIGHT_CACHES.index(mode[1])
    found = told("torchtitan", replace(GRID, recompute=recompute, weight_cache=cache))
    gathers = {"never": 1, "always": 2}[found["--parallelism.fsdp_reshard_after_forward"]]
    assert gathers == WEIGHT_GATHERS[recompute][cache]


@pytest.mark.parametrize(
    ("arguments", "flag", "last"),
    [
        (("--job.config_file=c.toml",), "full", "--job.config_file=c.toml"),
        (("--module", "llama3", "--config=llama3_8b"), None, "activation-checkpoint:full"),  # torchtitan 0.3
        (("--module=llama3", "activation_checkpoint:none"), None, "activation_checkpoint:none"),
    ],
)
def test_torchtitan_is_told_how_to_recompute_as_its_version_reads_it(arguments, flag, last):
    layout = replace(GRID, recompute=2, weight_cache=1)
    made = flags.run(plan("perlmutter", DEVICES, "torchtitan", arguments=arguments), layout, "out.jsonl").command
    assert made[-1] == last
    assert told("torchtitan", layout, arguments=arguments).get("--activation_checkpoint.mode") == flag


@pytest.mark.parametrize("recompute", range(3))
@pytest.mark.parametrize("cache", range(3))
def test_megatron_axonn_caches_all_layers_where_weights_are_gathered_once(recompute, cache):
    found = told("megatron-axonn", replace(GRID, recompute=recompute, weight_cache=cache))
    cached = found.get("--num-layers-for-caching-weights-in-depth-tensor-parallel-all-gather")
    assert cached == ("32" if WEIGHT_GATHERS[recompute][cache] == 1 else None)


@pytest.mark.parametrize(
    ("layout", "sharded", "replicas"),
    [
        (Layout(x=4, y=1, z=1, data=16), False, None),
        (Layout(x=4, y=1, z=16, data=1), True, None),
        (Layout(x=4, y=1, z=8, data=2), True, "2"),
    ],
)
def test_megatron_lm_shards_over_z_and_replicates_over_data(layout, sharded, replicas):
    found = told("megatron-lm", layout)
    assert found["--tensor-model-parallel-size"] == "4"
    assert ("--use-megatron-fsdp" in found) == sharded
    assert found.get("--num-distributed-optimizer-instances") == replicas
    ((name, value, _),) = flags.run(plan("perlmutter", DEVICES, "megatron-lm"), layout, "out.jsonl").environment
    assert (name, value) == ("CUDA_DEVICE_MAX_CONNECTIONS", None if sharded else "1")
    assert "--outer-dp-sharding-strategy" not in found, "unknown to the release that was read, and the default of later"


@pytest.mark.parametrize(
    ("layout", "overlap", "told_so"),
    [
        (Layout(x=4, y=1, z=1, data=16), {"data"}, True),
        (Layout(x=4, y=1, z=1, data=16), {"all-reduce"}, False),
        (Layout(x=4, y=1, z=16, data=1), {"data"}, False),  # Megatron-FSDP overlaps by itself
    ],
)
def test_megatron_lm_overlaps_over_data_where_it_is_asked_to(layout, overlap, told_so):
    found = told("megatron-lm", layout, asked(overlap=frozenset(overlap)))
    assert ("--overlap-grad-reduce" in found) == told_so


@pytest.mark.parametrize("launcher", ["megatron-axonn", "megatron-lm"])
def test_megatrons_attention_and_dropout_are_the_jobs(launcher):
    layout = Layout(x=1, y=1, z=64, data=1)
    plain, other = told(launcher, layout), told(launcher, layout, asked(dropout=True, flash_attention=False))
    assert numbers(plain, "--attention-dropout", "--hidden-dropout") == [0, 0]
    assert "--attention-dropout" not in other  # its own 0.1
    flash, unfused = ("--use-flash-attn", True), ("--attention-backend", "unfused")
    wanted = (flash[1], None) if launcher == "megatron-axonn" else (None, unfused[1])
    name = flash[0] if launcher == "megatron-axonn" else unfused[0]
    assert (plain.get(name), other.get(name)) == wanted


@pytest.mark.parametrize("word", ["--data-path", "--train-data-path=a", "--data-args-path", "--mock-data"])
def test_megatron_lm_makes_data_up_where_none_is_given(word):
    layout = Layout(x=1, y=1, z=64, data=1)
    made_up = told("megatron-lm", layout)
    assert (made_up["--tokenizer-type"], made_up["--vocab-size"]) == ("NullTokenizer", "51199")
    given = flags.run(plan("perlmutter", DEVICES, "megatron-lm", arguments=(word, "b")), layout, "out.jsonl").command
    assert [one for one in given if one.startswith(("--mock-data", "--tokenizer"))] == [word] * (word == "--mock-data")


def test_megatron_lm_is_told_a_decoder_that_is_no_gpt():
    found = told("megatron-lm", Layout(x=1, y=1, z=64, data=1), asked("llama-3-8b"))
    assert numbers(found, "--num-query-groups", "--ffn-hidden-size", "--kv-channels") == [8, 14336, 128]
    flagged = {"--swiglu", "--disable-bias-linear", "--group-query-attention", "--untie-embeddings-and-output-weights"}
    assert flagged <= set(found)
    assert found["--position-embedding-type"] == "rope"
    gpt = told("megatron-lm", Layout(x=1, y=1, z=64, data=1))
    assert not flagged & set(gpt)
    assert "--position-embedding-type" not in gpt


@pytest.mark.parametrize(
    ("layout", "zero"),
    [
        (Layout(x=1, y=1, z=1, data=64), {"stage": 0}),
        (Layout(x=1, y=1, z=64, data=1), {"stage": 3, "overlap_comm": True, "stage3_max_reuse_distance": 0}),
        (
            Layout(x=1, y=1, z=8, data=8),
            {"stage": 3, "overlap_comm": True, "stage3_max_reuse_distance": 0, "mics_shard_size": 8},
        ),
    ],
)
def test_deepspeed_is_given_a_file_with_its_stage_and_batch(layout, zero):
    made = flags.run(plan("perlmutter", DEVICES, "deepspeed"), layout, "out.jsonl")
    ((name, text),) = made.files
    assert f"--deepspeed_config={name}" in made.command
    settings = json.loads(text)
    assert settings["zero_optimization"] == zero
    micro, steps = settings["train_micro_batch_size_per_gpu"], settings["gradient_accumulation_steps"]
    assert micro * steps * DEVICES == settings["train_batch_size"] == question("perlmutter", DEVICES).batch


@pytest.mark.parametrize("recompute", range(3))
@pytest.mark.parametrize("cache", range(3))
def test_deepspeed_keeps_gathered_weights_as_long_as_the_weight_cache(recompute, cache):
    job, layout = asked(), Layout(x=1, y=1, z=64, data=1, recompute=recompute, weight_cache=cache)
    ((_, text),) = flags.run(plan("perlmutter", DEVICES, "deepspeed"), layout, "out.jsonl").files
    zero = json.loads(text)["zero_optimization"]
    block = (job.model.parameters - sum(layer.parameters for layer in embedding_and_head(job))) // 32
    passes = 3 if recompute == 2 else 2
    # Parameters used between a weight's last use forward and its next one, and between its first use and its last.
    within, all_the_way = 2 * block, passes * job.model.parameters
    wanted = {1: all_the_way, 2: within if recompute == 2 else 0, 3: 0}[WEIGHT_GATHERS[recompute][cache]]
    assert zero["stage3_max_reuse_distance"] == wanted
    assert zero.get("stage3_max_live_parameters") == (all_the_way if wanted == all_the_way else None)


def embedding_and_head(job):
    return [layer for block, layer in job.model.layers() if not block.checkpointed]


@pytest.mark.parametrize("launcher", ["megatron-axonn", "megatron-lm"])
def test_recomputation_is_megatrons(launcher):
    modes = [told(launcher, replace(Layout(x=1, y=1, z=64, data=1), recompute=mode)) for mode in (0, 1, 2)]
    assert [found.get("--recompute-granularity") for found in modes] == [None, "selective", "full"]
    assert modes[2]["--recompute-num-layers"] == "1"


def test_amd_leaves_out_what_megatron_axonn_has_not_there():
    assert "--use-amd" not in told("megatron-axonn", GRID)
    assert "--use-amd" in told("megatron-axonn", GRID, asked(machine="frontier"))


def test_axonns_overlap_is_the_jobs():
    all_three = {"--overlap-axonn-comm", "--overlap-axonn-reduce-scatter", "--overlap-axonn-all-gather"}
    assert all_three <= set(told("megatron-axonn", GRID))
    two = told("megatron-axonn", GRID, asked(overlap=frozenset({"all-reduce", "all-gather"})))
    assert all_three & set(two) == {"--overlap-axonn-comm", "--overlap-axonn-all-gather"}
    assert not all_three & set(told("megatron-axonn", GRID, asked(overlap=frozenset())))


def test_the_launcher_is_told_every_setting_of_the_grid():
    layout = Layout(x=2, y=1, z=8, data=4, placement=1, micro_batch=4, recompute=2, weight_cache=1)
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
        flags.run(plan("perlmutter", DEVICES, launcher, arguments=()), Layout(x=64, y=1, z=1, data=1), "out.jsonl")


def test_deepspeed_needs_a_script():
    with pytest.raises(UsageError, match="needs --program, the script that trains"):
        flags.run(plan("perlmutter", DEVICES, "deepspeed", program=()), Layout(x=1, y=1, z=64, data=1), "out.jsonl")


def test_what_the_user_adds_comes_last_and_so_wins():
    added = plan("perlmutter", DEVICES, "megatron-lm", arguments=("--lr=1", "--bf16"))
    made = flags.run(added, Layout(x=1, y=1, z=64, data=1), "out.jsonl")
    assert made.command[-2:] == ("--lr=1", "--bf16")
