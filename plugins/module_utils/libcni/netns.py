# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Network namespaces and what is in them, for plugins: links, addresses, routes (Go: the plugins' pkg/ns, pkg/ip).

All functions act on the namespace that the thread is in; `inside` moves it there and back:

    with netns.inside(args.netns):
        netns.add_route(libcni.Route("10.2.0.0/16", "10.1.0.1"), args.ifname)

Routes are those of table main unless a table is given. Errors are `CNIError` with Go's texts; `NamespaceError` and
`LinkError` tell what is missing. Own rtnetlink sockets, because importing pyroute2 takes longer than all the rest.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct

from .errors import CNIError, quote
from .fields import Route, parse_cidr, parse_ip
from .kernel import (
    CREATE,
    EXCLUSIVE,
    Netlink,
    attributes_in,
    decode_text,
    number_in,
    pack_attribute,
    pack_nested,
    setns,
)
from .validate import is_overridden

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

_OWN = "/proc/thread-self/ns/net"
_NEW_LINK, _DEL_LINK, _GET_LINK = 16, 17, 18
_NEW_ADDRESS, _GET_ADDRESS = 20, 22
_NEW_ROUTE, _DEL_ROUTE, _GET_ROUTE = 24, 25, 26
_LINK, _ADDRESS, _ROUTE = struct.Struct("=BxHiII"), struct.Struct("=BBBBI"), struct.Struct("=BBBBBBBBI")
_MAIN, _UNICAST, _BOOT, _UP, _NO_DAD = 254, 1, 3, 1, 2
# For RTM_DELROUTE: of any protocol, in any scope.
_ANY_PROTOCOL, _ANYWHERE = 0, 255
_LINK_SCOPE = 253
_TRIES = 10


class _MissingError(CNIError):
    def __init__(self, msg: str, gone: bool = False) -> None:
        super().__init__(msg)
        self.gone = gone


class NamespaceError(_MissingError):
    """A network namespace that cannot be entered. `gone`: nothing is at its path."""


class LinkError(_MissingError):
    """An interface that is not there, or that the kernel does not accept. `gone`: there is none of that name."""


class Link:
    """An interface: `name`, `index`, `mac` ("" for none), `mtu`, `up`, `kind` ("" for hardware), `master` and `peer`.

    The last two are indexes, 0 for none: of its bridge, and of its other end or lower device.
    """

    __slots__ = ("index", "kind", "mac", "master", "mtu", "name", "peer", "up")

    def __init__(self, raw: bytes) -> None:
        _family, _type, self.index, flags, _change = _LINK.unpack_from(raw)
        parts = attributes_in(raw, _LINK.size)
        self.name = decode_text(parts.get(3))
        self.kind = decode_text(attributes_in(parts.get(18, b"")).get(1))
        self.mac = ":".join(f"{byte:02x}" for byte in parts.get(1, b""))
        self.mtu = number_in(parts.get(4))
        self.master = number_in(parts.get(10))
        self.peer = number_in(parts.get(5))
        self.up = bool(flags & _UP)


# ---- namespaces


@contextlib.contextmanager
def inside(where: str | int) -> t.Iterator[int]:
    """Move this thread into the namespace at a path, or open as a file descriptor, and back at the end.

    The value is a descriptor of the namespace that it comes from, for `make_veth`.
    Only this thread moves; threads and processes that it starts meanwhile stay in the namespace. Raises
    `NamespaceError`, also for a path that leads to the namespace of the thread itself, the host's: its meaning may have
    changed since skel compared it (not with CNI_NETNS_OVERRIDE, as there). A thread that cannot go back ends its
    process: it must not work on in the wrong namespace.
    """
    before = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _enter(where, before)
        try:
            yield before
        finally:
            try:
                setns(before)
            except OSError as exc:
                os.write(2, f"cannot leave the network namespace {where}: {exc.strerror}\n".encode())
                os._exit(1)
    finally:
        os.close(before)


