# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The value formats of the schemas. Each function raises ValueError with the reason."""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import Union

from ...module_utils.libcni.errors import ValidationError
from ...module_utils.libcni.validate import validate_if_name

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]


@functools.lru_cache(maxsize=1024)
def ip(text: str) -> Address:
    """An address, as Go's net.ParseIP accepts it: no zone, and an IPv4 address within IPv6 is an IPv4 address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        try:
            whole = ipaddress.ip_interface(text)
        except ValueError:
            raise ValueError("is not an IP address") from None
        address = whole.ip + (whole.network.num_addresses > 2 and whole.ip == whole.network.network_address)
        raise ValueError(f"has a prefix length, which is not allowed here; write {address}") from None
    if "%" in text:
        raise ValueError("has a zone, which is not allowed here")
    return getattr(address, "ipv4_mapped", None) or address


@functools.lru_cache(maxsize=1024)
def cidr(text: str) -> Network:
    """An address with a prefix length, as Go's net.ParseCIDR accepts it."""
    address, slash, length = text.partition("/")
    if text.startswith("usePodCidr"):
        raise ValueError("is a placeholder that only Calico replaces; write a network such as 10.55.0.0/24")
    if not slash:
        ip(address)
        usual = 64 if ":" in text else 24
        raise ValueError(f"has no prefix length; write {text}/{usual}")
    if not re.fullmatch(r"[0-9]{1,3}", length):
        raise ValueError("has no prefix length after the slash; netmasks are not accepted")
    ip(address)
    try:
        return ipaddress.ip_network(f"{address}/{int(length)}", strict=False)
    except ValueError:
        raise ValueError("has a prefix length that is too large") from None


@functools.lru_cache(maxsize=1024)
def network(text: str) -> Network:
    """A network to allocate addresses from: without host bits, and with room for more than the gateway."""
    if "/" not in text and not text.startswith("usePodCidr"):
        subnet = ipaddress.ip_network(f"{ip(text)}/{64 if ':' in text else 24}", strict=False)
        raise ValueError(f"has no prefix length; write {subnet}")
    subnet = cidr(text)
    if str(subnet.network_address) != str(ipaddress.ip_address(text.partition("/")[0])):
        raise ValueError(f"has host bits set; write {subnet}")
    if subnet.prefixlen > subnet.max_prefixlen - 2:
        longest = subnet.max_prefixlen - 2
        raise ValueError(f"is too small to allocate addresses from; the prefix can be /{longest} at most")
    return subnet


def destination(text: str) -> None:
    """A network that a route leads to; rules of plugins tell what host bits do."""
    if "/" not in text:
        address = ip(text)
        raise ValueError(f"has no prefix length; write {address}/{0 if int(address) == 0 else address.max_prefixlen}")
    cidr(text)


def address_range(text: str) -> None:
    """A network, or FIRST-LAST/PREFIX, as whereabouts accepts it; "" is none."""
    first, dash, rest = text.rpartition("-")
    if text:
        network(rest) if "/" not in rest else cidr(rest)
    if dash:
        ip(first)


def mac(text: str) -> None:
    """A MAC address, as Go's net.ParseMAC accepts it; "" is none."""
    if text and not re.fullmatch(r"([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}|([0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}", text):
        raise ValueError("is not a MAC address")


def ifname(text: str) -> None:
    """The name of an interface; "" stands for the plugin's default."""
    try:
        if text:
            validate_if_name(text)
    except ValidationError:
        raise ValueError("is not an interface name: at most 15 bytes, without blanks, '/' and ':'") from None


def path(text: str) -> None:
    """An absolute path; "" stands for the plugin's default."""
    if text and not text.startswith("/"):
        raise ValueError("is not an absolute path")


FORMATS = {
    "ip": ip,
    # "" is none.
    "optional-ip": lambda text: ip(text) if text else None,
    "cidr": cidr,
    "destination": destination,
    "network": network,
    "address-range": address_range,
    "mac": mac,
    "ifname": ifname,
    "path": path,
}
