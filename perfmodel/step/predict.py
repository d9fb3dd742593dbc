"""One training step on one layout or many, at the fidelity that the job asks for."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from perfmodel.costs.fidelity import Fidelity
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.step import flat, full, paper
from perfmodel.step.prediction import Prediction
from perfmodel.units import Seconds


class _Model(Protocol):
    """The interface of the modules `paper`, `flat` and `full`."""

    def predict(self, job: Job, layout: Layout) -> Prediction:
        """Every term of a step."""

    def step_time(self, job: Job, layout: Layout) -> Seconds:
        """Seconds per step, without the terms."""


_MODELS: Mapping[Fidelity, _Model] = MappingProxyType({"paper": paper, "flat": flat, "full": full})


def predict(job: Job, layout: Layout) -> Prediction:
    """Every term of a step of one layout, or of as many as its arrays hold; no rule is asked whether they can run."""
    return _MODELS[job.settings.fidelity].predict(job, layout)


def step_time(job: Job, layout: Layout) -> Seconds:
    """Seconds per step, without the terms."""
    return _MODELS[job.settings.fidelity].step_time(job, layout)
