# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The pieces of JSON in results: addresses, routes, interfaces (Go: pkg/types/types.go). Name servers: `dns`.

Each function takes a decoded value and returns it as Go would write it again: unknown keys dropped, addresses in
canonical text, empty members left out. Errors are `JSONError`.
"""

from __future__ import annotations

from . import gojson
from .errors import JSONError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

# What Go prints for an address that was never set. No plugin can read it, in Go's output either.
UNSET = "<nil>"

_IN_IP = frozenset("0123456789abcdefABCDEF:.")
_LONGEST_PREFIX = 7
_LONGEST_IP = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")
# The start of an IPv4 address in IPv6's form, ::ffff:10.0.0.1.
_MAPPED = b"\0" * 10 + b"\xff\xff"


def parse_ip(text: str) -> bytes | None:
    """Return an address' 4 or 16 bytes, None for other text."""
    # Some versions of ipaddress accept what Go does not: zones, digits of other scripts, leading zeros.
    if len(text) > _LONGEST_IP or not _IN_IP.issuperset(text):
        return None
    dotted = _dotted(text)
    if any(part.startswith("0") and part != "0" for part in dotted):
        return None
    if ":" not in text:
        is_ipv4_text = len(dotted) == 4 and all(
            part.isdigit() and len(part) <= 3 and int(part) <= 255 for part in dotted
        )
        return bytes(map(int, dotted)) if is_ipv4_text else None
    # Imported here because it takes 5 ms, which only callers with IPv6 addresses need.
    import ipaddress

    try:
        return ipaddress.ip_address(text).packed
    except ValueError:
        return None


def _dotted(text: str) -> list[str]:
    """Return the four numbers of an IPv4 address, which may be the end of an IPv6 one; nothing if there is none."""
    end = text.rpartition(":")[2]
    return end.split(".") if "." in end else []


def _print(packed: bytes) -> str:
    if len(packed) == 16 and packed.startswith(_MAPPED):
        packed = packed[12:]
    if len(packed) == 4:
        return ".".join(map(str, packed))
    import ipaddress

    return str(ipaddress.ip_address(packed))


def decode_ip(value: t.Any, where: str) -> str:
    """Return a plain address, "" if there is none."""
    text = gojson.as_string(value, where)
    if not text:
        return ""
    packed = parse_ip(text)
    if packed is None:
        raise JSONError(f"invalid IP address: {text}", where=where)
    return _print(packed)


def decode_cidr(value: t.Any, where: str) -> str:
    """Return an address with its prefix length; host bits are kept. Neither may be missing."""
    text = gojson.as_string(value, where)
    cidr = parse_cidr(text)
    if cidr is None:
        raise JSONError(f"invalid CIDR address: {text}", where=where)
    packed, length = cidr
    if len(packed) == 16 and packed.startswith(_MAPPED):
        # Go prints an IPv4 address that was written as IPv6 as IPv4, with what is left of its mask.
        length = max(0, length - 96)
    return f"{_print(packed)}/{length}"


def parse_cidr(text: str) -> tuple[bytes, int] | None:
    """Return an address' bytes and its prefix length, None for other text."""
    address, _slash, prefix = text.partition("/")
    packed = parse_ip(address)
    is_number = prefix.isascii() and prefix.isdigit() and len(prefix) <= _LONGEST_PREFIX
    return None if packed is None or not is_number or int(prefix) > len(packed) * 8 else (packed, int(prefix))


def is_ipv4(cidr: str) -> bool:
    """Tell whether a canonical address is IPv4; `UNSET` is not."""
    return "." in cidr


_ROUTE = ("dst", "gw", "mtu", "advmss", "priority", "table", "scope")


def decode_route(value: t.Any, where: str) -> gojson.Struct:
    """Return a route: dst, gw, mtu, advmss, priority, table, scope; of the last two, 0 is kept."""
    members: dict[str, t.Any] = {"dst": UNSET}
    for name, item in gojson.struct_items(required_object(value, where), _ROUTE):
        at = f"{where}/{name}"
        if name == "dst":
            members[name] = decode_cidr(item, at)
        elif name == "gw":
            members[name] = decode_ip(item, at)
        else:
            members[name] = None if item is None else gojson.as_int(item, at)
    route = gojson.pick(members, _ROUTE[:5])
    for name in ("table", "scope"):
        if members.get(name) is not None:
            route[name] = members[name]
    return route


