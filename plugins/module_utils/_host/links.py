# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's state through pyroute2: interfaces, addresses and routes of the host and of namespaces."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional

from .leases import packed
from .netns import visit

_FAMILIES = {2: "ipv4", 10: "ipv6"}
_UNICAST = 1
_TABLE_LOCAL = 255
_FLAG_UP = 1


def _connect() -> Any:
    """Return a netlink socket of the namespace that this thread is in."""
    # Whoever gets here has tested that the library is there; loading it takes 25 MiB.
    from pyroute2 import IPRoute

    # The library has no type hints.
    connect: Callable[[], Any] = IPRoute
    return connect()


class Interface:
    """One interface as the kernel has it. ``link`` is the index of its other end (veth) or lower device, else None."""

    __slots__ = ("addresses", "index", "kind", "link", "mac", "master", "mtu", "name", "up")

    def __init__(self, message: Any) -> None:
        self.index: int = message["index"]
        self.name: str = message.get_attr("IFLA_IFNAME") or ""
        info = message.get_attr("IFLA_LINKINFO")
        self.kind: str = (info.get_attr("IFLA_INFO_KIND") if info else "") or ""
        self.mac: str = message.get_attr("IFLA_ADDRESS") or ""
        self.mtu: int = message.get_attr("IFLA_MTU") or 0
        self.up: bool = bool(message["flags"] & _FLAG_UP)
        self.master: Optional[int] = message.get_attr("IFLA_MASTER")
        self.link: Optional[int] = message.get_attr("IFLA_LINK")
        self.addresses: List[str] = []


class Namespace:
    """Interfaces by index and routes of one namespace."""

    __slots__ = ("interfaces", "routes")

    def __init__(self) -> None:
        self.interfaces: Dict[int, Interface] = {}
        self.routes: List[Dict[str, Any]] = []

    def named(self, name: str) -> Optional[Interface]:
        for interface in self.interfaces.values():
            if interface.name == name:
                return interface
        return None

    def rows(self) -> List[Dict[str, Any]]:
        """Return the interfaces, sorted by name."""
        rows = []
        for interface in self.interfaces.values():
            master = self.interfaces.get(interface.master) if interface.master else None
            rows.append(
                {
                    "name": interface.name,
                    "kind": interface.kind,
                    "mac": interface.mac,
                    "mtu": interface.mtu,
                    "up": interface.up,
                    "master": master.name if master else "",
                    "addresses": interface.addresses,
                }
            )
        return sorted(rows, key=lambda row: str(row["name"]))


def read_host() -> Namespace:
    """Return the state of the namespace that this thread is in, which is the host's unless it has entered another."""
    with _connect() as netlink:
        return _read(netlink)


def read_namespaces(paths: Iterable[str]) -> Dict[str, Namespace]:
    """Return the state of the namespaces at *paths*; what is none is left out."""
    return visit(paths, read_host)


def host_end(host: Namespace, inside: Interface) -> Optional[Interface]:
    """Return the other end of a container's veth interface, if it is on the host."""
    other = host.interfaces.get(inside.link) if inside.link is not None else None
    return other if other and other.kind == "veth" and other.link == inside.index else None


def _read(netlink: Any) -> Namespace:
    state = Namespace()
    for message in netlink.get_links():
        interface = Interface(message)
        state.interfaces[interface.index] = interface
    for message in netlink.get_addr():
        owner = state.interfaces.get(message["index"])
        # On a point-to-point interface IFA_ADDRESS is the other side's.
        address = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
        if owner and address:
            owner.addresses.append(f"{address}/{message['prefixlen']}")
    for interface in state.interfaces.values():
        interface.addresses.sort(key=_by_value)
    names = {index: interface.name for index, interface in state.interfaces.items()}
    routes = [_route(message, names) for message in netlink.get_routes() if _is_wanted(message)]
    state.routes = sorted(routes, key=_route_order)
    return state


def _is_wanted(message: Any) -> bool:
    return (
        message["family"] in _FAMILIES
        and message["type"] == _UNICAST
        and _table(message) != _TABLE_LOCAL
        # Every interface has the route to its link-local neighbours.
        and not str(message.get_attr("RTA_DST") or "").startswith("fe80:")
    )


def _table(message: Any) -> int:
    return int(message.get_attr("RTA_TABLE") or message["table"])


def _route(message: Any, names: Mapping[int, str]) -> Dict[str, Any]:
    family = _FAMILIES[message["family"]]
    default = "0.0.0.0" if family == "ipv4" else "::"
    return {
        "family": family,
        "dst": f"{message.get_attr('RTA_DST') or default}/{message['dst_len']}",
        "gateway": message.get_attr("RTA_GATEWAY") or "",
        "device": names.get(message.get_attr("RTA_OIF"), ""),
        "source": message.get_attr("RTA_PREFSRC") or "",
        "metric": message.get_attr("RTA_PRIORITY") or 0,
        "table": _table(message),
    }


def _by_value(address: str) -> bytes:
    return packed(address.partition("/")[0])


def _route_order(route: Mapping[str, Any]) -> Any:
    destination, _slash, length = route["dst"].partition("/")
    return route["table"], packed(destination), int(length), route["metric"], route["device"], route["gateway"]
