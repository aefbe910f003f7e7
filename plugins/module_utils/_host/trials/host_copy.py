# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A copy of the host's network for experiments: interfaces, addresses, routes, sysctls and the firewall, both backends.

Bridges are made with their settings, their VLANs, and pairs of which the host has both ends. Every other interface is a
stand-in, one end of a veth, so that macvlans and VLANs can be made on it; its other end is in a namespace that plays
what is outside: it has the addresses of the host's gateways, and answers from everywhere. A VLAN, macvlan or ipvlan is
one, too, and takes of the interface below what it takes on the host.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import ipaddress
import os
import shutil
import socket
import struct
from functools import cached_property
from itertools import islice
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple

from ...libcni.kernel import CREATE, EXCLUSIVE, attributes_in, pack_attribute, pack_nested
from ..addresses import family_of, is_in
from ..errors import HostError
from ..firewall.dump import FirewallDump
from ..kernel.links import STACKED, NotInPlace, pack_kept
from ..kernel.objects import ADDRESS, CONF4, CONF6, LINK, ROUTE, KernelObject, ObjectKey, State, device_of, read_objects
from ..kernel.sysctls import compared_names, interface_defaults, read_globals, write_global, write_interface
from ..kernel.writer import Writer
from ..kinds import bridge_of, forwards, kind_of, lower_of, text_of, vlan_of
from ..netlink import LOCAL_TABLE, MAIN_TABLE, UNICAST, Dumps
from ..netns import Netns, visit
from .packets import OUTSIDE
from .surroundings import make_bridges

# Those with the lowest indexes are made: the host's own, and not each container's.
_MOST_LINKS = 64
# Those of one host, and not of the whole Internet.
_MOST_ROUTES = 20000
_MOST_DOUBTS = 4
# Queueing disciplines that lose packets by intention.
_DROPPING = ("tbf", "netem")
_TOOLS = ("iptables", "ip6tables", "nft")
_PEER = "outside"
_NEW_LINK, _NEW_ADDRESS, _NEW_ROUTE, _NEW_NAMES = 16, 20, 24, 108
# IFLA_PROP_LIST, with alternative names; IFLA_XDP; 2 is IFLA_XDP_ATTACHED.
_ETHERNET, _NAMES, _XDP = 1, 52, 43
_NODAD, _PERMANENT, _ONLINK, _UNTAGGED = 0x02, 0x80, 4, 4
_FORWARDING = ("ipv4/ip_forward", "ipv6/conf/all/forwarding")
# A duplicate is searched for a second, and there is none in a copy.
_NO_DETECTION = ("accept_dad", "dad_transmits")
_WITHOUT_DETECTION = tuple(f"ipv6/conf/{name}/accept_dad" for name in ("all", "default"))


class Gateway(NamedTuple):
    """A router of default routes of *family*, on the link *name*."""

    family: int
    name: str
    address: str


