"""Bandwidth of a group of devices at a place in the hierarchy: the paper's database, or a rule from vendor figures.

Case 1: every group of the axis lies inside one fast domain (a node, or an NVLink rack). Its bandwidth is looked up by
(inner, size); what nobody measured is derived from the vendor's link rates by `derived_inside`.
Case 2: some group leaves the domain. Then min(domain, inner) groups share the bandwidth between domains (Eq. 7).
The paper writes powers of two only. With other sizes a block of inner * size neighbouring ranks can straddle a
boundary though it is shorter than a domain, so case 1 also asks that the block divides the domain.
"""

from dataclasses import dataclass

import numpy as np

from perfmodel.machine import Machine
from perfmodel.units import Array, BytesPerSecond, Count, show


def shared_between(between: float, *, inner: Count, domain: int) -> BytesPerSecond:
    """Bandwidth of one group that crosses domains: beta_inter / min(G_node, P)  (arXiv 2502.08145, Eq. 7).

    >>> float(shared_between(100e9, inner=8, domain=4))
    25000000000.0
    """
    return between / np.minimum(domain, inner)


def derived_inside(machine: Machine, size: int) -> float:
    """Bandwidth of a group inside the domain by link rates, for group shapes that nobody measured.

    efficiency * (size - 1) * pair bandwidth in a mesh (a ring runs on each of the links a device has to its peers),
    efficiency * device bandwidth behind a switch or a shared host, efficiency * slowest link where the fabric is
    irregular; never more than efficiency * device bandwidth. The efficiency is the profile's and carries a source.
    """
    fabric = machine.fabric
    if fabric.pair_bandwidth is None or fabric.device_bandwidth is None or fabric.efficiency is None:
        return float("inf")  # one device a domain: no group fits inside
    links = {"mesh": (size - 1) * fabric.pair_bandwidth.value, "irregular": fabric.pair_bandwidth.value}
    rate = min(links.get(fabric.topology, fabric.device_bandwidth.value), fabric.device_bandwidth.value)
    return fabric.efficiency.value * rate


def derived_between(machine: Machine) -> float:
    """Bandwidth between domains by vendor figures: efficiency * injection of a node * nodes a domain."""
    network = machine.network
    if network.injection is None or network.efficiency is None:
        return float("nan")  # no network: a job cannot leave the domain, so this is never used
    return network.efficiency.value * network.injection.value * (machine.domain // machine.node_devices)


@dataclass(frozen=True, slots=True)
class Bandwidths:
    """A machine's group bandwidths as arrays, looked up by (inner, size)."""

    machine: Machine
    domain: int
    inside: Array
    between: float
    ceiling: float

    @classmethod
    def of(cls, machine: Machine) -> "Bandwidths":
        """Fill the table: measured entries where the profile has them, derived ones elsewhere."""
        domain = machine.domain
        inside = np.full((domain + 1, domain + 1), np.inf)
        inside[:, 2:] = [derived_inside(machine, size) for size in range(2, domain + 1)]
        for entry in machine.bandwidth.inside:
            inside[entry.inner, entry.size] = entry.bandwidth.value
        measured = machine.bandwidth.between
        between = measured.value if measured else derived_between(machine)
        device = machine.fabric.device_bandwidth
        return cls(machine, domain, inside.ravel(), between, device.value if device else float("inf"))

    def contained(self, *, inner: Count, size: Count, gpus: Count) -> Count:
        """Whether every group of this shape stays inside a domain (case 1)."""
        block = inner * size
        return (gpus <= self.domain) | (self.domain % block == 0)

    def of_group(self, *, inner: Count, size: Count, gpus: Count) -> BytesPerSecond:
        """Bandwidth of groups of `size` ranks with `inner` ranks between neighbours, in a job of `gpus`.

        Between domains a device cannot send more than its own links carry, which only binds in domains of many nodes.
        """
        inside = self.contained(inner=inner, size=size, gpus=gpus)
        row = np.where(inside, inner * (self.domain + 1) + size, 0)
        crossing = np.minimum(shared_between(self.between, inner=inner, domain=self.domain), self.ceiling)
        return np.where(inside, self.inside[row], crossing)

    def origin(self, *, inner: int, size: int, gpus: int) -> str:
        """Where the bandwidth of one group shape comes from, in words."""
        if size == 1:
            return "nothing to send"
        if not self.contained(inner=inner, size=size, gpus=gpus):
            return self._origin_between(inner)
        for entry in self.machine.bandwidth.inside:
            if (entry.inner, entry.size) == (inner, size):
                return f"database ({inner}, {size}), {entry.bandwidth.origin}"
        fabric = self.machine.fabric
        efficiency = fabric.efficiency
        described = f"{efficiency.value:g} x link rate ({fabric.topology}), {efficiency.origin}" if efficiency else ""
        return f"derived for ({inner}, {size}): {described}"

    def _origin_between(self, inner: int) -> str:
        sharing = min(self.domain, inner)
        measured, network = self.machine.bandwidth.between, self.machine.network
        if measured:
            base = f"{show(measured.value, 'B/s')} between nodes, {measured.origin}"
        elif network.efficiency and network.injection:
            node = show(network.injection.value, "B/s")
            base = f"{network.efficiency.value:g} x {node} a node, {network.efficiency.origin}"
        else:
            base = "no network"
        return base if sharing == 1 else f"{base}, shared by {sharing} groups"
