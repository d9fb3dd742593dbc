"""The micro-step of one grid as events on streams: computation, blocking collectives, gathers, scatters, data.

The rules are those of `overlap`, event by event instead of in closed form; the two agree up to rounding.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from perfmodel.errors import PerfmodelError
from perfmodel.step.layer_units import BlockUnits, LayerUnit
from perfmodel.step.overlap import Mode, again
from perfmodel.units import parse

Stream = Literal["compute", "collectives", "gathers", "scatters", "data"]
STREAMS: tuple[Stream, ...] = ("compute", "collectives", "gathers", "scatters", "data")
_QUEUES: tuple[Stream, ...] = ("scatters", "data")
SLOWED = "slowed by scatters and gradients"  # an event on the compute stream during which nothing is computed
_MOST_PASSES = 100_000
_MICRO = parse("1 us", "s")  # the unit of Chrome's traces


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvent:
    """A complete event of Chrome's trace format: it occupies a stream from `start` to `end`.

    Both are in seconds from the start of the micro-step.
    """

    stream: Stream
    name: str
    start: float
    end: float


@dataclass(slots=True, kw_only=True)
class _Simulator:
    """The clock of the compute stream, and the queues of the other streams."""

    mode: Mode
    now: float = 0.0
    ends: dict[Stream, float] = field(default_factory=lambda: dict.fromkeys(_QUEUES, 0.0))
    queued: dict[Stream, float] = field(default_factory=lambda: dict.fromkeys(_QUEUES, 0.0))
    gathered: float = 0.0
    backward_start: float = 0.0
    events: list[TraceEvent] = field(default_factory=list)

    def put(self, stream: Stream, name: str, seconds: float) -> None:
        """Run something after everything before it."""
        if seconds > 0:
            self.events.append(TraceEvent(stream=stream, name=name, start=self.now, end=self.now + seconds))
            self.now += seconds

    def both(self, own: tuple[Stream, str, float], other: tuple[Stream, str, float], kind: str) -> None:
        """Run two things, overlapped if `kind` is: each is slowed while the other runs."""
        if kind not in self.mode.overlap:
            self.put(*other)
            self.put(*own)
            return
        shared = self.mode.contention * min(own[2], other[2])
        begin, end = self.now, self.now
        for stream, name, seconds in (own, other):
            if seconds > 0:
                self.events.append(TraceEvent(stream=stream, name=name, start=begin, end=begin + seconds + shared))
                end = max(end, begin + seconds + shared)
        self.now = end

    def beside_gather(self, first_event: int, begin: float, name: str, seconds: float) -> None:
        """Run a gather beside everything since `begin`, which is stretched evenly."""
        if "all-gather" not in self.mode.overlap:
            self.put("gathers", name, seconds)
            return
        alone = self.now - begin
        shared = self.mode.contention * min(alone, seconds)
        if seconds > 0 and alone > 0:
            stretch = (alone + shared) / alone
            for index in range(first_event, len(self.events)):
                one = self.events[index]
                if one.stream not in _QUEUES:
                    start, end = (begin + (time - begin) * stretch for time in (one.start, one.end))
                    self.events[index] = TraceEvent(stream=one.stream, name=one.name, start=start, end=end)
        if seconds > 0:
            self.events.append(TraceEvent(stream="gathers", name=name, start=begin, end=begin + seconds + shared))
        self.now = begin + max(alone, seconds) + shared

    def queue(self, stream: Stream, name: str, seconds: float) -> None:
        """Send something after what is still queued on its stream."""
        if seconds > 0:
            start = max(self.ends[stream], self.now)
            self.ends[stream] = start + seconds
            self.queued[stream] += seconds
            self.events.append(TraceEvent(stream=stream, name=name, start=start, end=self.ends[stream]))

    def finish(self) -> None:
        """Wait for the longer queue; the time that the queues took from computation is added at the end.

        Scatters share their links with the gathers of the backward pass, so both take at least the sum of their times.
        """
        tails = {stream: max(0.0, self.ends[stream] - self.now) for stream in _QUEUES}
        if self.queued["scatters"]:
            both = self.queued["scatters"] + self.gathered
            tails["scatters"] = max(tails["scatters"], both - (self.now - self.backward_start))
        self.now += max(tails.values())
        lost = sum(max(0.0, self.queued[stream] - tails[stream]) for stream in _QUEUES)
        self.put("compute", SLOWED, self.mode.contention * lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One pass of a layer unit, in order of execution; `turn`: the run of its block that it belongs to."""

    unit: LayerUnit
    kind: Literal["forward", "recompute", "backward"]
    gather: float
    checkpointed: bool = False
    turn: object = None


def simulate(parts: tuple[BlockUnits, ...], mode: Mode, *, last: bool = False) -> tuple[list[TraceEvent], float]:
    """The events of one micro-step of a single layout, and its end; the last micro-step sends gradients over data."""
    passes = sum(3 * block.repeat * len(block.units) for block in parts)
    if passes > _MOST_PASSES:
        raise PerfmodelError(f"a timeline of {passes:,} passes of layers is too long to show: at most {_MOST_PASSES:,}")
    simulator = _Simulator(mode=mode)
    chunks = _chunks(list(_steps(parts, mode)), mode)
    simulator.put("gathers", *_gather(chunks[0]))
    for chunk, following in zip(chunks, [*chunks[1:], []], strict=True):
        _play(simulator, chunk, following, last=last)
    simulator.finish()
    if last and "data" not in mode.overlap:
        for block in parts:
            for unit in block.units:
                simulator.put("data", f"reduce {block.repeat} x {unit.name}", float(block.repeat * unit.data))
    return simulator.events, simulator.now


