# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A directory of networks to check, as it is or as a plan will leave it, what its networks take, and rules of each."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple

from ..confdir import ConfFile
from ..hostview import HostView
from ..kinds import (
    META,
    bridge_of,
    delegate_of,
    forwards,
    kind_of,
    lease_dir,
    lower_of,
    member_of,
    object_of,
    text_of,
    vlan_of,
)
from ..problems import ERROR, INFO, WARNING, Finding
from ..ranges import IP, Range, Subnet, interface_of, ip_of, leases_in, range_of, range_sets, ranges_of
from ..struct import field, struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..leases import Lease

_RATES = ("ingressrate", "egressrate")


class Placed(NamedTuple):
    """One plugin of a network's chain: ``path`` and ``pointer`` say where it is written."""

    path: str
    pointer: str
    plugin: Dict[str, Any]


@struct
class ConfView:
    """``before`` is the current state, ``files`` the planned one, both in the order of the runtimes.

    ``managed`` are the names of the managed files, ``wanted`` those of the requested networks' files, ``own_drop_ins``
    those of their drop-ins (``NETWORK/FILE``). ``at_each``: an overlap is reported at both files. ``host`` has the
    other directories.
    """

    conf_dir: str
    before: Sequence[ConfFile]
    files: Sequence[ConfFile]
    managed: Set[str]
    wanted: Set[str]
    host: HostView = field(default_factory=HostView)
    own_drop_ins: Set[str] = field(default_factory=set)
    at_each: bool = False

    def loaded(self) -> List[ConfFile]:
        """Return the files that hold a network."""
        return [file for file in self.files if file.network and not file.error]

    def level(self, *files: ConfFile) -> str:
        """Return the level of a problem between *files*: between unmanaged files it is only a note."""
        return WARNING if any(file.name in self.managed | self.wanted for file in files) else INFO

    def certain(self, file: ConfFile) -> str:
        """Return the level of a problem that makes every ADD of *file* fail: an error if the file will be written."""
        return ERROR if file.name in self.wanted else self.level(file)


def chain_of(file: ConfFile) -> List[Placed]:
    """Return the plugins of *file* in the order in which they run, drop-ins included."""
    in_list = file.kind == "conflist"
    placed = [Placed(file.path, f"/plugins/{index}" * in_list, plugin) for index, plugin in enumerate(file.plugins)]
    return placed + [Placed(extra.path, "", plugin) for extra in file.drop_ins for plugin in extra.plugins]


# ---- pools


def pool_rows(networks: Iterable[Tuple[str, Mapping[str, Any]]], leases: Sequence[Lease]) -> List[Dict[str, Any]]:
    """Return a row for each store and address family of a configured network, sorted: its addresses and their owners.

    *networks* are the configured ones, one pair (name, plugin object) for each plugin. Families are counted separately:
    free IPv6 addresses do not help a container that also needs an IPv4 address.
    """
    # The ranges of a network that is in two files count once.
    pools: Dict[Tuple[str, str], Dict[str, Range]] = {}
    for network, plugin in networks:
        place = lease_dir(plugin)
        if place:
            parts = ranges_of(object_of(plugin, "ipam"))
            pools.setdefault((network, place), {}).update((part.text, part) for part in parts)
    rows = []
    for (network, place), ranges in sorted(pools.items()):
        reserved = [lease for lease in leases if (lease.network, lease.data_dir) == (network, place)]
        for version in (4, 6):
            parts = [entry for entry in ranges.values() if entry.subnet.version == version]
            held = [lease for lease in reserved if (":" in lease.ip) == (version == 6)]
            # A network without ranges gets a row, too.
            if parts or held or (version == 4 and not ranges and not reserved):
                rows.append(_row(network, place, f"ipv{version}", parts, held))
    return rows


def _row(
    network: str, data_dir: str, family: str, ranges: Sequence[Range], reserved: Sequence[Lease]
) -> Dict[str, Any]:
    inside = leases_in(ranges, reserved)
    owners: Dict[str, List[str]] = {}
    for lease in reserved:
        owners.setdefault(lease.container_id, []).append(lease.ip)
    size = sum(part.size for part in ranges)
    return {
        "network": network,
        "data_dir": data_dir,
        "family": family,
        "ranges": [part.text for part in ranges],
        "size": size,
        "used": len(inside),
        "free": max(0, size - len(inside)),
        "outside": len(reserved) - len(inside),
        "owners": [{"container_id": name, "ips": ips} for name, ips in sorted(owners.items())],
    }


