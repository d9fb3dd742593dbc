"""Steps term by term: collectives as the model counts and times them, next to what the launcher measured."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfmodel.machines.collective_times import Operation
from perfmodel.step.predict import predict
from perfmodel.traffic.per_step import traffic
from perfmodel.validation.blame import Parts
from perfmodel.validation.compare import Compared
from perfmodel.validation.measured_steps import Timed

Key = tuple[Operation, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One operation on one axis in the step of one row; None where it was not predicted, or not measured."""

    line: int
    operation: Operation
    axis: str
    predicted: Timed | None
    measured: Timed | None

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.operation} over {self.axis}"


def terms(one: Compared) -> list[Term]:
    """Every timed collective of a row's step, predicted and measured."""
    if not one.row.timed:
        return []
    measured = {(timed.operation, timed.axis): timed for timed in one.row.timed}
    predicted = _predicted(one)
    keys = dict.fromkeys([*measured, *predicted])
    return [
        Term(
            line=one.row.line,
            operation=operation,
            axis=axis,
            predicted=predicted.get((operation, axis)),
            measured=measured.get((operation, axis)),
        )
        for operation, axis in keys
    ]


def predicted_and_timed(one: Compared) -> list[Timed]:
    """The collectives of a row that were timed and that are predicted to take time."""
    return [term.measured for term in terms(one) if term.measured and term.predicted and term.predicted.seconds > 0]


def _predicted(one: Compared) -> dict[Key, Timed]:
    """The step's collectives by operation and axis; a group of one sends nothing."""
    found: dict[Key, Timed] = {}
    for each in traffic(one.job, one.layout):
        if np.all(each.link.size > 1):
            key = each.operation, each.link.axis
            none = Timed(operation=each.operation, axis=each.link.axis, calls=0.0, buffers=0.0, seconds=0.0)
            before = found.get(key, none)
            found[key] = replace(
                before,
                calls=before.calls + float(each.sent),
                buffers=before.buffers + float(each.calls * each.buffer),
                seconds=before.seconds + float(each.total),
            )
    return found


def parts(one: Compared, of: Sequence[Term]) -> Parts:
    """The parts over which the error of a row's step is split."""
    computation = predict(one.job, one.layout).compute
    return Parts(
        predicted=one.predicted,
        measured=one.measured,
        computation=float(np.asarray(computation)),
        collectives={term.name: (_seconds(term.predicted), _seconds(term.measured)) for term in of},
        overlapped=bool(one.job.settings.overlap),
    )


def _seconds(timed: Timed | None) -> float:
    return timed.seconds if timed else 0.0
