"""Pieces of inline SVG.

Horizontal positions are percent of the width, so that a chart fits a desktop and a telephone while its text keeps its
size; vertical positions are pixels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from perfmodel_cli.report.html import Markup, element, joined

AXIS = 26  # pixels below a plot, for its marks
_HIDDEN = {"width": 12, "height": 12, "aria_hidden": "true"}
_WIDE, _NARROW = 7, 14  # percent between the labels of marks on a wide and on a narrow page
_EDGE = 8  # percent from either end in which a text is set towards the middle


@dataclass(frozen=True, slots=True)
class Series:
    """What one colour stands for: the key of its values, its label, and the class that colours it."""

    key: str
    label: str
    colour: str


def chart(title: str, description: str, height: float, parts: Iterable[Markup]) -> Markup:
    """A picture with a description for readers who cannot see it."""
    return element(
        "svg", element("title", title), element("desc", description), *parts,
        class_="chart", height=f"{height:g}", width="100%", role="img", aria_label=f"{title}. {description}",
    )  # fmt: skip


def percent(value: float) -> str:
    """A horizontal position."""
    return f"{value:.2f}%"


def words(text: object, x: float, y: float, *, anchor: str = "", class_: str = "") -> Markup:
    """Text centred on a position; near an end of the chart it begins or ends there instead."""
    found = anchor or ("start" if x < _EDGE else "end" if x > 100 - _EDGE else "middle")
    return element("text", text, x=percent(x), y=f"{y:.1f}", text_anchor=found, class_=class_ or None)


def stroke(start: tuple[float, float], end: tuple[float, float], class_: str) -> Markup:
    """A straight line between two positions."""
    (x1, y1), (x2, y2) = start, end
    return element("line", x1=percent(x1), y1=f"{y1:.1f}", x2=percent(x2), y2=f"{y2:.1f}", class_=class_)


def path(points: Iterable[tuple[float, float]], class_: str) -> Markup:
    """Straight lines from each point to the next: a polyline cannot take percentages."""
    return joined(stroke(start, end, class_) for start, end in pairwise(points))


def dot(x: float, y: float, radius: float, class_: str, told: str) -> Markup:
    """A point that shows its text when the pointer is on it."""
    return element("circle", element("title", told), cx=percent(x), cy=f"{y:.1f}", r=f"{radius:g}", class_=class_)


def legend(series: Iterable[Series]) -> Markup:
    """What the colours mean."""
    items = [
        element("li", element("svg", element("rect", width=12, height=12, class_=one.colour), **_HIDDEN), one.label)
        for one in series
    ]
    return element("ul", *items, class_="legend")


def named(places: Sequence[float]) -> Iterable[str]:
    """The class of each mark's label, given ascending positions; empty where there is no room even on a wide page.

    >>> list(named([0, 9, 11, 30]))
    ['tick', 'tick roomy', '', 'tick']
    """
    always = _apart(places, _NARROW, ())
    roomy = _apart(places, _WIDE, always)
    return ("tick" if place in always else "tick roomy" if place in roomy else "" for place in places)


def _apart(places: Iterable[float], least: float, kept: Sequence[float]) -> list[float]:
    """Of ascending places, those at some distance from one another and from those that are kept anyway."""
    found: list[float] = []
    for place in places:
        if all(abs(place - other) >= least for other in (*kept, *found)):
            found.append(place)
    return found
