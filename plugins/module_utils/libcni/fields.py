# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""The pieces of JSON that configurations and results share: DNS, addresses, routes (Go: pkg/types/types.go).

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


def decode_dns(value: t.Any, where: str = "dns", before: t.Mapping[str, t.Any] | None = None) -> gojson.Struct:
    """Return a DNS object: nameservers, domain, search, options. It extends `before`, from an earlier equal key."""
    found: dict[str, t.Any] = dict(before or {})
    for name, item in gojson.struct_items(
        gojson.as_object(value, where), ("nameservers", "domain", "search", "options")
    ):
        at = f"{where}/{name}"
        if name == "domain":
            found[name] = gojson.string_over(found.get(name, ""), item, at)
        else:
            found[name] = [gojson.as_string(element, at) for element in gojson.as_list(item, at)]
    return pick(found, ("nameservers", "domain", "search", "options"))


def pick(found: t.Mapping[str, t.Any], names: t.Sequence[str]) -> gojson.Struct:
    """Return the members of `found` in the order of `names`, without the empty ones (Go: omitempty)."""
    return gojson.Struct((name, found[name]) for name in names if found.get(name))


def _parse(text: str) -> bytes | None:
    """Return an address' 4 or 16 bytes, None for other text."""
    # Imported here because it takes 5 ms, which only callers with addresses need.
    import ipaddress

    # Some versions of ipaddress accept what Go does not: zones, digits of other scripts, leading zeros.
    if len(text) > _LONGEST_IP or not _IN_IP.issuperset(text):
        return None
    if any(part.startswith("0") and part != "0" for part in _dotted(text)):
        return None
    try:
        return ipaddress.ip_address(text).packed
    except ValueError:
        return None


def _dotted(text: str) -> list[str]:
    """Return the four numbers of an IPv4 address, which may be the end of an IPv6 one; nothing if there is none."""
    end = text.rpartition(":")[2]
    return end.split(".") if "." in end else []


def _print(packed: bytes) -> str:
    import ipaddress

    if len(packed) == 16 and packed.startswith(_MAPPED):
        packed = packed[12:]
    return str(ipaddress.ip_address(packed))


def decode_ip(value: t.Any, where: str) -> str:
    """Return a plain address, "" if there is none."""
    text = gojson.as_string(value, where)
    if not text:
        return ""
    packed = _parse(text)
    if packed is None:
        raise JSONError(f"{where}: invalid IP address: {text}")
    return _print(packed)


def decode_cidr(value: t.Any, where: str) -> str:
    """Return an address with its prefix length; host bits are kept. Neither may be missing."""
    text = gojson.as_string(value, where)
    address, _slash, prefix = text.partition("/")
    packed = _parse(address)
    if packed is None or not _is_prefix(prefix) or int(prefix) > len(packed) * 8:
        raise JSONError(f"{where}: invalid CIDR address: {text}")
    length = int(prefix)
    if len(packed) == 16 and packed.startswith(_MAPPED):
        # Go prints an IPv4 address that was written as IPv6 as IPv4, with what is left of its mask.
        length = max(0, length - 96)
    return f"{_print(packed)}/{length}"


def _is_prefix(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_PREFIX


def is_ipv4(cidr: str) -> bool:
    """Tell whether a canonical address is IPv4; `UNSET` is not."""
    return "." in cidr


_ROUTE = ("dst", "gw", "mtu", "advmss", "priority", "table", "scope")


def decode_route(value: t.Any, where: str) -> gojson.Struct:
    """Return a route: dst, gw, mtu, advmss, priority, table, scope; of the last two, 0 is kept."""
    found: dict[str, t.Any] = {"dst": UNSET}
    for name, item in gojson.struct_items(required_object(value, where), _ROUTE):
        at = f"{where}/{name}"
        if name == "dst":
            found[name] = decode_cidr(item, at)
        elif name == "gw":
            found[name] = decode_ip(item, at)
        else:
            found[name] = None if item is None else gojson.as_int(item, at)
    route = pick(found, _ROUTE[:5])
    for name in ("table", "scope"):
        if found.get(name) is not None:
            route[name] = found[name]
    return route


def required_object(value: t.Any, where: str) -> dict[str, t.Any]:
    """Return `value` if it is an object. null is refused; Go accepts it here and crashes on conversion."""
    if value is None:
        raise JSONError(f"json: cannot unmarshal null into field {where} of type object")
    return gojson.as_object(value, where)
