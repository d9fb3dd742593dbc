"""Runs that were measured more than once: rows alike in all but what was measured become one, with medians.

Steps scatter from run to run, by more than grids differ where they are close. As rows of their own the repetitions of
one grid would tie in what is predicted of them, and a fit would be scored on rows that it knows.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

from perfmodel.measured import Measurement, Timed


def medians(rows: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """One row for each run, where the first of its repetitions stood."""
    found: dict[Measurement, list[Measurement]] = {}
    for row in rows:
        found.setdefault(_run(row), []).append(row)
    return tuple(one[0] if len(one) == 1 else _joined(one) for one in found.values())


def _run(row: Measurement) -> Measurement:
    """All that a row says of what ran, the calls that were timed included, and which figures it has."""
    return replace(
        row,
        line=0,
        step=row.step and 1.0,
        tokens_per_s_per_gpu=row.tokens_per_s_per_gpu and 1.0,
        memory=row.memory and 1.0,
        timed=tuple(replace(each, seconds=1.0) for each in row.timed),
    )


def _joined(rows: Sequence[Measurement]) -> Measurement:
    return replace(
        rows[0],
        step=_median([row.step for row in rows]),
        tokens_per_s_per_gpu=_median([row.tokens_per_s_per_gpu for row in rows]),
        memory=_median([row.memory for row in rows]),
        timed=tuple(map(_typical, *(row.timed for row in rows))),
        repetitions=len(rows),
    )


def _typical(*same: Timed) -> Timed:
    return replace(same[0], seconds=statistics.median(each.seconds for each in same))


def _median(values: Sequence[float | None]) -> float | None:
    """Of rows that all have the figure, or all lack it."""
    given = [value for value in values if value is not None]
    return statistics.median(given) if given else None