def _chunks(steps: list[_Step], mode: Mode) -> list[list[_Step]]:
    """Passes by the gather that serves them: each its own, or those of a block together."""
    if not mode.whole_blocks:
        return [[step] for step in steps]
    return [list(chunk) for _, chunk in groupby(steps, key=lambda step: step.turn)]


def _gather(chunk: list[_Step]) -> tuple[str, float]:
    """(name, seconds) of the gather that passes need; nothing for none."""
    return (f"gather {chunk[0].unit.name}", sum(step.gather for step in chunk)) if chunk else ("", 0.0)


def _play(simulator: _Simulator, chunk: list[_Step], following: list[_Step], *, last: bool) -> None:
    """Some passes beside the gather of the following ones, and the gradients that they leave."""
    first_event, begin = len(simulator.events), simulator.now
    for step in chunk:
        if step.kind != "forward":
            simulator.backward_start = simulator.backward_start or begin
            simulator.gathered += step.gather
        if step.kind == "backward":
            _backward(simulator, step.unit, checkpointed=step.checkpointed)
        else:
            _forward(simulator, step)
    simulator.beside_gather(first_event, begin, *_gather(following))
    for step in chunk:
        if step.kind == "backward":
            _send(simulator, step.unit, last=last)


def _send(simulator: _Simulator, unit: LayerUnit, *, last: bool) -> None:
    """Send the gradients of a backward pass: in the background, or before the next pass."""
    scatter = simulator.queue if "reduce-scatter" in simulator.mode.overlap else simulator.put
    scatter("scatters", f"scatter {unit.name}", float(unit.scatter))
    if last and "data" in simulator.mode.overlap:
        simulator.queue("data", f"reduce {unit.name}", float(unit.data))


def _steps(parts: tuple[BlockUnits, ...], mode: Mode) -> Iterator[_Step]:
    """All passes of a micro-step in order, repeats unrolled."""
    for block in parts:
        for run in range(block.repeat):
            turn = (block.name, run, "forward")
            yield from (_Step(unit=unit, kind="forward", gather=float(unit.gather), turn=turn) for unit in block.units)
    for block in reversed(parts):
        for run in range(block.repeat):
            yield from _steps_back(block, mode, run)


def _steps_back(block: BlockUnits, mode: Mode, run: int) -> Iterator[_Step]:
    """One repeat of a block in the backward pass; embedding and head keep the table that they gathered."""
    if block.checkpointed and float(mode.passes.full):
        for unit in block.units:
            again = float(mode.passes.gather_again * unit.gather)
            yield _Step(unit=unit, kind="recompute", gather=again, turn=(block.name, run, "recompute"))
    for unit in reversed(block.units):
        gather = float(mode.passes.gather_back * unit.gather) if block.checkpointed else 0.0
        turn = (block.name, run, "backward")
        yield _Step(unit=unit, kind="backward", gather=gather, checkpointed=block.checkpointed, turn=turn)


def _forward(simulator: _Simulator, step: _Step) -> None:
    simulator.put("compute", f"{step.kind} {step.unit.name}", float(step.unit.forward))
    simulator.put("collectives", f"reduce {step.unit.name}", float(step.unit.reduce))


def _backward(simulator: _Simulator, unit: LayerUnit, *, checkpointed: bool) -> None:
    simulator.put("collectives", f"gather gradient {unit.name}", float(unit.wait))
    simulator.put("compute", f"recompute in {unit.name}", float(again(unit, simulator.mode, checkpointed=checkpointed)))
    simulator.put("compute", f"input gradient {unit.name}", float(unit.input_gradient))
    simulator.both(
        ("compute", f"weight gradient {unit.name}", float(unit.weight_gradient)),
        ("collectives", f"reduce gradient {unit.name}", float(unit.reduce_back)),
        "all-reduce",
    )
    simulator.put("compute", f"backward before {unit.name}", float(unit.others_back))


def chrome_trace(events: list[TraceEvent], of: Mapping[str, object]) -> dict[str, object]:
    """Events as Chrome's trace format, which Perfetto opens: complete events in microseconds, one thread per stream.

    `of`: the question that was asked; the format keeps it, viewers ignore it.
    """
    names = [
        {"ph": "M", "pid": 0, "tid": tid, "name": "thread_name", "args": {"name": stream}}
        for tid, stream in enumerate(STREAMS)
    ]
    complete = [
        {
            "ph": "X",
            "pid": 0,
            "tid": STREAMS.index(event.stream),
            "name": event.name,
            "ts": event.start / _MICRO,
            "dur": (event.end - event.start) / _MICRO,
        }
        for event in events
    ]
    return {"displayTimeUnit": "ms", "otherData": dict(of), "traceEvents": [*names, *complete]}
