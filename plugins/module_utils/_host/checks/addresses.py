# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What networks take from each other and from the host: bridges, addresses, and directories of leases."""

from __future__ import annotations

import socket
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple

from ..errors import HostError
from ..host_routes import explain_uplinks, uplinks_of_routers
from ..kinds import kind_of, member_of, object_of, text_of
from ..netlink import MAIN_TABLE, host_addresses, links, routes
from ..problems import INFO, WARNING, problem
from .network import gateway_text
from .view import Bridge, ConfView, Pool, Uses, address_number, address_text

Problem = Dict[str, Any]


def address_problems(view: ConfView, uses: Sequence[Uses]) -> Iterator[Problem]:
    """Yield the conflicts between networks; *uses* are those of the networks of *view*, in its order."""
    yield from _bridges(view, [bridge for use in uses for bridge in use.bridges])
    yield from _overlaps(view, [pool for use in uses for pool in use.pools])
    yield from _stores(view, [pool for use in uses for pool in use.pools])


# ---- bridges


def _bridges(view: ConfView, bridges: Sequence[Bridge]) -> Iterator[Problem]:
    users: Dict[Tuple[str, int], List[Bridge]] = {}
    for bridge in bridges:
        others = users.setdefault((bridge.name, bridge.vlan), [])
        known = any(other.file.network == bridge.file.network for other in others)
        if others and not known:
            yield _shared_bridge(view, bridge, others)
        others.append(bridge)


def _shared_bridge(view: ConfView, bridge: Bridge, others: Sequence[Bridge]) -> Problem:
    """Return the worst problem of a bridge that *others* use, too."""
    for other in others:
        clash = _clash(other, bridge)  # pylint: disable=arguments-out-of-order
        if clash is not None:
            message = (
                f"the bridge {bridge.name} gets {clash[1]} here and {clash[0]} for the network {other.file.network!r} "
                f"in {other.file.name}, but can have only one of them: ADD fails for the network that comes second "
                "('already has an IP address different from'); give one of them another bridge"
            )
            return _at_bridge(bridge, view.level(bridge.file, other.file), "bridge_two_subnets", message)
    other = next((other for other in others if other.gateway), others[0])
    level = view.level(bridge.file, other.file) if bridge.gateway or other.gateway else INFO
    message = (
        f"the network {other.file.network!r} in {other.file.name} also uses the bridge {bridge.name}, so containers of "
        "both reach each other; give one of them another bridge if this is not intended"
    )
    return _at_bridge(bridge, level, "bridge_shared", message)


def _clash(bridge: Bridge, other: Bridge) -> Any:
    """Return two gateways that cannot be on one bridge, as text; None if there are none.

    A bridge gets one IPv4 address, or several of IPv6 unless their subnets overlap
    (plugins/main/bridge/bridge.go:ensureAddr).
    """
    if not bridge.gateway or not other.gateway:
        return None
    for left in bridge.pools:
        for right in other.pools:
            both = (gateway_text(left), gateway_text(right))
            alike = left.range.family == right.range.family and both[0] != both[1]
            if alike and (left.range.family == socket.AF_INET or _subnets_overlap(left, right)):
                return both
    return None


def _at_bridge(bridge: Bridge, level: str, code: str, message: str) -> Problem:
    return problem(level, code, message, bridge.path, bridge.pointer + "/bridge")


# ---- addresses


def _overlaps(view: ConfView, pools: Sequence[Pool]) -> Iterator[Problem]:
    """Yield the pairs of networks that overlap, each once. Pools are sorted, so that few pairs are compared."""
    ordered = sorted(pools, key=lambda pool: (pool.range.family, pool.range.first))
    seen = set()
    for index, left in enumerate(ordered):
        for right in ordered[index + 1 :]:
            if right.range.family != left.range.family or right.range.first > left.range.last:
                break
            pair = frozenset((left.file.name, right.file.name))
            if left.file.network == right.file.network or pair in seen:
                continue
            # The problem is reported at the requested network, or else at the later file.
            earlier, later = sorted((left, right), key=lambda pool: (pool.file.name in view.wanted, pool.file.name))
            for pool, rival in ((later, earlier), (earlier, later))[: 2 if view.at_each else 1]:
                conflict = _overlap(pool, rival)
                if conflict:
                    seen.add(pair)
                    place = pool.pointer + "/subnet"
                    yield problem(view.level(pool.file, rival.file), conflict[0], conflict[1], pool.path, place)


def _overlap(pool: Pool, other: Pool) -> Tuple[str, ...]:
    """Return code and message of the problem between two pools of different networks; () if there is none."""
    same_link = bool(pool.link) and pool.link == other.link
    of_containers = pool.routed and other.routed and not pool.link and not other.link
    network = f"the network {other.file.network!r} in {other.file.name}"
    text = f"{pool.range.subnet} overlaps with {other.range.subnet} of {network}"
    if same_link or of_containers:
        if pool.range.start > other.range.end or other.range.start > pool.range.end:
            return ()
        text += (
            " on the same link, and each network keeps its own leases, so addresses are assigned twice; give them "
            "separate ranges (rangeStart, rangeEnd)"
        )
        return ("range_overlap", text)
    if pool.routed or other.routed:
        text += ", and the host can send packets for an address to only one of them; choose another subnet"
        return ("subnet_overlap", text)
    return ()


