"""The terms of communication time and of memory: key, names and meaning of each, declared once.

The keys are the fields of `perfmodel.traffic.per_step.Communication` and of `perfmodel.memory.per_device.Memory`. JSON
and CSV, the tables of the terminal, the report and docs/columns.md read these tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfmodel.parallel.axes import REPLICA_GROUP


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One part of a step's communication.

    `column`: its heading in a ranking, where terms of one column are added up. `operation` and `groups` say which
    collectives it consists of, if they are of one kind. `equation`: its number in arXiv 2502.08145. `legend` explains
    the heading where that is needed.
    """

    key: str
    heading: str
    column: str
    meaning: str
    equation: int | None = None
    operation: str = ""
    groups: tuple[str, ...] = ()
    legend: str = ""


TERMS = (
    Term(
        key="weight_gather",
        heading="AG z",
        column="AG z",
        meaning="all-gather of weights over Z",
        equation=1,
        operation="all-gather",
        groups=("z",),
    ),
    Term(
        key="gradient_scatter",
        heading="RS z",
        column="RS z",
        meaning="reduce-scatter of gradients over Z",
        equation=2,
        operation="reduce-scatter",
        groups=("z",),
    ),
    Term(
        key="forward_reduce",
        heading="AR forward",
        column="AR\nx,y",
        meaning="all-reduce of outputs over X, Y",
        equation=3,
        operation="all-reduce",
        groups=("x", "y"),
    ),
    Term(
        key="backward_reduce",
        heading="AR backward",
        column="AR\nx,y",
        meaning="all-reduce of input gradients over X, Y",
        equation=4,
        operation="all-reduce",
        groups=("x", "y"),
    ),
    Term(
        key="data_reduce",
        heading="AR data",
        column="AR\ndata",
        meaning="all-reduce of gradients over data",
        equation=5,
        operation="all-reduce",
        groups=(REPLICA_GROUP,),
    ),
    Term(
        key="update_gather",
        heading="AG data",
        column="AR\ndata",
        meaning="all-gather of updated weights over data (sharded optimizer)",
        operation="all-gather",
        groups=(REPLICA_GROUP,),
    ),
    Term(
        key="vocabulary",
        heading="vocab",
        column="vocab",
        meaning="embedding and head",
        legend="all of embedding and head",
    ),
    Term(
        key="small",
        heading="small",
        column="small",
        meaning="norms, biases, the loss",
        legend="statistics of norms, gradients of biases and norms, the loss",
    ),
)

# What a device holds: key and meaning.
MEMORY_TERMS = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimizer state",
    "activations": "activations",
    "recomputed_block": "block being recomputed",
    "in_flight": "gradients in flight through a layer",
    "gathered_weights": "weights gathered over Z",
    "logits": "logits",
    "communicators": "communicators",
    "reserve": "device context and workspaces",
    "slack": "allocator's slack",
}


def by_column() -> dict[str, tuple[Term, ...]]:
    r"""Headings of a ranking's columns in order, each with the terms that it adds up.

    >>> [term.key for term in by_column()["AR\nx,y"]]
    ['forward_reduce', 'backward_reduce']
    """
    return {term.column: tuple(other for other in TERMS if other.column == term.column) for term in TERMS}


def largest_term(result: Mapping[str, Any]) -> str | None:
    """The communication term that takes longest, hidden or not; None if nothing is sent."""
    terms: Mapping[str, float] = result["communication_s"]
    largest = max(terms, key=lambda name: terms[name])
    return largest if terms[largest] else None


def limit(result: Mapping[str, Any]) -> str:
    """What takes most of a step: computation, or the largest communication term if more time is exposed."""
    computed = result["compute_time_s"] or 0.0
    return (result["exposed_communication_time_s"] > computed and largest_term(result)) or "compute"
