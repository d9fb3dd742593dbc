"""What is measured: calls, products and streams, in series of growing size that end when a call would take too long."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, TypeAlias

from perfmodel.machines.collective_times import Operation
from perfmodel.machines.domains import contained
from perfmodel.numerics import divisors
from perfmodel.units import parse

OPERATIONS: tuple[Operation, ...] = ("all-gather", "reduce-scatter", "all-reduce")
MODES = ("nn", "nt", "tn")
STREAMS = ("copy", "triad")
# The paper's database holds for large messages; the messages of norms and losses are small.
_SMALLEST, _SMALL, LARGEST = parse("1 KiB", "B"), parse("256 KiB", "B"), parse("1 GiB", "B")
LEAST_LARGEST = 4 * _SMALLEST  # so that there are two sizes
_LEAST_WIDTH, _MOST_WIDTH = 128, 8192
_FORMS = {"square": (1, 1, 1), "wide": (1, 4, 1), "deep": (1, 1, 4)}  # m, n and k as multiples of the width
_STREAMED = tuple(parse(size, "B") for size in ("4 MiB", "16 MiB", "64 MiB", "256 MiB"))
_BESIDE = tuple(parse(size, "B") for size in ("1 MiB", "16 MiB"))
_CALLS = 12  # calls of a point in a round, including warm-up and the total of the smaller sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One call at the same time in all groups of `size` ranks with stride `inner`."""

    what: ClassVar[str] = "collective"
    growth: ClassVar[float] = 4.0
    operation: Operation
    inner: int
    size: int
    bytes: float

    @property
    def series(self) -> tuple[object, ...]:
        """What grows."""
        return self.what, self.operation, self.inner, self.size

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.operation}, {self.size} ranks, stride {self.inner}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One matrix product, m x k by k x n, on every device at once."""

    what: ClassVar[str] = "product"
    growth: ClassVar[float] = 8.0
    dtype: str
    mode: Literal["nn", "nt", "tn"]
    form: str
    m: int
    n: int
    k: int

    @property
    def series(self) -> tuple[object, ...]:
        """What grows."""
        return self.what, self.dtype, self.mode, self.form

    @property
    def flops(self) -> float:
        """FLOPs of one product."""
        return 2.0 * self.m * self.n * self.k

    @property
    def words(self) -> str:
        """For people."""
        return f"product {self.mode.upper()} in {self.dtype}, {self.m} x {self.n} x {self.k}"


@dataclass(frozen=True, slots=True)
class Stream:
    """One pass over tensors of `bytes` each, on every device at once: copy reads one and triad two, both write one."""

    what: ClassVar[str] = "stream"
    growth: ClassVar[float] = 4.0
    kernel: Literal["copy", "triad"]
    bytes: float

    @property
    def series(self) -> tuple[object, ...]:
        """What grows."""
        return self.what, self.kernel

    @property
    def moved(self) -> float:
        """Bytes read and written."""
        return self.bytes * (2 if self.kernel == "copy" else 3)

    @property
    def words(self) -> str:
        """For people."""
        return f"memory, {self.kernel}"


@dataclass(frozen=True, slots=True)
class Issue:
    """The time to issue a kernel: passes through blocks so small that nothing else takes time, per kernel."""

    what: ClassVar[str] = "issue"
    growth: ClassVar[float] = 1.0

    @property
    def series(self) -> tuple[object, ...]:
        """One point."""
        return (self.what,)

    @property
    def words(self) -> str:
        """For people."""
        return "issuing kernels"


@dataclass(frozen=True, slots=True)
class Beside:
    """An all-reduce of `bytes` over all ranks of a node, products that take about the same time, and both at once."""

    what: ClassVar[str] = "beside"
    growth: ClassVar[float] = 16.0
    bytes: float

    @property
    def series(self) -> tuple[object, ...]:
        """What grows."""
        return (self.what,)

    @property
    def words(self) -> str:
        """For people."""
        return "products beside an all-reduce"


Point: TypeAlias = Collective | Product | Stream | Issue | Beside
_KINDS: Mapping[str, type[Point]] = {kind.what: kind for kind in (Collective, Product, Stream, Issue, Beside)}


def record_of(point: Point) -> dict[str, Any]:
    """A point as plain data."""
    return {"what": point.what, **asdict(point)}


def point_of(record: Mapping[str, Any]) -> Point | None:
    """The point of a line; None if the line describes something else."""
    kind = _KINDS.get(record.get("what", ""))
    if kind is None:
        return None
    try:
        return kind(**{each.name: record[each.name] for each in fields(kind)})
    except KeyError:
        return None


def shapes(ranks: int, node: int) -> list[tuple[int, int]]:
    """(inner, size) of the groups that a table of a profile may describe, among `ranks` devices in nodes of `node`.

    Inside a node these are all groups whose inner * size divides it; between nodes, those that leave no device idle.

    >>> shapes(4, 4)
    [(1, 2), (1, 4), (2, 2)]
    >>> shapes(8, 4)[3:]
    [(1, 8), (2, 4), (4, 2)]
    """
    inside = [(inner, size) for inner in divisors(node) for size in divisors(node // inner) if size > 1]
    between = [
        (inner, size)
        for inner in divisors(ranks)
        for size in divisors(ranks // inner)
        if size > 1
        and not contained(inner=inner, size=size, domain=node)
        and (node % inner == 0 or inner % node == 0)
        and inner * size % node == 0
    ]
    return inside + between


def plan(ranks: int, node: int, dtypes: Sequence[str], largest: float) -> list[Point]:
    """Everything to measure: first what a profile needs, and small sizes before large ones."""
    streams = [Stream(kernel, size) for size in _STREAMED for kernel in ("copy", "triad")]
    return [
        Issue(),
        *(point for pair in itertools.zip_longest(_products(dtypes), streams) for point in pair if point is not None),
        *_collectives(shapes(ranks, node), largest),
        *([Beside(size) for size in _BESIDE] if node > 1 else []),
    ]


def _products(dtypes: Sequence[str]) -> Iterator[Product]:
    width = _LEAST_WIDTH
    while width <= _MOST_WIDTH:
        for dtype, mode, (form, by) in itertools.product(dtypes, MODES, _FORMS.items()):
            m, n, k = (width * factor for factor in by)
            yield Product(dtype=dtype, mode=mode, form=form, m=m, n=n, k=k)  # type: ignore[arg-type]
        width *= 2


def _collectives(groups: Iterable[tuple[int, int]], largest: float) -> Iterator[Collective]:
    groups, size = list(groups), _SMALLEST
    while size <= largest:
        for (inner, members), operation in itertools.product(groups, OPERATIONS):
            yield Collective(operation=operation, inner=inner, size=members, bytes=size)
        size *= Collective.growth


def longest(budget: float, rounds: int, points: Iterable[Point]) -> float:
    """Seconds that a call may take, so that the given number of rounds of all series fits into the budget."""
    return budget / (rounds * len({point.series for point in points}) * _CALLS)


def too_long(point: Point, seconds: Mapping[Point, float], limit: float) -> bool:
    """Whether the point would take longer than `limit`, estimated from the largest measured point of its series.

    `seconds` are the shortest times of each point, since noise only adds time. Small messages take their start-up time,
    whatever their size, and are always measured.
    """
    if isinstance(point, Collective) and point.bytes <= _SMALL:
        return False
    before = [(_amount(one), taken) for one, taken in seconds.items() if one.series == point.series and one != point]
    smaller = [pair for pair in before if pair[0] < _amount(point)]
    if not smaller:
        return False
    amount, taken = max(smaller)
    return taken * _amount(point) / amount > limit


def _amount(point: Point) -> float:
    """The quantity that the time of a point grows with."""
    if isinstance(point, Product):
        return point.flops
    return 1.0 if isinstance(point, Issue) else point.bytes
