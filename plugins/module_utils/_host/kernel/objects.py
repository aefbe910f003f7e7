# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what a network namespace is set to, as objects that two readings can be compared by.

An object has a key, which begins with its kind, a value as JSON-ready data, and the kernel's own message, which puts
the object back when it is sent again. Values have names instead of indexes, and leave out what changes by itself:
counters, timers, learned entries, link-local addresses.

| kind | key |
|---|---|
| link | link, name |
| conf4, conf6 | kind, name of the interface; the sysctls of the interface by number (sysctls.compared_names) |
| vlan | vlan, name of the port, VLAN ID |
| addr | addr, name, address, length of the prefix |
| route | route, family, table, destination, TOS, metric, type, name of the interface |
| rule | rule, family, priority, fixed part, attributes |
| neigh | neigh, name, address, whether it is a proxy entry |
| fdb | fdb, name, MAC, VLAN ID |
| qdisc, class, filter | kind, name, parent, handle |
| way (an answer, see read_ways) | way, address |
"""

from __future__ import annotations

import errno
import socket
import struct
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Tuple, Union

from ...libcni.kernel import attributes_in, decode_text, number_in, pack_attribute
from ..netlink import LOCAL_TABLE, UP, Dumps

ObjectKey = Tuple[Union[str, int], ...]

LINK = struct.Struct("=BxHiII")
ADDRESS = struct.Struct("=BBBBI")
ROUTE = struct.Struct("=BBBBBBBBI")
NEIGHBOUR = struct.Struct("=BxxxiHBB")
TRAFFIC = struct.Struct("=BxxxiIII")
ROUTING_RULE_SIZE = 12
CONF4, CONF6 = "conf4", "conf6"
OF_INTERFACES = (CONF4, CONF6)
ON_INTERFACES = ("link", *OF_INTERFACES, "vlan", "addr", "neigh", "fdb", "qdisc", "class", "filter")
"""The kinds whose key has the name of the interface in its second place."""

_ATTRIBUTE = struct.Struct("=HH")
_KIND_MASK = 0x3FFF
# Request and answer of each dump (include/uapi/linux/rtnetlink.h).
_LINKS, _ADDRESSES, _ROUTES, _NEIGHBOURS = (18, 16), (22, 20), (26, 24), (30, 28)
_RULES, _QDISCS, _CLASSES, _FILTERS = (34, 32), (38, 36), (42, 40), (46, 44)
_EXT_MASK, _SKIP_STATS, _BRIDGE_VLANS = 29, 8, 2
# IFF_UP, IFF_NOARP, IFF_PROMISC and IFF_ALLMULTI are set by somebody. The other flags follow.
FLAGS = UP | 0x80 | 0x100 | 0x200
_LINK_NUMBERS = {4: "mtu", 13: "txqlen", 27: "group"}
# Timers, IDs and learned entries (include/uapi/linux/if_link.h, IFLA_BR_* and IFLA_BRPORT_*).
# Of a macvlan, counts of its addresses, which cannot be set.
VOLATILE = {"bridge": frozenset((*range(10, 20), 21, 47, 48)), "macvlan": frozenset((3, 4, 5, 6, 8))}
VOLATILE_PORT = frozenset((1, 3, *range(13, 25), 26, 35, 36, 38, 41))
# IF_OPER_UP, BR_STATE_DISABLED, BR_STATE_FORWARDING, and IFLA_BR_STP_STATE off.
_OPERATIONAL, _DISABLED, FORWARDING, _NO_STP = b"\6", b"\0", b"\3", "00000000"
_PERMANENT, _NOARP, _PROXY = 0x80, 0x40, 8
BY_KERNEL = 2
"""The protocol of routes that the kernel made for an address."""
_LOCAL, _BROADCAST, _ANYCAST, _MULTICAST = 2, 3, 4, 5
_CACHED = 0x200
_ONLINK = 4
_REFUSED = {errno.EACCES: "prohibit", errno.EINVAL: "blackhole", errno.EHOSTUNREACH: "unreachable"}
_ADDRESS_BY_KERNEL = b"\3"
# IFA_F_NOPREFIXROUTE and IFA_F_MANAGETEMPADDR are settings; tentative, deprecated and the like come and go.
_ADDRESS_FLAGS = 0x200 | 0x100
# The kernel numbers what nobody has numbered with 0 or from here on, so such handles do not last.
_FIRST_CHOSEN, _INGRESS = 0x80000000, 0xFFFF0000
# tc_htb_glob.direct_pkts (linux/pkt_sched.h).
_HTB_COUNTER = slice(16, 20)
# Queueing disciplines without classes of their own.
_CLASSLESS = frozenset(("tbf", "ingress", "clsact", "fq_codel", "noqueue", "pfifo_fast", "pfifo", "bfifo", "fq"))


class KernelObject(NamedTuple):
    """One object: its value, the message raw of the kernel, and the index of its interface (0: none).

    peer is of links: the index of the other end or lower device, and whether that is in another namespace, which is the
    host's in a container (index 0: a third one, where a container can choose indexes as it likes).
    derived tells that the object is not compared: the kernel made or numbered it, or it has a lifetime.
    """

    value: Any
    raw: bytes = b""
    ifindex: int = 0
    peer: Tuple[int, bool] = (0, False)
    derived: bool = False


State = Dict[ObjectKey, KernelObject]


def device_of(key: ObjectKey) -> str:
    """Return the name of the interface that an object is on, "" if it is on none."""
    if key[0] == "route":
        return str(key[7])
    return str(key[1]) if key[0] in ON_INTERFACES else ""


def follows(space: str, setting: str, link: Mapping[str, Any]) -> bool:
    """Tell whether a setting of an interface follows: udev sets the MAC of a host end, and ports that of a bridge.

    An ipvlan has that of its lower device. *space* is "" for the host, *link* the value of the interface. A container
    does not show its lower device on the host, which is recorded as ``{name, kind}``.
    """
    if setting == "lower":
        return isinstance(link["lower"], dict)
    return setting == "mac" and link["kind"] in (("veth", "bridge", "ipvlan") if space == "" else ("ipvlan",))


def has_rival(space: str, state: State, key: ObjectKey) -> bool:
    """Tell whether somebody else has made a route of the rank of a lost one on the host; in a container, plugins do."""
    others = (other for other, route in state.items() if other[0] == "route" and route.value["proto"] != BY_KERNEL)
    return space == "" and key[1] == socket.AF_INET and any(other != key and other[:6] == key[:6] for other in others)


def read_objects() -> State:
    """Return the state of the namespace that this thread is in. Raises HostError ``kernel_unreadable``."""
    with Dumps() as dumps:
        return _Reading(dumps).state


def read_ways(asked: Iterable[str] = ()) -> State:
    """Return the same, and where the kernel sends packets to *asked* and to its gateways. Raises as read_objects.

    That is the name of an interface, "local", or why it does not send them, as ip-route(8) calls it; "" if unknown.
    """
    state = read_objects()
    names = {link.ifindex: str(key[1]) for key, link in state.items() if key[0] == "link"}
    gateways = {route.value["gw"] for key, route in state.items() if key[0] == "route"}
    with Dumps() as dumps:
        # A link-local address is on every interface.
        for address in [text for text in {*asked, *gateways} if text and not text.startswith("fe80:")]:
            state["way", address] = KernelObject(_way(dumps, names, address))
    return state


def _way(dumps: Dumps, names: Mapping[int, str], address: str) -> str:
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        raw = socket.inet_pton(family, address)
        answer = dumps.ask(*_ROUTES, ROUTE.pack(family, 8 * len(raw), 0, 0, 0, 0, 0, 0, 0) + pack_attribute(1, raw))
    except OSError as error:
        return _REFUSED.get(error.errno or 0, "")
    if ROUTE.unpack_from(answer)[7] == _LOCAL:
        return "local"
    return names.get(number_in(attributes_in(answer, ROUTE.size).get(4)), "")


class _Reading:
    def __init__(self, dumps: Dumps) -> None:
        self._dumps = dumps
        self.state: State = {}
        self._names: Dict[int, str] = {}
        self._read_links()
        self._read_addresses()
        self._read_routes()
        self._read_rules()
        self._read_neighbours()
        self._read_traffic_control()

    def _name(self, index: int) -> str:
        return self._names.get(index, "")

    # ---- interfaces

    def _read_links(self) -> None:
        links = [(raw, attributes_in(raw, LINK.size)) for raw in self._dumps.dump(*_LINKS, _link_request(0))]
        self._names = {LINK.unpack_from(raw)[2]: decode_text(parts.get(3)) for raw, parts in links}
        bridges = False
        for raw, parts in links:
            _family, _type, index, flags, _change = LINK.unpack_from(raw)
            name, info = self._names[index], attributes_in(parts.get(18, b""))
            families = attributes_in(parts.get(26, b""))
            inet6 = attributes_in(families.get(10, b""))
            kind, abroad = decode_text(info.get(1)), 37 in parts
            peer = number_in(parts.get(5)) if self._dumps.is_at_host(parts.get(37)) else 0
            bridges = bridges or kind == "bridge"
            value: Dict[str, Any] = {label: number_in(parts.get(key)) for key, label in _LINK_NUMBERS.items()}
            value.update(
                kind=kind,
                flags=flags & FLAGS,
                mac=parts.get(1, b"").hex(),
                alias=decode_text(parts.get(20)),
                master=self._name(number_in(parts.get(10))),
                lower="elsewhere" if abroad else self._name(number_in(parts.get(5))),
                data=_hex_of(attributes_in(info.get(2, b"")), VOLATILE.get(kind, ())),
                port=_hex_of(attributes_in(info.get(5, b"")), VOLATILE_PORT),
                genmode=inet6.get(8, b"\0")[0],
            )
            self.state["link", name] = KernelObject(value, raw, index, (peer, abroad))
            four = attributes_in(families.get(2, b"")).get(1, b"")
            self.state[CONF4, name] = KernelObject(list(struct.unpack(f"={len(four) // 4}I", four)), b"", index)
            six = list(struct.unpack(f"={len(inet6.get(2, b'')) // 4}i", inet6.get(2, b"")))
            self.state[CONF6, name] = KernelObject(six, b"", index)
        if bridges:
            self._read_vlans()
            self._note_disabled()

    def _note_disabled(self) -> None:
        """Note which ports were told not to forward: without a spanning tree, those that are up do so at last."""
        links = [(key[1], link.value, link.raw) for key, link in self.state.items() if key[0] == "link"]
        bridges = ((name, link["flags"] & UP, link["data"]) for name, link, _raw in links if link["kind"] == "bridge")
        plain = {name for name, up, data in bridges if up and data.get("5") == _NO_STP}
        for _name, port, raw in (entry for entry in links if entry[1]["master"] in plain):
            parts = attributes_in(raw, LINK.size)
            if (parts.get(16), attributes_in(attributes_in(parts[18])[5]).get(1)) == (_OPERATIONAL, _DISABLED):
                port["port"]["1"] = _DISABLED.hex()

    def _read_vlans(self) -> None:
        for raw in self._dumps.dump(*_LINKS, _link_request(socket.AF_BRIDGE)):
            index = LINK.unpack_from(raw)[2]
            spec, begin = attributes_in(raw, LINK.size).get(26, b""), 0
            while len(spec) - begin >= _ATTRIBUTE.size:
                length, kind = _ATTRIBUTE.unpack_from(spec, begin)
                if length < _ATTRIBUTE.size:
                    break
                if kind & _KIND_MASK == 2:
                    flags, vid = struct.unpack_from("=HH", spec, begin + 4)
                    key = ("vlan", self._name(index), vid)
                    self.state[key] = KernelObject({"flags": flags}, spec[begin : begin + length], index)
                begin += (length + 3) & ~3

    # ---- addresses and routes

    def _read_addresses(self) -> None:
        for raw in self._dumps.dump(*_ADDRESSES, ADDRESS.pack(0, 0, 0, 0, 0)):
            family, prefix, flags, scope, index = ADDRESS.unpack_from(raw)
            parts = attributes_in(raw, ADDRESS.size)
            flags = number_in(parts.get(8)) or flags
            local, far = _text(family, parts.get(2) or parts.get(1)), _text(family, parts.get(1))
            # The kernel says so of its own link-local addresses since 5.18; before, they are known by their form.
            derived = parts.get(11) == _ADDRESS_BY_KERNEL or (11 not in parts and local.startswith("fe80:"))
            # From a DHCP server or a router: it has a lifetime.
            derived = derived or not flags & _PERMANENT
            # "ip address add" sets no broadcast address, and nothing needs one.
            value = {
                "flags": flags & _ADDRESS_FLAGS,
                "scope": scope,
                "peer": far if far != local else "",
                "metric": number_in(parts.get(9)),
            }
            self.state["addr", self._name(index), local, prefix] = KernelObject(value, raw, index, derived=derived)

    def _read_routes(self) -> None:
        for raw in self._dumps.dump(*_ROUTES, ROUTE.pack(0, 0, 0, 0, 0, 0, 0, 0, 0)):
            family, length, _source, tos, table, protocol, scope, kind, flags = ROUTE.unpack_from(raw)
            parts = attributes_in(raw, ROUTE.size)
            if flags & _CACHED:
                continue
            table = number_in(parts.get(15)) or table
            target = f"{_text(family, parts.get(1)) or 'default'}/{length}"
            passing = (
                target.startswith(("fe80:", "::1/"))
                or kind in (_BROADCAST, _ANYCAST, _MULTICAST)
                or (family == socket.AF_INET6 and table == LOCAL_TABLE)
            )
            if protocol == BY_KERNEL and passing:
                # They come and go with the carrier and the detection of duplicate addresses.
                continue
            value = {
                "gw": _text(family, parts.get(5)),
                "src": _text(family, parts.get(7)),
                "scope": scope,
                "proto": protocol,
                "onlink": flags & _ONLINK,
                "metrics": parts.get(8, b"").hex(),
                "via": parts.get(18, b"").hex(),
                "hops": self._hops(parts.get(9, b"")),
            }
            # A local IPv6 route of the kernel's has the metric 0, which cannot be asked for.
            metric = number_in(parts.get(6)) if table != LOCAL_TABLE else 0
            index = number_in(parts.get(4))
            key = ("route", family, table, target, tos, metric, kind, self._name(index))
            # Some expire.
            self.state[key] = KernelObject(value, raw, index, derived=number_in(parts.get(23)) > 0)

    def _hops(self, raw: bytes) -> List[List[Any]]:
        hops, begin = [], 0
        while len(raw) - begin >= 8:
            length, flags, weight, index = struct.unpack_from("=HBBi", raw, begin)
            if length < 8:
                break
            hops.append([self._name(index), weight, flags & _ONLINK, raw[begin + 8 : begin + length].hex()])
            begin += (length + 3) & ~3
        return hops

    def _read_rules(self) -> None:
        for family in (socket.AF_INET, socket.AF_INET6):
            for raw in self._dumps.dump(*_RULES, bytes([family]) + bytes(ROUTING_RULE_SIZE - 1)):
                parts = attributes_in(raw, ROUTING_RULE_SIZE)
                match = ",".join(
                    f"{kind}={value.hex()}" for kind, value in sorted(parts.items()) if kind not in (6, 18)
                )
                key = ("rule", int(family), number_in(parts.get(6)), raw[1:ROUTING_RULE_SIZE].hex(), match)
                count = self.state[key].value["count"] + 1 if key in self.state else 1
                self.state[key] = KernelObject({"count": count, **_routing_rule(family, raw, parts)}, raw)

    # ---- neighbours

    def _read_neighbours(self) -> None:
        own = {link.value["mac"] for key, link in self.state.items() if key[0] == "link"}
        for family, asked in ((0, 0), (0, _PROXY), (socket.AF_BRIDGE, 0)):
            for raw in self._dumps.dump(*_NEIGHBOURS, NEIGHBOUR.pack(family, 0, 0, asked, 0)):
                kind, index, known, flags, _type = NEIGHBOUR.unpack_from(raw)
                parts, name = attributes_in(raw, NEIGHBOUR.size), self._name(index)
                mac = parts.get(2, b"")
                if kind == socket.AF_BRIDGE:
                    # The forwarding tables of bridges and of macvlan's parents, without what was learned.
                    if known & (_PERMANENT | _NOARP) and mac and mac.hex() not in own and not mac[0] & 1:
                        key: ObjectKey = ("fdb", name, mac.hex(), int.from_bytes(parts.get(5, b""), "little"))
                        self.state[key] = KernelObject({"flags": flags, "state": known}, raw, index)
                elif kind in (socket.AF_INET, socket.AF_INET6) and (known & _PERMANENT or flags & _PROXY):
                    key = ("neigh", name, _text(kind, parts.get(1)), flags & _PROXY)
                    self.state[key] = KernelObject({"mac": mac.hex()}, raw, index)

    # ---- traffic control

    def _read_traffic_control(self) -> None:
        # One dump for all: one for a single interface costs as much.
        for raw in self._dumps.dump(*_QDISCS, TRAFFIC.pack(0, 0, 0, 0, 0)):
            _family, index, handle, parent, _info = TRAFFIC.unpack_from(raw)
            if not handle or index not in self._names:
                continue
            derived = _FIRST_CHOSEN <= handle < _INGRESS
            parts = attributes_in(raw, TRAFFIC.size)
            kind, name = decode_text(parts.get(1)), self._name(index)
            value = {"kind": kind, "options": _settings(kind, parts.get(2, b"")).hex()}
            self.state["qdisc", name, parent, handle] = KernelObject(value, raw, index, derived=derived)
            self._read_filters(name, index, handle, derived)
            if kind not in _CLASSLESS and not derived:
                self._read_classes(name, index)

    def _read_classes(self, name: str, index: int) -> None:
        for raw in self._dumps.dump(*_CLASSES, TRAFFIC.pack(0, index, 0, 0, 0)):
            _family, _index, handle, parent, _info = TRAFFIC.unpack_from(raw)
            parts = attributes_in(raw, TRAFFIC.size)
            value = {"kind": decode_text(parts.get(1)), "options": parts.get(2, b"").hex()}
            self.state["class", name, parent, handle] = KernelObject(value, raw, index)

    def _read_filters(self, name: str, index: int, parent: int, derived: bool) -> None:
        for raw in self._dumps.dump(*_FILTERS, TRAFFIC.pack(0, index, 0, parent, 0)):
            _family, _index, handle, above, info = TRAFFIC.unpack_from(raw)
            parts = attributes_in(raw, TRAFFIC.size)
            kind, options = decode_text(parts.get(1)), attributes_in(parts.get(2, b""))
            if not options or (kind == "u32" and 5 not in options):
                # The hash tables of u32.
                continue
            shown: Any = self._u32(options) if kind == "u32" else parts[2].hex()
            value = {"kind": kind, "info": info, "options": shown}
            self.state["filter", name, above, handle] = KernelObject(value, raw, index, derived=derived)

    def _u32(self, options: Dict[int, bytes]) -> Dict[str, Any]:
        """Return selector, class and actions; the numbers and counters of actions are not part of them."""
        actions: List[List[Any]] = []
        for _place, action in sorted(attributes_in(options.get(7, b"")).items()):
            parts = attributes_in(action)
            parameters = attributes_in(parts.get(2, b"")).get(2, b"")
            if decode_text(parts.get(1)) == "mirred" and len(parameters) >= 28:
                verdict, direction, index = struct.unpack_from("=8xi8xiI", parameters)
                actions.append(["mirred", verdict, direction, self._name(index)])
            else:
                actions.append([decode_text(parts.get(1)), parameters[20:].hex()])
        return {"sel": options[5].hex(), "class": options.get(1, b"").hex(), "actions": actions}


def _routing_rule(family: int, raw: bytes, parts: Dict[int, bytes]) -> Dict[str, Any]:
    """Return what the words for a routing rule need."""
    return {
        "from": f"{_text(family, parts[2])}/{raw[2]}" if 2 in parts else "",
        "to": f"{_text(family, parts[1])}/{raw[1]}" if 1 in parts else "",
        "table": number_in(parts.get(15)) or raw[4],
    }


def _link_request(family: int) -> bytes:
    # Without this, counters would be a large part of the answer.
    mask = _SKIP_STATS | (_BRIDGE_VLANS if family else 0)
    return LINK.pack(family, 0, 0, 0, 0) + _ATTRIBUTE.pack(8, _EXT_MASK) + struct.pack("=I", mask)


def _hex_of(attributes: Dict[int, bytes], volatile: Any) -> Dict[str, str]:
    # As in JSON, where every key is a text.
    return {str(key): value.hex() for key, value in sorted(attributes.items()) if key not in volatile}


def _text(family: int, raw: Any) -> str:
    if raw and (family, len(raw)) in ((socket.AF_INET, 4), (socket.AF_INET6, 16)):
        return socket.inet_ntop(family, raw)
    return (raw or b"").hex()


def _settings(kind: str, options: bytes) -> bytes:
    """Return the options of a queueing discipline without the counter that htb tells among them: direct packets."""
    attributes = attributes_in(options)
    setup = attributes.get(2, b"")
    if kind != "htb" or len(setup) < _HTB_COUNTER.stop:
        return options
    attributes[2] = setup[: _HTB_COUNTER.start] + bytes(4) + setup[_HTB_COUNTER.stop :]
    return b"".join(pack_attribute(name, content) for name, content in attributes.items())
