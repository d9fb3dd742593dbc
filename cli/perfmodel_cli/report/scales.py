"""Where values lie on a chart, in percent of its width or of its height, and the round values that are marked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_STEPS = (1, 2, 5, 10)
_BASES = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear or logarithmic range; positions from 0 (its low end) to 100."""

    low: float
    high: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The position of a value.

        >>> Scale(0, 8).at(2), Scale(1, 100, logarithmic=True).at(10)
        (25.0, 50.0)
        """
        low, high, here = (math.log(end) if self.logarithmic else end for end in (self.low, self.high, value))
        return 100 * (here - low) / (high - low)

    def marks(self) -> list[float]:
        """Round values within the range, few enough to be written beside one another.

        >>> Scale(0, 11).marks(), Scale(3, 40, logarithmic=True).marks()
        ([0.0, 5.0, 10.0], [5, 10, 20])
        """
        return _decades(self.low, self.high) if self.logarithmic else _even(self.low, self.high)


def from_zero(values: Sequence[float]) -> Scale:
    """From 0 to a little above the largest."""
    return Scale(0.0, 1.05 * max(values, default=0.0) or 1.0)


def between(values: Sequence[float]) -> Scale:
    """A range with some room on both sides; it need not include 0."""
    low, high = min(values), max(values)
    room = 0.15 * (high - low) or 0.5 * high or 1.0
    return Scale(max(0.0, low - room), high + room)


def ascending(values: Sequence[float]) -> Scale:
    """A logarithmic range from the first to the last, with room at the left for labels."""
    ratio = values[-1] / values[0]
    return Scale(values[0] / ratio**0.14, values[-1] * ratio**0.03, logarithmic=True)


def around(values: Sequence[float]) -> Scale:
    """A logarithmic range with room on both sides."""
    return Scale(min(values) / 1.3, 1.3 * max(values), logarithmic=True)


def _even(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten: at most five."""
    power = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(one * power for one in _STEPS if (high - low) / (one * power) <= 4.5)
    first = math.ceil(low / step)
    return [step * number for number in range(first, math.floor(high / step) + 1)]


def _decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten; those powers alone if that were many, even steps if few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = [[base * 10**power if power >= 0 else base / 10**-power for power in powers for base in bases]
             for bases in (_BASES, _BASES[:1])]  # fmt: skip
    fine, coarse = ([mark for mark in marks if low <= mark <= high] for marks in every)
    if len(fine) < 3:
        return [mark for mark in _even(low, high) if mark > 0]
    return fine if len(fine) <= 6 or len(coarse) < 2 else coarse
