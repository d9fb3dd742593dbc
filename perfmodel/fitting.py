"""One number fitted to one published step of a machine, and what that makes of the machine's other steps.

The number is the `contention`: what computation and communication lose to each other while they run side by side. The
row that it is fitted to says so in `data/published.csv`; neither this row nor another figure of the same run is scored.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from perfmodel.errors import PerfmodelError
from perfmodel.published import Published, predicted, rows

_SAME_RUN = ("machine", "model", "gpus", "published")
_EXACT = 0.0005


@dataclass(frozen=True, slots=True)
class Fit:
    """The contention of a machine at which the prediction of `row` is the published figure."""

    row: Mapping[str, str]
    contention: float

    def same_run(self, row: Mapping[str, str]) -> bool:
        """Whether a row is the fitted one, or the same figure of the same run under another check."""
        return all(row[name] == self.row[name] for name in _SAME_RUN)


def root(rising: Callable[[float], float], low: float, high: float, *, exact: float = _EXACT) -> float:
    """Where a rising function is 0 between `low` and `high`, to `exact`: by halving.

    >>> round(root(lambda x: x * x - 2, 0, 2), 3)
    1.414
    """
    if rising(low) > 0 or rising(high) < 0:
        raise PerfmodelError(f"nothing from {low:g} to {high:g} fits: {rising(low):+.3g} to {rising(high):+.3g}")
    while high - low > exact:
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


def fits() -> tuple[Fit, ...]:
    """The fit of every machine that a shipped figure is marked for."""
    return tuple(Fit(row, _contention(row)) for row in rows() if row["fit"])


def _contention(row: Mapping[str, str]) -> float:
    """From 0, where nothing is lost side by side, to 1, where nothing is won; a step takes longer the more is lost."""
    return root(lambda contention: predicted(row, contention).error, 0.0, 1.0)


def refitted(found: Sequence[Published], fitted: Sequence[Fit]) -> tuple[Published | None, ...]:
    """The same figures with their machine's fit; None where there is none, and for what is not scored.

    Only times of steps are: what contention takes is shared by computation and communication, in parts not known apart.
    """
    of_machine = {fit.row["machine"]: fit for fit in fitted}
    return tuple(_refitted(one.row, of_machine.get(one.row["machine"])) for one in found)


def _refitted(row: Mapping[str, str], fit: Fit | None) -> Published | None:
    if fit is None or row["quantity"] != "step_s" or fit.same_run(row):
        return None
    return predicted(row, fit.contention)
