"""A machine profile as a plain record, with the bandwidths derived from it."""

from perfmodel.costs.bandwidth import Bandwidths
from perfmodel.machines.machine import Machine
from perfmodel.numerics import divisors
from perfmodel.records import Record, plain


def machine_record(machine: Machine) -> Record:
    """A profile with every figure as value and source, and the bandwidths derived from it."""
    record: Record = plain(machine)
    return record | {"derived_bandwidths": derived_bandwidths(machine)}


def derived_bandwidths(machine: Machine) -> list[Record]:
    """Bandwidths that the rule supplies because the profile has none: inside by group shape, and between nodes."""
    bandwidths = Bandwidths.of(machine)
    measured = {(entry.inner, entry.size) for entry in machine.bandwidth.inside}
    shapes = [
        (i, s)
        for i in divisors(machine.domain)
        for s in divisors(machine.domain)
        if s > 1 and machine.domain % (i * s) == 0
    ]
    found = [
        _derived(bandwidths, f"inside ({inner},{size})", inner, size, machine.domain)
        for inner, size in shapes
        if (inner, size) not in measured
    ]
    if machine.bandwidth.between is None and machine.network.topology != "none":
        found.append(_derived(bandwidths, "between", 1, 2 * machine.domain, 2 * machine.domain))
    return found


def _derived(bandwidths: Bandwidths, name: str, inner: int, size: int, gpus: int) -> Record:
    value = float(bandwidths.of_group(inner=inner, size=size, gpus=gpus))
    return {"bandwidth": name, "value_B_per_s": value, "rule": bandwidths.origin(inner=inner, size=size, gpus=gpus)}
