"""The part of each parameter that a rank holds, and the few flat tensors that hold all these parts.

A weight is split over two axes (its rows over one, its columns over the other), flattened, and sharded over Z. Biases,
norms and positions are split over at most one axis, and are replicated over Z and data. All values lie in one flat
tensor, and all gradients in another of the same order. Therefore the optimizer, the gradient norm and the sums over
data need no loop over parameters, and buckets are slices.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import nn

from perfmodel.errors import UsageError
from perfmodel.launch.training import draws
from perfmodel.launch.training.groups import Axis, Grid

WHOLE = Axis(name="none")  # splits nothing
# The axes that a parameter is split over, in the order in which flat tensors hold these sections. "partial" is split
# over none, but each rank of x computes only its heads' part of the gradient.
SECTIONS = ("sharded", "x", "y", "xy", "none", "partial")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Piece:
    """The part of a matrix of `rows` x `columns` that this rank holds; a vector has one column.

    The first `drawn` rows start from normal numbers with standard deviation `std`, the rest is padding. Where `std` is
    0, all elements start from `fill`.
    """

    name: str
    rows: int
    columns: int
    over_rows: Axis = WHOLE
    over_columns: Axis = WHOLE
    over_z: Axis = WHOLE
    std: float = 0.0
    fill: float = 0.0
    drawn: int | None = None

    def __post_init__(self) -> None:
        """Check that each axis divides what it splits."""
        for length, axis, what in (
            (self.rows, self.over_rows, "rows"),
            (self.columns, self.over_columns, "columns"),
            (self.block[0] * self.block[1], self.over_z, "elements of a block"),
        ):
            if length % axis.size:
                raise UsageError(f"{self.name} has {length} {what}, which {axis.name} {axis.size} cannot split evenly")

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns of this rank's block after gathering over Z."""
        return self.rows // self.over_rows.size, self.columns // self.over_columns.size

    @property
    def elements(self) -> int:
        """Elements that this rank stores."""
        rows, columns = self.block
        return rows * columns // self.over_z.size

    @property
    def corner(self) -> tuple[int, int]:
        """Row and column of the whole matrix at which the block starts."""
        rows, columns = self.block
        return self.over_rows.place * rows, self.over_columns.place * columns

    @property
    def offset(self) -> int:
        """Element of the flattened block at which the shard starts."""
        return self.over_z.place * self.elements

    def start(self, values: torch.Tensor, seed: int) -> None:
        """Fill this rank's elements with their initial values, which are the same on every grid."""
        if not self.std:
            values.fill_(self.fill)
            return
        (row, column), (_, width) = self.corner, self.block
        index = draws.Index(columns=self.columns, row=row, column=column, width=width, offset=self.offset)
        draws.fill_normal(values, index, draws.key(seed, self.name), self.std)
        if self.drawn is not None:  # padding rows of a vocabulary
            drawn = max(0, (self.drawn - row) * width - self.offset)
            values[drawn:].zero_()


class Held(nn.Module):
    """A parameter on this rank: its piece, its values, and the gradient that a step accumulates."""

    gradient: torch.Tensor
    untouched: bool

    def __init__(self, piece: Piece, section: str) -> None:
        """Allocate nothing; `hold` does that later."""
        super().__init__()
        self.piece, self.section = piece, section
        self.values = nn.Parameter(torch.empty(piece.elements, device="meta"))

    def place(self, values: torch.Tensor, gradient: torch.Tensor) -> None:
        """Use these flat views for the values and the gradient."""
        self.values, self.gradient = nn.Parameter(values), gradient
        self.untouched = True

    def accumulate(self, gradient: torch.Tensor) -> None:
        """Add to the gradient of the step; the first addition overwrites it, so that it need not be cleared."""
        if self.untouched:
            self.gradient.copy_(gradient)
        else:
            self.gradient.add_(gradient)
        self.untouched = False


class Weight(Held):
    """A matrix sharded over Z; `schedule.Schedule` gathers it and scatters its gradient."""

    def __init__(self, piece: Piece) -> None:
        """See `Piece`."""
        super().__init__(piece, "sharded")

    def accumulate_product(self, left: torch.Tensor, right: torch.Tensor) -> None:
        """Compute a product straight into the gradient of the step; for a weight that Z does not shard."""
        block = self.gradient.view(self.piece.block)
        torch.addmm(block, left, right, beta=0 if self.untouched else 1, out=block)
        self.untouched = False


