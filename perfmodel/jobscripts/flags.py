"""The command that each rank starts: a grid and its settings in the flags of a framework.

The names and meanings of flags are from the sources in `frameworks.FRAMEWORKS`, or those cited in comments.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from perfmodel.errors import UsageError
from perfmodel.jobscripts.frameworks import FRAMEWORKS, shared_steps
from perfmodel.jobscripts.request import Run, vendor
from perfmodel.models.model import Transformer
from perfmodel.parallel.choices import OVERLAPS, RECOMPUTES, WEIGHT_CACHES
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import NAMED_PLACEMENTS, Layout
from perfmodel.parallel.passes import Passes

_DEEPSPEED_FILE = "deepspeed-{grid}.json"
_MEGATRON_FULL = ("--recompute-granularity=full", "--recompute-method=uniform", "--recompute-num-layers=1")
_MEGATRON_DATA = ("--mock-data", "--data-path", "--data-args-path", "--per-split-data-args-path")
_MEGATRON_SPLITS = ("--train-data-path", "--valid-data-path", "--test-data-path")
_TORCH_NAMES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_LIGHTNING_NAMES = {"bf16": "bf16-mixed", "fp16": "16-mixed", "fp32": "32-true"}
_QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is the same for every grid. `model` and `machine` are as the user named them.

    `seconds`: time limit per grid; `shared`: other grids of the same job wait until a grid ends.
    """

    launcher: str
    job: Job
    model: str
    machine: str
    steps: int = 10
    warmup: int = 3
    seconds: int = 600
    shared: bool = False
    program: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


def run(plan: Plan, layout: Layout, results: str) -> Run:
    """The run of one grid; `results` is the file to which it appends its measurements."""
    framework = FRAMEWORKS[plan.launcher]
    if framework.needs and not plan.arguments:
        raise UsageError(f"--launcher {plan.launcher} needs --arguments with {framework.needs}")
    program = plan.program or framework.program
    if not program:
        raise UsageError(f"--launcher {plan.launcher} needs --program, the script that trains")
    files = ((_deepspeed_file(layout), _deepspeed_settings(plan, layout)),) if plan.launcher == "deepspeed" else ()
    flags = _FLAGS[plan.launcher](plan, layout, results)
    first, then = (plan.arguments, flags) if plan.launcher == "litgpt-axonn" else (flags, plan.arguments)
    ends_itself = plan.launcher == "perfmodel"
    return Run(
        grid=layout.text(), title=title(plan.job, layout), command=(*program, *first, *then, *_last(plan, layout)),
        files=files,
        environment=_environment(plan, layout), seconds=plan.seconds if plan.shared and not ends_itself else 0,
    )  # fmt: skip


def title(job: Job, layout: Layout) -> str:
    """The settings of a grid in words."""
    steps = int(job.accumulation(layout))
    recompute, cache = RECOMPUTES[int(layout.recompute)], WEIGHT_CACHES[int(layout.weight_cache)]
    micro_batches = f"micro-batch {layout.micro_batch} per device x {steps} micro-steps"
    return f"{micro_batches}, recompute {recompute}, weight cache {cache}"


def _perfmodel(plan: Plan, layout: Layout, results: str) -> tuple[str, ...]:
    job = plan.job
    overlap = ",".join(kind for kind in OVERLAPS if kind in job.settings.overlap) or "none"
    placement = next(name for name in ("axonn", "paper") if int(layout.placement) in NAMED_PLACEMENTS[name])
    backend = "gloo" if vendor(job.machine) == "CPU" else "nccl"
    dtype = ("--dtype=fp32",) if job.dtype == "fp16" else ()  # the default of `run` on GPUs is bf16, which these lack
    return (
        "run", f"--model={plan.model}", f"--machine={plan.machine}", f"--grid={layout.text()}", f"--batch={job.batch}",
        f"--seq={job.sequence}", f"--micro-batch={layout.micro_batch}",
        f"--recompute={RECOMPUTES[int(layout.recompute)]}", f"--weight-cache={WEIGHT_CACHES[int(layout.weight_cache)]}",
        f"--placement={placement}", f"--overlap={overlap}",
        "--flash-attention" if job.settings.flash_attention else "--no-flash-attention",
        f"--steps={plan.steps}", f"--warmup={plan.warmup}", f"--timeout={plan.seconds}", f"--backend={backend}",
        *dtype, f"--out={results}", "--resume",
    )  # fmt: skip


