"""Bandwidth of a group of devices by its place in the hierarchy: the paper's database, or a rule for vendor figures.

Case 1: every group of the axis lies inside one fast domain (a node, or an NVLink rack). Its bandwidth is looked up by
(inner, size); unmeasured ones are derived from the vendor's link rates by `derived_inside`.
Case 2: some group leaves the domain. Then min(domain, inner) groups share the bandwidth between domains (Eq. 7).

The paper covers only powers of two. With other sizes a block of inner * size neighbouring ranks can straddle a
boundary although it is shorter than a domain, so case 1 also requires that the block divides the domain. If `literal`,
case 2 is Eq. 7 with one ceiling: the links of a device, which the injection of a whole NVLink rack exceeds. Otherwise
case 2 has three more limits. Blocks that straddle boundaries meet in pairs, so twice as many groups share the links out
of a domain. A group uses no more NICs than its members in a domain reach, and is no faster than the links between those
members. With powers of two only the last can bind, where the network is faster than the links.
"""

from dataclasses import dataclass

import numpy as np

from perfmodel.costs.straddling import fewest_members, sharing
from perfmodel.machines.domains import contained
from perfmodel.machines.machine import Machine
from perfmodel.units import Array, BytesPerSecond, Count, show


def shared_between(between: float, *, sharing: Count) -> BytesPerSecond:
    """Bandwidth of one group that crosses domains: beta_inter / min(G_node, P)  (arXiv 2502.08145, Eq. 7).

    >>> shared_between(100e9, sharing=4)
    25000000000.0
    """
    return between / sharing


def derived_inside(machine: Machine, size: int) -> float:
    """Bandwidth of a group inside the domain from link rates, for group shapes without a measurement.

    It is the efficiency of the profile times a link rate, which depends on the fabric:

    - mesh: (size - 1) * pair bandwidth, since a ring runs on each of the links from a device to its peers;
    - switch or shared host: device bandwidth;
    - irregular: the slowest link.

    The link rate never exceeds the device bandwidth.
    """
    fabric = machine.fabric
    if fabric.pair_bandwidth is None or fabric.device_bandwidth is None or fabric.efficiency is None:
        return float("inf")  # one device per domain: no group fits inside
    links = {"mesh": (size - 1) * fabric.pair_bandwidth.value, "irregular": fabric.pair_bandwidth.value}
    rate = min(links.get(fabric.topology, fabric.device_bandwidth.value), fabric.device_bandwidth.value)
    return fabric.efficiency.value * rate


