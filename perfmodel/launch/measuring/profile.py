"""A profile of this machine from the lines of its measurement; every figure cites its source."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perfmodel import schema
from perfmodel.costs.nccl import START_UP
from perfmodel.errors import FileProblems, PerfmodelError
from perfmodel.files import write_whole
from perfmodel.launch.measuring import known, rates
from perfmodel.launch.measuring.fits import Fit, fits, of_shape
from perfmodel.launch.measuring.lines import Lines
from perfmodel.launch.measuring.medians import DIGITS, figure, medians
from perfmodel.launch.measuring.network import network
from perfmodel.launch.measuring.points import shapes
from perfmodel.machines import profile_text
from perfmodel.machines.machine import FORMAT, MOST_THREADS_A_CORE, Machine
from perfmodel.machines.scheduler_kinds import SCHEDULERS
from perfmodel.units import parse, show

MARK = "# Written by perfmodel machines measure"
_HERE, _SYSTEM, _INSTEAD = "MEASURED", "SYSTEM", "INSTEAD"
_GLOO_BUFFER = parse("4 MiB", "B")
_LEAST_HOP = parse("10 ns", "s")
_GROWS = 1.5  # a fabric counts as a mesh from this ratio of the bandwidth of all devices to that of two


def write(lines: Lines, path: Path, results: Path) -> list[Fit]:
    """Write the profile and return its fits; raises if the existing file was not written here."""
    refuse_foreign(path)
    found = fits(lines)
    text = _text(record(lines, found, path, results), results)
    try:
        schema.build(Machine, schema.compose(text, str(path)), str(path))
    except FileProblems as error:
        reason = str(error).splitlines()[0].partition(": ")[2]
        raise PerfmodelError(
            f"{results} does not hold enough for a profile: {reason}; a longer --budget or more --rounds measure more"
        ) from None
    write_whole(path, text)
    return found


def refuse_foreign(path: Path) -> None:
    """Raise if the file is a profile that was not written here."""
    if path.exists() and not schema.read_text(path).startswith(MARK):
        raise PerfmodelError(f"{path} already exists and was not measured; give another name, or move it away first")


def _text(content: dict[str, Any], results: Path) -> str:
    head = f"{MARK} from the results in {results.name}, and overwritten by its next call: edit a copy."
    return f"{head}\n{profile_text.text(content)}"


def record(lines: Lines, found: Sequence[Fit], path: Path, results: Path) -> dict[str, Any]:
    """The profile as plain data."""
    if not lines.starts:
        raise PerfmodelError(f"{results} holds no measurement yet")
    start = lines.start
    node = start["devices_per_node"]
    device, notes = _device(lines)
    fabric, inside = _fabric(found, node, device.pop("limit"))
    nodes = start["ranks"] // node
    between = network(found, start, fabric, _HERE, _INSTEAD)
    whole = {
        "format": FORMAT,
        "name": path.name.removesuffix(".yaml").removesuffix(".yml"),
        "title": f"{start['device']}: {node} per node, {nodes} node{'s' * (nodes > 1)} measured on {lines.dates[-1]}",
        "sources": _sources(lines, results),
        "device": device,
        "node": {
            "devices": f"{node} [{_SYSTEM}]",
            "cpu_cores": f"{start['cpu_cores']} [{_SYSTEM}]",
            "host_memory": figure(start["host_memory_B"], "B", _SYSTEM),
        },
        "fabric": fabric,
        "network": between.block,
        "scheduler": _scheduler(start),
        "bandwidth": {"inside": inside} | between.database,
        "collectives": [profile_text.table(each, digits=DIGITS) for each in medians(lines, node, _HERE)],
        "notes": [*notes, *(one.words for one in found)],
    }
    return {key: value for key, value in whole.items() if value}


def _sources(lines: Lines, results: Path) -> dict[str, dict[str, str]]:
    start, date = lines.start, lines.dates[-1]
    versions = (
        f"perfmodel {start['perfmodel_version']}, torch {start['torch_version']}, Python {start['python_version']}"
    )
    library = " ".join(filter(None, (start["backend"], start["collectives_version"])))
    driver = f", driver {start['driver']}" if start["driver"] else ""
    rounds = max((len(each) for each in lines.values.values()), default=0)
    how = f"medians of up to {rounds} interleaved rounds, all {start['ranks']} ranks active, time of the slowest rank"
    days = f"; measured on {', '.join(lines.dates)}" if len(lines.dates) > 1 else ""
    return {
        _HERE: {
            "kind": "measured",
            "address": results.name,
            "date": date,
            "note": f"{versions}, {library}{driver}; {how}{days}",
        },
        _SYSTEM: {
            "kind": "measured",
            "address": "as the system reports it: torch, nvidia-smi or rocm-smi, lscpu, /proc",
            "date": date,
            "note": f"{start['device']}{driver}",
        },
        _INSTEAD: {"kind": "assumed", "note": "not measured; the notes say which figure is used instead"},
    }


def _device(lines: Lines) -> tuple[dict[str, Any], list[str]]:
    """The device block of the profile, and notes on it. `limit`: the memory bandwidth, an upper bound for links."""
    start, dtypes = lines.start, lines.start["dtypes"].split("+")
    memory = rates.memory_bandwidth(lines)
    best = {dtype: rates.best_product(lines, dtype) for dtype in dtypes}
    if memory is None or best[dtypes[0]] is None:
        what = "memory" if memory is None else f"products in {dtypes[0]}"
        raise PerfmodelError(f"too little has been measured for a profile: no {what} yet; the next call continues")
    gemm = {dtype: found for dtype, found in best.items() if found is not None}
    peak, told = _peaks(lines, list(gemm))
    block: dict[str, Any] = {
        "name": start["device"],
        "kind": start["device_kind"],
        "peak": peak,
        "gemm": {dtype: figure(rate, "flop/s", _HERE) for dtype, (_, rate) in gemm.items()},
        "gemm_sustained": f"1 [{_HERE}]",
        "memory": figure(start["device_memory_B"], "B", _SYSTEM),
        "memory_bandwidth": figure(memory, "B/s", _HERE),
        "memory_sustained": f"1 [{_HERE}]",
        "limit": memory,
    }
    if start["compute_units"]:
        block["compute_units"] = f"{start['compute_units']} [{_SYSTEM}]"
    if start["resident_B"]:
        block |= {
            "reserve": figure(start["resident_B"], "B", _HERE),
            "communicator_buffer": figure(_GLOO_BUFFER, "B", _INSTEAD),
        }
    issue, lost = rates.host_time(lines), rates.contention(lines)
    block |= {"host_time": figure(issue, "s", _HERE)} if issue else {}
    block |= {"contention": f"{lost:.3g} [{_HERE}]"} if lost else {}
    return block, [told, *(_modes(lines, dtype, shape) for dtype, (shape, _) in gemm.items())]


def _peaks(lines: Lines, dtypes: Sequence[str]) -> tuple[dict[str, str], str]:
    """The data-sheet peaks of a shipped profile; the best measurement if there is none, or if it exceeds them."""
    fastest = {dtype: rates.fastest(lines, dtype) for dtype in dtypes}
    found = known.peaks(lines.start["device"])
    if found is not None:
        name, figures = found
        if all(dtype in figures and figures[dtype].value >= fastest[dtype] for dtype in dtypes):
            peaks = {dtype: figure(figures[dtype].value, "flop/s", _INSTEAD) for dtype in dtypes}
            return peaks, f"Peaks are those that the shipped profile {name} has for this device."
    peaks = {dtype: figure(rate, "flop/s", _HERE) for dtype, rate in fastest.items()}
    return peaks, "No data sheet is known: the fastest product is used as the peak, so MFU is relative to that."


def _modes(lines: Lines, dtype: str, best: tuple[int, int, int]) -> str:
    """A sentence with the rates by mode, for the best shape and for the smallest."""
    every = rates.products(lines, dtype)
    smallest = min(every, key=lambda shape: (shape[0] * shape[1] * shape[2], shape))
    told = []
    for shape in dict.fromkeys((best, smallest)):
        each = ", ".join(f"{mode.upper()} {show(rate, 'flop/s')}" for mode, rate in sorted(every[shape].items()))
        told.append(f"{' x '.join(map(str, shape))}: {each}")
    return f"Products in {dtype} (m x n x k): {'; '.join(told)}."


def _fabric(found: Sequence[Fit], node: int, limit: float) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The links as collectives use them, and the bandwidth database of groups inside a node."""
    if node == 1:
        return {"topology": "none"}, []
    groups = {shape: of_shape(found, *shape) for shape in shapes(node, node)}
    known_groups = {shape: min(rate, limit) for shape, rate in groups.items() if rate is not None}
    if not known_groups:
        raise PerfmodelError("too little has been measured for a profile: no collective yet; the next call continues")
    widest, pair = known_groups.get((1, node)), known_groups.get((1, 2))
    pairs = [rate for (_, size), rate in known_groups.items() if size == 2] or [min(known_groups.values())]
    block = {
        "topology": "shared",
        "description": "rates that collectives reach while all groups communicate; the kind of links is not known",
        "pair_bandwidth": figure(max(pairs), "B/s", _HERE),
        "device_bandwidth": figure(max(known_groups.values()), "B/s", _HERE),
        "efficiency": f"1 [{_HERE}]",
        "latency": figure(_hop(found, node), "s", _HERE),
    }
    if widest and pair and widest > _GROWS * pair:
        block["topology"] = "mesh"
    inside = [
        {"inner": inner, "size": size, "bandwidth": figure(rate, "B/s", _HERE)}
        for (inner, size), rate in sorted(known_groups.items())
    ]
    return block, inside


def _hop(found: Sequence[Fit], node: int) -> float:
    """Seconds of one hop of a ring of small messages: the start-up time of an all-gather, divided by its hops.

    The start-up of the call itself is left out, since the model counts it separately.
    """
    hops = [
        (one.alpha - START_UP) / (one.size - 1)
        for one in found
        if one.operation == "all-gather" and one.inner * one.size <= node
    ]
    return max(statistics.median(hops), _LEAST_HOP) if hops else _LEAST_HOP


def _scheduler(start: dict[str, Any]) -> dict[str, Any]:
    node, cores = start["devices_per_node"], start["cpu_cores"]
    each = max(1, cores // node)
    fits_node = node * each <= MOST_THREADS_A_CORE * cores
    kind = start["scheduler"]
    block: dict[str, Any] = {
        "kind": kind,
        "source": _SYSTEM,
        "account": "none" if kind == "none" else "optional",
        "launch": SCHEDULERS[kind].launch if kind in SCHEDULERS else "",
        "tasks_per_node": node if fits_node else 1,
        "cores_per_task": each,
        "partition": start["partition"],
        "master_address": "localhost" if kind == "none" else "",
    }
    return {key: value for key, value in block.items() if value}
