"""Options shared by the commands, each spelled once. No numpy here: --help must be quick."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from perfmodel.errors import UsageError
from perfmodel.parallel import axes
from perfmodel.parallel.choices import OPTIMIZERS, OVERLAPS


class Format(StrEnum):
    """How an answer is printed."""

    table = "table"
    json = "json"
    csv = "csv"


class PlacementChoice(StrEnum):
    """Orders of the axes over the ranks."""

    axonn = "axonn"
    paper = "paper"
    any = "any"


class BackendChoice(StrEnum):
    """The library that runs the collectives."""

    auto = "auto"
    gloo = "gloo"
    nccl = "nccl"


class FidelityChoice(StrEnum):
    """How much of a step is modelled."""

    full = "full"
    flat = "flat"
    paper = "paper"


class RecomputeChoice(StrEnum):
    """Activation recomputation."""

    any = "any"
    none = "none"
    selective = "selective"
    full = "full"


class CacheChoice(StrEnum):
    """How long a gathered weight is kept."""

    any = "any"
    none = "none"
    forward = "forward"
    all = "all"


ModelName = Annotated[str, typer.Option("--model", help="A preset, a YAML file, or a Hugging Face config.json.")]
MachineName = Annotated[str, typer.Option("--machine", help="A shipped machine, or the path of a profile.")]
Gpus = Annotated[int | None, typer.Option("--gpus", help="Devices in all (a GCD counts as one).")]
Nodes = Annotated[int | None, typer.Option("--nodes", help="Whole nodes, instead of --gpus.")]
Batch = Annotated[int, typer.Option("--batch", help="Sequences per step, all devices together.")]
Sequence = Annotated[int | None, typer.Option("--seq", help="Tokens per sequence [default: the model's].")]
MicroBatch = Annotated[str, typer.Option("--micro-batch", help="Sequences per device at once, or any.")]
Recompute = Annotated[RecomputeChoice, typer.Option("--recompute", help="Activations recomputed in the backward pass.")]
WeightCache = Annotated[
    CacheChoice,
    typer.Option("--weight-cache", help="Keep a weight gathered over Z: never, until its backward pass, always."),
]
Top = Annotated[int, typer.Option("--top", help="Grids shown.")]
Tokens = Annotated[str, typer.Option("--tokens", help="Tokens to train on, such as 300B or 2T: days, node-hours.")]
Doubt = Annotated[
    bool, typer.Option("--uncertainty", help="How sure the order is, given the sources of the profile's figures.")
]
_ORDERS = (
    f"Axes innermost first: axonn {','.join(axes.AXONN)}; paper {','.join(axes.PAPER)}; "
    f"any of {math.factorial(len(axes.AXES))}."
)
Placement = Annotated[
    PlacementChoice,
    typer.Option("--placement", help=_ORDERS),
]
Fidelity = Annotated[
    FidelityChoice,
    typer.Option(
        "--fidelity",
        help="full: kernels, latency, overlap; flat: bandwidths and one rate; paper: equations 1 to 7 only.",
    ),
]
Fix = Annotated[str, typer.Option("--fix", help="Axes of given size, such as x=4,z=8.")]
Maximum = Annotated[str, typer.Option("--max", help="Largest sizes of axes, such as z=64.")]
Optimizer = Annotated[str, typer.Option("--optimizer", help=f"One of {', '.join(OPTIMIZERS)}.")]
Flash = Annotated[bool, typer.Option("--flash-attention/--no-flash-attention", help="Attention scores not stored.")]
Dropout = Annotated[bool, typer.Option("--dropout/--no-dropout", help="Dropout masks take memory.")]
ElementBytes = Annotated[
    str,
    typer.Option("--bytes", help="Bytes per element, such as activations=2,weights=2,gradients=2,data-gradients=4."),
]
VocabularyMultiple = Annotated[
    int,
    typer.Option(
        "--vocabulary-multiple", min=0, max=2**31, help="Pad the vocabulary to a multiple of this times x*y; 0 = never."
    ),
]
FrameworkName = Annotated[
    str | None,
    typer.Option(
        "--framework", help="Framework that trains, by name or path of a .yaml file [default: our own launcher]."
    ),
]
OverlapNames = Annotated[
    str | None,
    typer.Option(
        "--overlap", help=f"At fidelity full: none, or some of {','.join(OVERLAPS)} [default: the framework's]."
    ),
]
AttentionKernel = Annotated[
    str | None,
    typer.Option(
        "--attention-kernel",
        help="flash_1, flash_2, flash_3 or cudnn [default: the first of the framework's that the device has].",
    ),
]
TunedProducts = Annotated[
    bool,
    typer.Option(
        "--tuned-products/--untuned-products", help="Products in their best layout, or input gradients in the worst."
    ),
]
HostTime = Annotated[
    str | None, typer.Option("--host-time", help="Time to issue a kernel [default: the profile's, else 42 us].")
]
Contention = Annotated[
    float | None,
    typer.Option(
        "--contention",
        min=0,
        max=1,
        help="At fidelity full: seconds lost per second of overlap [default: the profile's, else 0.115].",
    ),
]
Measured = Annotated[
    str,
    typer.Option(
        "--measured", help="JSON lines of `perfmodel run`; CSV or Parquet with the columns of docs/validation.md."
    ),
]
MemoryMargin = Annotated[
    float, typer.Option("--memory-margin", help="Share of a device's memory that no grid may use; 0 = all may be used.")
]
IgnoreMemory = Annotated[bool, typer.Option("--ignore-memory", help="Also rank grids that do not fit.")]
Grid = Annotated[str, typer.Option("--grid", help=f"{axes.FORM}, such as {axes.EXAMPLE}.")]
Backend = Annotated[BackendChoice, typer.Option("--backend", help="auto: nccl (RCCL) on GPUs, else gloo on CPUs.")]
Steps = Annotated[int, typer.Option("--steps", min=1, max=10**6, help="Steps that are measured.")]
Warmup = Annotated[int, typer.Option("--warmup", min=0, max=10**6, help="Warm-up steps, not measured.")]
RowModel = Annotated[str, typer.Option("--model", help="A model for all rows, instead of the column.")]
NewProfile = Annotated[str, typer.Option("--out", help="The profile to write; it must not exist yet.")]
Output = Annotated[Format, typer.Option("--format", help="Form of the output.")]


def profile_path(text: str) -> Path:
    """The file of a profile to write; its name must end as --machine expects."""
    path = Path(text)
    if not path.name.endswith((".yaml", ".yml")):
        raise UsageError(f"{text!r} does not end in .yaml, by which --machine knows a profile of your own")
    return path