# ---- what a network takes of the host


class Pool(NamedTuple):
    """One range of host-local. ``group`` is the number of its set: a container gets one address from each set.

    ``store`` is the directory of its leases. ``link`` is the bridge or the lower interface that its addresses are on,
    "" if every container has a link of its own. ``routed`` tells whether the host has a route to them.
    """

    file: ConfFile
    path: str
    pointer: str
    range: Range
    group: int
    store: str
    link: str
    routed: bool

    @property
    def gateway(self) -> str:
        """Its gateway as an address of an interface."""
        return f"{self.range.gateway}/{self.range.subnet.prefixlen}"


class Bridge(NamedTuple):
    """A bridge that a plugin creates or joins.

    ``link`` is the interface that has its addresses. ``gateway`` tells whether it gets the addresses of the gateways,
    ``force`` whether they replace its other addresses.
    """

    file: ConfFile
    path: str
    pointer: str
    name: str
    vlan: int
    link: str
    gateway: bool
    force: bool
    pools: Tuple[Pool, ...]


class Uses(NamedTuple):
    pools: List[Pool]
    bridges: List[Bridge]


def uses_of_network(file: ConfFile) -> Uses:
    """Return what *file* uses. What a plugin would refuse is left out: other levels report it."""
    uses = Uses([], [])
    for placed in chain_of(file):
        _collect(file, placed, uses)
    return uses


def _collect(file: ConfFile, placed: Placed, uses: Uses) -> None:
    plugin = placed.plugin
    if text_of(plugin, "type") == "flannel":
        # By default, it delegates to bridge, with a subnet that it reads when it runs.
        _collect(file, Placed(placed.path, placed.pointer + "/delegate", delegate_of(plugin)), uses)
        return
    name, gateway = bridge_of(plugin), forwards(plugin)
    vlan = vlan_of(plugin)
    # The gateway of a VLAN is on a separate interface above the bridge.
    lower = name or lower_of(plugin)
    link = f"{lower}.{vlan}" if lower and vlan else lower
    pools = _pools(file, placed, link, gateway if name else not kind_of(plugin).outside)
    uses.pools.extend(pools)
    if name:
        force = member_of(plugin, "forceaddress") is True
        uses.bridges.append(Bridge(file, placed.path, placed.pointer, name, vlan, link, gateway, force, tuple(pools)))


def _pools(file: ConfFile, placed: Placed, link: str, routed: bool) -> List[Pool]:
    data_dir = lease_dir(placed.plugin)
    if not data_dir:
        return []
    store = os.path.join(data_dir, str(file.network))
    pools = []
    for group, (pointer, entries) in enumerate(range_sets(object_of(placed.plugin, "ipam"))):
        for index, entry in enumerate(entries):
            part = range_of(entry)
            if part is not None:
                place = f"{placed.pointer}/ipam{pointer}" + (f"/{index}" if pointer else "")
                pools.append(Pool(file, placed.path, place, part, group, store, link, routed))
    return pools


# ---- what is wrong with a single network, whatever else is in its directory and on its host


def network_problems(view: ConfView, file: ConfFile, uses: Uses) -> Iterator[Finding]:
    """Yield the problems of the chain of one network, and of the addresses that it *uses*."""
    chain = chain_of(file)
    yield from _chain_order(view, file, chain)
    for placed in chain:
        yield from _capability(view, file, placed)
        yield from _static_gateways(view, file, placed)
    for pool in uses.pools:
        yield from _gateway(view, pool)
    for bridge in uses.bridges:
        yield from _two_gateways(view, bridge)


def _chain_order(view: ConfView, file: ConfFile, chain: List[Placed]) -> Iterator[Finding]:
    makers = [placed for placed in chain if kind_of(placed.plugin).alone]
    if chain and kind_of(chain[0].plugin).role == META:
        first = text_of(chain[0].plugin, "type")
        what = f"{first} comes first, but works on the interface that another plugin creates, so every ADD fails"
        remedy = f"put it after {text_of(makers[0].plugin, 'type')}" if makers else "begin with one such as bridge"
        yield _at(view.certain(file), "chain_order", what, remedy, chain[0])
    for placed in makers[1:]:
        what = (
            f"{text_of(placed.plugin, 'type')} creates the container's interface, which "
            f"{text_of(makers[0].plugin, 'type')} has created already, so every ADD fails"
        )
        yield _at(view.certain(file), "chain_order", what, "move it to a network of its own", placed)