def _enter(where: str | int, before: int) -> None:
    fd = where if isinstance(where, int) else _open(where)
    try:
        is_own = fd is not where and os.path.samestat(os.fstat(fd), os.fstat(before))
        if is_own and not is_overridden(os.environ.get("CNI_NETNS_OVERRIDE", "")):
            raise NamespaceError("plugin's netns and netns from CNI_NETNS should not be the same")
        setns(fd)
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
        raise NamespaceError(f"error switching to ns {where}: {reason}") from exc
    finally:
        if fd is not where:
            os.close(fd)


def _open(path: str) -> int:
    failed = f"failed to open netns {quote(path)}: "
    try:
        # Only a file of the kernel's own file system is opened: others may be pipes or devices.
        if os.stat(path).st_dev == os.stat(_OWN).st_dev:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError) as exc:
        reason = (getattr(exc, "strerror", None) or str(exc)).lower()
        gone = isinstance(exc, (FileNotFoundError, NotADirectoryError))
        raise NamespaceError(f"{failed}failed to Statfs {quote(path)}: {reason}", gone) from exc
    # Also the file that stays when a namespace is unmounted, so nothing is there to clean up.
    raise NamespaceError(f"{failed}{quote(path)} is not a network namespace", gone=True)


# ---- links


def _ask(request: int, answer: int, payload: bytes) -> list[bytes]:
    try:
        with Netlink() as netlink:
            return netlink.dump(request, answer, payload)
    except OSError as exc:
        raise CNIError(f"cannot query the kernel: {exc.strerror or exc}") from exc


def _change(request: int, payload: bytes, flags: int = 0) -> None:
    with Netlink() as netlink:
        netlink.change(request, payload, flags)


def links() -> list[Link]:
    """Return the interfaces. Raises `CNIError`."""
    # Without counters.
    request = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + pack_attribute(29, struct.pack("=I", 8))
    return [Link(raw) for raw in _ask(_GET_LINK, _NEW_LINK, request)]


def link(name: str) -> Link:
    """Return the interface of that name. Raises `LinkError`."""
    for interface in links():
        if interface.name == name:
            return interface
    raise LinkError(f"failed to lookup {quote(name)}: Link not found", gone=True)


def _text(name: str) -> bytes:
    return os.fsencode(name) + b"\0"


def set_up(name: str, up: bool = True) -> None:
    """Bring an interface up, or down. Raises `LinkError`."""
    request = _LINK.pack(socket.AF_UNSPEC, 0, link(name).index, _UP if up else 0, _UP)
    try:
        _change(_NEW_LINK, request)
    except OSError as exc:
        state = "UP" if up else "DOWN"
        raise LinkError(f"failed to set {quote(name)} {state}: {(exc.strerror or str(exc)).lower()}") from exc


def delete_link(name: str) -> bool:
    """Remove an interface; False if there is none of that name. Raises `LinkError`."""
    try:
        _change(_DEL_LINK, _LINK.pack(socket.AF_UNSPEC, 0, link(name).index, 0, 0))
    except LinkError:
        return False
    except OSError as exc:
        if not any(interface.name == name for interface in links()):
            return False
        raise LinkError(f"failed to delete {quote(name)}: {(exc.strerror or str(exc)).lower()}") from exc
    return True


def make_veth(name: str, host: str | int, mtu: int = 0, mac: str = "", host_name: str = "") -> tuple[Link, str]:
    """Make a veth pair, one end here, the other in the namespace `host`, a path or a descriptor; both up.

    `host_name`: the name of the other end; "" for a free one. Returns this end and the other's name. Raises
    `LinkError`, `NamespaceError` (Go: ip.SetupVeth).
    """
    if any(interface.name == name for interface in links()):
        raise LinkError(f"container veth name provided ({name}) already exists")
    fd = host if isinstance(host, int) else _open(host)
    try:
        for _try in range(_TRIES):
            other = host_name or f"veth{os.urandom(4).hex()}"
            if _made_veth(name, other, fd, mtu, mac):
                break
            if host_name:
                raise LinkError(f"container veth name ({quote(name)}) peer provided ({quote(other)}) already exists")
        else:
            raise LinkError("failed to find a unique veth name")
        try:
            with inside(fd):
                set_up(other)
            set_up(name)
        except CNIError:
            delete_link(name)
            raise
    finally:
        if fd is not host:
            os.close(fd)
    return link(name), other