def _axonn_nanogpt(plan: Plan, layout: Layout, results: str) -> tuple[str, ...]:
    """`batch_size` is per rank; `gradient_accumulation_steps` is over all ranks, by whose number the script divides.

    It stops one step after `max_iters`. Its authors do not compile with AxoNN, and evaluate one batch; the default
    would be 400 before the first step.
    """
    del results
    shape, ranks, steps = _shape(plan.job), int(layout.gpus), shared_steps(plan.job, layout)
    return (
        f"--G_intra_r={layout.x}", f"--G_intra_c={layout.y}", f"--G_intra_d={layout.z}",
        f"--n_layer={shape.layers}", f"--n_head={shape.heads}", f"--n_embd={shape.hidden}",
        f"--block_size={plan.job.sequence}", f"--batch_size={plan.job.batch // (ranks * steps)}",
        f"--gradient_accumulation_steps={ranks * steps}", f"--gradient_checkpointing={bool(layout.recompute)}",
        f"--max_iters={_iterations(plan) - 1}", "--bias=True", f"--dropout={0.1 if _dropout(plan) else 0.0}",
        f"--dtype={_TORCH_NAMES[plan.job.dtype]}", "--compile=False", "--eval_iters=1",
    )  # fmt: skip


def _megatron_axonn(plan: Plan, layout: Layout, results: str) -> tuple[str, ...]:
    """A micro-batch here belongs to a data group, so it holds the shares of all ranks of Z.

    Cached layers gather once; what others keep between forward and backward pass depends on AxoNN's version.
    """
    del results
    amd = ("--use-amd", "--no-gradient-accumulation-fusion") if vendor(plan.job.machine) == "AMD" else ()
    kinds = {"all-reduce": "comm", "reduce-scatter": "reduce-scatter", "all-gather": "all-gather"}
    overlap = (f"--overlap-axonn-{flag}" for kind, flag in kinds.items() if kind in plan.job.settings.overlap)
    cached = _shape(plan.job).layers if _gathers(layout) == 1 else 0
    return (
        f"--row-tensor-model-parallel-size={layout.x}", f"--column-tensor-model-parallel-size={layout.y}",
        f"--depth-tensor-model-parallel-size={layout.z}", "--pipeline-model-parallel-size=1",
        *_megatron_model(plan), f"--micro-batch-size={layout.micro_batch * layout.z}", *_megatron_steps(plan),
        *(("--use-flash-attn",) if plan.job.settings.flash_attention else ()), *_megatron_recompute(layout), *overlap,
        *((f"--num-layers-for-caching-weights-in-depth-tensor-parallel-all-gather={cached}",) if cached else ()), *amd,
    )  # fmt: skip


def _litgpt_axonn(plan: Plan, layout: Layout, results: str) -> tuple[str, ...]:
    del results
    devices = min(int(layout.gpus), plan.job.machine.node_devices)
    steps = shared_steps(plan.job, layout)
    return (
        "--strategy=axonn", f"--devices={devices}", f"--num_nodes={int(layout.gpus) // devices}",
        f"--train.global_batch_size={plan.job.batch}",
        f"--train.micro_batch_size={plan.job.batch // (int(layout.gpus) * steps)}",
        f"--train.max_seq_length={plan.job.sequence}", f"--train.max_steps={_iterations(plan)}",
        f"--precision={_LIGHTNING_NAMES[plan.job.dtype]}", "--eval.final_validation=false",
    )  # fmt: skip


def _torchtitan(plan: Plan, layout: Layout, results: str) -> tuple[str, ...]:
    """A local batch belongs to one rank of Z and data, and is shared by the ranks of X."""
    del results
    return (
        f"--parallelism.tensor_parallel_degree={layout.x}", f"--parallelism.data_parallel_shard_degree={layout.z}",
        f"--parallelism.data_parallel_replicate_degree={layout.data}",
        f"--parallelism.fsdp_reshard_after_forward={'never' if _gathers(layout) == 1 else 'always'}",
        f"--training.local_batch_size={layout.micro_batch}", f"--training.global_batch_size={plan.job.batch}",
        f"--training.seq_len={plan.job.sequence}", f"--training.steps={_iterations(plan)}",
        f"--training.mixed_precision_param={_TORCH_NAMES[plan.job.dtype]}", "--metrics.log_freq=1",
        *(() if _subcommands(plan) else (f"--activation_checkpoint.mode={RECOMPUTES[int(layout.recompute)]}",)),
    )  # fmt: skip