def _subnets_overlap(pool: Pool, other: Pool) -> bool:
    return pool.range.first <= other.range.last and other.range.first <= pool.range.last


# ---- leases


# A configuration: the path of its file, and the pointer of its ipam object.
Place = Tuple[str, str]


def _stores(view: ConfView, pools: Sequence[Pool]) -> Iterator[Problem]:
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


def _shared(view: ConfView, store: str, places: Dict[Place, List[Pool]]) -> Iterator[Problem]:
    (first, theirs), *others = places.items()
    for place, mine in others:
        same_list = place[0] == first[0]
        if not same_list and _ranges(mine) == _ranges(theirs):
            # One network in two files, which duplicate_name reports.
            continue
        if same_list and any(_ranges_overlap(pool, other) for pool in mine for other in theirs):
            effect = "the second of them fails (duplicate allocation is not allowed)"
        else:
            effect = "an address that one of them reserves or frees counts for the other, too"
        other = first[1] if same_list else f"{first[0]}, {first[1]}"
        message = (
            f"this configuration of host-local and {other} store their leases in the same directory, {store}: "
            f"{effect}; give one of them another 'dataDir'"
        )
        yield problem(view.level(mine[0].file, theirs[0].file), "shared_store", message, *place)


def _nested(
    view: ConfView, store: str, places: Dict[Place, List[Pool]], outer: str, around: Dict[Place, List[Pool]]
) -> Problem:
    place, mine = next(iter(places.items()))
    theirs = next(iter(around.values()))[0]
    message = (
        f"host-local's directory for this network, {store}, is inside its directory for the network "
        f"{theirs.file.network!r}, {outer}; give this network another 'dataDir'"
    )
    return problem(view.level(mine[0].file, theirs.file), "shared_store", message, *place)


def _ranges(pools: Sequence[Pool]) -> List[Tuple[int, int, int]]:
    return [(pool.range.family, pool.range.start, pool.range.end) for pool in pools]


def _ranges_overlap(pool: Pool, other: Pool) -> bool:
    return (
        pool.range.family == other.range.family
        and pool.range.start <= other.range.end
        and other.range.start <= pool.range.end
    )


# ---- the host

# What plugins create for single containers.
_OF_CONTAINERS = {"veth"}
# The most addresses and routes that one message names.
_LISTED = 3


class Taken(NamedTuple):
    """Addresses that the host uses: numbers from ``first`` to ``last``, on the interface ``link`` ("" for none)."""

    family: int
    first: int
    last: int
    link: str
    text: str
    remote: bool


class HostKernel(NamedTuple):
    """``addresses``: name of each interface -> its (family, number, prefix length); ``taken``: all that is in use."""

    addresses: Dict[str, List[Tuple[int, int, int]]]
    taken: List[Taken]


def read_host_kernel() -> HostKernel:
    """Return the addresses and routes of the host's network namespace. Raises HostError ``kernel_unreadable``."""
    names = {index: link for index, link in links().items() if link.kind not in _OF_CONTAINERS}
    kernel = HostKernel({}, [])
    seen = set()
    for raw, (index, length) in host_addresses().items():
        if index in names:
            family, number = address_number(raw)
            name = names[index].name
            kernel.addresses.setdefault(name, []).append((family, number, length))
            text = f"the address {address_text(family, number)}/{length} of the interface {name}"
            taken = _taken(family, number, length, name, text, False)
            seen.add((taken.family, taken.first, taken.last, name))
            kernel.taken.append(taken)
    for route in routes():
        # A default route conflicts with nothing.
        if route.table != MAIN_TABLE or not route.length or (route.link and route.link not in names):
            continue
        family, number = address_number(route.raw)
        name = names[route.link].name if route.link else ""
        text = f"the host's route to {address_text(family, number)}/{route.length}"
        text += " on the interface " + name if name else ""
        taken = _taken(family, number, route.length, name, text, route.remote)
        # The kernel creates such a route for every address.
        if (taken.family, taken.first, taken.last, name) not in seen:
            kernel.taken.append(taken)
    return kernel


def _taken(family: int, number: int, length: int, link: str, text: str, remote: bool) -> Taken:
    hosts = (32 if family == socket.AF_INET else 128) - length
    first = number >> hosts << hosts
    return Taken(family, first, first + (1 << hosts) - 1, link, text, remote)


