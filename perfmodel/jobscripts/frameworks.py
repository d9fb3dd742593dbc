"""Training frameworks: which grids and settings each can express, and the order in which it numbers ranks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from perfmodel.errors import PerfmodelError, UsageError
from perfmodel.jobscripts.request import one_device_each, vendor
from perfmodel.machines.machine import Machine
from perfmodel.parallel.axes import AXONN, PAPER, Placement
from perfmodel.parallel.choices import MAX_COUNT, RECOMPUTES, WEIGHT_CACHES, Recompute, WeightCache
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import PLACEMENTS, Layout
from perfmodel.search.no_answer import distance
from perfmodel.search.search import Space, rank

_GPUS = ("NVIDIA", "AMD")
# The order in which other frameworks number ranks, with all axes that they can split; they refuse other axes.
_COLUMN_FIRST: Placement = ("y", "x", "z", "data")
_ROW_FIRST: Placement = ("x", "y", "z", "data")
# Weights are gathered once or twice in a micro-step, and recomputation shares the backward pass's gather: FSDP.
_ONCE: tuple[tuple[Recompute, WeightCache], ...] = (("none", "forward"), ("none", "all"), ("full", "all"))
_TWICE: tuple[tuple[Recompute, WeightCache], ...] = (("none", "none"), ("full", "forward"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """One framework, with the sources of what is stated about it.

    `traits`: the framework of `perfmodel.frameworks` whose traits it has. `orders`: how it numbers ranks, neighbours
    first. `program`: what each rank starts by default. `needs`: what --arguments must say, since no flag made here can.
    `vendors`: makers of the devices on which it is known to run. `modes`: recomputations and weight caches that it
    supports, empty for all. `sees_node`: every rank must see all devices of its node, and more than one.
    """

    name: str
    traits: str
    source: str
    orders: tuple[Placement, ...]
    program: tuple[str, ...]
    refuses: Callable[[Job, Layout], str]
    vendors: tuple[str, ...] = _GPUS
    needs: str = ""
    modes: tuple[tuple[Recompute, WeightCache], ...] = ()
    sees_node: bool = False

    @property
    def told_modes(self) -> str:
        """The modes as text."""
        return ", ".join(f"{recompute} with {cache}" for recompute, cache in self.modes) or "all"


def problem(framework: Framework, job: Job, layout: Layout) -> str:
    """Why a framework cannot run a model on a grid, empty if it can."""
    order = PLACEMENTS[int(layout.placement)]
    split = [axis for axis in order if layout.size(axis) > 1]
    if all([axis for axis in one if axis in split] != split for one in framework.orders):
        names = " or ".join(",".join(one) for one in framework.orders)
        return f"numbers its ranks {names}, neighbours first, not {','.join(order)}"
    mode = RECOMPUTES[int(layout.recompute)], WEIGHT_CACHES[int(layout.weight_cache)]
    if framework.modes and mode not in framework.modes:
        return f"has no recompute {mode[0]} with weight cache {mode[1]}, only {framework.told_modes}"
    return framework.refuses(job, layout)


def suited(framework: Framework, job: Job, space: Space) -> Space:
    """The same space with only the settings that a framework supports; raises if none is left."""
    own = replace(space, only=framework.modes)
    if not own.modes(job.settings):
        asked = f"--recompute {space.recompute or 'any'} --weight-cache {space.weight_cache or 'any'}"
        raise UsageError(f"{framework.name} has no {asked}; wanted recompute with weight cache: {framework.told_modes}")
    return own


def refuse(framework: Framework, job: Job, space: Space, layout: Layout) -> None:
    """Raise with the reason, and the nearest grid that the framework can express, if it cannot express this one."""
    if not (reason := problem(framework, job, layout)):
        return
    near = nearest(framework, job, space, layout)
    instead = f"the nearest grid that it can express is {near.text()}" if near else "no grid that fits can be expressed"
    raise PerfmodelError(f"{framework.name} cannot run {job.model.name} on {layout.text()}: it {reason}; {instead}")


def refuse_device(framework: Framework, job: Job) -> None:
    """Raise if a framework is not known to run on a machine's devices, or on those that each rank sees."""
    if reason := device_problem(framework, job.machine):
        raise PerfmodelError(f"{framework.name} {reason}")


