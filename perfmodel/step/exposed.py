"""What computation waits for in a step: the exposed communication of one layout, split by stream.

At full fidelity no term has an exposed time of its own, since overlap is a longest path. The timeline shows where the
compute stream is idle, and what runs then. The rest is what computation loses to communication that runs beside it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from perfmodel.parallel.job import Job
from perfmodel.parallel.layout import Layout
from perfmodel.step.layer_units import block_units
from perfmodel.step.overlap import Mode
from perfmodel.step.timeline import SLOWED, STREAMS, Stream, TraceEvent, simulate
from perfmodel.traffic.per_step import traffic

# If several streams run, computation waits for the first of these. The scatters may hold the links beyond their last
# event, so if none runs, computation waits for the scatters.
_WAITED: tuple[Stream, ...] = ("collectives", "gathers", "scatters", "data")
_ROUNDING = 2.0**-30  # share of the exposed time below which a difference of times is rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposedTime:
    """Seconds per step that computation waits for each stream; `slowed`: lost to communication that runs beside it."""

    gathers: float
    scatters: float
    collectives: float
    data: float
    slowed: float


def exposed_by_stream(job: Job, layout: Layout, exposed: float) -> ExposedTime:
    """Split the exposed communication that is predicted for one layout, at full fidelity."""
    sent = traffic(job, layout)
    parts, mode = block_units(job, layout, sent), Mode.of(job, layout)
    micro_steps = int(job.accumulation(layout))
    last = idle_by_stream(*simulate(parts, mode, last=True))
    others = idle_by_stream(*simulate(parts, mode)) if micro_steps > 1 else {}
    found: dict[str, float] = {
        stream: last.get(stream, 0.0) + (micro_steps - 1) * others.get(stream, 0.0) for stream in _WAITED
    }
    if int(layout.gpus) > 1:
        found["collectives"] += float(sent.ending_time())
    found["slowed"] = exposed - sum(found.values())
    return ExposedTime(**{name: seconds if seconds > _ROUNDING * exposed else 0.0 for name, seconds in found.items()})


def idle_by_stream(events: Iterable[TraceEvent], end: float) -> dict[Stream, float]:
    """Seconds in which the compute stream is idle, by the stream that it waits for.

    >>> gather = TraceEvent(stream="gathers", name="a", start=0.0, end=2.0)
    >>> idle_by_stream([gather, TraceEvent(stream="compute", name="b", start=1.0, end=4.0)], 4.0)
    {'gathers': 1.0}
    """
    played = list(events)
    real = [event for event in played if event.name != SLOWED]
    lost = sum(event.end - event.start for event in played if event.name == SLOWED)
    changes = [(event.start, 1, event.stream) for event in real] + [(event.end, -1, event.stream) for event in real]
    running = dict.fromkeys(STREAMS, 0)
    found: dict[Stream, float] = {}
    before = 0.0
    for time, change, stream in [*sorted(changes), (end - lost, 0, STREAMS[0])]:
        if not running["compute"] and time > before:
            waited: Stream = next((one for one in _WAITED if running[one]), "scatters")
            found[waited] = found.get(waited, 0.0) + time - before
        running[stream] += change
        before = max(before, time)
    return found
