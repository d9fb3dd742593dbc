"""Checkpoints that any grid can read: every rank writes its part of each matrix by its place in the whole matrix.

A rank's shard of a matrix is a run of consecutive elements of its block. So it is at most three rectangles: the end of
a row, whole rows, and the start of a row. The library torch.distributed.checkpoint stores rectangles; the
reading grid may have others, and reads where they overlap. Padding rows of a vocabulary depend on the grid and are not
stored. If several ranks hold the same elements, one of them writes.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch.distributed.checkpoint import state_dict_loader, state_dict_saver
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadPlan, SavePlan, TensorWriteData, WriteItem, WriteItemType
from torch.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list

from perfmodel.errors import PerfmodelError
from perfmodel.launch.training.groups import Grid
from perfmodel.launch.training.optimizer import ShardedAdamW
from perfmodel.launch.training.parameters import Flat, Held, Piece

_STEPS = "steps"
# Raised when a metadata file is damaged: by reading it, by pickle, or because it holds another kind of object.
_TORN = (OSError, EOFError, UnpicklingError, AttributeError, ImportError, IndexError, KeyError, TypeError, ValueError)


@dataclass(frozen=True, slots=True, eq=False)
class _Rectangle:
    """A part of a matrix, `values` a view of where it lies on this rank."""

    row: int
    column: int
    values: torch.Tensor

    @property
    def chunk(self) -> ChunkStorageMetadata:
        """Its position and shape as a record of torch."""
        return ChunkStorageMetadata(torch.Size((self.row, self.column)), self.values.shape)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Part:
    """The part of a stored matrix of `size` that a rank holds; `written` if this rank is the one that stores it."""

    size: torch.Size
    dtype: torch.dtype
    rectangles: tuple[_Rectangle, ...]
    written: bool

    def find(self, index: MetadataIndex) -> torch.Tensor:
        """The rectangle that torch asks for."""
        return next(one.values for one in self.rectangles if (one.row, one.column) == tuple(index.offset or ()))


Parts = dict[str, _Part]


def prepare(folder: str | Path) -> None:
    """Create the folder of a checkpoint, or raise if none can be saved there, so that this is known before training."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        held = Path(folder, ".metadata").exists()
    except OSError as error:
        raise PerfmodelError(f"no checkpoint can be written in {folder}: {error.strerror}") from None
    if held:
        raise PerfmodelError(f"{folder} holds a checkpoint already; give another folder or remove it")


def save(folder: str | Path, flat: Flat, optimizer: ShardedAdamW, grid: Grid) -> None:
    """Write weights, moments and the number of steps; all ranks call this. The folder must hold no checkpoint."""
    prepare(folder)
    steps = torch.tensor([[optimizer.steps]])
    planner = _Writing(_parts(flat, optimizer, grid, steps))
    with _explained(f"the checkpoint in {folder} could not be written"):
        state_dict_saver.save({}, storage_writer=FileSystemWriter(folder), planner=planner)


def load(folder: str | Path, flat: Flat, optimizer: ShardedAdamW, grid: Grid) -> int:
    """Read a checkpoint that any grid has written; all ranks call this. Returns the number of steps made before."""
    steps = torch.zeros(1, 1, dtype=torch.int64)
    parts, reader = _parts(flat, optimizer, grid, steps), FileSystemReader(folder)
    try:
        metadata = reader.read_metadata()
    except _TORN as error:
        raise PerfmodelError(f"{folder} holds no checkpoint that was completely written: {error}") from error
    _compare(folder, metadata, parts)
    with _explained(f"the checkpoint in {folder} cannot be read"):
        state_dict_loader.load({}, storage_reader=reader, planner=_Reading(parts))
    optimizer.resume(int(steps))
    flat.publish()
    return optimizer.steps


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Report a failure of any rank in one sentence; torch's warning about a single rank is ignored."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="torch.distributed is disabled")
            yield
    except CheckpointException as error:
        rank, (reason, _) = min(error.failures.items())
        raise PerfmodelError(f"{what}; rank {rank}: {reason}") from error


