"""Tokens to train on: the sequences of each rank, and where they come from.

The sequences of all steps are numbered consecutively, and a step takes the next `batch` of them. In
`plan.first_sequence` they are assigned to ranks, so that every grid trains on the same sequences in each step.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from perfmodel.errors import PerfmodelError, UsageError
from perfmodel.launch.training import draws
from perfmodel.launch.training.groups import Grid
from perfmodel.launch.training.plan import first_sequence
from perfmodel.parallel.axes import BATCH_AXES

_FORMATS = {".uint16": "<u2", ".uint32": "<u4"}


class TokenSource(Protocol):
    """Where sequences come from."""

    def read(self, first: int, sequences: int) -> torch.Tensor:
        """The tokens of some sequences, as int64 of sequences x (length + 1); the last of each is only a target."""


def batches(
    source: TokenSource, grid: Grid, *, batch: int, accumulation: int, step: int
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """(tokens, targets) of this rank in each micro-step of a step, which has `batch` sequences over all ranks."""
    micro_batch, rest = divmod(batch, grid.shares * accumulation)
    if rest or not micro_batch:
        over = ", ".join(f"{axis} {grid.layout.size(axis)}" for axis in BATCH_AXES)
        raise UsageError(
            f"a batch of {batch} sequences cannot be split over {over} and "
            f"{accumulation} micro-steps; wanted a multiple of {grid.shares * accumulation}"
        )
    found = []
    for micro_step in range(accumulation):
        first = first_sequence(grid, micro_batch=micro_batch, micro_step=micro_step)
        whole = source.read(step * batch + first, micro_batch)
        found.append((whole[:, :-1], whole[:, 1:]))
    return found


@dataclass(frozen=True, slots=True)
class Drawn:
    """Tokens drawn uniformly from a vocabulary, anew for every sequence."""

    vocabulary: int
    length: int
    seed: int = 0

    def read(self, first: int, sequences: int) -> torch.Tensor:
        """As `TokenSource.read`; a token depends only on the seed and its place."""
        span = self.length + 1
        index = torch.arange(first * span, (first + sequences) * span)
        numbers = draws.uniform(index, draws.key(self.seed, "tokens"))
        return (numbers * self.vocabulary).to(torch.int64).view(sequences, span)


class TokenFile:
    """Tokens in a file, one after the other, which is memory-mapped.

    The file is a vector of uint16 or uint32 as `numpy.save` writes it (`.npy`), or the bare numbers, little-endian, in
    a file named `.uint16` or `.uint32`. Sequence n starts at token n * length, and its last target is the first token
    of sequence n + 1. After the last whole sequence, the first one follows again.
    """

    def __init__(self, path: str | Path, *, vocabulary: int, length: int) -> None:
        """Open the file, and read only its header."""
        self.path, self.vocabulary, self.length = Path(path), vocabulary, length
        self._tokens = _mapped(self.path)
        self.sequences = (len(self._tokens) - 1) // length
        if self.sequences < 1:
            raise PerfmodelError(
                f"{path} has {len(self._tokens)} tokens; a sequence of {length} needs {length + 1} with its last target"
            )

    def read(self, first: int, sequences: int) -> torch.Tensor:
        """As `TokenSource.read`."""
        found = torch.empty(sequences, self.length + 1, dtype=torch.int64)
        for row, number in enumerate(range(first, first + sequences)):
            start = number % self.sequences * self.length
            found[row] = torch.from_numpy(self._tokens[start : start + self.length + 1].astype(np.int64))
        largest = int(found.max())
        if largest >= self.vocabulary:
            raise PerfmodelError(
                f"{self.path} holds token {largest}; the model's vocabulary ends at {self.vocabulary - 1}"
            )
        return found


def _mapped(path: Path) -> np.ndarray[Any, Any]:
    """The numbers in a file, memory-mapped without reading them."""
    if path.suffix not in (".npy", *_FORMATS):
        raise UsageError(f"{path} does not have the name of a token file; wanted .npy, .uint16 or .uint32")
    try:
        tokens: np.ndarray[Any, Any]
        if path.suffix == ".npy":
            tokens = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            tokens = np.memmap(path, dtype=_FORMATS[path.suffix], mode="r")
    except (OSError, EOFError, ValueError) as error:
        raise PerfmodelError(f"{path} cannot be read as tokens: {error}") from error
    if not isinstance(tokens, np.ndarray):  # an archive of several
        raise PerfmodelError(f"{path} is not a .npy file, judging by its content; wanted one that numpy.save wrote")
    if tokens.ndim != 1 or tokens.dtype.kind != "u" or tokens.dtype.itemsize not in (2, 4):
        raise PerfmodelError(
            f"{path} holds {tokens.dtype} of shape {tokens.shape}; wanted a vector of uint16 or uint32"
        )
    return tokens
