"""The level of predictions from steps that the user measured: one factor, and how many rows it comes from.

A set of runs differs from predictions mostly by one factor that all its rows share (docs/validation.md). Rows on the
same machine are evidence for it: the factor is the geometric mean of measured over predicted.
"""

from dataclasses import dataclass, replace
from math import exp, log

from perfmodel.errors import PerfmodelError
from perfmodel.parallel.job import Job
from perfmodel.validation.compare import compare
from perfmodel.validation.measured_steps import Reading


@dataclass(frozen=True, slots=True)
class Level:
    """Measured over predicted, and the number of measured steps."""

    factor: float
    rows: int


def measured_level(reading: Reading, job: Job) -> Level:
    """The level of the rows on the job's machine, predicted with its framework; raises where there is none."""
    settings = replace(job.settings, level=1.0, level_rows=0, ignore_memory=True)
    found = compare(reading, settings)
    ratios = [one.measured / one.predicted for one in found.rows if one.job.machine.name == job.machine.name]
    if not ratios:
        others = ", ".join(sorted({one.job.machine.name for one in found.rows})) or "none that can be predicted"
        raise PerfmodelError(f"no measured step is of {job.machine.name}; {reading.path} has {others}")
    return Level(exp(sum(map(log, ratios)) / len(ratios)), len(ratios))


def at_level(job: Job, reading: Reading) -> Job:
    """The same job with its steps at the level of what was measured."""
    level = measured_level(reading, job)
    return replace(job, settings=replace(job.settings, level=level.factor, level_rows=level.rows))
