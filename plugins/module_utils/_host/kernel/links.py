# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Puts interfaces back: their settings, their names, and whole ones with the index and the MAC that they had."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from typing import Any, Container, Dict, Iterator, Mapping, Optional, Tuple

from ...libcni.kernel import CREATE, EXCLUSIVE, attributes_in, decode_text, pack_attribute, pack_nested
from ..netlink import Dumps, links
from ..netns import Netns, apart, enter_host
from ..paths import OWN_NETNS, THREAD_NETNS
from .objects import CONF6, FLAGS, FORWARDING, LINK, VOLATILE, VOLATILE_PORT, KernelObject, ObjectKey, State, follows
from .sysctls import announced, write_interface

_NEW_LINK, _DELETE_LINK = 16, 17
_NAME, _LOWER, _NETNS_FD, _NEW_IFINDEX = 3, 5, 28, 49
# IFLA_VLAN_FLAGS, and VLAN_FLAG_REORDER_HDR, which a new VLAN has.
_VLAN_FLAGS, _REORDER_HEADERS = 2, 1
_FLAGS_AND_MASK = struct.Struct("=II")
# Attribute and member of the value of each setting that is sent back when it differs.
_SETTINGS = ((4, "mtu"), (13, "txqlen"), (27, "group"), (20, "alias"), (1, "mac"))
# Kinds that are made from nothing else than their name.
_SIMPLE = ("bridge", "ifb", "dummy", "vrf")
# Kinds that need the other end or the lower device.
STACKED = ("macvlan", "ipvlan", "vlan")
"""Kinds that need a lower device."""
_PAIRED = ("veth", *STACKED)
MAKEABLE = (*_SIMPLE, *_PAIRED)
"""Kinds of which a lost interface can be made again with its index."""


class NotInPlace(Exception):
    """This object cannot be put back without making the attachment again."""


def pack_kept(raw: bytes, begin: int, left_out: Any = (), replaced: Optional[Mapping[int, bytes]] = None) -> bytes:
    """Return the attributes of a message again, without *left_out*, with *replaced* (kind -> value)."""
    attributes = {kind: value for kind, value in attributes_in(raw, begin).items() if kind not in left_out}
    attributes.update(replaced or {})
    return b"".join(pack_attribute(kind, value) for kind, value in attributes.items())


def pack_kind(info: Mapping[int, bytes], chosen: Container[int], now: bytes = b"") -> bytes:
    """Return the kind of an interface with its *chosen* settings, as the kernel takes them.

    It tells the flags of a VLAN with all bits of their mask, and refuses a mask with bits that it does not know. *now*
    are the present ones.
    """
    settings = {kind: value for kind, value in attributes_in(info.get(2, b"")).items() if kind in chosen}
    flags = settings.get(_VLAN_FLAGS, b"")
    if decode_text(info.get(1)) == "vlan" and len(flags) == _FLAGS_AND_MASK.size:
        bits = _FLAGS_AND_MASK.unpack(flags)[0]
        present = _FLAGS_AND_MASK.unpack(now)[0] if len(now) == _FLAGS_AND_MASK.size else _REORDER_HEADERS
        settings[_VLAN_FLAGS] = _FLAGS_AND_MASK.pack(bits, bits | present)
    data = b"".join(pack_attribute(kind, value) for kind, value in settings.items())
    return pack_nested(18, pack_attribute(1, info.get(1, b"")), *([pack_nested(2, data)] if data else []))


class Place:
    """The namespace that this thread is in: ``space`` ("" for the host's), and its interfaces' indexes.

    *recorded* is what all namespaces should have, space -> objects; a space is a path, and "" the host's.
    *namespaces*: those of the paths, kept open where something is put back.
    """

    def __init__(self, space: str, recorded: Mapping[str, State], namespaces: Mapping[str, Netns]) -> None:
        self.space = space
        self.recorded = recorded
        self.namespaces = namespaces
        self.dumps = Dumps()
        present = links().values()
        self.indexes = {link.name: link.index for link in present}
        self.kinds = {link.name: link.kind for link in present}

    def index(self, name: str) -> int:
        """Return the index of an interface. Raises NotInPlace if it is gone."""
        if name not in self.indexes:
            raise NotInPlace(f"the interface {name} is gone")
        return self.indexes[name]


