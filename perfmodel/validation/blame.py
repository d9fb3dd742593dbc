"""Which assumption of a prediction fails most: the error of a step, split over computation, collectives and overlap.

The launcher times collectives alone and steps as a whole, not computation and not what is hidden. With C, K, P the
predicted computation, communication alone and step, f = 1 - (P - C) / K is the share of K that is hidden. K', S are the
measured communication alone and step:

    a collective k    (1 - f) (K_k - K'_k)             the share that is not hidden
    overlap           K' (f' - f)                      f' = (C + K' - S) / K' is hidden if computation is right
    computation       C - (S - (1 - f) K')             if overlap is right

Overlap is blamed where it can explain the step (f' from 0 to 1), computation where it cannot or where nothing overlaps.
Either way the parts add up to P - S.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

COMPUTATION, OVERLAP, NONE, UNKNOWN = "computation", "overlap", "none", "unknown"
SMALL = 0.05  # mean error of a step; steps of one grid scatter about as much

Shares = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Seconds of one step, predicted and measured; of each collective, by name, (predicted, measured) alone."""

    predicted: float
    measured: float
    computation: float
    collectives: Mapping[str, tuple[float, float]]
    overlapped: bool

    def shares(self) -> dict[str, float]:
        """What each assumption adds to the error, as a share of the measured step; negative: predicted too short.

        >>> reduced = {"all-reduce over x": (0.4, 0.7)}
        >>> alone = Parts(predicted=0.9, measured=1.2, computation=0.5, collectives=reduced, overlapped=False)
        >>> {name: round(share, 2) for name, share in alone.shares().items()}
        {'all-reduce over x': -0.25, 'computation': 0.0}
        """
        sent = sum(predicted for predicted, _ in self.collectives.values())
        took = sum(measured for _, measured in self.collectives.values())
        exposed = (self.predicted - self.computation) / sent if sent else 1.0
        found = {
            name: exposed * (predicted - measured) / self.measured
            for name, (predicted, measured) in self.collectives.items()
        }
        explained = took > 0 and self.computation <= self.measured <= self.computation + took
        rest = self.computation - (self.measured - exposed * took)
        found[OVERLAP if self.overlapped and explained else COMPUTATION] = rest / self.measured
        return found


@dataclass(frozen=True, slots=True)
class Verdict:
    """The assumption that fails most, or none, or unknown, and a sentence; `share` of a step is its mean error."""

    assumption: str
    share: float
    sentence: str


def verdict(rows: Sequence[Shares], *, error: float = 0.0) -> Verdict:
    """What fails most over rows, by their `shares`; `error`: mean error of the steps, used where no row has parts.

    >>> verdict([{"computation": -0.3, "overlap": 0.02}, {"computation": -0.1}]).assumption
    'computation'
    """
    if not rows:
        return Verdict(UNKNOWN, abs(error), _untimed(error))
    names = dict.fromkeys(name for row in rows for name in row)
    sizes = {name: sum(abs(row.get(name, 0.0)) for row in rows) / len(rows) for name in names}
    signed = {name: sum(row.get(name, 0.0) for row in rows) for name in names}
    worst, *others = sorted(sizes, key=lambda name: -sizes[name])
    over = f"on average over {len(rows)} row{'s' * (len(rows) > 1)}"
    if sizes[worst] <= SMALL:
        most = f"{worst} is off by {_percent(sizes[worst])} of a step {over}, everything else by less"
        return Verdict(NONE, sizes[worst], f"No assumption fails: {most}.")
    told = f"{worst} fails most: it is {_direction(worst, signed[worst])}, by {_percent(sizes[worst])} of a step {over}"
    others = [f"{name} {_percent(sizes[name])}" for name in others if sizes[name] > SMALL]
    then = f" Then: {', '.join(others)}." if others else ""
    return Verdict(worst, sizes[worst], f"{told[0].upper()}{told[1:]}.{then}")


def _direction(name: str, error: float) -> str:
    if name == OVERLAP:
        return "taken to hide more than it does" if error < 0 else "taken to hide less than it does"
    return "predicted too short" if error < 0 else "predicted too long"


def _untimed(error: float) -> str:
    steps = f"Steps are predicted {_percent(abs(error))} too {'short' if error < 0 else 'long'} on average"
    return f"{steps}; no row says what its collectives took, so which assumption fails cannot be told."


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