def device_problem(framework: Framework, machine: Machine) -> str:
    """Why a framework cannot use a machine's devices, empty if it can."""
    if vendor(machine) not in framework.vendors:
        return f"is not known to run on {machine.device.name}; known: {', '.join(framework.vendors)}"
    if framework.sees_node and (machine.node_devices == 1 or one_device_each(machine)):
        return f"needs ranks that see several devices of their node, but on {machine.name} each sees only its own"
    return ""


def nearest(framework: Framework, job: Job, space: Space, wanted: Layout) -> Layout | None:
    """The grid that fits, that the framework can express, and that differs least from `wanted`."""
    found = rank(job, replace(space, top=MAX_COUNT, only=framework.modes)).layouts
    rows = [found.take(row) for row in range(len(found.x))]  # type: ignore[arg-type]
    possible = [layout for layout in rows if not problem(framework, job, layout)]
    return min(possible, key=lambda layout: distance(layout, wanted), default=None)


def shared_steps(job: Job, layout: Layout) -> int:
    """Micro-steps if every rank, also of X and Y, takes its own sequences; 0 if they cannot be divided.

    AxoNN's easy mode passes activations on like pure data parallelism. The result is the predicted number of steps,
    or the next one that divides the batch evenly.
    """
    whole, rest = divmod(job.batch, int(layout.gpus))
    predicted = int(job.accumulation(layout))
    return 0 if rest else next((steps for steps in range(min(predicted, whole), whole + 1) if whole % steps == 0), 0)


def _any_grid(job: Job, layout: Layout) -> str:
    del job, layout
    return ""


def _axonn_nanogpt(job: Job, layout: Layout) -> str:
    return _no_gpt(job) or _flash_alone(job) or _no_shares(job, layout)


def _megatron_axonn(job: Job, layout: Layout) -> str:
    """Its pretrain_gpt.py enters optimize_communication only with --overlap-axonn-comm."""
    overlap = job.settings.overlap
    if "data" in overlap and layout.data > 1:
        return "overlaps nothing over data, so it needs --overlap without data"
    if overlap & {"reduce-scatter", "all-gather"} and "all-reduce" not in overlap:
        return "overlaps reduce-scatters and all-gathers only with all-reduces, so --overlap needs all-reduce, too"
    return _no_gpt(job)


def _litgpt_axonn(job: Job, layout: Layout) -> str:
    if layout.x != layout.gpus:
        return "splits only over X (G_intra_r is all of its ranks)"
    return _flash_alone(job) or _no_shares(job, layout)


def _torchtitan(job: Job, layout: Layout) -> str:
    """Its mixed precision is FSDP's, so replicas of tensor-parallel ranks also need FSDP (its infra/parallelize)."""
    if reason := _tensor_along_x(layout) or _flash_alone(job):
        return reason
    if job.dtype == "fp16":
        return "trains in bf16 or fp32, not in fp16"
    if layout.x > 1 and layout.z == 1 and (layout.data > 1 or job.dtype == "bf16"):
        return "splits over X only together with Z: without Z, X has neither mixed precision nor data parallelism"
    if layout.x > 1 and job.sequence % (2 * layout.x):
        return f"splits sequences of tokens by 2 * X, and {job.sequence} is not a multiple of {2 * layout.x}"
    return ""


def _tensor_along_x(layout: Layout) -> str:
    return "splits layers only over X, not over Y" if layout.y > 1 else ""


def _megatron_lm(job: Job, layout: Layout) -> str:
    shape = job.model.transformer
    if shape is None:
        return "only trains decoders that are described by layers, width and heads"
    apart = shape.output_bias not in (None, shape.bias) or (shape.bias and shape.qkv_bias is False)
    if shape.norms != 2 or shape.embedding_norm or shape.head_bias or apart:
        return "has no flags for this model's norms and biases"
    return _tensor_along_x(layout)


