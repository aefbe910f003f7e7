# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The part of netlink that must work on every host, with only the standard library.

The addresses of a namespace decide what is a leak, so reading them cannot depend on a library that may be missing.
Addresses on interfaces that are down count, too; ``/proc/net/fib_trie`` does not have them.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from typing import Dict, List, NamedTuple, Optional, Tuple

from ..libcni import kernel
from ..libcni.kernel import attributes_in, decode_text, number_in, pack_attribute
from .errors import HostError
from .paths import OWN_NETNS, THREAD_NETNS
from .struct import struct as values

_NEWLINK, _DELLINK, _GETLINK = 16, 17, 18
_NEWADDR, _GETADDR = 20, 22
_NEWROUTE, _GETROUTE = 24, 26
_NEWNSID, _GETNSID = 88, 90
_NETNSA_NSID, _NETNSA_FD = 1, 3
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_ROUTE = struct.Struct("=BBBBBBBBI")
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_LINK, _IFLA_MASTER, _IFLA_LINKINFO, _INFO_KIND = 1, 3, 4, 5, 10, 18, 1
_IFLA_LINK_NETNSID, _IFLA_TARGET_NETNSID = 37, 46
_IFLA_EXT_MASK, _SKIP_STATS = 29, 8
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_MULTIPATH = 1, 4, 5, 9
_RTA_TABLE, _RTA_VIA = 15, 18
UNICAST, UP = 1, 0x1
MAIN_TABLE, LOCAL_TABLE = 254, 255


@values
class Link:
    """One interface. ``link`` is the index of its other end or lower device, ``master`` that of its bridge; else 0.

    ``abroad`` tells that ``link`` is an index in another namespace, ``nsid`` is this namespace's number for that one
    (-1: none, as while that namespace ends). In a container, the other one is the host's; ``link`` is 0 for a third
    one's, in which a container can choose indexes as it likes. ``mac`` is "" if there is none.
    """

    index: int
    name: str
    kind: str
    link: int
    master: int
    up: bool
    abroad: bool
    mac: str = ""
    mtu: int = 0
    nsid: int = -1


class Route(NamedTuple):
    """A route: ``raw`` (``addresses.packed``) and ``length`` of the destination.

    ``link`` is the index of its interface (0 for none, or several), ``remote`` tells that it leads through a gateway.
    ``unicast`` tells that packets are sent on: other routes drop them, or deliver them to the host itself. ``protocol``
    is the number of what made the route.
    """

    raw: bytes
    length: int
    link: int
    remote: bool
    table: int = MAIN_TABLE
    unicast: bool = True
    protocol: int = 0


def host_addresses() -> Dict[bytes, Tuple[int, int]]:
    """Return the addresses of this thread's namespace, packed -> (index of the interface, prefix length)."""
    addresses = {}
    for payload in _dump(_GETADDR, _NEWADDR, _ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)):
        family, prefix, _flags, _scope, index = _ADDRESS.unpack_from(payload)
        attributes = attributes_in(payload, _ADDRESS.size)
        # On a point-to-point interface, IFA_ADDRESS is the address of the other side.
        raw = attributes.get(_IFA_LOCAL) or attributes.get(_IFA_ADDRESS)
        if raw and family in (socket.AF_INET, socket.AF_INET6):
            addresses[(b"4" if family == socket.AF_INET else b"6") + raw] = index, prefix
    return addresses


def routes() -> List[Route]:
    """Return the routes of this thread's namespace, from all tables."""
    listed = []
    for payload in _dump(_GETROUTE, _NEWROUTE, _ROUTE.pack(socket.AF_UNSPEC, 0, 0, 0, 0, 0, 0, 0, 0)):
        family, length, _source, _tos, table, protocol, _scope, kind, _flags = _ROUTE.unpack_from(payload)
        if family not in (socket.AF_INET, socket.AF_INET6):
            continue
        attributes = attributes_in(payload, _ROUTE.size)
        if length and _RTA_DST not in attributes:
            continue
        mark, size = (b"4", 4) if family == socket.AF_INET else (b"6", 16)
        listed.append(
            Route(
                mark + attributes.get(_RTA_DST, bytes(size)),
                length,
                number_in(attributes.get(_RTA_OIF)),
                any(key in attributes for key in (_RTA_GATEWAY, _RTA_VIA, _RTA_MULTIPATH)),
                number_in(attributes.get(_RTA_TABLE)) or table,
                kind == UNICAST,
                protocol,
            )
        )
    return listed


