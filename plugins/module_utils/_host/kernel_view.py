# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the comparison of attachments with the kernel needs to know of a network namespace."""

from __future__ import annotations

from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import rtnetlink
from .leases import packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .links import Namespace

# An address as leases.packed has it, and the length of its prefix.
Address = Tuple[bytes, int]


class Interface(NamedTuple):
    """One interface. ``master`` is the name of its bridge ("" for none), ``link`` the number of its other end."""

    number: int
    name: str
    kind: str
    mac: str
    mtu: int
    up: bool
    master: str
    link: int
    addresses: Sequence[Address]


class View:
    """One namespace: ``interfaces`` by name; ``routes`` of the main table, (destination, gateway or b"")."""

    __slots__ = ("_by_index", "interfaces", "routes")

    def __init__(self, interfaces: Iterable[Interface], routes: Iterable[Tuple[Address, bytes]]) -> None:
        self.interfaces = {interface.name: interface for interface in interfaces}
        self.routes: Set[Tuple[Address, bytes]] = set(routes)
        self._by_index = {interface.number: interface for interface in self.interfaces.values()}

    def other_end(self, inside: Interface) -> Optional[Interface]:
        """Return the host's end of a container's veth, if this is the host's view and it is there."""
        other = self._by_index.get(inside.link)
        return other if other and other.kind == "veth" and other.link == inside.number else None


def read_here() -> View:
    """Return the view of the namespace that this thread is in, with the standard library alone."""
    addresses: Dict[int, List[Address]] = {}
    for raw, index, length in rtnetlink.address_list():
        addresses.setdefault(index, []).append((raw, length))
    links = rtnetlink.links()
    interfaces = [
        Interface(
            link.index,
            link.name,
            link.kind,
            link.mac,
            link.mtu,
            link.up,
            links[link.master].name if link.master in links else "",
            link.link,
            addresses.get(link.index, ()),
        )
        for link in links.values()
    ]
    routes = [((route.raw, route.length), route.gateway) for route in rtnetlink.routes(defaults=True)]
    return View(interfaces, routes)


def from_namespace(namespace: Namespace) -> View:
    """Return the view of what pyroute2 has read."""
    interfaces = [
        Interface(
            link.index,
            link.name,
            link.kind,
            link.mac,
            link.mtu,
            link.up,
            namespace.interfaces[link.master].name if link.master in namespace.interfaces else "",
            link.link or 0,
            [parse(address) for address in link.addresses],
        )
        for link in namespace.interfaces.values()
    ]
    main = [route for route in namespace.routes if route["table"] == rtnetlink.MAIN_TABLE]
    return View(interfaces, [(parse(route["dst"]), packed(route["gateway"])) for route in main])


def parse(text: str) -> Address:
    """Return "10.1.0.2/24" as the kernel's answers have it; (b"", -1) for what is no address with a prefix."""
    address, _slash, length = text.partition("/")
    raw = packed(address)
    return (raw, int(length)) if raw and length.isdigit() else (b"", -1)
