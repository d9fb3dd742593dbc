"""The rates of a device from the lines: rates of products, memory bandwidth, time to issue a kernel, contention."""

import math
import statistics
from collections.abc import Mapping

from perfmodel.launch.measuring.lines import Lines
from perfmodel.launch.measuring.points import MODES, STREAMS, Beside, Issue, Product, Stream
from perfmodel.sources import PLAUSIBLE
from perfmodel.units import parse

_LEAST_SHARE, _MOST_SHARE = parse(PLAUSIBLE["1"][0], "1"), 1.0  # the range of contention that a profile accepts
_LARGER = 64  # a shape is small below this share of the largest shape's work
_LEAST_ISSUE = parse("1 ns", "s")  # used where noise makes the difference of two times negative


def products(lines: Lines, dtype: str) -> dict[tuple[int, int, int], Mapping[str, float]]:
    """FLOP/s by shape and mode, for shapes measured in all modes; a layer has one product in each mode."""
    found: dict[tuple[int, int, int], dict[str, float]] = {}
    for point in lines.values:
        if isinstance(point, Product) and point.dtype == dtype:
            found.setdefault((point.m, point.n, point.k), {})[point.mode] = point.flops / lines.median(point)
    return {shape: rates for shape, rates in found.items() if len(rates) == len(MODES)}


def best_product(lines: Lines, dtype: str) -> tuple[tuple[int, int, int], float] | None:
    """The shape, of those that are not small, that is fastest over all three modes together, and its FLOP/s."""
    every = products(lines, dtype)
    most = max((math.prod(shape) for shape in every), default=0)
    together = {
        shape: statistics.harmonic_mean(rates.values())
        for shape, rates in every.items()
        if math.prod(shape) * _LARGER >= most
    }
    return max(together.items(), key=lambda pair: pair[1], default=None)


def fastest(lines: Lines, dtype: str) -> float:
    """FLOP/s of the fastest single measurement."""
    return max(
        point.flops / values["seconds"]
        for point, rounds in lines.values.items()
        if isinstance(point, Product) and point.dtype == dtype
        for values in rounds.values()
    )


def memory_bandwidth(lines: Lines) -> float | None:
    """Bytes per second read and written by copy and triad, for the largest tensors measured with both."""
    known: dict[float, list[Stream]] = {}
    for point in lines.values:
        if isinstance(point, Stream):
            known.setdefault(point.bytes, []).append(point)
    whole = [size for size, points in known.items() if len(points) == len(STREAMS)]
    if not whole:
        return None
    points = known[max(whole)]
    return sum(point.moved for point in points) / sum(lines.median(point) for point in points)


def host_time(lines: Lines) -> float | None:
    """Seconds to issue a kernel."""
    return max(lines.median(Issue()), _LEAST_ISSUE) if Issue() in lines.values else None


def contention(lines: Lines) -> float | None:
    """Time lost when both overlap, as a share of the shorter: (together - longer) / shorter, from 0.001 to 1."""
    points = [point for point in lines.values if isinstance(point, Beside)]
    if not points:
        return None
    rounds = lines.values[max(points, key=lambda point: point.bytes)].values()
    lost = statistics.median(
        (values["seconds"] - max(values["compute"], values["send"])) / min(values["compute"], values["send"])
        for values in rounds
    )
    return min(max(lost, _LEAST_SHARE), _MOST_SHARE)
