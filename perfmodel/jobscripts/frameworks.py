"""What trains: which grids it can express, and in which order it counts its ranks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from perfmodel.advice import distance
from perfmodel.errors import PerfmodelError
from perfmodel.job import Job
from perfmodel.jobscripts.request import vendor
from perfmodel.layout import AXONN, PAPER, PLACEMENTS, Layout, Placement
from perfmodel.search import Space, rank
from perfmodel.settings import MOST, RECOMPUTES

_GPUS = ("NVIDIA", "AMD")


@dataclass(frozen=True, slots=True)
class Framework:
    """One framework, and where what is said of it was read.

    `orders`: how it numbers ranks, neighbours first. `program`: what each rank starts unless told otherwise.
    `needs`: what --arguments must say, since no flag made here can. `vendors`: whose devices it is known to run on.
    """

    name: str
    source: str
    orders: tuple[Placement, ...]
    program: tuple[str, ...]
    refuses: Callable[[Job, Layout], str]
    vendors: tuple[str, ...] = _GPUS
    needs: str = ""


def problem(framework: Framework, job: Job, layout: Layout) -> str:
    """Why a framework cannot run a model on a grid, empty if it can."""
    order = PLACEMENTS[int(layout.placement)]
    split = [axis for axis in order if layout.size(axis) > 1]
    if all([axis for axis in one if axis in split] != split for one in framework.orders):
        names = " or ".join(",".join(one) for one in framework.orders)
        return f"numbers its ranks {names}, neighbours first, not {','.join(order)}"
    return framework.refuses(job, layout)


def refuse(framework: Framework, job: Job, space: Space, layout: Layout) -> None:
    """Raise with the reason, and the nearest grid that the framework can express, where it cannot express this one."""
    if not (reason := problem(framework, job, layout)):
        return
    near = nearest(framework, job, space, layout)
    instead = f"the nearest grid that it can express is {near.text()}" if near else "no grid that fits suits it"
    raise PerfmodelError(f"{framework.name} cannot run {job.model.name} on {layout.text()}: it {reason}; {instead}")


def refuse_device(framework: Framework, job: Job) -> None:
    """Raise where a framework is not known to run on a machine's devices."""
    if vendor(job.machine) not in framework.vendors:
        raise PerfmodelError(
            f"{framework.name} is not known to run on {job.machine.device.name}; known: {', '.join(framework.vendors)}"
        )


def nearest(framework: Framework, job: Job, space: Space, wanted: Layout) -> Layout | None:
    """The grid that fits, that the framework can express, and that differs least from `wanted`."""
    found = rank(job, replace(space, top=MOST)).layouts
    rows = [found.take(row) for row in range(len(found.x))]  # type: ignore[arg-type]
    possible = [layout for layout in rows if not problem(framework, job, layout)]
    return min(possible, key=lambda layout: distance(layout, wanted), default=None)


def shared_steps(job: Job, layout: Layout) -> int:
    """Micro-steps where every rank, those of X and Y too, takes sequences of its own; 0 where they cannot be shared.

    AxoNN's easy mode hands activations on as pure data parallelism would. As many steps as are predicted, or the next
    number that shares the batch evenly.
    """
    whole, rest = divmod(job.batch, int(layout.gpus))
    predicted = int(job.accumulation(layout))
    return 0 if rest else next((steps for steps in range(min(predicted, whole), whole + 1) if whole % steps == 0), 0)


def _any_grid(job: Job, layout: Layout) -> str:
    del job, layout
    return ""


def _axonn_nanogpt(job: Job, layout: Layout) -> str:
    if reason := _no_gpt(job) or _all_or_nothing(layout):
        return reason
    return _no_shares(job, layout)


def _megatron_axonn(job: Job, layout: Layout) -> str:
    del layout
    return _no_gpt(job)


def _litgpt_axonn(job: Job, layout: Layout) -> str:
    if layout.x != layout.gpus:
        return "splits over X alone (G_intra_r is all of its ranks)"
    return "keeps all activations, so it needs --recompute none" if layout.recompute else _no_shares(job, layout)


def _tensor_along_x(job: Job, layout: Layout) -> str:
    del job
    return "splits layers over X alone, not over Y" if layout.y > 1 else ""


def _megatron_lm(job: Job, layout: Layout) -> str:
    shape = job.model.transformer
    if shape is None:
        return "trains decoders that are told by layers, width and heads"
    if shape.norms != 2 or shape.embedding_norm or shape.head_bias or shape.output_bias not in (None, shape.bias):
        return "has no flags for this model's norms and biases"
    return _tensor_along_x(job, layout)


def _deepspeed(job: Job, layout: Layout) -> str:
    del job
    return "shards over Z and data alone (ZeRO), not over X and Y" if layout.x * layout.y > 1 else ""


def _no_gpt(job: Job) -> str:
    transformer = job.model.transformer
    gpt = transformer is not None and transformer.is_gpt
    return (
        "" if gpt else "trains GPT decoders alone: GELU of four times the width, a head tied to the embedding, biases"
    )


def _all_or_nothing(layout: Layout) -> str:
    selective = RECOMPUTES[int(layout.recompute)] == "selective"
    return "recomputes all activations or none, so it needs --recompute none or full" if selective else ""


def _no_shares(job: Job, layout: Layout) -> str:
    if shared_steps(job, layout):
        return ""
    return f"gives every rank sequences of its own, and {job.batch} cannot be shared by {layout.gpus} evenly"


FRAMEWORKS: Mapping[str, Framework] = {
    one.name: one
    for one in (
        Framework(
            "perfmodel",
            "perfmodel run --help",
            orders=(AXONN, PAPER),
            program=("perfmodel",),
            refuses=_any_grid,
            vendors=(*_GPUS, "CPU"),
        ),
        Framework(
            "axonn-nanogpt",
            "axonn-ai/nanoGPT commit 59cc1f0, train_pm.py",
            orders=(AXONN,),
            program=("python", "-u", "train_pm.py"),
            refuses=_axonn_nanogpt,
        ),
        Framework(
            "megatron-axonn",
            "axonn-ai/Megatron-AxoNN commit 6d60f45, scripts under examples/",
            orders=(AXONN,),
            program=("python", "-u", "pretrain_gpt.py"),
            refuses=_megatron_axonn,
            needs="--data-path, --vocab-file and --merge-file",
        ),
        Framework(
            "litgpt-axonn",
            "axonn-ai/litgpt commit b5596e9, litgpt/finetune/full.py and run.sh",
            orders=(AXONN,),
            program=("python", "-u", "-m", "litgpt", "finetune_full"),
            refuses=_litgpt_axonn,
            needs="the folder of the model's checkpoint first",
        ),
        Framework(
            "torchtitan",
            "pytorch/torchtitan commit 000204a, torchtitan/config/job_config.py",
            orders=(PAPER,),
            program=("python", "-u", "-m", "torchtitan.train"),
            refuses=_tensor_along_x,
            vendors=(*_GPUS, "Intel"),
            needs="the model, as --job.config_file or --model.name and --model.flavor",
        ),
        Framework(
            "megatron-lm",
            "NVIDIA/Megatron-LM commit 000c4ac, megatron/training/arguments.py, and its guide to Megatron-FSDP",
            orders=(PAPER,),
            program=("python", "-u", "pretrain_gpt.py"),
            refuses=_megatron_lm,
        ),
        Framework(
            "deepspeed",
            "microsoft/DeepSpeed commit 03dc2b9, deepspeed/runtime/zero/config.py",
            orders=(PAPER,),
            program=(),
            refuses=_deepspeed,
            vendors=(*_GPUS, "Intel"),
        ),
    )
}
