"""Which 4D grid trains a model fastest on a machine: an analytical performance model and its search.

The functions answer what the commands of `perfmodel` do: docs/python.md. What is imported from here is loaded when it
is first asked for, so that `import perfmodel` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perfmodel.answers import Answer, FittedProfile, Recommendation
    from perfmodel.api import (
        calibrate,
        compare,
        explain,
        load_machine,
        load_model,
        machine_names,
        model_names,
        recommend,
        sweep,
    )
    from perfmodel.errors import FileProblems, NoGridError, PerfmodelError, UsageError
    from perfmodel.parallel.job import Job
    from perfmodel.parallel.layout import Layout
    from perfmodel.parallel.settings import Settings
    from perfmodel.step.predict import predict

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "FileProblems",
    "FittedProfile",
    "Job",
    "Layout",
    "NoGridError",
    "PerfmodelError",
    "Recommendation",
    "Settings",
    "UsageError",
    "__version__",
    "calibrate",
    "compare",
    "explain",
    "load_machine",
    "load_model",
    "machine_names",
    "model_names",
    "predict",
    "recommend",
    "sweep",
]

_HOMES = {
    "perfmodel.answers": ("Answer", "FittedProfile", "Recommendation"),
    "perfmodel.errors": ("FileProblems", "NoGridError", "PerfmodelError", "UsageError"),
    "perfmodel.parallel.job": ("Job",),
    "perfmodel.parallel.layout": ("Layout",),
    "perfmodel.parallel.settings": ("Settings",),
    "perfmodel.step.predict": ("predict",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A public name, from the module where it is defined."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_HOME.get(name, "perfmodel.api")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted(__all__)
