"""Options shared by the commands, each spelled once. No numpy here: --help must be quick."""

from enum import StrEnum
from typing import Annotated

import typer

from perfmodel.errors import UsageError
from perfmodel.settings import MOST, OPTIMIZERS
from perfmodel.units import count


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


class FidelityChoice(StrEnum):
    """How much of a step is modelled."""

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
Placement = Annotated[
    PlacementChoice,
    typer.Option("--placement", help="Axes innermost first: axonn y,x,z,data; paper x,y,z,data; any of 24."),
]
Fidelity = Annotated[
    FidelityChoice, typer.Option("--fidelity", help="flat: communication and compute; paper: equations 1 to 7 alone.")
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
IgnoreMemory = Annotated[bool, typer.Option("--ignore-memory", help="Rank grids that do not fit, too.")]
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


def count_or_any(text: str, option: str) -> int | None:
    """Read a whole number from 1 to MOST, or `any` (None)."""
    if text == "any":
        return None
    found = count(text, MOST)
    if found is None:
        raise UsageError(f"{option} {text!r}: wanted any, or a whole number from 1 to {MOST}")
    return found
