"""One grid, term by term: every collective with ranks, link and bandwidth, and the equations with numbers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from perfmodel.costs import interpolated, nccl
from perfmodel.costs.collective import Collective, ProtocolLink
from perfmodel.errors import UsageError
from perfmodel.machines.allocation import count_problem
from perfmodel.machines.machine import Machine
from perfmodel.memory.per_device import capacity, memory_per_device
from perfmodel.models.model import Linear
from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.parallel.ranks import first_group
from perfmodel.parallel.rules import MEMORY, complaints, grid_rules, micro_batch_rule
from perfmodel.search.no_answer import nearest_grid, refuse_count
from perfmodel.search.search import Space, rank
from perfmodel.search.terms import TERMS
from perfmodel.step.flops import hardware_flops
from perfmodel.step.layer_units import block_units
from perfmodel.step.overlap import Mode
from perfmodel.step.predict import predict
from perfmodel.step.prediction import Prediction
from perfmodel.step.timeline import TraceEvent, simulate
from perfmodel.traffic.per_step import traffic
from perfmodel.units import show

_SHOWN_RANKS = 4
_MEASURED = "measured table"
_EQUATIONS = {term.key: f"({term.equation})" for term in TERMS if term.equation}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedCollective:
    """One collective of one layer kind, for one layout."""

    block: str
    layer: str
    term: str
    operation: str
    axis: str
    group_size: int
    stride: int
    ranks: str
    link: str
    buffer_B: float  # noqa: N815 - the unit is part of the key
    calls: float
    bandwidth_B_per_s: float | None  # noqa: N815 - None: a group of one has no link
    bandwidth_source: str
    time_per_call_s: float
    time_s: float
    time_source: str
    equation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything about one layout; `rejections` is empty for a grid that can run."""

    job: Job
    layout: Layout
    prediction: Prediction
    collectives: tuple[ExplainedCollective, ...]
    compute_equation: str
    memory_capacity: float
    rejections: tuple[tuple[str, str], ...]
    nearest: Layout | None


def explain(job: Job, space: Space, grid: Layout) -> Explanation:
    """Explain `grid` with its best micro-batch and recomputation, or with the leanest if it cannot run."""
    if job.machine.network.topology == "none":  # a machine of one node has no bandwidth between nodes
        refuse_count(job, space)
    exact = replace(job, settings=replace(job.settings, fixed=grid.sizes(), maximum={}))
    found = rank(exact, space)
    layout = found.layouts.take(0) if len(found) else _leanest(job, space, grid)
    rejections = _rejections(job, space, layout)
    nearest = nearest_grid(job, space, grid) if rejections else None
    return Explanation(
        job=job, layout=layout, prediction=predict(job, layout),
        collectives=tuple(_explained(job, layout)),
        compute_equation=_compute_equation(job, layout), memory_capacity=capacity(job),
        rejections=rejections, nearest=nearest,
    )  # fmt: skip


def timeline(explanation: Explanation) -> tuple[list[TraceEvent], float]:
    """The events of one micro-step of an explained grid, and its end; full fidelity only."""
    job, layout = explanation.job, explanation.layout
    if job.settings.fidelity != "full":
        raise UsageError(f"a timeline exists at full fidelity only, not at {job.settings.fidelity}")
    return simulate(block_units(job, layout, traffic(job, layout)), Mode.of(job, layout))


def _leanest(job: Job, space: Space, grid: Layout) -> Layout:
    """The setting that needs the least memory, within what the user fixed."""
    recompute, cache = max(space.modes(job.settings), key=lambda mode: (mode[0], -mode[1]))
    return replace(
        grid, placement=space.placements[0], micro_batch=space.micro_batch or 1, recompute=recompute, weight_cache=cache
    )


def _rejections(job: Job, space: Space, layout: Layout) -> tuple[tuple[str, str], ...]:
    rules = grid_rules(job) + ((micro_batch_rule(job),) if space.micro_batch else ())
    found = complaints(rules, layout)
    missing = float(memory_per_device(job, layout).total) - capacity(job)
    if missing > 0 and not job.settings.ignore_memory:
        needs = show(missing + capacity(job), "B")
        found.append(
            (
                MEMORY,
                f"needs {needs} even so, a device has {show(capacity(job), 'B')}: {show(missing, 'B')} are missing",
            )
        )
    whole = count_problem(job.machine, int(layout.gpus))
    return ((("whole_nodes", whole),) if whole else ()) + tuple(found)


def _explained(job: Job, layout: Layout) -> Iterator[ExplainedCollective]:
    every = traffic(job, layout)
    sent = [(each.block.name, each.layer, one) for each in every.layers for one in each.sent]
    ending = [("step", None, one) for one in every.ending]
    for block, layer, collective in [*sent, *ending]:
        link, time = collective.link, float(collective.time)
        inner, size = int(link.inner), int(link.size)
        yield ExplainedCollective(
            block=block, layer=collective.layer, term=collective.term, operation=collective.operation,
            axis=link.axis, group_size=size, stride=inner, ranks=_ranks(layout, link.axis),
            link=_link(job.machine, crosses=bool(link.crosses)), buffer_B=float(collective.buffer),
            calls=float(collective.calls), bandwidth_B_per_s=float(link.bandwidth) if size > 1 else None,
            bandwidth_source=job.costs.bandwidths.origin(inner=inner, size=size, gpus=int(layout.gpus)),
            time_per_call_s=time, time_s=float(collective.total), time_source=_time_source(collective, job),
            equation=_equation(collective, layer if isinstance(layer, Linear) else None, job, layout),
        )  # fmt: skip


