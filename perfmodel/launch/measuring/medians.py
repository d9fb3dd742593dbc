"""Medians of the measurements, as the figures and the tables of a profile."""

from collections.abc import Iterable
from functools import partial

from perfmodel.launch.measuring.lines import Lines
from perfmodel.launch.measuring.points import OPERATIONS, Collective
from perfmodel.machines import profile_text
from perfmodel.machines.collective_times import Operation, TimingRow, Timings

DIGITS = 4  # of a median
_FEWEST = 2  # sizes of a table

figure = partial(profile_text.figure, digits=DIGITS)


def medians(lines: Lines, node: int, source: str) -> list[Timings]:
    """A table for each operation, ranks per node and stride, with a row for each number of nodes.

    A table has no gaps: if larger groups were only measured up to a smaller size, all rows end at that size.
    """
    found: dict[tuple[Operation, int, int], dict[int, dict[float, float]]] = {}
    for point in lines.values:
        if isinstance(point, Collective):
            ranks, nodes = members(point, node)
            row = found.setdefault((point.operation, ranks, point.inner), {}).setdefault(nodes, {})
            row[point.bytes] = lines.median(point)
    ordered = sorted(found, key=lambda key: (OPERATIONS.index(key[0]), key[2], key[1]))
    tables = (_table(key, found[key], source) for key in ordered)
    return [table for table in tables if table is not None]


def members(point: Collective, node: int) -> tuple[int, int]:
    """(members in each node, nodes) of a group."""
    if point.inner * point.size <= node:
        return point.size, 1
    ranks = max(1, node // point.inner)
    return ranks, point.size // ranks


def _table(key: tuple[Operation, int, int], rows: dict[int, dict[float, float]], source: str) -> Timings | None:
    kept = {nodes: row for nodes, row in sorted(rows.items()) if len(row) >= _FEWEST}
    sizes = _common(kept.values())
    if len(sizes) < _FEWEST:
        return None
    operation, ranks, inner = key
    return Timings(
        operation=operation,
        ranks=ranks,
        inner=inner,
        source=source,
        sizes=tuple(sizes),
        rows=tuple(TimingRow(nodes, tuple(row[size] for size in sizes)) for nodes, row in kept.items()),
    )


def _common(rows: Iterable[dict[float, float]]) -> list[float]:
    sets = [set(row) for row in rows]
    return sorted(set.intersection(*sets)) if sets else []
