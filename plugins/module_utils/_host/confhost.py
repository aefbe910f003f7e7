# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about what the networks of a directory take from the host: its addresses, its routes, its bridges."""

from __future__ import annotations

import socket
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from .confview import View
from .errors import HostError
from .netuse import Bridge, Pool, Uses
from .pools import address_number, address_text
from .problems import INFO, problem
from .rtnetlink import MAIN_TABLE, addresses, links, routes

Problem = Dict[str, Any]
# What plugins themselves make for single containers.
_OF_CONTAINERS = {"veth"}
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


class Kernel(NamedTuple):
    """``addresses``: name of each interface -> its (family, number, prefix length); ``taken``: all that is in use."""

    addresses: Dict[str, List[Tuple[int, int, int]]]
    taken: List[Taken]


def read_kernel() -> Kernel:
    """Return what the host's network namespace has. Raises HostError ``kernel_unreadable``."""
    names = {index: link for index, link in links().items() if link.kind not in _OF_CONTAINERS}
    kernel = Kernel({}, [])
    seen = set()
    for raw, (index, length) in addresses().items():
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


def host_problems(view: View, uses: Sequence[Uses]) -> Iterator[Problem]:
    """Yield where networks and host take the same; *uses* are those of the networks of *view*, in its order."""
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


def _overlaps(view: View, pool: Pool, kernel: Kernel) -> Iterator[Problem]:
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


def _bridge_address(view: View, bridge: Bridge, kernel: Kernel) -> Iterator[Problem]:
    """Yield where a bridge that is there has another address than the network's gateway."""
    if bridge.force or not bridge.pools:
        return
    name = "%s.%d" % (bridge.name, bridge.vlan) if bridge.vlan else bridge.name
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