def derived_between(machine: Machine) -> float:
    """Bandwidth between domains from vendor figures: efficiency * injection of a node * nodes per domain."""
    network = machine.network
    if network.injection is None or network.efficiency is None:
        return float("nan")  # no network: a job cannot leave the domain, so this is never used
    return network.efficiency.value * network.injection.value * (machine.domain // machine.node_devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidths:
    """A machine's group bandwidths as arrays, by (inner, size); `literal`: Eq. 7, at most a device's links.

    `factor` multiplies the table: samples of its uncertainty (see `uncertainty`).
    """

    machine: Machine
    domain: int
    inside: Array
    between: float
    links: float
    nics: int
    literal: bool
    factor: float = 1.0

    @classmethod
    def of(cls, machine: Machine, *, literal: bool = False) -> "Bandwidths":
        """Fill the table: measured entries where the profile has them, derived ones elsewhere."""
        domain = machine.domain
        inside = np.full((domain + 1, domain + 1), np.inf)
        inside[:, 2:] = [derived_inside(machine, size) for size in range(2, domain + 1)]
        for entry in machine.bandwidth.inside:
            inside[entry.inner, entry.size] = entry.bandwidth.value
        measured, nics = machine.bandwidth.between, machine.network.nics
        between = measured.value if measured else derived_between(machine)
        count = int(nics.value) * (domain // machine.node_devices) if nics else 1
        links = machine.fabric.device_bandwidth
        most = links.value if links else float("inf")
        return cls(
            machine=machine,
            domain=domain,
            inside=inside.ravel(),
            between=between,
            links=most,
            nics=count,
            literal=literal,
        )

    def contained(self, *, inner: Count, size: Count, gpus: Count) -> Count:
        """Whether every group of this shape stays inside a domain (case 1)."""
        return contained(inner=inner, size=size, domain=self.domain, gpus=gpus)

    def of_group(self, *, inner: Count, size: Count, gpus: Count) -> BytesPerSecond:
        """Bandwidth of groups of `size` ranks with `inner` ranks between neighbours, in a job of `gpus`."""
        inside = self.contained(inner=inner, size=size, gpus=gpus)
        within = self._inside(np.where(inside, inner, 0), np.where(inside, size, 0))
        return np.where(inside, within, self._crossing(inner, size, gpus))

    def _inside(self, inner: Count, size: Count) -> Array:
        """The table's entries; (0, 0) stands for no limit."""
        found: Array = self.inside[inner * (self.domain + 1) + size] * self.factor
        return found

    def _crossing(self, inner: Count, size: Count, gpus: Count) -> BytesPerSecond:
        """Bandwidth of a group that leaves its domain (case 2)."""
        if self.literal:
            return np.minimum(shared_between(self.between, sharing=np.minimum(self.domain, inner)), self.links)
        domain = self.domain
        shared = shared_between(self.between, sharing=sharing(inner=inner, size=size, domain=domain, gpus=gpus))
        members = fewest_members(inner=inner, size=size, domain=domain, gpus=gpus)
        reached = np.minimum(self.nics, members * max(1, self.nics // domain)) / self.nics
        several = members > 1
        links = self._inside(np.where(several, inner, 0), np.where(several, members, 0))
        return np.minimum(np.minimum(shared, reached * self.between), links)

    def origin(self, *, inner: int, size: int, gpus: int) -> str:
        """Where the bandwidth of one group shape comes from, in words."""
        if size == 1:
            return "nothing to send"
        if not self.contained(inner=inner, size=size, gpus=gpus):
            return self._origin_between(inner, size, gpus)
        for entry in self.machine.bandwidth.inside:
            if (entry.inner, entry.size) == (inner, size):
                return f"database ({inner}, {size}), {entry.bandwidth.origin}"
        fabric = self.machine.fabric
        efficiency = fabric.efficiency
        described = f"{efficiency.value:g} x link rate ({fabric.topology}), {efficiency.origin}" if efficiency else ""
        return f"derived for ({inner}, {size}): {described}"

    def _origin_between(self, inner: int, size: int, gpus: int) -> str:
        """The bandwidth between domains, how many share it, and what else limits a group of this shape."""
        measured, network = self.machine.bandwidth.between, self.machine.network
        if measured:
            base = f"{show(measured.value, 'B/s')} between nodes, {measured.origin}"
        elif network.efficiency and network.injection:
            origin = f"{network.efficiency.value:g} x injection, {network.efficiency.origin}"
            base = f"{show(self.between, 'B/s')} between domains of {self.domain}, {origin}"
        else:
            return "no network"
        literal = min(self.domain, inner)
        groups = literal if self.literal else int(sharing(inner=inner, size=size, domain=self.domain, gpus=gpus))
        shared = f"{base}, shared by {groups} groups" if groups > 1 else base
        if float(self._crossing(inner, size, gpus)) < self.between / groups:
            if self.literal:
                return f"{shared}; limited by the links of a device, {show(self.links, 'B/s')}"
            members = int(fewest_members(inner=inner, size=size, domain=self.domain, gpus=gpus))
            return f"{shared}; limited by the links and NICs of {members} members in a domain"
        return shared


def bandwidth_origins(machine: Machine) -> str:
    """Where the group bandwidths come from, in one sentence."""
    keys = dict.fromkeys(entry.bandwidth.origin for entry in machine.bandwidth.inside)
    network, fabric = machine.network.efficiency, machine.fabric.efficiency
    parts = []
    if fabric:
        rule = f"{fabric.value:g} x link rates, {fabric.origin}"
        parts.append(f"inside nodes {', '.join(keys)}" if keys else f"inside nodes derived: {rule}")
    if machine.bandwidth.between:
        parts.append(f"between nodes {machine.bandwidth.between.origin}")
    elif network:
        parts.append(f"between nodes derived: {network.value:g} x injection, {network.origin}")
    return "; ".join(parts)
