# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in a network namespace: its interfaces with their addresses, and its routes."""

from __future__ import annotations

from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from .. import netlink
from ..addresses import packed, prefix_length
from ..netlink import Route

# An address as addresses.packed returns it, and the length of its prefix.
Address = Tuple[bytes, int]


class Interface(NamedTuple):
    """One interface. ``master`` is the name of its bridge ("" if it has none), ``link`` the number of its other end."""

    number: int
    name: str
    kind: str
    mac: str
    mtu: int
    up: bool
    master: str
    link: int
    addresses: Sequence[Address]


class KernelView:
    """One namespace: ``interfaces`` by name, and ``routes``."""

    __slots__ = ("_by_index", "interfaces", "routes")

    def __init__(self, interfaces: Iterable[Interface], routes: Sequence[Route]) -> None:
        self.interfaces = {interface.name: interface for interface in interfaces}
        self.routes = routes
        self._by_index = {interface.number: interface for interface in self.interfaces.values()}

    def name_of(self, number: int) -> str:
        """Return the name of the interface with that number, "" if there is none."""
        found = self._by_index.get(number)
        return found.name if found else ""

    def other_end(self, inside: Interface) -> Optional[Interface]:
        """Return the host's end of a container's veth, if this is the host's view and the end exists."""
        other = self._by_index.get(inside.link)
        return other if other and other.kind == "veth" and other.link == inside.number else None


def read_here() -> KernelView:
    """Return the view of the namespace that this thread is in. Raises HostError ``kernel_unreadable``."""
    addresses: Dict[int, List[Address]] = {}
    for raw, index, length in netlink.address_list():
        addresses.setdefault(index, []).append((raw, length))
    links = netlink.links()
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
    return KernelView(interfaces, netlink.routes())


def parse_address(text: str) -> Address:
    """Return an address such as "10.1.0.2/24" in the form of the kernel's answers; (b"", -1) if it is not valid."""
    address, _slash, behind = text.partition("/")
    raw, length = packed(address), prefix_length(behind, 128)
    return (raw, length) if raw and length is not None else (b"", -1)