def put_link(place: Place, key: ObjectKey, wanted: KernelObject, now: Optional[Mapping[str, Any]]) -> None:
    """Put one interface back. *now* is its present value, None if it is gone. Raises OSError, NotInPlace."""
    name, value, old = str(key[1]), wanted.value, attributes_in(wanted.raw, LINK.size)
    if "mtu" not in value:
        # Of an interface that the host had before, only these flags are recorded.
        place.dumps.change(_NEW_LINK, LINK.pack(0, 0, place.index(name), value["flags"], value["flags"]))
        return
    info = attributes_in(old.get(18, b""))
    if name not in place.indexes:
        if _rename_back(place, name, wanted):
            return
        if value["kind"] in _PAIRED:
            _make_paired(place, name, wanted, info)
            return
        if value["kind"] not in _SIMPLE:
            raise NotInPlace(f"{name} was a {value['kind'] or 'physical'} device, which only its owner can make again")
    made = name not in place.indexes
    present: Mapping[str, Any] = {} if made or now is None else now
    body = b"".join(
        pack_attribute(kind, old[kind])
        for kind, label in _SETTINGS
        if kind in old and value[label] != present.get(label) and (made or not follows(place.space, label, value))
        # A bridge without ports may have no MAC.
        if label != "mac" or any(old[kind])
    )
    if value["alias"] == "" and present.get("alias"):
        body += pack_attribute(20, b"\0")
    if value["master"] != present.get("master", ""):
        body += pack_attribute(10, struct.pack("=I", place.index(value["master"]) if value["master"] else 0))
    # Only what differs: some kernels refuse settings that they tell of, such as VLANs without VLAN filtering.
    shown = present.get("data", {})
    differing = {int(kind) for kind, setting in value["data"].items() if not made and shown.get(kind) != setting}
    if value["kind"] == "vrf" and made:
        differing = {1}
    if made or differing:
        body += pack_kind(info, differing, bytes.fromhex(shown.get(str(_VLAN_FLAGS), "")))
    if made:
        body += pack_attribute(3, name.encode() + b"\0")
    # A new one gets the index that the lost one had.
    head = LINK.pack(0, 0, place.indexes.get(name, wanted.ifindex), value["flags"], FLAGS)
    with contextlib.nullcontext() if made else announced(name):
        place.dumps.change(_NEW_LINK, head + body, CREATE | EXCLUSIVE if made else 0)
    if made:
        # The kernel has chosen it, if it was not known.
        place.indexes[name] = wanted.ifindex or socket.if_nametoindex(name)
        return
    if value["genmode"] != present.get("genmode", value["genmode"]):
        write_interface(CONF6, name, "addr_gen_mode", value["genmode"])
    port, master = present.get("port", {}), present.get("master")
    if value["port"] and (value["port"], value["master"]) != (port, master):
        settings = pack_kept(info.get(5, b""), 0, VOLATILE_PORT, {1: FORWARDING} if "1" in port else {})
        body = pack_nested(18, pack_attribute(4, b"bridge\0"), pack_nested(5, settings))
        place.dumps.change(_NEW_LINK, LINK.pack(0, 0, place.indexes[name], 0, 0) + body)


def _rename_back(place: Place, name: str, wanted: KernelObject) -> bool:
    """Give an interface its name again. Returns whether there is one that has been renamed."""
    links = place.recorded.get(place.space, {})
    for other, index in place.indexes.items():
        if index == wanted.ifindex and place.kinds[other] == wanted.value["kind"] and ("link", other) not in links:
            rename = LINK.pack(0, 0, index, 0, 0) + pack_attribute(_NAME, name.encode() + b"\0")
            try:
                place.dumps.change(_NEW_LINK, rename)
            except OSError:
                # Before Linux 6.2: down.
                place.dumps.change(_NEW_LINK, LINK.pack(0, 0, index, 0, 1))
                place.dumps.change(_NEW_LINK, rename)
            del place.indexes[other]
            place.indexes[name] = index
            return True
    return False


def _make_paired(place: Place, name: str, wanted: KernelObject, info: Dict[int, bytes]) -> None:
    """Make a lost veth pair, macvlan, ipvlan or VLAN interface again, with its name, index and MAC."""
    old = attributes_in(wanted.raw, LINK.size)
    # An ipvlan interface has the MAC of its parent.
    kept = (3, 4, 13) if wanted.value["kind"] == "ipvlan" else (3, 1, 4, 13)
    body = b"".join(pack_attribute(kind, old[kind]) for kind in kept if kind in old)
    if wanted.value["kind"] == "veth":
        space, _name, other = _other_end(place, name, wanted)
        theirs = attributes_in(other.raw, LINK.size)
        peer = LINK.pack(0, 0, other.ifindex, 0, 0)
        peer += b"".join(pack_attribute(kind, theirs[kind]) for kind in (3, 1, 4, 13) if kind in theirs)
        with _descriptor(place, space) as far:
            peer += pack_attribute(_NETNS_FD, struct.pack("=I", far))
            body += pack_nested(18, pack_attribute(1, b"veth"), pack_nested(2, pack_nested(1, peer)))
            place.dumps.change(_NEW_LINK, LINK.pack(0, 0, wanted.ifindex, 0, 0) + body, CREATE | EXCLUSIVE)
    else:
        settings = set(attributes_in(info.get(2, b""))).difference(VOLATILE.get(wanted.value["kind"], ()))
        _make_at_lower(place, name, wanted, body + pack_kind(info, settings))
    place.indexes[name] = wanted.ifindex


