# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about what the networks of a directory take from the host: its addresses, its routes, its bridges."""

from __future__ import annotations

import socket
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple

from ..binaries.types import member_of, object_of, text_of
from ..errors import HostError
from ..netlink import MAIN_TABLE, host_addresses, links, routes
from ..problems import INFO, problem
from .pools import address_number, address_text
from .uses import Bridge, Pool, Uses
from .view import ConfView

Problem = Dict[str, Any]
# What plugins themselves make for single containers.
_OF_CONTAINERS = {"veth"}
# They make their interface on one of the host.
_ON_MASTER = {"macvlan", "ipvlan", "vlan"}
# So many addresses and routes are named in one message.
_LISTED = 3


class Taken(NamedTuple):
    """What the host uses: numbers from ``first`` to ``last``, on the interface ``link`` ("" for none)."""

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


def read_kernel() -> HostKernel:
    """Return what the host's network namespace has. Raises HostError ``kernel_unreadable``."""
    names = {index: link for index, link in links().items() if link.kind not in _OF_CONTAINERS}
    kernel = HostKernel({}, [])
    seen = set()
    for raw, (index, length) in host_addresses().items():
        if index in names:
            family, number = address_number(raw)
            name = names[index].name
            kernel.addresses.setdefault(name, []).append((family, number, length))
            text = "the address %s/%d of the interface %s" % (address_text(family, number), length, name)
            taken = _taken(family, number, length, name, text, False)
            seen.add((taken.family, taken.first, taken.last, name))
            kernel.taken.append(taken)
    for route in routes():
        # A default route takes nothing from anybody.
        if route.table != MAIN_TABLE or not route.length or (route.link and route.link not in names):
            continue
        family, number = address_number(route.raw)
        name = names[route.link].name if route.link else ""
        text = "the host's route to %s/%d" % (address_text(family, number), route.length)
        text += " on the interface " + name if name else ""
        taken = _taken(family, number, route.length, name, text, route.remote)
        # The kernel makes such a route for every address.
        if (taken.family, taken.first, taken.last, name) not in seen:
            kernel.taken.append(taken)
    return kernel


def _taken(family: int, number: int, length: int, link: str, text: str, remote: bool) -> Taken:
    hosts = (32 if family == socket.AF_INET else 128) - length
    first = number >> hosts << hosts
    return Taken(family, first, first + (1 << hosts) - 1, link, text, remote)


def host_problems(view: ConfView, uses: Sequence[Uses]) -> Iterator[Problem]:
    """Yield where networks and host take the same; *uses* are those of the networks of *view*, in its order."""
    yield from _masters(view, {bridge.link for use in uses for bridge in use.bridges})
    pools = [pool for use in uses for pool in use.pools if pool.routed]
    bridges = [bridge for use in uses for bridge in use.bridges if bridge.gateway]
    if not pools and not bridges:
        return
    try:
        kernel = read_kernel()
    except HostError as error:
        text = "cannot compare the networks with the host's own addresses and routes: %s"
        yield problem(INFO, error.code, text % error.msg)
        return
    for pool in pools:
        yield from _overlaps(view, pool, kernel)
    for bridge in bridges:
        yield from _bridge_address(view, bridge, kernel)


def _masters(view: ConfView, made: Set[str]) -> Iterator[Problem]:
    """Yield the interfaces that networks are put on and that are not there, except *made*, which networks make."""
    for file in view.loaded():
        for index, (path, pointer, plugin) in enumerate(view.chain(file)):
            for place, part in ((pointer, plugin), (pointer + "/delegate", object_of(plugin, "delegate"))):
                kind, name = text_of(part, "type"), text_of(part, "master")
                if kind not in _ON_MASTER or member_of(part, "linkincontainer") is True:
                    continue
                if name and name not in made and not _is_there(name):
                    text = (
                        "%s: the host has no interface %s, and every ADD fails until there is one; write the name of "
                        "one that is there (ip link), or make it first"
                    )
                    yield problem(view.level(file), "master_missing", text % (kind, name), path, place + "/master")
                # ipvlan takes the interface of the plugin before it; vlan has to have one, says its schema.
                chained = kind == "ipvlan" and index
                if not name and kind != "vlan" and not chained and not _has_default_route():
                    text = (
                        "%s: there is no master, and the host has no default route to take an interface from, so every "
                        'ADD fails; write one, such as "master": "eth0"'
                    )
                    yield problem(view.level(file), "master_missing", text % kind, path, place)


def _has_default_route() -> bool:
    try:
        return any(route.unicast and not route.length and route.table == MAIN_TABLE for route in routes())
    except HostError:
        # That it cannot be read is said where addresses are compared.
        return True


def _is_there(name: str) -> bool:
    try:
        # Like the plugins it finds an interface by an alternative name, too.
        return socket.if_nametoindex(name) > 0
    except (OSError, ValueError):
        # A name may hold what is in no interface's.
        return False


def _overlaps(view: ConfView, pool: Pool, kernel: HostKernel) -> Iterator[Problem]:
    own = pool.range
    found = [
        taken
        for taken in kernel.taken
        if taken.family == own.family
        and taken.first <= own.last
        and own.first <= taken.last
        and not (taken.link and taken.link == pool.link)
    ]
    # A route to a company's whole network is fine: the subnet takes a part of it.
    wider = [taken for taken in found if taken.remote and taken.first <= own.first and own.last <= taken.last]
    other = [taken for taken in found if taken not in wider]
    place = (pool.path, pool.pointer + "/subnet")
    if other:
        text = "%s overlaps with %s, and packets go to one of them only; choose another subnet"
        yield problem(view.level(pool.file), "host_overlap", text % (own.subnet, _listed(other)), *place)
    if wider:
        text = "%s is a part of %s, and cannot be reached there any more; choose another subnet if that is not meant"
        yield problem(INFO, "host_overlap", text % (own.subnet, _listed(wider)), *place)


def _listed(taken: Sequence[Taken]) -> str:
    texts = [one.text for one in taken[:_LISTED]]
    more = len(taken) - len(texts)
    return " and ".join(texts) + (" and %d more" % more if more else "")


def _bridge_address(view: ConfView, bridge: Bridge, kernel: HostKernel) -> Iterator[Problem]:
    """Yield where a bridge that is there has another address than the network's gateway."""
    if bridge.force or not bridge.pools:
        return
    name = bridge.link
    # Several IPv6 addresses go together.
    here = [(number, length) for family, number, length in kernel.addresses.get(name, ()) if family == socket.AF_INET]
    for pool in [pool for pool in bridge.pools if pool.range.family == socket.AF_INET][:1]:
        if not here or (pool.range.gateway, pool.range.length) in here:
            continue
        text = (
            "the bridge %s is there with the address %s/%d, but the network's gateway is %s/%d: every ADD fails "
            "('already has an IP address different from'); detach its containers and remove the bridge (ip link delete "
            'dev %s), or write "forceAddress": true'
        )
        old = address_text(socket.AF_INET, here[0][0])
        new = address_text(socket.AF_INET, pool.range.gateway)
        message = text % (name, old, here[0][1], new, pool.range.length, name)
        level = view.level(bridge.file)
        yield problem(level, "bridge_address", message, bridge.path, bridge.pointer + "/bridge")