def _capability(view: ConfView, file: ConfFile, placed: Placed) -> Iterator[Finding]:
    plugin, kind = placed.plugin, text_of(placed.plugin, "type")
    capabilities = object_of(plugin, "capabilities")
    # Values written there stay unless a runtime passes other ones.
    written = object_of(plugin, "runtimeconfig")
    ports = capabilities.get("portMappings") is True or member_of(written, "portmappings")
    if kind == "portmap" and not ports:
        why = "runtimes pass them only to plugins that declare the capability"
        what = f"portmap never gets port mappings, because {why}"
        remedy = 'write "capabilities": {"portMappings": true}'
        yield _at(view.level(file), "capability_missing", what, remedy, placed)
    limits = [plugin, object_of(written, "bandwidth")]
    # A runtime may spell its key in any way in which the capability is spelled: the plugin ignores case.
    limited = member_of(capabilities, "bandwidth") is True or any(
        member_of(place, rate) for place in limits for rate in _RATES
    )
    if kind == "bandwidth" and not limited:
        what = "bandwidth has no limits, and runtimes pass none without the capability"
        remedy = 'write "capabilities": {"bandwidth": true}, or ingressRate and ingressBurst'
        yield _at(view.level(file), "capability_missing", what, remedy, placed)


def _at(level: str, code: str, what: str, remedy: str, placed: Placed, place: str = "") -> Finding:
    return Finding(level, code, what, remedy, placed.path, placed.pointer + place)


def _static_gateways(view: ConfView, file: ConfFile, placed: Placed) -> Iterator[Finding]:
    for place, address, gateway in _static(placed.plugin):
        interface, ip = interface_of(address), ip_of(gateway)
        if interface and ip and interface.version == ip.version and not _reaches(interface.network, ip):
            what = f"static: the gateway {gateway} is not in the subnet of {address}, so no container can reach it"
            remedy = "write an address of that subnet"
            yield _at(view.level(file), "gateway_outside", what, remedy, placed, place)


def _gateway(view: ConfView, pool: Pool) -> Iterator[Finding]:
    subnet, gateway = pool.range.subnet, pool.range.gateway
    if not _reaches(subnet, gateway):
        what = (
            f"host-local: the gateway {gateway} is not in the subnet {subnet}, so no container can reach it, and ADD "
            "fails where a route leads through it (network is unreachable)"
        )
        remedy = f"write an address of the subnet, such as {subnet.network_address + 1}"
        yield Finding(view.level(pool.file), "gateway_outside", what, remedy, pool.path, pool.pointer + "/gateway")


def _reaches(subnet: Subnet, gateway: IP) -> bool:
    return gateway in subnet or (subnet.version == 6 and gateway.is_link_local)


def _static(plugin: Dict[str, Any]) -> Iterator[Tuple[str, str, str]]:
    ipam = object_of(plugin, "ipam")
    addresses = member_of(ipam, "addresses") if text_of(ipam, "type") == "static" else None
    for index, entry in enumerate(addresses if isinstance(addresses, list) else []):
        if isinstance(entry, dict) and text_of(entry, "gateway"):
            yield f"/ipam/addresses/{index}/gateway", text_of(entry, "address"), text_of(entry, "gateway")


def _two_gateways(view: ConfView, bridge: Bridge) -> Iterator[Finding]:
    """Yield the problem of a single network with two IPv4 gateways on its bridge, which can have only one."""
    pools = [pool for pool in bridge.pools if pool.range.subnet.version == 4] if bridge.gateway else []
    for pool in pools[1:]:
        if pool.gateway == pools[0].gateway:
            continue
        always = pool.group != pools[0].group and not bridge.force
        effect = "every ADD fails" if always else "containers of one of the subnets lose their gateway"
        what = (
            f"the bridge {bridge.name} would get the gateways {pools[0].gateway} and {pool.gateway}, but can have only "
            f"one IPv4 address: {effect}"
        )
        remedy = "keep one subnet here, and move the other to a network with a bridge of its own"
        level = view.certain(bridge.file) if always else view.level(bridge.file)
        yield Finding(level, "bridge_two_subnets", what, remedy, pool.path, pool.pointer)
