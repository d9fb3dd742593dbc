"""Evidence from scored rows: how far each set lies from predictions, and how well ranges made without it cover it."""

from collections.abc import Sequence

import numpy as np

from perfmodel.search.likely import Evidence, chip, likely
from perfmodel.validation.steps.scores import Scored


def evidence(rows: Sequence[Scored]) -> list[Evidence]:
    """One entry for each set with measured steps."""
    timed = [one for one in rows if one.case.step]
    keys = list(dict.fromkeys(_key(one) for one in timed))
    return [_of_set(key[0], [one for one in timed if _key(one) == key]) for key in keys]


def _key(one: Scored) -> tuple[str, str, str]:
    job = one.case.job
    return one.case.set, job.settings.framework.name, chip(job.machine.device.name)


def _of_set(name: str, rows: Sequence[Scored]) -> Evidence:
    logs = np.log([(one.case.step or 1.0) / one.predicted for one in rows])
    job = rows[0].case.job
    return Evidence(
        set=name,
        framework=job.settings.framework.name,
        device=chip(job.machine.device.name),
        rows=len(logs),
        mean=round(float(logs.mean()), 4),
        spread=round(float(logs.std(ddof=1)), 4) if len(logs) > 1 else 0.0,
    )


def coverage(rows: Sequence[Scored], sets: Sequence[Evidence]) -> tuple[float, float]:
    """(mean over sets of the share of runs inside the range that the other sets give, median width high / low)."""
    shares, widths = [], []
    for one in sets:
        found = likely(one.framework, one.device, [other for other in sets if other.set != one.set])
        mine = [row for row in rows if row.case.step and _key(row) == (one.set, one.framework, one.device)]
        inside = [found.low <= (row.case.step or 0.0) / row.predicted <= found.high for row in mine]
        shares.append(sum(inside) / len(inside))
        widths.append(found.high / found.low)
    return float(np.mean(shares)), float(np.median(widths))