class HostCopy:
    """What this thread's namespace has, read once; :meth:`make` makes it again in a private host.

    ``doubts``: what is not the same there, each as a clause.
    """

    def __init__(self) -> None:
        self.state = _without_ports(read_objects())
        self.sysctls = read_globals()
        self.defaults = interface_defaults()
        self.firewall = FirewallDump()
        self.doubts = list(self.firewall.missing)
        self.links = self._choose_links()
        ends = (name for name in self.links if not self._is_whole(name))
        self._ends = {name: f"{_PEER}{number}" for number, name in enumerate(ends)}
        self.doubts += [f"{what} not copied" for what in dict.fromkeys(self._left_out())]

    def _choose_links(self) -> List[str]:
        """Return the interfaces that are copied: those that have addresses, ports or the way out come first."""
        every = [str(key[1]) for key in self.state if key[0] == "link" and key[1] != "lo"]
        used = {str(key[1]) for key in self.state if key[0] == "addr" and not str(key[2]).startswith("fe80:")}
        used.update(gateway.name for gateway in self.gateways)
        used.update(link.value["master"] for key, link in self.state.items() if key[0] == "link")
        every.sort(key=lambda name: name not in used)
        if len(used.intersection(every[_MOST_LINKS:])) > 0:
            self.doubts.append(f"only {_MOST_LINKS} of {len(every)} interfaces are copied")
        return every[:_MOST_LINKS]

    def _is_whole(self, name: str) -> bool:
        """Tell whether an interface is no stand-in: a bridge, its VLANs, and a pair of which the host has both ends."""
        link = self.state["link", name].value
        lower = self.state.get(("link", link["lower"]))
        if link["kind"] == "vlan" and lower is not None and lower.value["kind"] == "bridge":
            # Outside, nobody answers in a VLAN.
            return name not in [gateway.name for gateway in self.gateways]
        return link["kind"] == "bridge" or (link["kind"] == "veth" and lower is not None)

    def _left_out(self) -> Iterator[str]:
        """Yield what has an effect on packets and is not copied, except for what limits one container."""
        links = [(key[1], link.value["kind"], link.peer[1]) for key, link in self.state.items() if key[0] == "link"]
        ends = {str(name) for name, kind, abroad in links if kind == "ifb" or (kind == "veth" and abroad)}
        ends.difference_update(gateway.name for gateway in self.gateways)
        for key, kernel_object in self.state.items():
            if device_of(key) in ends:
                continue
            if key[0] == "filter":
                yield "filters of traffic control are"
            elif key[0] == "qdisc" and kernel_object.value["kind"] in _DROPPING:
                yield f"the queueing discipline {kernel_object.value['kind']} is"
            elif key[0] == "link" and kernel_object.value["kind"] == "vrf":
                yield "VRFs are"
            elif key[0] == "link" and attributes_in(self._attributes(str(key[1])).get(_XDP, b"")).get(2, b"") > b"\0":
                yield "XDP programs are"

    @cached_property
    def digest(self) -> bytes:
        """Return a digest of all that was read."""
        objects = sorted(f"{key} {self.state[key].value}" for key in self.state if key[0] not in ("neigh", "fdb"))
        sysctls = sorted(f"{key} {sysctl.value}" for key, sysctl in self.sysctls.items())
        dark = list(map(self.why_dark, self.links))
        paths = map(shutil.which, _TOOLS)
        tools = [(path, os.path.realpath(path), os.stat(path).st_mtime_ns) if path else None for path in paths]
        text = repr([dark, objects, sysctls, sorted(self.defaults.items()), self.firewall.rules, tools])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

    @property
    def gateways(self) -> List[Gateway]:
        """The routers of default routes, "" as address where the next hop is none."""
        gateways = []
        for key, route in self.state.items():
            if key[0] == "route" and key[3] == "default/0" and key[6] == UNICAST:
                hops = [(hop[0], bytes.fromhex(hop[3])) for hop in route.value["hops"]]
                for name, attributes in hops or [(key[7], route.raw[ROUTE.size :])]:
                    parts = attributes_in(attributes)
                    # An IPv4 route may have an IPv6 gateway (RTA_VIA, with its family).
                    raw = parts.get(5) or parts.get(18, b"")[2:]
                    address = socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw) if raw else ""
                    gateways.append(Gateway(int(key[1]), str(name), address))
        return gateways

    def uplinks(self) -> Dict[int, Tuple[str, str]]:
        """Return an address of the host of each family that outside can reach, and its interface.

        That of the default route comes first.
        """
        leading = {gateway.name for gateway in self.gateways}
        peers = self._peers()
        uplinks: Dict[int, Tuple[str, str]] = {}
        for name, address, _prefix in sorted(self._own_addresses(), key=lambda entry: entry[0] not in leading):
            if name in peers:
                uplinks.setdefault(family_of(address), (address, name))
        return uplinks

    def why_dark(self, name: str) -> str:
        """Return why an interface carries nothing, as a clause, "" if it may."""
        up = self.state["link", name].value["flags"] & 1
        # IFLA_CARRIER
        why = "" if up and self._attributes(name).get(33) != b"\0" else "has no carrier" if up else "is down"
        return why and f"the interface {name} of the host {why}"

    def _attributes(self, name: str) -> Dict[int, bytes]:
        return attributes_in(self.state["link", name].raw, LINK.size)

    def way_out(self, family: int) -> str:
        """Return the interface of a default route of *family*, in any table, "" if there is none that is copied."""
        return next((name for other, name, _router in self.gateways if other == family and name in self.links), "")

    # ---- in the private host

    def make(self, outside: Netns) -> None:
        """Make it in this thread's namespace, and what is beyond its interfaces in *outside*."""
        for name in _WITHOUT_DETECTION:
            with contextlib.suppress(OSError):
                write_global(name, "0")
        self._make_links(outside)
        self._put_settings()
        for kind in ("vlan", "addr", "neigh"):
            self._put_all(kind)
        self._put_routes()
        visit([outside], self._answer)
        self.doubts += self.firewall.restore()

    def _tolerate(self, what: str, put: Callable[..., None], *arguments: Any) -> None:
        try:
            put(*arguments)
        except (HostError, OSError, NotInPlace) as error:
            if len(self.doubts) < _MOST_DOUBTS:
                self.doubts.append(f"{what} could not be copied ({getattr(error, 'msg', '') or error})")

    def _make_links(self, outside: Netns) -> None:
        bridges = [name for name in self.links if self.state["link", name].value["kind"] == "bridge"]
        with outside, Dumps() as dumps:
            dumps.change(_NEW_LINK, LINK.pack(0, 0, 1, 1, 1))
            make_bridges({name: self.state["link", name] for name in bridges})
            for name in bridges:
                # Else its ports would forward nothing for half a minute.
                with contextlib.suppress(OSError), open(f"/sys/class/net/{name}/bridge/stp_state", "w") as stream:
                    stream.write("0")
            veths = [name for name in self.links if self.state["link", name].value["kind"] == "veth"]
            ends = {name: self.state["link", name].value["lower"] for name in veths if self._is_whole(name)}
            for name, end in {**self._ends, **{max(pair): min(pair) for pair in ends.items()}}.items():
                # Some exist in each namespace, as tunl0 and sit0.
                with contextlib.suppress(OSError):
                    rename = pack_attribute(3, f"pwold{end}".encode() + b"\0")
                    dumps.change(_NEW_LINK, LINK.pack(0, 0, socket.if_nametoindex(name), 0, 0) + rename)
                self._tolerate(name, self._make_pair, dumps, name, end, outside.fd)
            self._take()
            indexes = {str(key[1]): link.ifindex for key, link in read_objects().items() if key[0] == "link"}
            self.links = [name for name in self.links if name in indexes]
            for name in sorted(self.links, key=lambda name: name not in bridges):
                value, index = self.state["link", name].value, indexes[name]
                if value["master"] in bridges:
                    master = pack_attribute(10, _u32(indexes[value["master"]]))
                    dumps.change(_NEW_LINK, LINK.pack(0, 0, index, 0, 0) + master)
                dumps.change(_NEW_LINK, LINK.pack(0, 0, index, value["flags"] & 1, 1))
                names = self._attributes(name).get(_NAMES)
                if names:
                    body = LINK.pack(0, 0, index, 0, 0) + pack_nested(_NAMES, names)
                    self._tolerate(f"another name of {name}", dumps.change, _NEW_NAMES, body, CREATE | EXCLUSIVE)

    def _make_pair(self, dumps: Dumps, name: str, end: str, outside: int) -> None:
        """Make a veth and its other end, which is one of the host, too, or *outside*, with the MTU of the first."""
        beyond = pack_attribute(28, _u32(outside))
        other = self._named(name, end) + beyond if name in self._ends else self._named(end)
        pair = pack_nested(1, LINK.pack(0, 0, 0, 0, 0) + other)
        body = self._named(name) + pack_nested(18, pack_attribute(1, b"veth"), pack_nested(2, pair))
        dumps.change(_NEW_LINK, LINK.pack(0, 0, 0, 0, 0) + body, CREATE | EXCLUSIVE)

    def _named(self, name: str, end: str = "") -> bytes:
        """Return the attributes of an interface, or only those that the other end *end* of its stand-in has, too."""
        value = self.state["link", name].value
        body = pack_attribute(4, _u32(min(max(value["mtu"], 68), 65535)))
        mac = bytes.fromhex(value["mac"])
        if not end and len(mac) == 6 and not mac[0] & 1 and any(mac):
            body += pack_attribute(1, mac)
        return body + pack_attribute(3, os.fsencode(end or name) + b"\0")

    def _take(self) -> None:
        """Take of stand-ins what no plugin can have then: the ID of a VLAN, a mode of macvlans, that it has ipvlans."""
        with Writer("", {"": self.state}, {}) as writer:
            for number, (key, link) in enumerate(self._copied("link")):
                value, name = link.value, f"pwtaken{number}" if key[1] in self._ends else str(key[1])
                if value["lower"] in self.links and value["kind"] in (*STACKED, "macvtap"):
                    raw = link.raw[: LINK.size] + pack_kept(link.raw, LINK.size, (1,), {3: name.encode() + b"\0"})
                    # Linux counts macvtaps among macvlans.
                    kind = value["kind"].replace("tap", "lan")
                    taken = KernelObject(dict(value, kind=kind), raw, 0, link.peer)
                    self._tolerate(f"what {key[1]} takes of {value['lower']}", writer.put, ("link", name), taken, None)

    def _put_settings(self) -> None:
        """Set the sysctls. Forwarding comes first: it sets others."""
        present = read_globals()
        for key in sorted(self.sysctls, key=lambda key: key[1] not in _FORWARDING):
            wanted, sysctl = self.sysctls[key].value, present.get(key)
            if sysctl is not None and sysctl.value != wanted and str(key[1]) not in _WITHOUT_DETECTION:
                # Some are the kernel's and no namespace's.
                with contextlib.suppress(OSError):
                    write_global(str(key[1]), wanted)
        for (kind, name), number in self.defaults.items():
            if name not in _NO_DETECTION:
                with contextlib.suppress(OSError):
                    write_interface(kind, "default", name, number)
        now = read_objects()
        for link in self.links:
            for kind in (CONF4, CONF6):
                numbers = self.state[kind, link].value, now[kind, link].value
                for name, number, current in zip(compared_names(kind), *numbers):
                    if name and name not in _NO_DETECTION and current != number:
                        with contextlib.suppress(OSError):
                            write_interface(kind, link, name, number)

    def _copied(self, kind: str) -> Iterator[Tuple[ObjectKey, KernelObject]]:
        known = {*self.links, "lo", ""}
        return ((key, self.state[key]) for key in self.state if key[0] == kind and device_of(key) in known)

    def _put_all(self, kind: str) -> None:
        present = read_objects()
        with Writer("", {"": self.state}, {}) as writer:
            for key, kernel_object in self._copied(kind):
                if key not in present and not (kind == "addr" and str(key[2]).startswith("fe80:")):
                    self._tolerate(" ".join(map(str, key)), writer.put, key, kernel_object, None)

    def _put_routes(self) -> None:
        """Put routes, those on a link before those that need its addresses, and routing rules."""
        present = read_objects()
        with Writer("", {"": self.state}, {}) as writer:
            routes = [entry for entry in self._copied("route") if entry[0] not in present]
            if len(routes) > _MOST_ROUTES:
                self.doubts.append(f"only {_MOST_ROUTES} of {len(routes)} routes are copied")
                routes.sort(key=lambda entry: entry[0][3] != "default/0")
                del routes[_MOST_ROUTES:]
            for key, route in sorted(routes, key=lambda entry: bool(entry[1].value["gw"])):
                if key[2] != LOCAL_TABLE:
                    self._tolerate(f"the route to {key[3]}", self._put_route, writer, key, route)
            # At the end: they change how the kernel looks for gateways.
            for key, rule in self.state.items():
                if key[0] == "rule" and key not in present:
                    self._tolerate("a routing rule", writer.put, key, rule, None)
            for key, rule in present.items():
                if key[0] == "rule" and key not in self.state:
                    self._tolerate("a routing rule", writer.drop, key, rule)

    @staticmethod
    def _put_route(writer: Writer, key: ObjectKey, route: KernelObject) -> None:
        try:
            writer.put(key, route, None)
        except OSError as error:
            if error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH):
                # The address that made the gateway reachable is gone from the host.
                flags = ROUTE.unpack_from(route.raw)[8] | _ONLINK
                raw = route.raw[: ROUTE.size - 4] + _u32(flags) + route.raw[ROUTE.size :]
                writer.put(key, route._replace(raw=raw), None)
            elif error.errno != errno.EEXIST:
                raise

    def _peers(self) -> Dict[str, str]:
        """Return for each interface the other end outside; of a bridge, that of its first port."""
        peers = {name: self._ends[name] for name in self.links if name in self._ends}
        for name, end in list(peers.items()):
            if self.state["link", name].value["master"]:
                peers.setdefault(self.state["link", name].value["master"], end)
        return peers

    def _answer(self) -> None:
        """Have, outside, the gateways and a neighbour at the uplink, and routes to the host and, over it, to all."""
        peers, via, own = self._peers(), self.uplinks(), self._own_addresses()
        first = {family: peers.get(self.way_out(family) or via.get(family, ("", ""))[1]) for family in OUTSIDE}
        made = {name: index for index, name in socket.if_nameindex()}
        # What is dark has nothing outside. Which port of a bridge is copied says nothing of the others.
        lit = [name for name in peers if self.state["link", name].value["master"] or not self.why_dark(name)]
        peers = {name: peers[name] for name in lit if peers[name] in made}
        indexes = {peer: made[peer] for peer in peers.values()}
        for name in ("ipv4/conf/all/rp_filter", "ipv4/conf/default/rp_filter"):
            write_global(name, "0")
        with Dumps() as dumps:
            for index in (1, *indexes.values()):
                dumps.change(_NEW_LINK, LINK.pack(0, 0, index, 1, 1))
            for family, address in OUTSIDE.items():
                _add_address(dumps, family, address, 1)
            for gateway in self.gateways:
                if gateway.name in peers and gateway.address:
                    _add_address(dumps, family_of(gateway.address), gateway.address, indexes[peers[gateway.name]])
            for name, address, prefix in own:
                if name in peers:
                    _add_route(dumps, family_of(address), address, {4: _u32(indexes[peers[name]])})
                    hosts = map(str, ipaddress.ip_interface((address, prefix)).network.hosts())
                    neighbour = next((ip for ip in islice(hosts, 3) if ip not in {entry[1] for entry in own}), "")
                    if neighbour and peers[name] == first.get(family_of(address)):
                        _add_address(dumps, family_of(address), neighbour, indexes[peers[name]])
            for family, peer in first.items():
                if peer in indexes:
                    _add_route(dumps, family, "", {4: _u32(indexes[peer])})

    def _parent(self, plugin: Mapping[str, Any]) -> str:
        name = lower_of(plugin, lambda: self.way_out(socket.AF_INET))
        with contextlib.suppress(OSError, ValueError):
            # It may be an alternative one.
            return socket.if_indextoname(socket.if_nametoindex(name))
        return name

    def unlike(self, plugin: Mapping[str, Any]) -> str:
        """Return why the interface that *plugin* builds on may refuse what its stand-in does not, "" if it may not."""
        name = self._parent(plugin)
        link = self.state.get(("link", name))
        master = link.value["master"] if link is not None else ""
        if link is not None and name != "lo" and LINK.unpack_from(link.raw)[1] != _ETHERNET:
            return f"{name} is no Ethernet interface, as the one in the copy is"
        if master and self.state["link", master].value["kind"] != "bridge":
            return f"{name} is a port of {master}, as the one in the copy is not"
        return ""

    def beside(self, plugin: Mapping[str, Any]) -> Tuple[str, int]:
        """Return the interface behind which containers of *plugin* are neighbours of what is outside, "" if none.

        And the ID of the VLAN that they are in there, 0 for none.
        """
        name, vlan = "", vlan_of(plugin)
        if kind_of(plugin).outside and text_of(plugin, "mode") not in ("l3", "l3s"):
            name = self._parent(plugin)
        elif not forwards(plugin):
            name = bridge_of(plugin)
        peer = self._peers().get(name)
        vlans = (entry for entry in self._copied("vlan") if self._ends.get(str(entry[0][1])) == peer)
        untagged = [key[2] for key, link in vlans if link.value["flags"] & _UNTAGGED]
        return name if peer else "", vlan if vlan not in untagged else 0

    def be_neighbour(self, outside: Netns, lan: Tuple[str, int], ours: Sequence[str], gateways: Sequence[str]) -> None:
        """Have the *gateways* of a network outside, in a *lan* from :meth:`beside`, and route our addresses there."""
        peer, vlan = self._peers()[lan[0]], lan[1]
        own = {entry[1] for entry in self._own_addresses()}

        def work() -> None:
            index = socket.if_nametoindex(peer)
            with Dumps() as dumps, contextlib.suppress(OSError):
                if vlan:
                    data = pack_nested(2, pack_attribute(1, struct.pack("=H", vlan)))
                    body = pack_attribute(3, b"tagged\0") + pack_attribute(5, _u32(index))
                    body += pack_nested(18, pack_attribute(1, b"vlan"), data)
                    dumps.change(_NEW_LINK, LINK.pack(0, 0, 0, 1, 1) + body, CREATE | EXCLUSIVE)
                    index = socket.if_nametoindex("tagged")
                for address in gateways:
                    if address not in own:
                        _add_address(dumps, family_of(address), address, index)
                for address in ours:
                    _add_route(dumps, family_of(address), address, {4: _u32(index)})

        visit([outside], work)

    def route_back(self, outside: Netns, addresses: Sequence[str]) -> None:
        """Route *addresses* from outside to the host, except for those that are neighbours there."""
        via = self.uplinks()
        names = {name for _address, name in via.values()}
        subnets = [(own, prefix) for name, own, prefix in self._own_addresses() if name in names]

        def work() -> None:
            with Dumps() as dumps:
                for address in addresses:
                    family = family_of(address)
                    if family in via and not any(is_in(address, *subnet) for subnet in subnets):
                        _add_route(dumps, family, address, {5: socket.inet_pton(family, via[family][0])})

        visit([outside], work)

    def _own_addresses(self) -> List[Tuple[str, str, int]]:
        """Return (interface, address, length of the prefix)."""
        own = [(str(key[1]), str(key[2]), int(key[3])) for key, _found in self._copied("addr")]
        return [entry for entry in own if not entry[1].startswith("fe80:")]