def _last(plan: Plan, layout: Layout) -> tuple[str, ...]:
    """A sub-command of torchtitan; no other flag may follow it."""
    given = any(word.replace("_", "-").startswith("activation-checkpoint:") for word in plan.arguments)
    return (f"activation-checkpoint:{RECOMPUTES[int(layout.recompute)]}",) if _subcommands(plan) and not given else ()


def _subcommands(plan: Plan) -> bool:
    """Whether this is torchtitan 0.3, recognized by its flag for the model: there recomputation is a sub-command."""
    return plan.launcher == "torchtitan" and any(word.partition("=")[0] == "--module" for word in plan.arguments)


def _megatron_lm(plan: Plan, layout: Layout, results: str) -> tuple[str, ...]:
    """A micro-batch belongs to one rank of Z and data. Optimizer instances are replicas of what Z shards.

    Megatron-FSDP always overlaps; gradients over data overlap on request. A NullTokenizer has one token more than its
    argument.
    """
    del results
    sharded = (
        "--use-megatron-fsdp", "--data-parallel-sharding-strategy=optim_grads_params", "--use-distributed-optimizer",
        "--no-gradient-accumulation-fusion", "--ckpt-format=fsdp_dtensor",
    )  # fmt: skip
    instances = (f"--num-distributed-optimizer-instances={layout.data}",)
    mock = ("--mock-data", "--tokenizer-type=NullTokenizer", f"--vocab-size={_shape(plan.job).vocabulary - 1}")
    given = any(word.partition("=")[0] in (*_MEGATRON_DATA, *_MEGATRON_SPLITS) for word in plan.arguments)
    beside = layout.z == 1 and layout.data > 1 and "data" in plan.job.settings.overlap
    return (
        f"--tensor-model-parallel-size={layout.x}", "--pipeline-model-parallel-size=1",
        *(sharded if layout.z > 1 else ()), *(instances if layout.z > 1 and layout.data > 1 else ()),
        *(("--overlap-grad-reduce",) if beside else ()), *_megatron_model(plan), *_megatron_decoder(_shape(plan.job)),
        *(() if plan.job.settings.flash_attention else ("--attention-backend=unfused",)),
        f"--micro-batch-size={layout.micro_batch}", *_megatron_steps(plan), *_megatron_recompute(layout),
        *(() if given else mock),
    )  # fmt: skip


def _deepspeed(plan: Plan, layout: Layout, results: str) -> tuple[str, ...]:
    del plan, results
    return ("--deepspeed", f"--deepspeed_config={_deepspeed_file(layout)}")


def _deepspeed_file(layout: Layout) -> str:
    return _DEEPSPEED_FILE.format(grid=layout.text())


def _deepspeed_settings(plan: Plan, layout: Layout) -> str:
    """ZeRO-3 over Z; with data, MiCS, which shards in groups of Z (the model is built in MiCS_Init).

    DeepSpeed 0.19.7 and later have no MiCS, and refuse its key.
    """
    job = plan.job
    zero: dict[str, int | bool] = {"stage": 0}
    if layout.z > 1:
        zero = {"stage": 3, "overlap_comm": "reduce-scatter" in job.settings.overlap, **_kept_weights(job, layout)}
    if layout.z > 1 and layout.data > 1:
        zero["mics_shard_size"] = int(layout.z)
    settings = {
        "train_batch_size": job.batch,
        "train_micro_batch_size_per_gpu": int(layout.micro_batch),
        "gradient_accumulation_steps": int(job.accumulation(layout)),
        "bf16": {"enabled": job.dtype == "bf16"},
        "fp16": {"enabled": job.dtype == "fp16"},
        "zero_optimization": zero,
    }
    return json.dumps(settings, indent=2)