@contextlib.contextmanager
def _descriptor(place: Place, space: str) -> Iterator[int]:
    """Give a descriptor of a namespace."""
    if space:
        kept = place.namespaces[space]
        # Where nothing is lost, it is not kept open.
        with contextlib.nullcontext(kept) if kept.fd >= 0 else Netns(space, kept.identity) as namespace:
            if namespace.fd < 0:
                raise NotInPlace(f"the network namespace {space} is gone")
            yield namespace.fd
        return
    fd = os.open(OWN_NETNS, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _make_at_lower(place: Place, name: str, wanted: KernelObject, body: bytes) -> None:
    """Make an interface in the namespace of its lower device, from where it moves to this one.

    The device may have been made again, with another index.
    """
    space, device = _lower_device(place, name, wanted)
    own = os.open(THREAD_NETNS, os.O_RDONLY | os.O_CLOEXEC)
    home = pack_attribute(_NETNS_FD, struct.pack("=I", own))

    def work() -> None:
        if not space:
            enter_host()
        elif not place.namespaces[space].enter():
            raise NotInPlace(f"the network namespace {space} is gone")
        try:
            index = socket.if_nametoindex(device)
        except OSError:
            raise NotInPlace(f"{device}, the lower device of {name}, is gone") from None
        attributes = pack_attribute(_LOWER, struct.pack("=I", index)) + body
        with Dumps() as dumps:
            try:
                head = LINK.pack(0, 0, wanted.ifindex, 0, 0)
                dumps.change(_NEW_LINK, head + attributes + home, CREATE | EXCLUSIVE)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.EBUSY):
                    raise
                # Another interface of this namespace has the index, which is free where the new one goes.
                move = pack_attribute(_NAME, name.encode() + b"\0") + home
                _make_and_move(dumps, attributes, move, wanted.ifindex)

    try:
        apart(work)
    finally:
        os.close(own)


def _make_and_move(dumps: Dumps, body: bytes, move: bytes, ifindex: int) -> None:
    """Make an interface under another name and index, and *move* it. It gets the index there since Linux 5.13."""
    passing = f"pw{os.urandom(5).hex()}"
    attributes = pack_kept(body, 0, (), {_NAME: passing.encode() + b"\0"})
    dumps.change(_NEW_LINK, LINK.pack(0, 0, 0, 0, 0) + attributes, CREATE | EXCLUSIVE)
    moving = LINK.pack(0, 0, socket.if_nametoindex(passing), 0, 0)
    try:
        dumps.change(_NEW_LINK, moving + move + pack_attribute(_NEW_IFINDEX, struct.pack("=i", ifindex)))
    except OSError:
        dumps.change(_DELETE_LINK, moving)
        raise


def _lower_device(place: Place, name: str, wanted: KernelObject) -> Tuple[str, str]:
    """Return the space and the name of a lower device."""
    lower = wanted.value["lower"]
    if isinstance(lower, dict):
        return "", str(lower.get("name"))
    return (place.space, lower) if not wanted.peer[1] else _other_end(place, name, wanted)[:2]


def _other_end(place: Place, name: str, wanted: KernelObject) -> Tuple[str, str, KernelObject]:
    """Return the space, the name and the object of the other end."""
    index, abroad = wanted.peer
    for space, objects in place.recorded.items() if index else ():
        if abroad == (space == place.space) or (abroad and "" not in (space, place.space)):
            # The index is one of this namespace, or of another: the host's in a container.
            continue
        for key, other in objects.items():
            if key[0] != "link" or other is wanted or other.ifindex != index:
                continue
            if wanted.value["kind"] != "veth" or other.peer[0] == wanted.ifindex:
                return space, str(key[1]), other
    raise NotInPlace(f"the other end of {name} is not recorded")
