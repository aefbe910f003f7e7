# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of netlink that must work on every host, with only the standard library.

The addresses of a namespace decide what is a leak, so reading them cannot depend on a library that may be missing.
Addresses on interfaces that are down count, too; ``/proc/net/fib_trie`` does not have them.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from .errors import HostError

_ERROR, _DONE = 2, 3
_NEWLINK, _DELLINK, _GETLINK = 16, 17, 18
_NEWADDR, _GETADDR = 20, 22
_NEWROUTE, _GETROUTE = 24, 26
_REQUEST, _ACK, _INTERRUPTED, _DUMP = 0x1, 0x4, 0x10, 0x300
_HEADER = struct.Struct("=LHHLL")
_ATTRIBUTE = struct.Struct("=HH")
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_ROUTE = struct.Struct("=BBBBBBBBI")
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_LINK, _IFLA_MASTER, _IFLA_LINKINFO, _INFO_KIND = 1, 3, 4, 5, 10, 18, 1
_IFLA_LINK_NETNSID, _IFLA_TARGET_NETNSID = 37, 46
_IFLA_EXT_MASK, _SKIP_STATS = 29, 8
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY, _RTA_PREFSRC, _RTA_MULTIPATH = 1, 4, 5, 6, 7, 9
_RTA_TABLE, _RTA_VIA = 15, 18
_UNICAST = 1
MAIN_TABLE, LOCAL_TABLE = 254, 255
_FLAG_UP = 1
# The kernel sends at most 32 KiB at once.
_BUFFER = 128 * 1024
_TRIES = 5
_TIMEOUT = 10.0


class Link:
    """One interface. ``link`` is the index of its other end or lower device, ``master`` that of its bridge; else 0.

    ``abroad`` tells that ``link`` is an index in another namespace, ``nsid`` is this namespace's number for that one
    (-1: none, as while that namespace ends). ``mac`` is "" if there is none.
    """

    __slots__ = ("abroad", "index", "kind", "link", "mac", "master", "mtu", "name", "nsid", "up")

    def __init__(
        self,
        index: int,
        name: str,
        kind: str,
        link: int,
        master: int,
        up: bool,
        abroad: bool,
        mac: str = "",
        mtu: int = 0,
        nsid: int = -1,
    ) -> None:
        self.index = index
        self.name = name
        self.kind = kind
        self.link = link
        self.master = master
        self.up = up
        self.abroad = abroad
        self.mac = mac
        self.mtu = mtu
        self.nsid = nsid


class Route(NamedTuple):
    """A route: ``raw`` (``addresses.packed``) and ``length`` of the destination.

    ``link`` is the index of its interface (0 for none, or several), ``remote`` tells that it leads through a gateway;
    ``gateway`` is the packed address of the gateway, if there is only one and of the same family. ``source`` is the
    packed source address of packets, b"" if the route does not set it. ``unicast`` tells that packets are sent on:
    other routes drop them, or deliver them to the host itself.
    """

    raw: bytes
    length: int
    link: int
    remote: bool
    gateway: bytes = b""
    source: bytes = b""
    metric: int = 0
    table: int = MAIN_TABLE
    unicast: bool = True


def host_addresses() -> Dict[bytes, Tuple[int, int]]:
    """Return the addresses of this thread's namespace, packed -> (index of the interface, prefix length)."""
    return {raw: (index, prefix) for raw, index, prefix in address_list()}


def address_list() -> List[Tuple[bytes, int, int]]:
    """Return the same as a list of (address, index, prefix length), because an address may be on several interfaces."""
    found = []
    for payload in _dump(_GETADDR, _NEWADDR, _ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)):
        family, prefix, _flags, _scope, index = _ADDRESS.unpack_from(payload)
        attributes = _attributes(payload, _ADDRESS.size)
        # On a point-to-point interface, IFA_ADDRESS is the address of the other side.
        raw = attributes.get(_IFA_LOCAL) or attributes.get(_IFA_ADDRESS)
        if raw and family in (socket.AF_INET, socket.AF_INET6):
            found.append(((b"4" if family == socket.AF_INET else b"6") + raw, index, prefix))
    return found


def routes() -> List[Route]:
    """Return the routes of this thread's namespace, from all tables."""
    found = []
    for payload in _dump(_GETROUTE, _NEWROUTE, _ROUTE.pack(socket.AF_UNSPEC, 0, 0, 0, 0, 0, 0, 0, 0)):
        family, length, _source, _tos, table, _protocol, _scope, kind, _flags = _ROUTE.unpack_from(payload)
        if family not in (socket.AF_INET, socket.AF_INET6):
            continue
        attributes = _attributes(payload, _ROUTE.size)
        if length and _RTA_DST not in attributes:
            continue
        mark, size = (b"4", 4) if family == socket.AF_INET else (b"6", 16)
        found.append(
            Route(
                mark + attributes.get(_RTA_DST, bytes(size)),
                length,
                _number(attributes.get(_RTA_OIF)),
                any(key in attributes for key in (_RTA_GATEWAY, _RTA_VIA, _RTA_MULTIPATH)),
                mark + attributes[_RTA_GATEWAY] if _RTA_GATEWAY in attributes else b"",
                mark + attributes[_RTA_PREFSRC] if _RTA_PREFSRC in attributes else b"",
                _number(attributes.get(_RTA_PRIORITY)),
                _number(attributes.get(_RTA_TABLE)) or table,
                kind == _UNICAST,
            )
        )
    return found