def _without_ports(state: State) -> State:
    """Return *state* with one port of each bridge among those that lead to containers: nothing that is tried passes."""
    addressed = {key[1] for key in state if key[0] == "addr" and not str(key[2]).startswith("fe80:")}
    first: Dict[str, str] = {}
    others: Set[str] = set()
    for (kind, name, *_rest), link in state.items():
        if kind == "link" and link.value["master"]:
            is_first = first.setdefault(link.value["master"], str(name)) == name
            if not (is_first or name in addressed) and link.value["kind"] == "veth" and link.peer[1]:
                others.add(str(name))
    return {key: kernel_object for key, kernel_object in state.items() if device_of(key) not in others}


def _add_address(dumps: Dumps, family: int, address: str, index: int) -> None:
    raw = socket.inet_pton(family, address)
    head = ADDRESS.pack(family, len(raw) * 8, _PERMANENT | (_NODAD if family == socket.AF_INET6 else 0), 0, index)
    with contextlib.suppress(OSError):
        dumps.change(_NEW_ADDRESS, head + pack_attribute(2, raw) + pack_attribute(1, raw), CREATE | EXCLUSIVE)


def _add_route(dumps: Dumps, family: int, address: str, way: Mapping[int, bytes]) -> None:
    """Add a route to *address*, "" for all, over an interface (RTA_OIF, 4) or a router (RTA_GATEWAY, 5)."""
    attributes = {1: socket.inet_pton(family, address), **way} if address else way
    scope = 253 if family == socket.AF_INET and 4 in way else 0
    head = ROUTE.pack(family, 8 * len(attributes.get(1, b"")), 0, 0, MAIN_TABLE, 4, scope, 1, 0)
    body = b"".join(pack_attribute(kind, value) for kind, value in attributes.items())
    # The kernel may have no IPv6.
    with contextlib.suppress(OSError):
        dumps.change(_NEW_ROUTE, head + body, CREATE | EXCLUSIVE)


def _u32(number: int) -> bytes:
    return struct.pack("=I", number)