def links() -> Dict[int, Link]:
    """Return the interfaces of this thread's namespace by index."""
    interfaces = {}
    # Without this, counters would be a large part of the answer.
    request = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + pack_attribute(_IFLA_EXT_MASK, struct.pack("=I", _SKIP_STATS))
    with Dumps() as dumps:
        for payload in dumps.dump(_GETLINK, _NEWLINK, request):
            _family, _type, index, flags, _change = _LINK.unpack_from(payload)
            attributes = attributes_in(payload, _LINK.size)
            info = attributes_in(attributes.get(_IFLA_LINKINFO, b""), 0)
            nsid = attributes.get(_IFLA_LINK_NETNSID)
            interfaces[index] = Link(
                index,
                decode_text(attributes.get(_IFLA_IFNAME)),
                decode_text(info.get(_INFO_KIND)),
                number_in(attributes.get(_IFLA_LINK)) if dumps.is_at_host(nsid) else 0,
                number_in(attributes.get(_IFLA_MASTER)),
                bool(flags & UP),
                nsid is not None,
                ":".join(f"{byte:02x}" for byte in attributes.get(_IFLA_ADDRESS, b"")),
                number_in(attributes.get(_IFLA_MTU)),
                struct.unpack("=i", nsid or b"\xff\xff\xff\xff")[0],
            )
    return interfaces


def namespace_exists(nsid: int) -> bool:
    """Tell whether the namespace with the number *nsid* still exists: its links remain while the kernel ends it."""
    attribute = pack_attribute(_IFLA_TARGET_NETNSID, struct.pack("=i", nsid))
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
    link = links().get(index)
    if link is None or link.name != name:
        return
    with Dumps() as netlink:
        try:
            netlink.change(_DELLINK, _LINK.pack(socket.AF_UNSPEC, 0, index, 0, 0))
        except OSError as error:
            if index in links():
                text = f"cannot remove the interface {name}: {error.strerror}"
                raise HostError(text, code="link_not_removed") from error


class Dumps(kernel.Netlink):
    """A netlink socket in the namespace of the thread that opens it: asks for lists, and makes changes.

    Raises HostError ``kernel_unreadable`` if the kernel cannot be asked; a change that it refuses is an OSError.
    """

    __slots__ = ("_host",)

    def __init__(self) -> None:
        self._host: Optional[bytes] = None
        try:
            super().__init__()
        except OSError as error:
            raise HostError(f"cannot open a netlink socket: {error.strerror}", code="kernel_unreadable") from error

    def __enter__(self) -> Dumps:
        return self

    def dump(self, request: int, answer: int, payload: bytes) -> List[bytes]:
        """Return what the kernel lists. If something changes meanwhile, ask again, so that nothing is missed."""
        try:
            return super().dump(request, answer, payload)
        except OSError as error:
            # A timeout has no number.
            text = f"cannot query the kernel: {error.strerror or error}"
            raise HostError(text, code="kernel_unreadable") from error

    def is_at_host(self, nsid: Optional[bytes]) -> bool:
        """Tell whether an interface's other end is here or in the host's namespace; on the host: anywhere.

        *nsid* is the number of the other end's namespace, as the kernel tells it, None if that is this one.
        """
        if nsid is None:
            return True
        if self._host is None:
            self._host = self._number_of_host()
        return self._host in (b"", nsid)

    def _number_of_host(self) -> bytes:
        """Return the number by which this thread's namespace knows the host's, b"" in the host's itself."""
        if os.path.samestat(os.stat(OWN_NETNS), os.stat(THREAD_NETNS)):
            return b""
        fd = os.open(OWN_NETNS, os.O_RDONLY | os.O_CLOEXEC)
        try:
            answer = self.ask(_GETNSID, _NEWNSID, bytes(4) + pack_attribute(_NETNSA_FD, struct.pack("=I", fd)))
        except OSError as error:
            raise HostError(f"cannot query the kernel: {error.strerror}", code="kernel_unreadable") from error
        finally:
            os.close(fd)
        return attributes_in(answer, 4).get(_NETNSA_NSID, b"")


def _dump(request: int, answer: int, payload: bytes) -> List[bytes]:
    with Dumps() as dumps:
        return dumps.dump(request, answer, payload)
