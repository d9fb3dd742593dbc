"""The number of devices that a machine can give to a job, and its multiples."""

from perfmodel.errors import PerfmodelError
from perfmodel.machines.machine import Machine


def count_problem(machine: Machine, gpus: int) -> str:
    """Why this machine cannot give this many devices to a job (no whole nodes, or too many); empty if it can."""
    devices, total = machine.node_devices, device_total(machine)
    if total is not None and gpus > total:
        return f"{machine.name} has {total} devices ({total // devices} nodes of {devices}), asked for {gpus}"
    if gpus > devices and gpus % devices:
        return (
            f"{gpus} devices are not whole nodes of {devices} on {machine.name} (a device is a {machine.device.kind})"
        )
    return ""


def device_total(machine: Machine) -> int | None:
    """Devices of the whole machine, or None where its size is not known."""
    if machine.network.topology == "none":
        return machine.domain
    nodes = machine.network.nodes
    return int(nodes.value) * machine.node_devices if nodes else None


def cited(machine: Machine, key: str) -> str:
    """The source of a statement, with its address."""
    source = machine.sources[key]
    return f"{source.kind} [{key}] {source.address or source.note}"


def whole_nodes(machine: Machine, gpus: int) -> int:
    """Number of nodes that hold `gpus` with none left idle."""
    devices, total, nodes = machine.node_devices, device_total(machine), machine.network.nodes
    if total is not None and gpus > total:
        key = nodes.key if nodes else machine.node.devices.key
        raise PerfmodelError(
            f"{machine.name} has {total} devices ({total // devices} nodes of {devices}), asked for {gpus}; "
            f"{cited(machine, key)}"
        )
    if gpus % devices and machine.scheduler.kind != "none":
        below, above = gpus // devices * devices, -(-gpus // devices) * devices
        instead = f"{below} or {above}" if below else above
        raise PerfmodelError(
            f"{gpus} devices are not whole nodes of {devices} on {machine.name}, which is what a job is given; "
            f"wanted {instead}; {cited(machine, machine.node.devices.key)}"
        )
    return -(-gpus // devices)
