# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What networks take from each other and from the host: bridges, addresses, and directories of leases."""

from __future__ import annotations

import ipaddress
import os
import socket
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ...libcni.kernel import pack_attribute
from ..errors import HostError
from ..host_routes import explain_uplinks, uplinks_of_routers
from ..kinds import delegate_of, kind_of, member_of, text_of
from ..model import Bridge, Pool, Uses, chain_of
from ..netlink import MAIN_TABLE, Dumps, host_addresses, links, routes
from ..problems import INFO, WARNING, Finding
from ..ranges import Interface, Subnet
from .view import ConfView


def address_problems(view: ConfView, uses: Sequence[Uses]) -> Iterator[Finding]:
    """Yield the conflicts between networks; *uses* are those of the networks of *view*, in its order."""
    yield from _bridges(view, [bridge for use in uses for bridge in use.bridges])
    yield from _overlaps(view, [pool for use in uses for pool in use.pools])
    yield from _stores(view, [pool for use in uses for pool in use.pools])


# ---- bridges


def _bridges(view: ConfView, bridges: Sequence[Bridge]) -> Iterator[Finding]:
    users: Dict[Tuple[str, int], List[Bridge]] = {}
    for bridge in bridges:
        others = users.setdefault((bridge.name, bridge.vlan), [])
        known = any(other.file.network == bridge.file.network for other in others)
        if others and not known:
            yield _shared_bridge(view, bridge, others)
        others.append(bridge)


def _shared_bridge(view: ConfView, bridge: Bridge, others: Sequence[Bridge]) -> Finding:
    """Return the worst problem of a bridge that *others* use, too."""
    place = bridge.path, bridge.pointer + "/bridge"
    for other in others:
        clash = _clash(bridge, other)
        if clash is not None:
            what = (
                f"the bridge {bridge.name} gets {clash[0]} here and {clash[1]} for the network {other.file.network!r} "
                f"in {other.file.name}, but can have only one of them: ADD fails for the network that comes second "
                "('already has an IP address different from')"
            )
            level = view.level(bridge.file, other.file)
            return Finding(level, "bridge_two_subnets", what, "give one of them another bridge", *place)
    other = next((other for other in others if other.gateway), others[0])
    level = view.level(bridge.file, other.file) if bridge.gateway or other.gateway else INFO
    what = (
        f"the network {other.file.network!r} in {other.file.name} also uses the bridge {bridge.name}, so containers of "
        "both reach each other"
    )
    return Finding(level, "bridge_shared", what, "give one of them another bridge if this is not intended", *place)


def _clash(bridge: Bridge, other: Bridge) -> Optional[Tuple[str, str]]:
    """Return two gateways that cannot be on one bridge, None if there are none.

    A bridge gets one IPv4 address, or several of IPv6 unless their subnets overlap
    (plugins/main/bridge/bridge.go:ensureAddr).
    """
    if bridge.gateway and other.gateway:
        for right in other.pools:
            for left in bridge.pools:
                versions = {left.range.subnet.version, right.range.subnet.version}
                together = versions == {6} and not left.range.subnet.overlaps(right.range.subnet)
                if len(versions) == 1 and not together and left.gateway != right.gateway:
                    return left.gateway, right.gateway
    return None


# ---- addresses


def _overlaps(view: ConfView, pools: Sequence[Pool]) -> Iterator[Finding]:
    """Yield the pairs of networks that overlap, each once. Pools are sorted, so that few pairs are compared."""
    ordered = sorted(pools, key=lambda pool: (pool.range.subnet.version, int(pool.range.subnet.network_address)))
    seen = set()
    for index, left in enumerate(ordered):
        for right in ordered[index + 1 :]:
            if not left.range.subnet.overlaps(right.range.subnet):
                break
            pair = frozenset((left.file.name, right.file.name))
            if left.file.network == right.file.network or pair in seen:
                continue
            # The problem is reported at the requested network, or else at the later file.
            earlier, later = sorted((left, right), key=lambda pool: (pool.file.name in view.wanted, pool.file.name))
            for pool, rival in ((later, earlier), (earlier, later))[: 2 if view.at_each else 1]:
                overlap = _overlap(view, pool, rival)
                if overlap is not None:
                    seen.add(pair)
                    yield overlap


def _overlap(view: ConfView, pool: Pool, other: Pool) -> Optional[Finding]:
    """Return the problem between two pools of different networks, None if there is none."""
    same_link = bool(pool.link) and pool.link == other.link
    of_containers = pool.routed and other.routed and not pool.link and not other.link
    what = (
        f"{pool.range.subnet} overlaps with {other.range.subnet} of the network {other.file.network!r} in "
        f"{other.file.name}"
    )
    if same_link or of_containers:
        if not pool.range.overlaps(other.range):
            return None
        code = "range_overlap"
        remedy = "give them separate ranges (rangeStart, rangeEnd)"
        what += " on the same link, and each network keeps its own leases, so addresses are assigned twice"
    elif pool.routed or other.routed:
        code = "subnet_overlap"
        remedy = "choose another subnet"
        what += ", and the host can send packets for an address to only one of them"
    else:
        return None
    return Finding(view.level(pool.file, other.file), code, what, remedy, pool.path, pool.pointer + "/subnet")


