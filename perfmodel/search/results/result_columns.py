"""The columns of a result, which is one grid with its prediction, declared once.

To add one, write its entry here, and update docs/columns.md with `python tools/columns_page.py --write`.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from perfmodel.memory.per_device import risk
from perfmodel.records import Record
from perfmodel.search.likely import likely_of
from perfmodel.search.results.columns import Column, Context, Place, ResultRow
from perfmodel.search.results.layout_columns import LAYOUT
from perfmodel.search.terms import TERMS, by_column


def _full(context: Context) -> bool:
    return context.fidelity == "full"


def _below_full(context: Context) -> bool:
    return context.fidelity != "full"


def _ranked(answer: ResultRow) -> bool:
    return answer.row is not None


def _trained(answer: ResultRow) -> bool:
    return answer.training is not None


def _throughput(name: str) -> Callable[[ResultRow], float | None]:
    """A figure that follows from the step time; None at paper fidelity, which models no computation."""
    return lambda answer: answer.at(getattr(answer.throughput, name)) if answer.throughput else None


def _training(name: str) -> Callable[[ResultRow], float]:
    """A figure of the training on the given number of tokens."""
    return lambda answer: getattr(answer.training, name)


def _terms(answer: ResultRow, of: Any) -> Record:
    """All fields of a record of terms."""
    return {term.name: answer.at(getattr(of, term.name)) for term in fields(of)}


def _tokens_per_s(answer: ResultRow) -> float | None:
    step = answer.step
    known = step and answer.prediction.compute is not None
    return answer.job.batch * answer.job.sequence / step if step and known else None


def _likely(answer: ResultRow, end: str) -> float | None:
    """One end of the likely range of the step."""
    settings = answer.job.settings
    if settings.fidelity != "full" or answer.step is None:
        return None
    found: float = getattr(likely_of(answer.job), end)
    return answer.step * found


_PREDICTION = (
    Column(
        key="step_time_s",
        heading="step",
        unit="s",
        meaning="time of a step, by which grids are ranked",
        value=lambda answer: answer.step,
        places=(
            Place(table="ranking", at=70, kind="step"),
            Place(table="sweep", at=70, kind="step"),
            Place(table="report", at=60),
            Place(table="report of scaling", at=60),
        ),
    ),
    Column(
        key="step_time_low_s",
        heading="likely from",
        unit="s",
        meaning="step that 19 of 20 published runs like this one exceed; none below full fidelity",
        value=lambda answer: _likely(answer, "low"),
    ),
    Column(
        key="step_time_high_s",
        heading="likely to",
        unit="s",
        meaning="step that 19 of 20 published runs like this one stay below; none below full fidelity",
        value=lambda answer: _likely(answer, "high"),
    ),
    Column(
        key="compute_time_s",
        heading="compute",
        unit="s",
        meaning="time of the computation alone; none at paper fidelity",
        value=lambda answer: answer.at(answer.prediction.compute),
        places=(Place(table="ranking", at=80), Place(table="report", at=70)),
    ),
    Column(
        key="communication_time_s",
        heading="communication",
        unit="s",
        meaning="time of all communication, hidden by computation or not",
        value=lambda answer: answer.at(answer.prediction.communication.total),
    ),
    Column(
        key="exposed_communication_time_s",
        heading="exposed",
        unit="s",
        meaning="communication that computation does not hide",
        value=lambda answer: answer.at(answer.prediction.exposed_communication),
        places=(
            Place(
                table="ranking",
                at=100,
                heading="ex-\nposed",
                legend="exposed = communication that computation does not hide",
                when=_full,
            ),
            Place(table="sweep", at=80, heading="ex-\nposed"),
            Place(table="report", at=80),
            Place(table="report of scaling", at=70),
        ),
    ),
    Column(
        key="latency_not_counted_s",
        heading="latency not counted",
        unit="s",
        meaning="hops of rings times the profile's latency; below full fidelity it is in no other figure",
        value=lambda answer: answer.at(answer.prediction.ring_latency),
        places=(
            Place(
                table="ranking",
                at=100,
                heading="(lat-\nency)",
                legend="(latency) = ring hops x the profile's latency, NOT in the step: no latency and no overlap at "
                "this fidelity",
                when=_below_full,
            ),
        ),
    ),
    Column(
        key="communication_s",
        heading="communication, term by term",
        unit="s",
        meaning="time of each term of the communication, hidden or not",
        value=lambda answer: _terms(answer, answer.prediction.communication),
        places=(
            *(
                Place(
                    table="ranking",
                    at=90,
                    heading=name,
                    parts=tuple(term.key for term in terms),
                )
                for name, terms in by_column().items()
            ),
            *(Place(table="report", at=110, heading=term.meaning, parts=(term.key,)) for term in TERMS),
        ),
    ),
    Column(
        key="memory_B",
        heading="memory",
        unit="B",
        meaning="peak memory of a device",
        value=lambda answer: answer.at(answer.prediction.memory.total),
        places=(
            Place(table="ranking", at=110, heading="GiB of\n{capacity}"),
            Place(table="sweep", at=110, heading="GiB"),
            Place(table="report", at=100),
            Place(table="report", at=101, heading="of capacity", kind="of capacity"),
            Place(table="report of scaling", at=100),
        ),
    ),
    Column(
        key="memory_risk",
        heading="risk",
        meaning="probability of running out of memory, from the scatter of published memory around predictions",
        value=lambda answer: float(risk(answer.job, answer.at(answer.prediction.memory.total) or 1.0)),
        places=(Place(table="ranking", at=111, heading="risk\n%", kind="share"),),
    ),
    Column(
        key="memory_terms_B",
        heading="memory, term by term",
        unit="B",
        meaning="what a device holds at the peak, by kind",
        value=lambda answer: _terms(answer, answer.prediction.memory),
    ),
    Column(
        key="model_flops_utilization",
        heading="MFU",
        meaning="model FLOP/s as a share of the advertised dense peak of all devices",
        value=lambda answer: answer.at(answer.prediction.utilization),
        places=(
            Place(table="ranking", at=120, heading="MFU\n%", kind="share"),
            Place(table="sweep", at=100, heading="MFU\n%", kind="share"),
            Place(table="report", at=90, kind="share"),
            Place(table="report of scaling", at=90, kind="share"),
        ),
    ),
    Column(
        key="tokens_per_s",
        heading="tokens per second",
        unit="tokens/s",
        meaning="tokens trained per second, all devices together",
        value=_tokens_per_s,
    ),
)

_DERIVED = (
    Column(
        key="sequences_per_s",
        heading="sequences per second",
        unit="sequences/s",
        meaning="sequences trained per second, all devices together",
        value=_throughput("sequences_per_second"),
    ),
    Column(
        key="model_flop_per_s",
        heading="model FLOP/s",
        unit="flop/s",
        meaning="three passes of every product and of attention over the step time",
        value=_throughput("model_flops_per_second"),
    ),
    Column(
        key="hardware_flop_per_s",
        heading="hardware FLOP/s",
        unit="flop/s",
        meaning="the same, including recomputation",
        value=_throughput("hardware_flops_per_second"),
    ),
    Column(
        key="hardware_flops_utilization",
        heading="HFU",
        meaning="hardware FLOP/s as a share of the advertised dense peak of all devices",
        value=_throughput("hfu"),
    ),
    Column(
        key="gemm_rate_utilization",
        heading="of the GEMM rate",
        meaning="hardware FLOP/s as a share of the rate of large matrix products",
        value=_throughput("gemm_utilization"),
    ),
    Column(
        key="lower_bound_s",
        heading="lower bound",
        unit="s",
        meaning="the step if computation and communication overlapped fully",
        value=_throughput("lower_bound"),
    ),
    Column(
        key="upper_bound_s",
        heading="upper bound",
        unit="s",
        meaning="the step if nothing overlapped",
        value=_throughput("upper_bound"),
    ),
)

_TRAINING = (
    Column(
        key="training_tokens",
        heading="tokens to train on",
        unit="tokens",
        meaning="what `--tokens` asks for",
        value=_training("tokens"),
        present=_trained,
    ),
    Column(
        key="training_steps",
        heading="steps",
        meaning="steps needed for these tokens, rounded up",
        value=_training("steps"),
        present=_trained,
    ),
    Column(
        key="training_time_s",
        heading="training time",
        unit="s",
        meaning="time of these steps only: no start-up, checkpoints or failures",
        value=_training("time"),
        present=_trained,
    ),
    Column(
        key="training_node_hours",
        heading="node-hours",
        unit="h",
        meaning="hours of all nodes together for these steps",
        value=_training("node_hours"),
        present=_trained,
    ),
)

RESULT = (
    Column(
        key="rank",
        heading="#",
        meaning="place in the order, 1 for the fastest",
        value=lambda answer: answer.row + 1,
        present=_ranked,
        places=(Place(table="ranking", at=10), Place(table="report", at=10)),
    ),
    *LAYOUT,
    *_PREDICTION,
    *_DERIVED,
    *_TRAINING,
)
"""Columns of an `ResultRow`: one grid, in a ranking or explained."""
