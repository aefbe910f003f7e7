# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses in a form that can be compared and sorted, those in a result, and where host-local keeps its leases."""

from __future__ import annotations

import socket
from typing import Any, Dict, List, Mapping, Optional

DEFAULT_DATA_DIR = "/var/lib/cni/networks"


def packed(ip: str) -> bytes:
    """Return an address as bytes that sort by family and value, empty if *ip* is not an address."""
    for family, prefix in ((socket.AF_INET, b"4"), (socket.AF_INET6, b"6")):
        try:
            return prefix + socket.inet_pton(family, ip)
        except (OSError, ValueError):
            # ValueError: a NUL, or a character that cannot be in an address.
            continue
    return b""


def family_of(address: str) -> int:
    """Return the number of the family of an address."""
    return int(socket.AF_INET6 if ":" in address else socket.AF_INET)


def prefix_length(text: str, longest: int) -> Optional[int]:
    """Return the prefix length that *text* (after the slash) is, None unless it is a number up to *longest*."""
    # isdigit() accepts digits of all scripts, and int() refuses more than 4,300 of them.
    if not (text.isascii() and text.isdigit() and len(text) < 4):
        return None
    return int(text) if int(text) <= longest else None


def is_in(address: str, network: str, length: int) -> bool:
    """Tell whether an address is in the subnet of another one. A subnet of one address has no second."""
    address_bytes, network_bytes = packed(address), packed(network)
    bits = 8 * (len(network_bytes) - 1) - length
    if address_bytes[:1] != network_bytes[:1] or not network_bytes or bits <= 0:
        return False
    return int.from_bytes(address_bytes[1:], "big") >> bits == int.from_bytes(network_bytes[1:], "big") >> bits


def written(raw: bytes) -> str:
    """Return an address from :func:`packed` as text, "" for none."""
    return socket.inet_ntop(socket.AF_INET6 if raw[:1] == b"6" else socket.AF_INET, raw[1:]) if raw else ""


def result_addresses(result: Optional[Mapping[str, Any]]) -> List[str]:
    """Return the addresses of a result of any version, in their order."""
    addresses = [entry.get("address", entry.get("ip")) for entry in result_ips(result)]
    return [address for address in addresses if isinstance(address, str)]


def result_ips(result: Optional[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """Return what a result of any version has about each of its addresses, in their order."""
    given = result or {}
    # Those in ip4 and ip6 are from before 0.3.0.
    return [*objects_in(given.get("ips")), *objects_in([given.get("ip4"), given.get("ip6")])]


def result_interfaces(result: Optional[Mapping[str, Any]]) -> List[Dict[str, Any]]:
    """Return the interfaces in a result of any shape."""
    return objects_in((result or {}).get("interfaces"))


def result_macs(result: Optional[Mapping[str, Any]]) -> Dict[str, str]:
    """Return the MACs of the container's interfaces in a result, by name, without the zero one of loopback."""
    inside = (interface for interface in result_interfaces(result) if interface.get("sandbox"))
    macs = {str(interface.get("name")): str(interface.get("mac") or "").lower() for interface in inside}
    return {name: mac for name, mac in macs.items() if mac.strip("0:")}


def result_gateways(result: Optional[Mapping[str, Any]]) -> List[str]:
    """Return the gateways of a result of any version."""
    return [str(entry["gateway"]) for entry in result_ips(result) if entry.get("gateway")]


def objects_in(value: Any) -> List[Dict[str, Any]]:
    """Return the objects in a list, none for any other value."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