def _deepspeed(job: Job, layout: Layout) -> str:
    del job
    return "shards only over Z and data (ZeRO), not over X and Y" if layout.x * layout.y > 1 else ""


def _no_gpt(job: Job) -> str:
    transformer = job.model.transformer
    gpt = transformer is not None and transformer.is_gpt
    return "" if gpt else "only trains GPT decoders: GELU of four times the width, a head tied to the embedding, biases"


def _flash_alone(job: Job) -> str:
    return "" if job.settings.flash_attention else "has no other attention, so it needs --flash-attention"


def _no_shares(job: Job, layout: Layout) -> str:
    if shared_steps(job, layout):
        return ""
    return f"gives every rank its own sequences, and {job.batch} cannot be divided evenly among {layout.gpus}"


FRAMEWORKS: Mapping[str, Framework] = {
    one.name: one
    for one in (
        Framework(
            name="perfmodel",
            traits="perfmodel",
            source="perfmodel run --help",
            orders=(AXONN, PAPER),
            program=("perfmodel",),
            refuses=_any_grid,
            vendors=(*_GPUS, "CPU"),
        ),
        Framework(
            name="axonn-nanogpt",
            traits="axonn-nanogpt",
            source="axonn-ai/nanoGPT commit 59cc1f0, train_pm.py and config/train_gpt_neox_20B.py",
            orders=(_COLUMN_FIRST,),
            program=("python", "-u", "train_pm.py"),
            refuses=_axonn_nanogpt,
            modes=(("none", "none"), ("full", "none")),  # AxoNN's easy mode gathers for every pass
        ),
        Framework(
            name="megatron-axonn",
            traits="axonn",
            source=(
                "axonn-ai/Megatron-AxoNN commit 064236e, arguments.py and pretrain_gpt.py; 728f2fb, data_samplers.py"
            ),
            orders=(_COLUMN_FIRST,),
            program=("python", "-u", "pretrain_gpt.py"),
            refuses=_megatron_axonn,
            needs="--data-path, --vocab-file and --merge-file",
        ),
        Framework(
            name="litgpt-axonn",
            traits="litgpt",
            source="axonn-ai/litgpt commit b5596e9, litgpt/finetune/full.py and run.sh",
            orders=(_COLUMN_FIRST,),
            program=("python", "-u", "-m", "litgpt", "finetune_full"),
            refuses=_litgpt_axonn,
            needs="the folder of the model's checkpoint first",
            modes=(("none", "none"),),
            sees_node=True,  # each rank looks for --devices of its node
        ),
        Framework(
            name="torchtitan",
            traits="torchtitan",
            source=(
                "pytorch/torchtitan commit 000204a, config/job_config.py and train.py; "
                "018740b, models/llama3/infra; 0.3.0"
            ),
            orders=(_ROW_FIRST,),
            program=("python", "-u", "-m", "torchtitan.train"),
            refuses=_torchtitan,
            vendors=(*_GPUS, "Intel"),
            needs="the model, as --job.config_file or --model.name and --model.flavor (0.3: --module and --config)",
            modes=(*_TWICE, *_ONCE),
        ),
        Framework(
            name="megatron-lm",
            traits="megatron-lm",
            source="NVIDIA/Megatron-LM commit 000c4ac, megatron/training/arguments.py; 00caa53, core/distributed/fsdp",
            orders=(_ROW_FIRST,),
            program=("python", "-u", "pretrain_gpt.py"),
            refuses=_megatron_lm,
            modes=(*_TWICE, ("selective", "none")),
        ),
        Framework(
            name="deepspeed",
            traits="deepspeed",
            source=(
                "microsoft/DeepSpeed commits 03dc2b9, 0102dcd and 03aecee, "
                "config.py and others in deepspeed/runtime/zero"
            ),
            orders=(_ROW_FIRST,),
            program=(),
            refuses=_deepspeed,
            vendors=(*_GPUS, "Intel"),
        ),
    )
}