def links() -> Dict[int, Link]:
    """Return the interfaces of this thread's namespace by index."""
    found = {}
    # Without this, counters would be a large part of the answer.
    request = (
        _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + _ATTRIBUTE.pack(8, _IFLA_EXT_MASK) + struct.pack("=I", _SKIP_STATS)
    )
    for payload in _dump(_GETLINK, _NEWLINK, request):
        _family, _type, index, flags, _change = _LINK.unpack_from(payload)
        attributes = _attributes(payload, _LINK.size)
        info = _attributes(attributes.get(_IFLA_LINKINFO, b""), 0)
        found[index] = Link(
            index,
            _text(attributes.get(_IFLA_IFNAME)),
            _text(info.get(_INFO_KIND)),
            _number(attributes.get(_IFLA_LINK)),
            _number(attributes.get(_IFLA_MASTER)),
            bool(flags & _FLAG_UP),
            _IFLA_LINK_NETNSID in attributes,
            ":".join(f"{byte:02x}" for byte in attributes.get(_IFLA_ADDRESS, b"")),
            _number(attributes.get(_IFLA_MTU)),
            struct.unpack("=i", attributes.get(_IFLA_LINK_NETNSID, b"\xff\xff\xff\xff"))[0],
        )
    return found


def namespace_exists(nsid: int) -> bool:
    """Tell whether the namespace with the number *nsid* still exists: its links remain while the kernel ends it."""
    attribute = _ATTRIBUTE.pack(8, _IFLA_TARGET_NETNSID) + struct.pack("=i", nsid)
    try:
        _dump(_GETLINK, _NEWLINK, _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + attribute)
    except HostError as error:
        # Another error does not mean that the namespace is gone.
        return getattr(error.__cause__, "errno", None) != errno.EINVAL
    return True


def delete_link(index: int, name: str) -> None:
    """Remove an interface if it still has that index and that name. It may be gone already.

    Raises HostError ``link_not_removed``.
    """
    here = links().get(index)
    if here is None or here.name != name:
        return
    with _socket() as netlink:
        payload = _LINK.pack(socket.AF_UNSPEC, 0, index, 0, 0)
        netlink.send(_HEADER.pack(_HEADER.size + len(payload), _DELLINK, _REQUEST | _ACK, 1, 0) + payload)
        for kind, _flags, answer in _messages(netlink.recv(_BUFFER)):
            number = -struct.unpack_from("=i", answer)[0] if kind == _ERROR else 0
            if number and index in links():
                raise HostError(f"cannot remove the interface {name}: {os.strerror(number)}", code="link_not_removed")


def _dump(request: int, answer: int, payload: bytes) -> List[bytes]:
    """Return what the kernel lists. If something changes meanwhile, ask again, so that nothing is missed."""
    for _try in range(_TRIES):
        found = _dump_once(request, answer, payload)
        if found is not None:
            return found
    raise HostError("the kernel's interfaces change faster than they can be read; run again", code="kernel_unreadable")


def _dump_once(request: int, answer: int, payload: bytes) -> Optional[List[bytes]]:
    found: List[bytes] = []
    whole = True
    with _socket() as netlink:
        netlink.send(_HEADER.pack(_HEADER.size + len(payload), request, _REQUEST | _DUMP, 1, 0) + payload)
        while True:
            for kind, flags, content in _messages(_receive(netlink)):
                whole = whole and not flags & _INTERRUPTED
                # A dump that fails, at its beginning or halfway, ends with the error's number.
                number = -struct.unpack_from("=i", content)[0] if kind in (_ERROR, _DONE) else 0
                if number:
                    cause = OSError(number, os.strerror(number))
                    raise HostError(f"cannot query the kernel: {cause.strerror}", code="kernel_unreadable") from cause
                if kind == _DONE:
                    return found if whole else None
                if kind == answer:
                    found.append(content)


def _socket() -> socket.socket:
    try:
        netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        netlink.settimeout(_TIMEOUT)
    except OSError as error:
        raise HostError(f"cannot open a netlink socket: {error.strerror}", code="kernel_unreadable") from error
    return netlink


def _receive(netlink: socket.socket) -> bytes:
    try:
        return netlink.recv(_BUFFER)
    except OSError as error:
        raise HostError(f"cannot query the kernel: {error}", code="kernel_unreadable") from error


def _messages(data: bytes) -> Iterator[Tuple[int, int, bytes]]:
    """Split what was received into (type, flags, payload)."""
    begin = 0
    while len(data) - begin >= _HEADER.size:
        length, kind, flags, _sequence, _port = _HEADER.unpack_from(data, begin)
        if length < _HEADER.size or begin + length > len(data):
            raise HostError("the kernel's answer was cut short", code="kernel_unreadable")
        yield kind, flags, data[begin + _HEADER.size : begin + length]
        begin += (length + 3) & ~3


def _attributes(data: bytes, begin: int) -> Dict[int, bytes]:
    """Return the attributes in *data* from *begin* on."""
    found = {}
    while len(data) - begin >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data, begin)
        if length < _ATTRIBUTE.size:
            break
        found[kind & 0x3FFF] = data[begin + _ATTRIBUTE.size : begin + length]
        begin += (length + 3) & ~3
    return found


def _text(raw: Optional[bytes]) -> str:
    return os.fsdecode((raw or b"").rstrip(b"\0"))


def _number(raw: Optional[bytes]) -> int:
    return int(struct.unpack("=I", raw)[0]) if raw and len(raw) == 4 else 0