class Vector(Held):
    """A bias, the scale of a norm, or positions: replicated over Z and data, and used without gathering."""

    def __init__(self, piece: Piece, *, partial: bool = False) -> None:
        """Split over `axis`, which may be x and y joined, or not at all; `partial` if the heads of x share it."""
        axis = piece.over_rows if piece.over_rows.size > 1 else piece.over_columns
        super().__init__(piece, "partial" if partial else axis.name if axis.size > 1 else "none")

    def place(self, values: torch.Tensor, gradient: torch.Tensor) -> None:
        """Move each gradient of autograd into the accumulated gradient as soon as it is there."""
        super().place(values, gradient)
        self.values.register_post_accumulate_grad_hook(self._collect)  # type: ignore[no-untyped-call]

    def forward(self) -> torch.Tensor:
        """The values: a vector, or a matrix if there is more than one column."""
        rows, columns = self.piece.block
        return self.values if columns == 1 else self.values.view(rows, columns)

    def _collect(self, values: torch.Tensor) -> None:
        assert values.grad is not None  # noqa: S101 - torch calls this when there is one
        self.accumulate(values.grad)
        values.grad = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Flat:
    """All parameters of a rank: `values` as products read them, `master` as the optimizer writes them.

    If products have the optimizer's number format, the two are one tensor. `sections` are (axes, start, end).
    """

    values: torch.Tensor
    master: torch.Tensor
    gradient: torch.Tensor
    sections: tuple[tuple[str, int, int], ...]
    held: tuple[Held, ...]

    def section(self, name: str) -> slice:
        """The slice of the flat tensors that holds the parameters of a section."""
        return next(slice(start, end) for axes, start, end in self.sections if axes == name)

    def publish(self) -> None:
        """Round the values that the optimizer has written to the format of products."""
        if self.values is not self.master:
            self.values.copy_(self.master)

    def clear(self) -> None:
        """Mark the gradient as empty."""
        for one in self.held:
            one.untouched = True

    def complete(self) -> None:
        """Set the gradients of parameters that the step has not used to zero."""
        for one in self.held:
            if one.untouched:
                one.gradient.zero_()


def hold(
    module: nn.Module,
    *,
    device: torch.device,
    dtype: torch.dtype,
    kept: torch.dtype | None = None,
    seed: int | None = 0,
) -> Flat:
    """Allocate and initialize all parameters of a model; `kept` is the format of the gradient and the master copy.

    Its default is fp32, or fp64 if products run in fp64. Without a seed nothing is drawn (a dry run).
    """
    kept = kept or (torch.float64 if dtype == torch.float64 else torch.float32)
    held = tuple(sorted(_held(module), key=lambda one: SECTIONS.index(one.section)))  # stable: model order inside
    ends = [0]
    for one in held:
        ends.append(ends[-1] + one.piece.elements)
    master, gradient = (torch.zeros(ends[-1], device=device, dtype=kept) for _ in range(2))
    values = master if kept == dtype else torch.zeros(ends[-1], device=device, dtype=dtype)
    for one, (start, end) in zip(held, pairwise(ends), strict=True):
        if seed is not None:
            one.piece.start(master[start:end], seed)
        one.place(values[start:end], gradient[start:end])
    flat = Flat(values=values, master=master, gradient=gradient, sections=_sections(held), held=held)
    flat.publish()
    return flat


def _held(module: nn.Module) -> Iterator[Held]:
    """Every parameter once, in the order of the model; a tied table counts for the first layer that uses it."""
    return (one for one in module.modules() if isinstance(one, Held))


def _sections(held: tuple[Held, ...]) -> tuple[tuple[str, int, int], ...]:
    found, start = [], 0
    for name in SECTIONS:
        end = start + sum(one.piece.elements for one in held if one.section == name)
        found.append((name, start, end))
        start = end
    return tuple(found)


def copies(grid: Grid, section: str) -> int:
    """Ranks of the tensor block (X * Y * Z) that hold the same elements of a section."""
    split = {"sharded": grid.xy.size * grid.z.size, "x": grid.x.size, "y": grid.y.size, "xy": grid.xy.size}
    return grid.xy.size * grid.z.size // split.get(section, 1)
