"""Options shared by the commands, each spelled once. No numpy here: --help must be quick."""

import math
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from perfmodel.errors import PerfmodelError, UsageError
from perfmodel.parallel import axes
from perfmodel.parallel.settings import MOST, OPTIMIZERS, OVERLAPS
from perfmodel.units import count, parse


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
    """What carries the collectives."""

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


ModelName = Annotated[str, typer.Option("--model", help="A preset, our YAML, or a Hugging Face config.json.")]
MachineName = Annotated[str, typer.Option("--machine", help="A shipped machine, or the path of a profile.")]
Gpus = Annotated[int | None, typer.Option("--gpus", help="Devices in all (a GCD counts as one).")]
Nodes = Annotated[int | None, typer.Option("--nodes", help="Whole nodes, instead of --gpus.")]
Batch = Annotated[int, typer.Option("--batch", help="Sequences in a step, all devices together.")]
Sequence = Annotated[int | None, typer.Option("--seq", help="Tokens in a sequence [default: the model's].")]
MicroBatch = Annotated[str, typer.Option("--micro-batch", help="Sequences a device processes at once, or any.")]
Recompute = Annotated[RecomputeChoice, typer.Option("--recompute", help="Activations recomputed in the backward pass.")]
WeightCache = Annotated[
    CacheChoice,
    typer.Option("--weight-cache", help="Keep a weight gathered over Z: never, until its backward pass, always."),
]
Top = Annotated[int, typer.Option("--top", help="Grids shown.")]
Tokens = Annotated[str, typer.Option("--tokens", help="Tokens to train on, such as 300B or 2T: days, node-hours.")]
Doubt = Annotated[
    bool, typer.Option("--uncertainty", help="How sure the order is, by the sources of the profile's figures.")
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
        help="full: kernels, latency, overlap; flat: bandwidths and one rate; paper: equations 1 to 7 alone.",
    ),
]
Fix = Annotated[str, typer.Option("--fix", help="Axes of given size, such as x=4,z=8.")]
Maximum = Annotated[str, typer.Option("--max", help="Largest sizes of axes, such as z=64.")]
Optimizer = Annotated[str, typer.Option("--optimizer", help=f"One of {', '.join(OPTIMIZERS)}.")]
Flash = Annotated[bool, typer.Option("--flash-attention/--no-flash-attention", help="Scores are never stored.")]
Dropout = Annotated[bool, typer.Option("--dropout/--no-dropout", help="Dropout masks take memory.")]
ElementBytes = Annotated[
    str, typer.Option("--bytes", help="Bytes an element, such as activations=2,weights=2,gradients=2,data-gradients=4.")
]
VocabularyMultiple = Annotated[
    int,
    typer.Option(
        "--vocabulary-multiple", min=0, max=2**31, help="Pad the vocabulary to a multiple of this times x*y; 0 = never."
    ),
]
OverlapNames = Annotated[
    str, typer.Option("--overlap", help=f"At fidelity full: none, or some of {','.join(OVERLAPS)}.")
]
FlashVersion = Annotated[int, typer.Option("--flash-version", help="Of the attention kernel: 1 or 2.")]
HostTime = Annotated[
    str | None, typer.Option("--host-time", help="Time to issue a kernel [default: the profile's, else 42 us].")
]
Contention = Annotated[
    float | None,
    typer.Option(
        "--contention",
        min=0,
        max=1,
        help="At fidelity full: seconds lost for each second side by side [default: the profile's, else 0.115].",
    ),
]
Measured = Annotated[
    str,
    typer.Option("--measured", help="JSON lines of `perfmodel run`, or CSV with the columns of docs/validation.md."),
]
IgnoreMemory = Annotated[bool, typer.Option("--ignore-memory", help="Rank grids that do not fit, too.")]
Grid = Annotated[str, typer.Option("--grid", help=f"{axes.FORM}, such as {axes.EXAMPLE}.")]
Backend = Annotated[
    BackendChoice, typer.Option("--backend", help="auto: nccl (RCCL) on GPUs, else gloo on processors.")
]
Steps = Annotated[int, typer.Option("--steps", min=1, max=10**6, help="Steps that are measured.")]
Warmup = Annotated[int, typer.Option("--warmup", min=0, max=10**6, help="Steps before them.")]
RowModel = Annotated[str, typer.Option("--model", help="A model for all rows, instead of the column.")]
NewProfile = Annotated[str, typer.Option("--out", help="The profile to write; none is overwritten.")]
Output = Annotated[Format, typer.Option("--format", help="For people or for machines.")]