def _parts(flat: Flat, optimizer: ShardedAdamW, grid: Grid, steps: torch.Tensor) -> Parts:
    """Everything that is stored, by its name in the checkpoint."""
    first = grid.rank == 0
    found = {_STEPS: _Part(size=steps.shape, dtype=steps.dtype, rectangles=(_Rectangle(0, 0, steps),), written=first)}
    start = 0
    for number, held in enumerate(flat.held):
        piece, end = held.piece, start + held.piece.elements
        size = torch.Size((_stored_rows(piece), piece.columns))
        # Replicas hold the same elements, so they take turns in writing the parameters.
        written = _first_copy(held, grid) and grid.replicas.place == number % grid.replicas.size
        for kind, tensor in (("weight", flat.master), ("first", optimizer.first), ("second", optimizer.second)):
            rectangles = tuple(_rectangles(piece, tensor[start:end]))
            found[f"{kind}.{piece.name}"] = _Part(size=size, dtype=tensor.dtype, rectangles=rectangles, written=written)
        start = end
    if len(found) != 1 + 3 * len(flat.held):
        raise PerfmodelError("two parameters of the model have the same name, so a checkpoint cannot keep them apart")
    return found


def _stored_rows(piece: Piece) -> int:
    """Rows that are not padding."""
    return piece.rows if piece.drawn is None else piece.drawn


def _first_copy(held: Held, grid: Grid) -> bool:
    """Whether this rank is the first in its tensor block among those that hold the same elements."""
    split = {"sharded": "xyz", "xy": "xy", "x": "x", "y": "y"}.get(held.section, "")
    return all(axis.place == 0 for axis in (grid.x, grid.y, grid.z) if axis.name not in split)


def _rectangles(piece: Piece, values: torch.Tensor) -> Iterator[_Rectangle]:
    """Views of a rank's elements without padding, cut where rows of the block begin and end."""
    (row, column), (_, width) = piece.corner, piece.block
    place, end = piece.offset, min(piece.offset + piece.elements, (_stored_rows(piece) - row) * width)
    while place < end:
        inside = place % width
        # The rest of a row that has begun, else as many whole rows as there are, else the start of the last row.
        length = min(width - inside, end - place) if inside else (end - place) // width * width or end - place
        run = values[place - piece.offset : place - piece.offset + length]
        yield _Rectangle(row + place // width, column + inside, run.view(-1, min(length, width)))
        place += length


def _compare(folder: str | Path, metadata: Metadata, parts: Parts) -> None:
    """Refuse a checkpoint of another model or number format."""
    stored: dict[str, Any] = metadata.state_dict_metadata
    for names, what in ((parts.keys() - stored.keys(), "lacks"), (stored.keys() - parts.keys(), "has")):
        if names:
            raise PerfmodelError(
                f"the checkpoint in {folder} {what} {min(names)!r} ({len(names)} such names): it is of another model"
            )
    for name, part in parts.items():
        found = stored[name]
        if not isinstance(found, TensorStorageMetadata) or found.size != part.size:
            raise PerfmodelError(
                f"{name!r} is {_shape(found)} in the checkpoint in {folder}, but {_shape(part)} in this model"
            )
        if found.properties.dtype != part.dtype:
            raise PerfmodelError(
                f"the checkpoint in {folder} keeps {name!r} in {found.properties.dtype}, this run in {part.dtype}; "
                "start it with the dtype of the run that wrote it"
            )


def _shape(stored: Any) -> str:
    return " x ".join(str(length) for length in getattr(stored, "size", ())) or "no matrix"


class _Writing(DefaultSavePlanner):
    """Tells torch what this rank stores."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(flatten_state_dict=False, flatten_sharded_tensors=False)
        self.parts = parts

    def create_local_plan(self) -> SavePlan:
        """An item for each rectangle."""
        self.plan = SavePlan([item for name, part in self.parts.items() if part.written for item in _items(name, part)])
        return self.plan

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The values of one rectangle."""
        return self.parts[index.fqn].find(index)


def _items(name: str, part: _Part) -> Iterator[WriteItem]:
    properties = TensorProperties(dtype=part.dtype)
    for rectangle in part.rectangles:
        data = TensorWriteData(rectangle.chunk, properties, part.size)
        yield WriteItem(MetadataIndex(name, rectangle.chunk.offsets), WriteItemType.SHARD, tensor_data=data)


class _Reading(DefaultLoadPlanner):
    """Tells torch where the stored rectangles belong on this rank."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(flatten_state_dict=False, flatten_sharded_tensors=False)
        self.parts = parts

    def create_local_plan(self) -> LoadPlan:
        """An item for each overlap of a stored rectangle with one of this rank."""
        assert self.metadata is not None  # noqa: S101 - torch has read it
        stored: dict[str, Any] = self.metadata.state_dict_metadata
        wanted = ((name, [one.chunk for one in part.rectangles]) for name, part in self.parts.items())
        return LoadPlan(
            [item for name, chunks in wanted for item in create_read_items_for_chunk_list(name, stored[name], chunks)]
        )

    def lookup_tensor(self, index: MetadataIndex) -> torch.Tensor:
        """The rectangle that an item is read into."""
        return self.parts[index.fqn].find(index)
