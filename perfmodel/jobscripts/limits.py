"""Limits of a machine on a job: whole nodes, number of nodes, and time, each with its source."""

import re
from dataclasses import replace

from perfmodel.errors import PerfmodelError, UsageError, nearest
from perfmodel.machines.allocation import cited
from perfmodel.machines.machine import Machine
from perfmodel.machines.scheduler import Qos

_TIME = re.compile(r"(?:([0-9]{1,3})-)?([0-9]{1,3}):([0-5][0-9]):([0-5][0-9])", re.ASCII)
_DAY, _HOUR, _MINUTE = 86400, 3600, 60


def seconds(text: str, what: str = "--time") -> int:
    """Read [days-]hours:minutes:seconds.

    >>> seconds("00:30:00"), seconds("1-12:00:00")
    (1800, 129600)
    """
    found = _TIME.fullmatch(text)
    parts = [int(part or 0) for part in found.groups()] if found else []
    total = sum(part * unit for part, unit in zip(parts, (_DAY, _HOUR, _MINUTE, 1), strict=False))
    if not total:
        raise UsageError(f"{what} {text!r}: wanted [days-]hours:minutes:seconds, more than zero, such as 00:30:00")
    return total


def clock(time: int) -> str:
    """Hours, minutes and seconds, as every scheduler here reads them.

    >>> clock(129600)
    '36:00:00'
    """
    return f"{time // _HOUR:02d}:{time % _HOUR // _MINUTE:02d}:{time % _MINUTE:02d}"


def way_in(machine: Machine, nodes: int, time: int, wanted: str = "") -> Qos | None:
    """The QOS, partition or queue called `wanted`, or the first of the profile that admits such a job.

    None if the profile lists none. Raises with the limit that the job exceeds, and its source.
    """
    ways = _bounded(machine.scheduler.qos)
    if not ways:
        return None
    named = [way for way in ways if way.name == wanted or not (wanted or way.by_name)]
    if not named:
        names = sorted({way.name for way in ways})
        raise UsageError(f"{machine.name} has no QOS, partition or queue {wanted!r} ({nearest(wanted, names)})")
    found = next((way for way in named if not _against(way, nodes, time)), None)
    if found is None:
        told = dict.fromkeys(
            f"{way.name}: {_against(way, nodes, time)}; {cited(machine, way.source)}" for way in _nearest(named, nodes)
        )
        raise PerfmodelError(f"{machine.name} admits no job of {nodes} nodes for {clock(time)}: {' / '.join(told)}")
    return found


def limits(way: Qos) -> str:
    """The limits of a QOS, partition or queue, in words."""
    least = f"from {way.min_nodes} " if way.min_nodes else ""
    nodes = f"{least}up to {way.max_nodes} nodes" if way.max_nodes else f"{least or 'any number of '}nodes"
    time = f"{way.max_time} at most" if way.max_time else "no known time limit"
    work = f"{way.node_minutes} node-minutes per job" if way.node_minutes else ""
    return ", ".join(filter(None, (nodes, time, work, way.note)))


def _bounded(ways: tuple[Qos, ...]) -> list[Qos]:
    """A QOS without a limit has the limits of the partition's bins."""
    most = max((way.max_nodes or 0 for way in ways if way.kind == "bin"), default=0) or None
    return [replace(way, max_nodes=way.max_nodes or most) if way.kind == "qos" else way for way in ways]


def _nearest(ways: list[Qos], nodes: int) -> list[Qos]:
    """The QOS, partitions or queues that admit the number of nodes but not the time; all of them if there are none."""
    return [way for way in ways if not _against(way, nodes, 0)] or ways


def _against(way: Qos, nodes: int, time: int) -> str:
    """Why a QOS, partition or queue refuses a job; empty if it does not."""
    if way.max_nodes is not None and nodes > way.max_nodes:
        return f"at most {way.max_nodes} nodes, asked for {nodes}"
    if way.min_nodes is not None and nodes < way.min_nodes:
        return f"at least {way.min_nodes} nodes, asked for {nodes}"
    if way.max_time and time > seconds(way.max_time):
        return f"at most {way.max_time}, asked for {clock(time)}"
    if way.node_minutes is not None and nodes * time > way.node_minutes * _MINUTE:
        return f"at most {way.node_minutes} node-minutes, asked for {nodes * time / _MINUTE:g}"
    return ""