def _time_source(collective: Collective, job: Job) -> str:
    """Whether a measured table or the formula gives a call's time, and why."""
    link = collective.link
    if not isinstance(link, ProtocolLink):
        return "nothing to send" if link.size == 1 else f"formula of fidelity {job.settings.fidelity}"
    whole = float(collective.together)
    found = interpolated.origin(job.costs.tables, collective.operation, whole, link.route)
    if link.size > 1 and link.time(collective.operation, collective.together) == link.issue:
        found = f"{found}; issuing the call takes longer, {show(float(link.issue), 's')}"
    if link.size == 1 or whole == float(collective.buffer):
        return found
    return f"{found}; this is its part of a bucket of {show(whole, 'B')}"


def _link(machine: Machine, *, crosses: bool) -> str:
    """Where a group's slowest hop is; an NVLink domain can be larger than a node."""
    racks = machine.domain > machine.node_devices
    if crosses:
        return f"between domains of {machine.domain}" if racks else "between nodes"
    return f"inside the domain of {machine.domain}" if racks else "inside the node"


def _ranks(layout: Layout, axis: str) -> str:
    """The first group of an axis: its first ranks, and the last."""
    size = int(layout.size(axis))
    shown = [str(first_group(layout, axis, place)) for place in range(min(size, _SHOWN_RANKS + 1))]
    if size <= len(shown):
        return ",".join(shown)
    return ",".join(shown[:_SHOWN_RANKS]) + f",...,{first_group(layout, axis, size - 1)}"


def _equation(collective: Collective, layer: Linear | None, job: Job, layout: Layout) -> str:
    """The equation of a collective with its numbers."""
    size = int(collective.link.size)
    if size == 1:
        return "group of 1: nothing to send"
    number = _EQUATIONS.get(collective.term, "")
    ring = f"{'2 * ' if collective.operation == 'all-reduce' else ''}{size - 1}/{size}"
    buffer = _buffer(_shape_of(collective, layer), layer, job, layout) if layer else f"{float(collective.buffer):.6g} B"
    rate = show(float(collective.link.bandwidth), "B/s")
    if isinstance(collective.link, ProtocolLink):
        way = _way(collective, collective.link)
        sent = buffer if way == _MEASURED else f"{buffer} at {rate}"
        return f"{number} {way}: {sent} of {size} ranks = {show(float(collective.time), 's')}".strip()
    return f"{number} {ring} * {buffer} / {rate} = {show(float(collective.time), 's')}".strip()


def _way(collective: Collective, link: ProtocolLink) -> str:
    """The basis of a call's time: a measured table, or the fastest algorithm and protocol."""
    size = float(collective.together)
    if any(held.measures(collective.operation, size) for held in link.measured):
        return _MEASURED
    return nccl.choice(collective.operation, size, link.route)


def _shape_of(collective: Collective, layer: Linear) -> str:
    """The term whose shape a buffer has. Gathers along the sequence have that of what the other pass reduces."""
    if collective.operation == "all-gather" and collective.term == "forward_reduce" and not layer.transposed:
        return "backward_reduce"
    if collective.operation == "all-gather" and collective.term == "backward_reduce" and layer.transposed:
        return "forward_reduce"
    return collective.term


def _buffer(term: str, layer: Linear, job: Job, layout: Layout) -> str:
    """Bytes of a linear layer's buffer as shapes, with Gx and Gy exchanged for a transposed layer."""
    s = job.settings
    gx, gy = (layout.y, layout.x) if layer.transposed else (layout.x, layout.y)
    weight = (
        f"{layer.kernel**2} * {layer.inputs} * {layer.outputs}"
        if layer.kernel > 1
        else f"{layer.inputs} * {layer.outputs}"
    )
    rows = f"{float(job.rows(layout)) * layer.positions:.6g}"
    shapes = {
        "weight_gather": f"{weight} / ({gx} * {gy}) * {s.weight_bytes:g} B",
        "gradient_scatter": f"{weight} / ({gx} * {gy}) * {s.gradient_bytes:g} B",
        "forward_reduce": f"{rows} * {layer.outputs} / {gx} * {s.activation_bytes:g} B",
        "backward_reduce": f"{rows} * {layer.inputs} / {gy} * {s.activation_bytes:g} B",
        "data_reduce": f"{weight} / ({gx} * {gy} * {layout.z}) * {s.sent_gradient_bytes:g} B",
        "update_gather": f"{weight} / ({gx} * {gy} * {layout.z}) * {s.weight_bytes:g} B",
    }
    return shapes[term]


def _compute_equation(job: Job, layout: Layout) -> str:
    if job.settings.fidelity == "paper":
        return "the paper's model has no computation"
    rate = job.costs.rate
    if job.settings.fidelity == "full":
        return f"kernels one by one; large matrix products at {show(rate.value, 'flop/s')} ({rate.origin})"
    flops = float(np.asarray(hardware_flops(job, layout)))
    seconds = flops / (int(layout.gpus) * rate.value)
    return (
        f"{show(flops, 'flop')} / ({layout.gpus} * {show(rate.value, 'flop/s')}) = {show(seconds, 's')} ({rate.origin})"
    )