def _kept_weights(job: Job, layout: Layout) -> dict[str, int]:
    """How long ZeRO-3 keeps gathered weights: it releases those not used again within this number of parameters.

    The search starts at the end of a submodule and covers the micro-step (partitioned_param_coordinator.py).
    """
    if _gathers(layout) == 1:
        every = (int(Passes.of(layout).forward) + 1) * job.model.parameters
        return {"stage3_max_reuse_distance": every, "stage3_max_live_parameters": every}
    recomputed = [block.layers for block in job.model.blocks if block.checkpointed]
    largest = max(sum(layer.parameters for layer in layers) for layers in recomputed)
    return {"stage3_max_reuse_distance": 2 * largest if layout.weight_cache else 0}  # forward again, and back


def _megatron_model(plan: Plan) -> tuple[str, ...]:
    shape = _shape(plan.job)
    return (
        f"--num-layers={shape.layers}", f"--hidden-size={shape.hidden}", f"--num-attention-heads={shape.heads}",
        f"--seq-length={plan.job.sequence}",
        f"--max-position-embeddings={max(plan.job.sequence, shape.learned_positions)}",
    )  # fmt: skip


def _megatron_decoder(shape: Transformer) -> tuple[str, ...]:
    """The flags of a decoder's architecture in Megatron-LM, which builds GPT by default."""
    grouped = shape.kv_heads is not None and shape.kv_heads != shape.heads
    told = {
        f"--ffn-hidden-size={shape.feed_forward_width}": True,
        f"--kv-channels={shape.head_width}": True,
        "--group-query-attention": grouped,
        f"--num-query-groups={shape.kv_heads}": grouped,
        "--swiglu": shape.gated,
        "--normalization=RMSNorm": shape.rms_norm,
        "--disable-bias-linear": not shape.bias,
        "--add-qkv-bias": bool(shape.qkv_bias) and not shape.bias,
        "--qk-layernorm": shape.query_key_norm,
        "--untie-embeddings-and-output-weights": not shape.tied,
        "--position-embedding-type=rope": not shape.learned_positions,
    }
    return tuple(flag for flag, wanted in told.items() if wanted)


def _megatron_steps(plan: Plan) -> tuple[str, ...]:
    half = (f"--{plan.job.dtype}",) if plan.job.dtype in ("bf16", "fp16") else ()
    no_dropout = () if _dropout(plan) else ("--attention-dropout=0", "--hidden-dropout=0")
    return (
        f"--global-batch-size={plan.job.batch}", f"--train-iters={_iterations(plan)}", "--lr=1.5e-4", *half,
        *no_dropout, "--log-interval=1", "--eval-iters=0", "--distributed-backend=nccl",
    )  # fmt: skip


def _megatron_recompute(layout: Layout) -> tuple[str, ...]:
    modes = ((), ("--recompute-granularity=selective",), _MEGATRON_FULL)
    return modes[int(layout.recompute)]


def _environment(plan: Plan, layout: Layout) -> tuple[tuple[str, str | None, str], ...]:
    """Variables that must be set or unset for a framework; both Megatrons check the number of queues at the start."""
    if plan.launcher == "megatron-lm" and layout.z > 1:
        return ((_QUEUES, None, "Megatron-FSDP does not start with one queue, since it could not overlap"),)
    if plan.launcher in ("megatron-lm", "megatron-axonn"):
        return ((_QUEUES, "1", "one queue keeps the launch order; Megatron does not start with more"),)
    if plan.launcher == "litgpt-axonn":
        return (("WANDB_MODE", "offline", "logs stay local, since compute nodes may not reach Weights & Biases"),)
    return ()


def _gathers(layout: Layout) -> int:
    """All-gathers of a block's weights per micro-step."""
    return int(Passes.of(layout).gathers)


def _dropout(plan: Plan) -> bool:
    return plan.job.settings.dropout


def _shape(job: Job) -> Transformer:
    if job.model.transformer is None:
        raise UsageError(f"{job.model.name} is not a decoder that is described by layers, width and heads")
    return job.model.transformer


def _iterations(plan: Plan) -> int:
    return plan.steps + plan.warmup


_FLAGS: Mapping[str, Callable[[Plan, Layout, str], tuple[str, ...]]] = {
    "perfmodel": _perfmodel,
    "axonn-nanogpt": _axonn_nanogpt,
    "megatron-axonn": _megatron_axonn,
    "litgpt-axonn": _litgpt_axonn,
    "torchtitan": _torchtitan,
    "megatron-lm": _megatron_lm,
    "deepspeed": _deepspeed,
}