def assignments(text: str, allowed: tuple[str, ...], option: str) -> dict[str, int]:
    """Read `x=4,z=8`: names of `allowed`, whole numbers from 1 to MOST.

    >>> assignments("x=4,z=8", ("x", "y", "z", "data"), "--fix")
    {'x': 4, 'z': 8}
    """
    found: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = (piece.strip() for piece in part.partition("="))
        size = count(number, MOST)
        if name not in allowed or size is None:
            raise UsageError(
                f"{option} {part!r}: wanted NAME=COUNT with a name of {', '.join(allowed)} and a count of 1 to {MOST}"
            )
        if name in found:
            raise UsageError(f"{option} gives {name} twice")
        found[name] = size
    return found


def profile_path(text: str) -> Path:
    """The file of a profile to write, which has to end as --machine expects."""
    path = Path(text)
    if not path.name.endswith((".yaml", ".yml")):
        raise UsageError(f"{text!r} does not end in .yaml, by which --machine knows a profile of your own")
    return path


def seconds(text: str, option: str) -> float:
    """Read a time with its unit.

    >>> seconds("42 us", "--host-time")
    4.2e-05
    """
    try:
        return parse(text, "s")
    except PerfmodelError as error:
        raise UsageError(f"{option}: {error}") from None


def overlaps(text: str) -> frozenset[Any]:
    """Read `none`, or names of what overlaps.

    >>> sorted(overlaps("all-gather,data"))
    ['all-gather', 'data']
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in OVERLAPS]
    if text.strip() == "none":
        return frozenset()
    if unknown or not names:
        raise UsageError(f"--overlap {text!r}: wanted none, or some of {', '.join(OVERLAPS)}")
    return frozenset(names)


def count_or_any(text: str, option: str) -> int | None:
    """Read a whole number from 1 to MOST, or `any` (None)."""
    if text == "any":
        return None
    found = count(text, MOST)
    if found is None:
        raise UsageError(f"{option} {text!r}: wanted any, or a whole number from 1 to {MOST}")
    return found


_THOUSANDS = {"": 0, "k": 1, "M": 2, "B": 3, "G": 3, "T": 4}
_COUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,12})?)\s?([kMBGT]?)", re.ASCII)
_MOST = 10**18
_MOST_DEVICES = 2**31


def tokens(text: str, option: str) -> int:
    """Read a number of tokens with a decimal prefix: k, M, B (or G), T.

    >>> tokens("2T", "--tokens"), tokens("1.5M", "--tokens")
    (2000000000000, 1500000)
    """
    match = _COUNT.fullmatch(text.strip())
    value = round(float(match[1]) * 1000 ** _THOUSANDS[match[2]]) if match else 0
    if not 1 <= value <= _MOST:
        raise UsageError(f"{option} {text!r}: wanted a count of at least 1, such as 300B or 2T (k, M, B or T)")
    return value


def devices(text: str, option: str) -> list[int]:
    """Read counts of devices separated by commas, each once, in the order given.

    >>> devices("64, 128,256", "--gpus")
    [64, 128, 256]
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 1 <= int(part[:12]) <= _MOST_DEVICES for part in parts):
        raise UsageError(f"{option} {text!r}: wanted counts of 1 to {_MOST_DEVICES} separated by commas, as in 64,128")
    return list(dict.fromkeys(int(part) for part in parts))