def _made_veth(name: str, other: str, fd: int, mtu: int, mac: str) -> bool:
    """Make the pair; False if the other end's name is taken."""
    size = pack_attribute(4, struct.pack("=I", mtu)) if mtu else b""
    peer = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + pack_attribute(3, _text(other)) + size
    peer += pack_attribute(28, struct.pack("=I", fd))
    kind = pack_nested(18, pack_attribute(1, b"veth"), pack_nested(2, pack_attribute(1, peer)))
    body = pack_attribute(3, _text(name)) + size + (pack_attribute(1, _mac(mac)) if mac else b"") + kind
    try:
        _change(_NEW_LINK, _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + body, CREATE | EXCLUSIVE)
    except FileExistsError:
        return False
    except OSError as exc:
        raise LinkError(f"failed to make veth pair: {(exc.strerror or str(exc)).lower()}") from exc
    return True


def _mac(text: str) -> bytes:
    try:
        return bytes.fromhex(text.replace(":", "").replace("-", ""))
    except ValueError:
        raise LinkError(f"address {text}: invalid MAC address") from None


# ---- addresses


def addresses(name: str) -> list[str]:
    """Return the addresses of an interface with their prefix lengths. Raises `LinkError`."""
    index = link(name).index
    cidrs = []
    for raw in _ask(_GET_ADDRESS, _NEW_ADDRESS, _ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)):
        family, length, _flags, _scope, owner = _ADDRESS.unpack_from(raw)
        parts = attributes_in(raw, _ADDRESS.size)
        packed = parts.get(2) or parts.get(1)
        if owner == index and packed:
            cidrs.append(f"{socket.inet_ntop(family, packed)}/{length}")
    return cidrs


def add_address(name: str, address: str) -> None:
    """Add an address with its prefix length; IPv6 is usable at once. Raises `LinkError`, `CNIError`."""
    packed, length = _network(address)
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    head = _ADDRESS.pack(family, length, _NO_DAD if len(packed) == 16 else 0, 0, link(name).index)
    body = pack_attribute(2, packed) + pack_attribute(1, packed)
    if len(packed) == 4 and length < 31:
        everyone = int.from_bytes(packed, "big") | (1 << (32 - length)) - 1
        body += pack_attribute(4, everyone.to_bytes(4, "big"))
    try:
        _change(_NEW_ADDRESS, head + body, CREATE | EXCLUSIVE)
    except OSError as exc:
        reason = (exc.strerror or str(exc)).lower()
        raise LinkError(f"failed to add IP addr {address} to {quote(name)}: {reason}") from exc


def _network(text: str) -> tuple[bytes, int]:
    cidr = parse_cidr(text)
    if cidr is None:
        raise CNIError(f"invalid CIDR address: {text}")
    return cidr


# ---- routes


def _route(route: Route, index: int, deleted: bool = False) -> bytes:
    packed, length = _network(route.dst)
    gateway = parse_ip(route.gw) if route.gw else None
    if route.gw and (gateway is None or len(gateway) != len(packed)):
        raise CNIError(f"invalid gateway of the route to {route.dst}: {route.gw}")
    table = _MAIN if route.table is None else route.table
    scope = route.scope
    if scope is None:
        scope = _ANYWHERE if deleted else _LINK_SCOPE if len(packed) == 4 and not gateway else 0
    family = socket.AF_INET if len(packed) == 4 else socket.AF_INET6
    protocol, kind = (_ANY_PROTOCOL, 0) if deleted else (_BOOT, _UNICAST)
    # A table beyond a byte is in an attribute only.
    head = _ROUTE.pack(family, length, 0, 0, table if table < 256 else 0, protocol, scope, kind, 0)
    bits = len(packed) * 8
    kept = int.from_bytes(packed, "big") >> (bits - length) << (bits - length)
    body = pack_attribute(1, kept.to_bytes(len(packed), "big")) if length else b""
    body += pack_attribute(5, gateway) if gateway else b""
    body += pack_attribute(4, struct.pack("=I", index)) if index else b""
    body += pack_attribute(15, struct.pack("=I", table))
    body += pack_attribute(6, struct.pack("=I", route.priority)) if route.priority else b""
    metrics = [(2, route.mtu), (8, route.advmss)]
    inner = [pack_attribute(kind, struct.pack("=I", value)) for kind, value in metrics if value]
    return head + body + (pack_nested(8, *inner) if inner and not deleted else b"")


