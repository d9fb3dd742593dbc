"""One training step on one layout or many, at the fidelity that the job asks for."""

from importlib import import_module
from typing import Protocol, cast

from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.step.prediction import Prediction
from perfmodel.units import Seconds


class _Fidelity(Protocol):
    """What `paper`, `flat` and `full` have in common."""

    def predict(self, job: Job, layout: Layout) -> Prediction:
        """Every term of a step."""

    def step_time(self, job: Job, layout: Layout) -> Seconds:
        """Seconds per step, without the terms."""


def predict(job: Job, layout: Layout) -> Prediction:
    """Every term of a step."""
    return _fidelity(job).predict(job, layout)


def step_time(job: Job, layout: Layout) -> Seconds:
    """Seconds per step, without the terms."""
    return _fidelity(job).step_time(job, layout)


def _fidelity(job: Job) -> _Fidelity:
    """The module of that name in this room; only the one that is asked is loaded."""
    return cast("_Fidelity", import_module(f"perfmodel.step.{job.settings.fidelity}"))
