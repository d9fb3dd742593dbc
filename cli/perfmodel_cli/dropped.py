"""What is wrong with rows of a file that are left out, told on standard error."""

from collections.abc import Sequence

from perfmodel.errors import PerfmodelError
from perfmodel_cli import printing

_TOLD = 20  # problems of a file that are told one by one


def tell(problems: Sequence[str], dropped: int, total: int) -> None:
    """Say what is wrong, and how many rows are left out."""
    lines = list(problems[:_TOLD])
    if len(problems) > _TOLD:
        lines.append(f"and {len(problems) - _TOLD} more problems")
    if dropped:
        lines.append(f"{dropped} of {total} rows left out")
    for line in lines:
        printing.tell(line.replace("\n", " "))


def nothing_left(problems: Sequence[str], file: str, purpose: str) -> PerfmodelError:
    """The error of a file without a good row."""
    return PerfmodelError("\n".join([*problems[:_TOLD], f"{file}: no row to {purpose}"]))
