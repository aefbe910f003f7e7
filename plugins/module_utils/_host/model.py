# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a network's configuration says: its plugins and where they are written, its pools, what it takes of the host."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from .confdir import ConfFile
from .kinds import (
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
from .ranges import Range, leases_in, range_of, range_sets, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .leases import Lease


class Placed(NamedTuple):
    """One plugin of a network's chain: ``path`` and ``pointer`` say where it is written."""

    path: str
    pointer: str
    plugin: Dict[str, Any]


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
        while text_of(placed.plugin, "type") == "flannel":
            # By default, it delegates to bridge, with a subnet that it reads when it runs.
            placed = Placed(placed.path, placed.pointer + "/delegate", delegate_of(placed.plugin))
        plugin = placed.plugin
        name, gateway, vlan = bridge_of(plugin), forwards(plugin), vlan_of(plugin)
        # The gateway of a VLAN is on a separate interface above the bridge.
        lower = name or lower_of(plugin)
        link = f"{lower}.{vlan}" if lower and vlan else lower
        pools = _pools(file, placed, link, gateway if name else not kind_of(plugin).outside)
        uses.pools.extend(pools)
        if name:
            force = member_of(plugin, "forceaddress") is True
            bridge = Bridge(file, placed.path, placed.pointer, name, vlan, link, gateway, force, tuple(pools))
            uses.bridges.append(bridge)
    return uses


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
