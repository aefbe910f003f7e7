# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses and ranges of them, as host-local reads them (plugins/ipam/host-local/backend/allocator/range.go)."""

from __future__ import annotations

import ipaddress
from typing import Any, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .addresses import packed, prefix_length
from .kinds import member_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .leases import Lease

IP = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Interface = Union[ipaddress.IPv4Interface, ipaddress.IPv6Interface]
Subnet = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]


def ip_of(text: str) -> Optional[IP]:
    """Return an address, that of IPv4 for one within IPv6; None if the text is none."""
    raw = packed(text)
    address = ipaddress.ip_address(raw[1:]) if raw else None
    return getattr(address, "ipv4_mapped", None) or address


def interface_of(text: str) -> Optional[Interface]:
    """Return an address with its subnet, such as 10.1.0.1/24; None for neither."""
    address, _slash, bits = text.partition("/")
    ip = ip_of(address)
    length = prefix_length(bits, ip.max_prefixlen) if ip else None
    return ipaddress.ip_interface((ip.packed, length)) if ip and length is not None else None


class Range(NamedTuple):
    """Addresses of a ``subnet`` from ``start`` to ``end``, both inclusive; ``gateway`` is never assigned."""

    subnet: Subnet
    start: IP
    end: IP
    gateway: IP

    @property
    def size(self) -> int:
        return int(self.end) - int(self.start) + 1 - (1 if self.has(self.gateway) else 0)

    def has(self, ip: Optional[IP]) -> bool:
        """Tell whether an address is in it."""
        if ip is None or ip.version != self.subnet.version:
            return False
        return int(self.start) <= int(ip) <= int(self.end)

    def overlaps(self, other: Range) -> bool:
        return self.has(other.start) or other.has(self.start)

    @property
    def text(self) -> str:
        return f"{self.start}-{self.end}"


def leases_in(ranges: Sequence[Range], leases: Iterable[Lease]) -> List[Lease]:
    """Return the leases of addresses in *ranges*."""
    return [lease for lease in leases if any(part.has(ip_of(lease.ip)) for part in ranges)]


def ranges_of(ipam: Mapping[str, Any]) -> List[Range]:
    """Return the ranges of host-local's configuration, without those that it would refuse."""
    parts = [range_of(entry) for _pointer, entries in range_sets(ipam) for entry in entries]
    return [part for part in parts if part is not None]


def range_sets(ipam: Mapping[str, Any]) -> List[Tuple[str, List[Mapping[str, Any]]]]:
    """Return the JSON pointer and the entries of each set of ranges; a container gets one address from each set."""
    ranges = member_of(ipam, "ranges")
    listed: List[Tuple[str, List[Mapping[str, Any]]]] = [
        (f"/ranges/{number}", [entry for entry in entries if isinstance(entry, dict)])
        for number, entries in enumerate(ranges if isinstance(ranges, list) else [])
        if isinstance(entries, list)
    ]
    return [("", [ipam]), *listed] if text_of(ipam, "subnet") else listed


def range_of(entry: Mapping[str, Any]) -> Optional[Range]:
    """Return one range, None if host-local would refuse it."""
    part = span_of(entry)
    is_sound = part and part.start in part.subnet and part.end in part.subnet and int(part.start) <= int(part.end)
    return part if is_sound else None


def span_of(entry: Mapping[str, Any]) -> Optional[Range]:
    """Return a range, refused or not; None without a usable subnet."""
    interface = interface_of(text_of(entry, "subnet"))
    if interface is None or interface.network.prefixlen > interface.max_prefixlen - 2:
        return None
    subnet = interface.network
    first = subnet.network_address + 1
    # Without the broadcast address of IPv4.
    last = subnet.broadcast_address - (1 if subnet.version == 4 else 0)
    start, end = ip_of(text_of(entry, "rangestart")) or first, ip_of(text_of(entry, "rangeend")) or last
    return Range(subnet, start, end, ip_of(text_of(entry, "gateway")) or first)
