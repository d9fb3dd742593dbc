"""Steps term by term: collectives as the model counts and times them beside what the launcher counted and timed."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from perfmodel.communication import traffic
from perfmodel.compute import gemm_rate
from perfmodel.measured import Timed
from perfmodel.step import predict
from perfmodel.timings import Operation
from perfmodel.validate import Compared, Comparison, comparison_record
from perfmodel.verdict import Parts, verdict

Key = tuple[Operation, str]


@dataclass(frozen=True, slots=True)
class Term:
    """One operation on one axis in the step of one row; None where one of the two knows nothing of it."""

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
    """Every collective of a row's step whose calls were timed, predicted beside measured."""
    if not one.row.timed:
        return []
    measured = {(timed.operation, timed.axis): timed for timed in one.row.timed}
    predicted = _predicted(one)
    keys = dict.fromkeys([*measured, *predicted])
    return [Term(one.row.line, *key, predicted.get(key), measured.get(key)) for key in keys]


def predicted_and_timed(one: Compared) -> list[Timed]:
    """What was timed of a row's collectives and is predicted to take time, too."""
    return [term.measured for term in terms(one) if term.measured and term.predicted and term.predicted.seconds > 0]


def _predicted(one: Compared) -> dict[Key, Timed]:
    """The step's collectives by operation and axis; a group of one sends nothing."""
    found: dict[Key, Timed] = {}
    for each in traffic(one.job, one.layout):
        if np.all(each.link.size > 1):
            key = each.operation, each.link.axis
            before = found.get(key, Timed(*key, 0.0, 0.0, 0.0))
            found[key] = replace(
                before,
                calls=before.calls + float(each.sent),
                buffers=before.buffers + float(each.calls * each.buffer),
                seconds=before.seconds + float(each.total),
            )
    return found


def parts(one: Compared, of: Sequence[Term]) -> Parts:
    """What the error of a row's step is split over."""
    computation = predict(one.job, one.layout, gemm_rate(one.job)).compute
    return Parts(
        predicted=one.predicted,
        measured=one.measured,
        computation=float(np.asarray(computation)),
        collectives={term.name: (_seconds(term.predicted), _seconds(term.measured)) for term in of},
        overlapped=bool(one.job.settings.overlap),
    )


def _seconds(timed: Timed | None) -> float:
    return timed.seconds if timed else 0.0


def record(comparison: Comparison) -> dict[str, Any]:
    """The answer of `compare`: rows and summary, then the collectives of all rows, and which assumption fails most."""
    found = [(one, terms(one)) for one in comparison.rows]
    shares = [parts(one, of).shares() for one, of in found if of]
    every = [term for _, of in found for term in of]
    return comparison_record(comparison) | {
        "collectives": [_summed(key, every) for key in dict.fromkeys((term.operation, term.axis) for term in every)],
        "terms": [_term_record(term) for term in every],
        "verdict": asdict(verdict(shares, error=comparison.sizes.bias)),
    }


def _summed(key: Key, every: Sequence[Term]) -> dict[str, Any]:
    """One operation on one axis over all rows: a call's mean seconds, and the median error of rows that have both."""
    mine = [term for term in every if (term.operation, term.axis) == key]
    errors = [term.predicted.seconds / term.measured.seconds - 1 for term in mine if term.predicted and term.measured]
    sides = {name: [each for term in mine if (each := getattr(term, name))] for name in ("predicted", "measured")}
    return {
        "operation": key[0],
        "axis": key[1],
        "rows": len(mine),
        **{f"{name}_calls": sum(each.calls for each in of) for name, of in sides.items()},
        **{f"{name}_bytes": sum(each.buffers for each in of) for name, of in sides.items()},
        **{f"{name}_s_a_call": _a_call(of) for name, of in sides.items()},
        "error": statistics.median(errors) if errors else None,
    }


def _a_call(of: Sequence[Timed]) -> float | None:
    return sum(each.seconds for each in of) / sum(each.calls for each in of) if of else None


def _term_record(term: Term) -> Mapping[str, Any]:
    figures: dict[str, float | None] = {}
    for name, each in (("predicted", term.predicted), ("measured", term.measured)):
        for figure, unit in (("calls", "calls"), ("buffers", "bytes"), ("seconds", "s")):
            figures[f"{name}_{unit}"] = getattr(each, figure) if each else None
    return {"line": term.line, "operation": term.operation, "axis": term.axis} | figures