# ---- leases


# A configuration: the path of its file, and the pointer of its ipam object.
Place = Tuple[str, str]


def _stores(view: ConfView, pools: Sequence[Pool]) -> Iterator[Finding]:
    """Yield the problems with host-local's lease directories. The directory of a network is ``dataDir/NETWORK``."""
    stores: Dict[str, Dict[Place, List[Pool]]] = {}
    for pool in pools:
        place = (pool.path, pool.pointer.partition("/ipam")[0] + "/ipam")
        stores.setdefault(pool.store, {}).setdefault(place, []).append(pool)
    for store, places in sorted(stores.items()):
        yield from _shared(view, store, places)
        outer = next((other for other in stores if store.startswith(other + "/")), None)
        if outer is not None:
            yield _nested(view, store, places, outer, stores[outer])


def _shared(view: ConfView, store: str, places: Dict[Place, List[Pool]]) -> Iterator[Finding]:
    (first, theirs), *others = places.items()
    for place, mine in others:
        same_list = place[0] == first[0]
        if not same_list and [pool.range for pool in mine] == [pool.range for pool in theirs]:
            # One network in two files, which duplicate_name reports.
            continue
        if same_list and any(pool.range.overlaps(other.range) for pool in mine for other in theirs):
            effect = "the second of them fails (duplicate allocation is not allowed)"
        else:
            effect = "an address that one of them reserves or frees counts for the other, too"
        what = (
            f"this configuration of host-local and {first[1] if same_list else ', '.join(first)} store their leases in "
            f"the same directory, {store}: {effect}"
        )
        level = view.level(mine[0].file, theirs[0].file)
        yield Finding(level, "shared_store", what, "give one of them another 'dataDir'", *place)


def _nested(
    view: ConfView, store: str, places: Dict[Place, List[Pool]], outer: str, around: Dict[Place, List[Pool]]
) -> Finding:
    place, mine = next(iter(places.items()))
    theirs = next(iter(around.values()))[0]
    what = (
        f"host-local's directory for this network, {store}, is inside its directory for the network "
        f"{theirs.file.network!r}, {outer}"
    )
    level = view.level(mine[0].file, theirs.file)
    return Finding(level, "shared_store", what, "give this network another 'dataDir'", *place)


# ---- the host

# The longest name that the C library asks for, and IFLA_ALT_IFNAME, for longer ones.
_LONGEST, _OTHER_NAME = 15, 53
# What plugins create for single containers.
_OF_CONTAINERS = {"veth"}
# The most addresses and routes that one message names.
_LISTED = 3


class Taken(NamedTuple):
    """A ``subnet`` that the host uses, on the interface ``link`` ("" for none). ``remote``: behind a gateway."""

    subnet: Subnet
    link: str
    text: str
    remote: bool


class HostKernel(NamedTuple):
    """``addresses`` of each interface by its name; ``taken``: all that is in use."""

    addresses: Dict[str, List[Interface]]
    taken: List[Taken]


def read_host_kernel() -> HostKernel:
    """Return the addresses and routes of the host's network namespace. Raises HostError ``kernel_unreadable``."""
    names = {index: link.name for index, link in links().items() if link.kind not in _OF_CONTAINERS}
    kernel = HostKernel({}, [])
    for raw, (index, length) in host_addresses().items():
        if index in names:
            address, name = ipaddress.ip_interface((raw[1:], length)), names[index]
            kernel.addresses.setdefault(name, []).append(address)
            text = f"the address {address} of the interface {name}"
            kernel.taken.append(Taken(address.network, name, text, False))
    # The kernel creates such a route for every address.
    seen = {(taken.subnet, taken.link) for taken in kernel.taken}
    for route in routes():
        # A default route conflicts with nothing.
        if route.table != MAIN_TABLE or not route.length or (route.link and route.link not in names):
            continue
        subnet, name = ipaddress.ip_network((route.raw[1:], route.length), False), names.get(route.link, "")
        if (subnet, name) not in seen:
            text = f"the host's route to {subnet}" + (f" on the interface {name}" if name else "")
            kernel.taken.append(Taken(subnet, name, text, route.remote))
    return kernel


def host_problems(view: ConfView, uses: Sequence[Uses]) -> Iterator[Finding]:
    """Yield the conflicts between networks and host; *uses* are those of the networks of *view*, in its order."""
    yield from _masters(view, {bridge.link for use in uses for bridge in use.bridges})
    yield from _uplinks(view)
    pools = [pool for use in uses for pool in use.pools if pool.routed]
    bridges = [bridge for use in uses for bridge in use.bridges if bridge.gateway]
    if not pools and not bridges:
        return
    try:
        kernel = read_host_kernel()
    except HostError as error:
        what = f"cannot compare the networks with the host's own addresses and routes: {error.msg}"
        yield Finding(INFO, error.code, what)
        return
    for pool in pools:
        yield from _host_overlaps(view, pool, kernel)
    for bridge in bridges:
        yield from _bridge_address(view, bridge, kernel)


