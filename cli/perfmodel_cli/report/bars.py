"""Stacked bars, one row per grid, and intervals in the same rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from perfmodel_cli.report.html import Markup, element, joined
from perfmodel_cli.report.scales import Scale, between, from_zero
from perfmodel_cli.report.svg import AXIS, Series, chart, dot, legend, percent, stroke, words

_ROW, _TEXT, _BAR, _THICK = 44, 14, 20, 15  # pixels of a row, then in it: the baseline of its text, its bar
_HEAD = 20  # pixels above the rows where a limit is named


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: its name, its total as text, and a value for each series."""

    name: str
    amount: str
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Limit:
    """A value that bars should not exceed, and its label."""

    value: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """One row of intervals: from `low` to `high`, with the expected value in between."""

    name: str
    amount: str
    low: float
    middle: float
    high: float


def stacked(
    title: str, series: Sequence[Series], bars: Sequence[Bar], show: Callable[[float], str], limit: Limit | None = None
) -> Markup:
    """A legend of the series that occur in any bar, and the bars."""
    used = [one for one in series if any(bar.values[one.key] for bar in bars)]
    ends = [sum(bar.values.values()) for bar in bars] + ([limit.value] if limit else [])
    scale, top = from_zero(ends), _HEAD if limit else 0
    height = top + _ROW * len(bars)
    parts = [_marks(scale, show, top, height)]
    for number, bar in enumerate(bars):
        parts += [
            _named(bar.name, bar.amount, top + _ROW * number),
            _segments(bar, used, scale, top + _ROW * number, show),
        ]
    if limit:
        place = scale.at(limit.value)
        above = (stroke((place, y - 4), (place, y + _THICK + 4), "limit") for y in range(top + _BAR, height, _ROW))
        parts += [words(limit.label, place, _TEXT, class_="strong"), *above]
    told = "; ".join(f"{bar.name}: {bar.amount}" for bar in bars)
    return joined([legend(used), chart(title, told, height + AXIS, parts)])


def ranges(title: str, rows: Sequence[Range], show: Callable[[float], str]) -> Markup:
    """Intervals below one another."""
    scale, height = between([end for row in rows for end in (row.low, row.high)]), _ROW * len(rows)
    parts = [_marks(scale, show, 0, height)]
    for number, row in enumerate(rows):
        low, high, y = scale.at(row.low), scale.at(row.high), _ROW * number + _BAR + _THICK / 2
        told = f"{row.name}: {show(row.low)} to {show(row.high)}, expected {show(row.middle)}"
        parts += [
            _named(row.name, row.amount, _ROW * number),
            stroke((low, y), (high, y), "interval"),
            dot(scale.at(row.middle), y, 5, "point", told),
        ]
    told = "; ".join(f"{row.name}: {row.amount}" for row in rows)
    return chart(title, told, height + AXIS, parts)


def _named(name: str, amount: str, top: float) -> Markup:
    y = top + _TEXT
    return joined([words(name, 0, y, class_="strong"), words(amount, 100, y, class_="amount")])


def _segments(bar: Bar, series: Sequence[Series], scale: Scale, top: float, show: Callable[[float], str]) -> Markup:
    parts, begun = [], 0.0
    for one in series:
        value = bar.values[one.key]
        left, begun = scale.at(begun), begun + value
        if value:
            told = element("title", f"{bar.name}, {one.label}: {show(value)}")
            parts.append(
                element(
                    "rect", told, x=percent(left), y=top + _BAR, width=percent(scale.at(begun) - left), height=_THICK,
                    class_=f"segment {one.colour}",
                )
            )  # fmt: skip
    return joined(parts)


def _marks(scale: Scale, show: Callable[[float], str], top: float, bottom: float) -> Markup:
    return joined(
        part
        for mark in scale.marks()
        for part in (
            stroke((scale.at(mark), top), (scale.at(mark), bottom + 4), "mark"),
            words(show(mark), scale.at(mark), bottom + AXIS - 6, class_="tick"),
        )
    )
