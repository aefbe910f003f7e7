# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Puts single objects back by sending the kernel its own messages again.

The message of a dump and the message that makes the same object have the same form. What a dump adds (counters, times,
indexes) is left out or set. So no kind of object needs a description of its own, and any plugin's are covered.
"""

from __future__ import annotations

import struct
from typing import Any, Callable, ClassVar, Dict, List, Optional

from ...libcni.kernel import CREATE, EXCLUSIVE, attributes_in, decode_text, number_in, pack_attribute, pack_nested
from . import sysctls
from .links import Place, pack_kept, put_link
from .objects import (
    ADDRESS,
    CONF4,
    CONF6,
    LINK,
    NEIGHBOUR,
    ROUTE,
    ROUTING_RULE_SIZE,
    TRAFFIC,
    KernelObject,
    ObjectKey,
    has_rival,
)

_REPLACE, _APPEND = 0x100, 0x800
_NEW_ADDRESS, _NEW_ROUTE, _NEW_RULE, _NEW_NEIGHBOUR, _SET_LINK = 20, 24, 32, 28, 19
# Request, size of the fixed part, and attributes that are no part of the request.
_REMOVALS = {"addr": (21, ADDRESS.size, (6,)), "route": (25, ROUTE.size, (12,)), "rule": (33, ROUTING_RULE_SIZE, (18,))}
_OLD_QDISC, _OLD_FILTER = 37, 45
_NEW_TRAFFIC = {"qdisc": 36, "class": 40, "filter": 44}
# IFA_F_TENTATIVE, DADFAILED; and IFA_F_NODAD, without which an IPv6 address would be silent for a second.
_TENTATIVE, _NODAD = 0x48, 0x02
_OWN_VLAN = pack_attribute(0, struct.pack("=H", 2))


class Writer(Place):
    """Puts objects back in the namespace that this thread is in. Use it as a context manager."""

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.dumps.close()

    def put(self, key: ObjectKey, wanted: KernelObject, now: Optional[Any]) -> None:
        """Put one object back. Raises OSError if the kernel refuses it, links.NotInPlace if it cannot be put back."""
        kind = str(key[0])
        if kind == "link":
            put_link(self, key, wanted, now)
        elif kind in (CONF4, CONF6):
            sysctls.write_interface(kind, str(key[1]), str(key[2]), wanted.value)
        elif kind == sysctls.GLOBAL:
            sysctls.write_global(str(key[1]), wanted.value)
        else:
            self._writers[kind](self, key, wanted, now)

    def drop(self, key: ObjectKey, present: KernelObject) -> None:
        """Remove a route, an address or a routing rule. Raises OSError."""
        request, size, left_out = _REMOVALS[str(key[0])]
        self.dumps.change(request, present.raw[:size] + pack_kept(present.raw, size, left_out))

    def _put_vlan(self, key: ObjectKey, wanted: KernelObject, _now: Optional[Any]) -> None:
        name = str(key[1])
        link = self.recorded.get(self.space, {}).get(("link", name))
        # That of a bridge itself is refused without this.
        own = _OWN_VLAN if link is not None and link.value["kind"] == "bridge" else b""
        head = LINK.pack(7, 0, self.index(name), 0, 0)
        self.dumps.change(_SET_LINK, head + pack_nested(26, own + wanted.raw))

    def _put_address(self, key: ObjectKey, wanted: KernelObject, _now: Optional[Any]) -> None:
        family, prefix, flags, scope, _index = ADDRESS.unpack_from(wanted.raw)
        lasting = (number_in(attributes_in(wanted.raw, ADDRESS.size).get(8)) or flags) & ~_TENTATIVE
        lasting |= _NODAD if family == 10 else 0
        if family == 10 and self.space:
            # As an ADD does in a container: otherwise, the interface takes none.
            sysctls.write_interface(CONF6, str(key[1]), "disable_ipv6", 0)
        head = ADDRESS.pack(family, prefix, lasting & 0xFF, scope, self.index(str(key[1])))
        body = pack_kept(wanted.raw, ADDRESS.size, (6, 8), {8: struct.pack("=I", lasting)})
        self.dumps.change(_NEW_ADDRESS, head + body, CREATE | _REPLACE)

    def _put_route(self, key: ObjectKey, wanted: KernelObject, now: Optional[Any]) -> None:
        fields = list(ROUTE.unpack_from(wanted.raw))
        # Only "onlink" is set. The kernel found out the others.
        fields[8] &= 4
        attributes = attributes_in(wanted.raw, ROUTE.size)
        replaced = {4: struct.pack("=I", self.index(str(key[7])))} if 4 in attributes else {}
        if 9 in attributes:
            replaced[9] = b"".join(self._hop(*hop) for hop in wanted.value["hops"])
        # To replace takes away that of another interface. IPv4 uses the first, and APPEND makes the last; IPv6 has one.
        how = EXCLUSIVE if fields[0] != 2 else 0 if has_rival(self.space, self.recorded[self.space], key) else _APPEND
        # The kernel tells what a nexthop object (30) contains, too, and takes only either.
        body = pack_kept(wanted.raw, ROUTE.size, (12, 20, 23, 26, 30), replaced)
        self.dumps.change(_NEW_ROUTE, ROUTE.pack(*fields) + body, CREATE | (how if now is None else _REPLACE))

    def _hop(self, name: str, weight: int, flags: int, attributes: str) -> bytes:
        body = bytes.fromhex(attributes)
        return struct.pack("=HBBi", 8 + len(body), flags, weight, self.index(name)) + body

    def _put_rule(self, key: ObjectKey, wanted: KernelObject, _now: Optional[Any]) -> None:
        # The kernel does not tell the priority 0, and chooses another one where none is asked for.
        priority = {6: struct.pack("=I", key[2])}
        body = wanted.raw[:ROUTING_RULE_SIZE] + pack_kept(wanted.raw, ROUTING_RULE_SIZE, (18,), priority)
        self.dumps.change(_NEW_RULE, body, CREATE | EXCLUSIVE)

    def _put_neighbour(self, key: ObjectKey, wanted: KernelObject, _now: Optional[Any]) -> None:
        family, _index, state, flags, kind = NEIGHBOUR.unpack_from(wanted.raw)
        head = NEIGHBOUR.pack(family, self.index(str(key[1])), state, flags, kind)
        self.dumps.change(_NEW_NEIGHBOUR, head + pack_kept(wanted.raw, NEIGHBOUR.size, (3, 4, 9)), CREATE | _REPLACE)

    def _put_traffic(self, key: ObjectKey, wanted: KernelObject, now: Optional[Any]) -> None:
        kind = str(key[0])
        if kind == "class" and wanted.value["kind"] == "tbf":
            # It comes with its queueing discipline.
            return
        _family, _index, handle, parent, info = TRAFFIC.unpack_from(wanted.raw)
        attributes = attributes_in(wanted.raw, TRAFFIC.size)
        replaced = {}
        if kind == "filter" and wanted.value["kind"] == "u32":
            replaced[2] = self._u32(wanted, attributes[2])
        elif kind == "qdisc" and wanted.value["kind"] == "htb":
            replaced[2] = _htb(attributes[2])
        head = TRAFFIC.pack(0, self.index(str(key[1])), handle, parent, info if kind == "filter" else 0)
        if kind == "filter" and now is not None:
            # It leads to an interface that is gone.
            self.dumps.change(_OLD_FILTER, head + pack_attribute(1, attributes[1]))
        elif kind == "qdisc" and now is not None and (now["kind"] != wanted.value["kind"] or now["kind"] == "htb"):
            # The kernel changes no kind, and nothing of an htb. Classes and filters go too, and are put back later.
            self.dumps.change(_OLD_QDISC, head)
        body = pack_kept(wanted.raw, TRAFFIC.size, (3, 4, 7, 12, 13), replaced)
        how = _REPLACE if kind == "qdisc" else 0 if kind == "class" else EXCLUSIVE
        self.dumps.change(_NEW_TRAFFIC[kind], head + body, CREATE | how)

    def _u32(self, wanted: KernelObject, options: bytes) -> bytes:
        """Return a u32 filter's options without counters, its actions with the present indexes and no number."""
        attributes = attributes_in(options)
        actions: List[bytes] = []
        targets = [action[-1] for action in wanted.value["options"]["actions"] if action[0] == "mirred"]
        for place, action in sorted(attributes_in(attributes.get(7, b"")).items()):
            parts = attributes_in(action)
            kind = decode_text(parts.get(1))
            if not kind:
                continue
            parameters = bytearray(attributes_in(parts.get(2, b"")).get(2, b""))
            parameters[0:4] = bytes(4)
            if kind == "mirred" and targets:
                parameters[24:28] = struct.pack("=I", self.index(str(targets.pop(0))))
            inner = pack_nested(2, pack_attribute(2, bytes(parameters)))
            actions.append(pack_nested(place, pack_attribute(1, kind.encode() + b"\0"), inner))
        kept = b"".join(pack_attribute(kind, attributes[kind]) for kind in (1, 5) if kind in attributes)
        return kept + (pack_nested(7, *actions) if actions else b"")

    _writers: ClassVar[Dict[str, Callable[[Writer, ObjectKey, KernelObject, Optional[Any]], None]]] = {
        "vlan": _put_vlan,
        "addr": _put_address,
        "neigh": _put_neighbour,
        "fdb": _put_neighbour,
        "route": _put_route,
        "rule": _put_rule,
        "qdisc": _put_traffic,
        "class": _put_traffic,
        "filter": _put_traffic,
    }


def _htb(options: bytes) -> bytes:
    """Return the options of an htb with the version that the kernel takes: it tells 3.17 and takes 3."""
    setup = bytearray(attributes_in(options).get(2, b""))
    setup[0:4] = struct.pack("=I", struct.unpack_from("=I", setup)[0] >> 16)
    return pack_kept(options, 0, (), {2: bytes(setup)})