def _masters(view: ConfView, made: Set[str]) -> Iterator[Finding]:
    """Yield the missing interfaces that networks are put on, except *made*, which networks create."""
    for file in view.loaded():
        for index, (path, pointer, plugin) in enumerate(chain_of(file)):
            for place, part in ((pointer, plugin), (pointer + "/delegate", delegate_of(plugin))):
                kind, name = text_of(part, "type"), text_of(part, "master")
                if kind_of(part).parent != "master" or member_of(part, "linkincontainer") is True:
                    continue
                if name and name not in made and not _is_there(name):
                    what = f"{kind}: the host has no interface {name}, so every ADD fails"
                    remedy = "write the name of an existing one (ip link), or create it first"
                    yield Finding(view.level(file), "master_missing", what, remedy, path, place + "/master")
                # ipvlan uses the interface of the plugin before it; the schema of vlan requires a master.
                chained = kind == "ipvlan" and index
                if not name and kind != "vlan" and not chained and not _has_default_route():
                    what = f"{kind}: master is not set, and the host has no default route to take one from"
                    remedy = 'write one, such as "master": "eth0"'
                    yield Finding(view.level(file), "master_missing", what, remedy, path, place)


def _uplinks(view: ConfView) -> Iterator[Finding]:
    """Yield the networks whose first ADD takes the host's announced default route, whoever runs it."""
    for file in view.loaded():
        try:
            uplinks = uplinks_of_routers(file.chain)
        except HostError:
            # The comparison of addresses reports that they cannot be read.
            return
        if uplinks:
            what = f"{file.network}: {explain_uplinks(uplinks)}"
            yield Finding(WARNING, "host_route_lost", what, "", file.path, "/plugins")


def _has_default_route() -> bool:
    try:
        return any(route.unicast and not route.length and route.table == MAIN_TABLE for route in routes())
    except HostError:
        # The comparison of addresses reports that they cannot be read.
        return True


def _is_there(name: str) -> bool:
    """Tell whether the host has an interface of that name, which may be an alternative one, as for the plugins."""
    try:
        if len(os.fsencode(name)) <= _LONGEST:
            return socket.if_nametoindex(name) > 0
        with Dumps() as dumps:
            return bool(dumps.ask(18, 16, bytes(16) + pack_attribute(_OTHER_NAME, os.fsencode(name) + b"\0")))
    except (OSError, ValueError):
        # The name in a conflist may not be a valid name of an interface.
        return False


def _host_overlaps(view: ConfView, pool: Pool, kernel: HostKernel) -> Iterator[Finding]:
    subnet = pool.range.subnet
    others = (taken for taken in kernel.taken if not (taken.link and taken.link == pool.link))
    overlapping = [taken for taken in others if taken.subnet.overlaps(subnet)]
    # A wider route, such as one to a company's whole network, is fine: the subnet takes a part of it.
    wider = [taken for taken in overlapping if taken.remote and taken.subnet.prefixlen <= subnet.prefixlen]
    other = [taken for taken in overlapping if taken not in wider]
    place = (pool.path, pool.pointer + "/subnet")
    if other:
        what = f"{subnet} overlaps with {_listed(other)}, and packets reach only one of them"
        yield Finding(view.level(pool.file), "host_overlap", what, "choose another subnet", *place)
    if wider:
        what = f"{subnet} is a part of {_listed(wider)}, and can no longer be reached there"
        yield Finding(INFO, "host_overlap", what, "choose another subnet if this is not intended", *place)


def _listed(taken: Sequence[Taken]) -> str:
    texts = [entry.text for entry in taken[:_LISTED]]
    more = len(taken) - len(texts)
    return " and ".join(texts) + (f" and {more} more" if more else "")


def _bridge_address(view: ConfView, bridge: Bridge, kernel: HostKernel) -> Iterator[Finding]:
    """Yield a problem if an existing bridge has another address than the network's gateway."""
    # A bridge can have several IPv6 addresses.
    present = [str(address) for address in kernel.addresses.get(bridge.link, ()) if address.version == 4]
    gateways = [pool.gateway for pool in bridge.pools if pool.range.subnet.version == 4]
    if bridge.force or not present or not gateways or gateways[0] in present:
        return
    what = (
        f"the bridge {bridge.link} exists with the address {present[0]}, but the network's gateway is {gateways[0]}: "
        "every ADD fails ('already has an IP address different from')"
    )
    remedy = f'detach its containers and run "ip link delete dev {bridge.link}", or write "forceAddress": true'
    yield Finding(view.level(bridge.file), "bridge_address", what, remedy, bridge.path, bridge.pointer + "/bridge")
