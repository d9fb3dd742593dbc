"""Curves over counts of devices, and predicted against measured: values on two scales."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perfmodel_cli.report.html import Markup, joined
from perfmodel_cli.report.scales import Scale
from perfmodel_cli.report.svg import AXIS, chart, dot, named, path, stroke, words

_TOP = 8


@dataclass(frozen=True, slots=True)
class Point:
    """A value of a curve, and its text."""

    x: float
    y: float
    told: str


@dataclass(frozen=True, slots=True)
class Curve:
    """Points joined by lines; `marked` with a dot each."""

    points: Sequence[Point]
    colour: str
    marked: bool = True


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale, how a value is written, and the values that are marked; none: round ones."""

    scale: Scale
    show: Callable[[float], str]
    given: Sequence[float] = ()

    @property
    def marks(self) -> Sequence[float]:
        """Values that are marked."""
        return self.given or self.scale.marks()


@dataclass(frozen=True, slots=True)
class Axes:
    """Both axes, and the height of the plot in pixels."""

    across: Axis
    up: Axis
    height: float = 220

    def place(self, point: Point) -> tuple[float, float]:
        """Horizontal position in percent, vertical in pixels."""
        return self.across.scale.at(point.x), self.down(point.y)

    def down(self, value: float) -> float:
        """Pixels from the top of the chart."""
        return _TOP + (100 - self.up.scale.at(value)) / 100 * self.height


def plot(title: str, told: str, axes: Axes, curves: Sequence[Curve]) -> Markup:
    """All curves on a grid of marks."""
    parts = [_grid(axes)]
    for curve in curves:
        places = [axes.place(point) for point in curve.points]
        parts.append(path(places, f"curve {curve.colour}"))
        if curve.marked:
            parts += [
                dot(*place, 5, f"point {curve.colour}", one.told)
                for place, one in zip(places, curve.points, strict=True)
            ]
    return chart(title, told, _TOP + axes.height + AXIS, parts)


def scatter(title: str, told: str, axes: Axes, points: Sequence[Point], factors: Sequence[float]) -> Markup:
    """Points around the diagonal of equal values, which is drawn too, with lines at `factors` of it."""
    low, high = axes.across.scale.low, axes.across.scale.high
    lines = []
    for factor in (1.0, *factors):
        first, last = max(low, low / factor), min(high, high / factor)
        ends = (axes.place(Point(end, factor * end, "")) for end in (first, last))
        lines.append(path(ends, "equal" if factor == 1 else "bound"))
    dots = [dot(*axes.place(one), 4, "measured", one.told) for one in points]
    return chart(title, told, _TOP + axes.height + AXIS, [_grid(axes), *lines, *dots])


def _grid(axes: Axes) -> Markup:
    """Horizontal lines with their values above them at the left, and the values below the plot."""
    bottom = _TOP + axes.height
    parts = []
    for mark in axes.up.marks:
        y = axes.down(mark)
        parts += [stroke((0, y), (100, y), "mark"), words(axes.up.show(mark), 0, y - 4, anchor="start", class_="tick")]
    parts.append(stroke((0, bottom), (100, bottom), "axis"))
    marks = sorted(axes.across.marks)
    places = [axes.across.scale.at(mark) for mark in marks]
    for mark, place, class_ in zip(marks, places, named(places), strict=True):
        parts.append(stroke((place, bottom), (place, bottom + 4), "axis"))
        if class_:
            parts.append(words(axes.across.show(mark), place, bottom + AXIS - 6, class_=class_))
    return joined(parts)