class _Record:
    """A part of a result. Its attributes can be set; equal to another with the same content."""

    __slots__ = ()
    _KEYS: t.ClassVar[tuple[tuple[str, str], ...]] = ()
    _KEPT: t.ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> gojson.Struct:
        """Return JSON data in the shape of 1.1.0, without what is empty."""
        pairs = [(key, getattr(self, attribute)) for attribute, key in self._KEYS]
        return gojson.Struct(
            (key, list(value) if isinstance(value, tuple) else value)
            for key, value in pairs
            if value or (key in self._KEPT and value is not None)
        )

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        pairs = [(attribute, getattr(self, attribute)) for attribute, _key in self._KEYS]
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in pairs if value)})"


class Interface(_Record):
    """An interface of a result. `mtu` in bytes, 0 for unknown; `sandbox`: path of its namespace, "" on the host."""

    __slots__ = ("mac", "mtu", "name", "pci_id", "sandbox", "socket_path")
    _KEYS = (
        ("name", "name"),
        ("mac", "mac"),
        ("mtu", "mtu"),
        ("sandbox", "sandbox"),
        ("socket_path", "socketPath"),
        ("pci_id", "pciID"),
    )
    _KEPT = ("name",)

    def __init__(
        self, name: str, mac: str = "", sandbox: str = "", mtu: int = 0, socket_path: str = "", pci_id: str = ""
    ) -> None:
        self.name = name
        self.mac = mac
        self.sandbox = sandbox
        self.mtu = mtu
        self.socket_path = socket_path
        self.pci_id = pci_id


class IPConfig(_Record):
    """An address of a result: `10.1.0.2/24`, its gateway, and its interface's place in `interfaces`, from 0."""

    __slots__ = ("address", "gateway", "interface")
    _KEYS = (("interface", "interface"), ("address", "address"), ("gateway", "gateway"))
    _KEPT = ("interface",)

    def __init__(self, address: str, gateway: str = "", interface: int | None = None) -> None:
        self.address = address
        self.gateway = gateway
        self.interface = interface


class Route(_Record):
    """A route of a result: destination `10.2.0.0/16`, gateway; `mtu` and `advmss` in bytes, 0 for none.

    `priority`: the metric, 0 for the kernel's default. `table` and `scope`: the kernel's numbers, None for its default.
    """

    __slots__ = ("advmss", "dst", "gw", "mtu", "priority", "scope", "table")
    _KEYS = tuple((name, name) for name in _ROUTE)
    _KEPT = ("table", "scope")

    def __init__(
        self,
        dst: str,
        gw: str = "",
        mtu: int = 0,
        advmss: int = 0,
        priority: int = 0,
        table: int | None = None,
        scope: int | None = None,
    ) -> None:
        self.dst = dst
        self.gw = gw
        self.mtu = mtu
        self.advmss = advmss
        self.priority = priority
        self.table = table
        self.scope = scope


class DNS(_Record):
    """What a result says of name servers."""

    __slots__ = ("domain", "nameservers", "options", "search")
    _KEYS = tuple((name, name) for name in ("nameservers", "domain", "search", "options"))

    def __init__(
        self,
        nameservers: t.Sequence[str] = (),
        domain: str = "",
        search: t.Sequence[str] = (),
        options: t.Sequence[str] = (),
    ) -> None:
        self.nameservers = list(nameservers)
        self.domain = domain
        self.search = list(search)
        self.options = list(options)


def required_object(value: t.Any, where: str) -> dict[str, t.Any]:
    """Return `value` if it is an object. null is refused; Go accepts it here and crashes on conversion."""
    if value is None:
        raise JSONError(f"json: cannot unmarshal null into field {where} of type object")
    return gojson.as_object(value, where)
