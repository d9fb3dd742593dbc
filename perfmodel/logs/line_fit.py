"""Start-up time and bandwidth of a collective, fitted to times of several sizes.

The line is t = alpha + b / beta, where b are the bytes through each rank's link (`samples.traffic`: (n-1)/n S, twice
that for an all-reduce), so beta is the bus bandwidth of a large call. Times span five powers of ten, so the fit
minimizes the relative error: the logarithm of t over the line. The fit starts with the line through two of the points
that has the least median error (Rousseeuw 1984, least median of squares), which tolerates outliers up to half of the
points. From there Tukey's biweight (Beaton and Tukey 1974) weights the points; outliers get a weight of zero.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from perfmodel.units import Array, BytesPerSecond, Seconds

_PAIRS = 2000  # lines tried as a start
_TUNING = 4.685  # of the biweight: 95 % efficient where the errors are normal
_TO_SIGMA = 1.4826  # of a median of absolute errors
_LEAST_SIGMA = 1 / 500  # the rounding of a log's digits
_ROUNDS = 60
_CONFIDENCE = 0.95
_FEWEST = 4  # points for an interval


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLine:
    """A fitted line; the intervals hold 95 %, None where there are too few points.

    `error` is the median of the relative errors, `outliers` are places of points.
    """

    alpha: Seconds
    beta: BytesPerSecond
    alpha_interval: tuple[float, float] | None
    beta_interval: tuple[float, float] | None
    error: float
    outliers: tuple[int, ...]


def fit(sent: Array, times: Array) -> FittedLine | None:
    """The line through times of calls that send `sent` bytes through each link; None for fewer than two sizes.

    >>> sent = np.array([1e3, 1e5, 1e6, 1e7, 1e8, 1e9])
    >>> found = fit(sent, 20e-6 + sent / 25e9)
    >>> round(float(found.alpha) * 1e6, 3), round(float(found.beta) / 1e9, 3)
    (20.0, 25.0)
    """
    if len(np.unique(sent)) < 2:
        return None
    line = _start(sent, times)
    for _ in range(_ROUNDS):
        errors = _errors(line, sent, times)
        sigma = _sigma(errors)
        after = _step(line, sent, errors, _weights(errors / sigma))
        done = bool(np.allclose(after, line, rtol=1 / _TUNING**20, atol=0.0))
        line = after
        if done:
            break
    errors = _errors(line, sent, times)
    sigma, typical = _sigma(errors), float(np.median(np.abs(errors)))
    outliers = tuple(int(place) for place in np.flatnonzero(np.abs(errors) > _TUNING * sigma))
    beta = 1 / float(line[1])
    spread = _spread(line, sent, errors / sigma) * sigma
    if len(times) < _FEWEST or not np.all(np.isfinite(spread)):
        return FittedLine(
            alpha=float(line[0]), beta=beta, alpha_interval=None, beta_interval=None, error=typical, outliers=outliers
        )
    wide = _quantile(len(times) - 2) * spread
    alphas = max(0.0, float(line[0] - wide[0])), float(line[0] + wide[0])
    slow = 1 / float(line[1] + wide[1])
    betas = slow, 1 / float(line[1] - wide[1]) if line[1] > wide[1] else math.inf
    return FittedLine(
        alpha=float(line[0]), beta=beta, alpha_interval=alphas, beta_interval=betas, error=typical, outliers=outliers
    )


def _errors(line: Array, sent: Array, times: Array) -> Array:
    errors: Array = np.log(times) - np.log(line[0] + line[1] * sent)
    return errors


def _sigma(errors: Array) -> float:
    """A robust standard deviation, widened where points are few (Rousseeuw and Leroy 1987, chapter 5)."""
    few = 1 + 5 / max(len(errors) - 2, 1)
    return max(_TO_SIGMA * few * float(np.median(np.abs(errors))), _LEAST_SIGMA)


def _weights(scaled: Array) -> Array:
    inside: Array = np.clip(1 - (scaled / _TUNING) ** 2, 0.0, None) ** 2
    return inside


def _start(sent: Array, times: Array) -> Array:
    """The line through two points, or the origin and one, with the least median error."""
    left, right = np.triu_indices(len(sent), k=1)
    chosen = np.linspace(0, len(left) - 1, min(_PAIRS, len(left))).astype(int)
    left, right = left[chosen], right[chosen]
    apart = sent[left] != sent[right]
    left, right = left[apart], right[apart]
    slopes = (times[right] - times[left]) / (sent[right] - sent[left])
    starts = times[left] - slopes * sent[left]
    rising = (slopes > 0) & (starts >= 0)
    far = sent > 0
    slopes = np.concatenate([slopes[rising], times[far] / sent[far]])
    starts = np.concatenate([starts[rising], np.zeros(int(far.sum()))])
    lines = starts[:, None] + slopes[:, None] * sent[None, :]
    errors = np.median(np.abs(np.log(times)[None, :] - np.log(lines)), axis=1)
    best = int(np.argmin(errors))
    return np.array([starts[best], slopes[best]])


def _slopes(line: Array, sent: Array) -> Array:
    """How the logarithm of the line changes with alpha and with 1/beta."""
    slopes: Array = np.stack([np.ones_like(sent), sent], axis=1) / (line[0] + line[1] * sent)[:, None]
    return slopes


def _step(line: Array, sent: Array, errors: Array, weights: Array) -> Array:
    """One weighted Gauss-Newton step; alpha stays at or above 0, 1/beta above 0."""
    slopes = _slopes(line, sent) * np.sqrt(weights)[:, None]
    scale = np.linalg.norm(slopes, axis=0)
    scale[scale == 0] = 1.0
    change = np.linalg.lstsq(slopes / scale, errors * np.sqrt(weights), rcond=None)[0] / scale
    after: Array = line + change
    return np.array([max(after[0], 0.0), max(after[1], line[1] / 2)])


def _spread(line: Array, sent: Array, scaled: Array) -> Array:
    """Standard errors of alpha and 1/beta in units of sigma (Huber 1981: the sandwich of an M-estimate)."""
    slopes = _slopes(line, sent)
    scale = np.linalg.norm(slopes, axis=0)
    slopes = slopes / scale
    share = np.clip(1 - (scaled / _TUNING) ** 2, 0.0, None)
    bent = share * (1 - 5 * (scaled / _TUNING) ** 2)
    pull = scaled * share**2
    inside = np.linalg.pinv((slopes * bent[:, None]).T @ slopes)
    middle = (slopes * (pull**2)[:, None]).T @ slopes
    count = len(sent)
    variances = np.diag(inside @ middle @ inside) * count / max(count - 2, 1)
    found: Array = np.sqrt(np.clip(variances, 0.0, None)) / scale
    return found


def _quantile(freedom: int) -> float:
    """Student's t of the confidence (Abramowitz and Stegun 26.7.5, two terms).

    >>> round(_quantile(10), 2)
    2.23
    """
    z = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)
    second = (z**3 + z) / 4 / freedom
    third = (5 * z**5 + 16 * z**3 + 3 * z) / 96 / freedom**2
    return z + second + third