def host_problems(view: ConfView, uses: Sequence[Uses]) -> Iterator[Problem]:
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
        yield problem(
            INFO, error.code, f"cannot compare the networks with the host's own addresses and routes: {error.msg}"
        )
        return
    for pool in pools:
        yield from _host_overlaps(view, pool, kernel)
    for bridge in bridges:
        yield from _bridge_address(view, bridge, kernel)


def _masters(view: ConfView, made: Set[str]) -> Iterator[Problem]:
    """Yield the missing interfaces that networks are put on, except *made*, which networks create."""
    for file in view.loaded():
        for index, (path, pointer, plugin) in enumerate(view.chain(file)):
            for place, part in ((pointer, plugin), (pointer + "/delegate", object_of(plugin, "delegate"))):
                kind, name = text_of(part, "type"), text_of(part, "master")
                if kind_of(part).parent != "master" or member_of(part, "linkincontainer") is True:
                    continue
                if name and name not in made and not _is_there(name):
                    text = (
                        f"{kind}: the host has no interface {name}, so every ADD fails; write the name of an existing "
                        "one (ip link), or create it first"
                    )
                    yield problem(view.level(file), "master_missing", text, path, place + "/master")
                # ipvlan uses the interface of the plugin before it; the schema of vlan requires a master.
                chained = kind == "ipvlan" and index
                if not name and kind != "vlan" and not chained and not _has_default_route():
                    text = (
                        f"{kind}: master is not set, and the host has no default route to take an interface from, so "
                        'every ADD fails; write one, such as "master": "eth0"'
                    )
                    yield problem(view.level(file), "master_missing", text, path, place)


def _uplinks(view: ConfView) -> Iterator[Problem]:
    """Yield the networks whose first ADD takes the host's announced default route, whoever runs it."""
    for file in view.loaded():
        try:
            uplinks = uplinks_of_routers([plugin for _path, _pointer, plugin in view.chain(file)])
        except HostError:
            # The comparison of addresses reports that they cannot be read.
            return
        if uplinks:
            yield problem(
                WARNING, "host_route_lost", f"{file.network}: {explain_uplinks(uplinks)}", file.path, "/plugins"
            )


def _has_default_route() -> bool:
    try:
        return any(route.unicast and not route.length and route.table == MAIN_TABLE for route in routes())
    except HostError:
        # The comparison of addresses reports that they cannot be read.
        return True


def _is_there(name: str) -> bool:
    try:
        # Like the plugins, this finds an interface by an alternative name, too.
        return socket.if_nametoindex(name) > 0
    except (OSError, ValueError):
        # The name in a conflist may not be a valid name of an interface.
        return False


def _host_overlaps(view: ConfView, pool: Pool, kernel: HostKernel) -> Iterator[Problem]:
    span = pool.range
    overlapping = [
        taken
        for taken in kernel.taken
        if taken.family == span.family
        and taken.first <= span.last
        and span.first <= taken.last
        and not (taken.link and taken.link == pool.link)
    ]
    # A wider route, such as one to a company's whole network, is fine: the subnet takes a part of it.
    wider = [taken for taken in overlapping if taken.remote and taken.first <= span.first and span.last <= taken.last]
    other = [taken for taken in overlapping if taken not in wider]
    place = (pool.path, pool.pointer + "/subnet")
    if other:
        text = (
            f"{span.subnet} overlaps with {_listed(other)}, and packets reach only one of them; choose another subnet"
        )
        yield problem(view.level(pool.file), "host_overlap", text, *place)
    if wider:
        text = (
            f"{span.subnet} is a part of {_listed(wider)}, and can no longer be reached there; choose another subnet "
            "if this is not intended"
        )
        yield problem(INFO, "host_overlap", text, *place)


def _listed(taken: Sequence[Taken]) -> str:
    texts = [entry.text for entry in taken[:_LISTED]]
    more = len(taken) - len(texts)
    return " and ".join(texts) + (f" and {more} more" if more else "")


def _bridge_address(view: ConfView, bridge: Bridge, kernel: HostKernel) -> Iterator[Problem]:
    """Yield a problem if an existing bridge has another address than the network's gateway."""
    if bridge.force or not bridge.pools:
        return
    name = bridge.link
    # A bridge can have several IPv6 addresses.
    present = [
        (number, length) for family, number, length in kernel.addresses.get(name, ()) if family == socket.AF_INET
    ]
    for pool in [pool for pool in bridge.pools if pool.range.family == socket.AF_INET][:1]:
        if not present or (pool.range.gateway, pool.range.length) in present:
            continue
        old = address_text(socket.AF_INET, present[0][0])
        new = address_text(socket.AF_INET, pool.range.gateway)
        message = (
            f"the bridge {name} exists with the address {old}/{present[0][1]}, but the network's gateway is "
            f"{new}/{pool.range.length}: every ADD fails ('already has an IP address different from'); detach its "
            f'containers and remove the bridge (ip link delete dev {name}), or write "forceAddress": true'
        )
        level = view.level(bridge.file)
        yield problem(level, "bridge_address", message, bridge.path, bridge.pointer + "/bridge")