def _failed_route(verb: str, route: Route, name: str, exc: OSError) -> CNIError:
    reason = (exc.strerror or str(exc)).lower()
    return CNIError(f"failed to {verb} route '{route.dst} via {route.gw or '<nil>'} dev {name}': {reason}")


def add_route(route: Route, name: str = "") -> bool:
    """Add a route, on the interface `name` or the one that leads to its gateway; False if it is there already.

    Raises `LinkError`, `CNIError`.
    """
    try:
        _change(_NEW_ROUTE, _route(route, link(name).index if name else 0), CREATE | EXCLUSIVE)
    except FileExistsError:
        if has_route(route, name):
            return False
        raise _failed_route("add", route, name, FileExistsError(17, "another route has its place")) from None
    except OSError as exc:
        raise _failed_route("add", route, name, exc) from exc
    return True


def delete_route(route: Route, name: str = "") -> bool:
    """Remove a route; False if there is none. What `route` leaves empty may be anything. Raises `CNIError`."""
    try:
        _change(_DEL_ROUTE, _route(route, link(name).index if name else 0, deleted=True))
    except (ProcessLookupError, FileNotFoundError):
        return False
    except OSError as exc:
        raise _failed_route("delete", route, name, exc) from exc
    return True


def routes(name: str = "", table: int = _MAIN) -> list[Route]:
    """Return the unicast routes of a table, of one interface or of all. Raises `LinkError`, `CNIError`."""
    index = link(name).index if name else 0
    unicast = []
    for raw in _ask(_GET_ROUTE, _NEW_ROUTE, _ROUTE.pack(socket.AF_UNSPEC, 0, 0, 0, 0, 0, 0, 0, 0)):
        family, length, _source, _tos, short, _protocol, scope, kind, _flags = _ROUTE.unpack_from(raw)
        parts = attributes_in(raw, _ROUTE.size)
        route_table = number_in(parts.get(15)) or short
        if kind != _UNICAST or route_table != table or family not in (socket.AF_INET, socket.AF_INET6):
            continue
        if index and number_in(parts.get(4)) != index:
            continue
        packed = parts.get(1, bytes(4 if family == socket.AF_INET else 16))
        gateway = socket.inet_ntop(family, parts[5]) if 5 in parts else ""
        metrics = attributes_in(parts.get(8, b""))
        unicast.append(
            Route(
                f"{socket.inet_ntop(family, packed)}/{length}",
                gateway,
                number_in(metrics.get(2)),
                number_in(metrics.get(8)),
                number_in(parts.get(6)),
                route_table,
                scope,
            )
        )
    return unicast


def has_route(route: Route, name: str = "") -> bool:
    """Tell whether a route is there, with all that `route` says of it. Raises `LinkError`, `CNIError`."""
    table = _MAIN if route.table is None else route.table
    return any(
        _destination(existing) == _destination(route)
        and all(getattr(route, key) in (0, getattr(existing, key)) for key in ("mtu", "advmss", "priority"))
        for existing in routes(name, table)
    )


def _destination(route: Route) -> tuple[int, int, int, bytes | None]:
    packed, length = _network(route.dst)
    bits = len(packed) * 8
    return bits, length, int.from_bytes(packed, "big") >> (bits - length), parse_ip(route.gw) if route.gw else None
