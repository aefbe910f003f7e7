# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The value formats of the schemas. Each function raises ValueError with the reason."""

from __future__ import annotations

import ipaddress
import re
from typing import Union

from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import ValidationError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.validate import validate_if_name

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]


def ip(text: str) -> Address:
    """An address, as Go's net.ParseIP takes it (no zone)."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError("is no IP address") from None
    if "%" in text:
        raise ValueError("has a zone, which is not allowed here")
    return address


def cidr(text: str) -> Network:
    """An address with a prefix length, as Go's net.ParseCIDR takes it."""
    address, slash, length = text.partition("/")
    if not slash:
        raise ValueError("has no prefix length; write %s/%d" % (text, 64 if ":" in text else 24))
    if not re.fullmatch(r"[0-9]{1,3}", length):
        raise ValueError("has no prefix length after the slash; netmasks are not understood")
    ip(address)
    try:
        return ipaddress.ip_network("%s/%d" % (address, int(length)), strict=False)
    except ValueError:
        raise ValueError("has a prefix length that is too large") from None


def network(text: str) -> Network:
    """A network for addresses to be given out of: without host bits, and with room for more than the gateway."""
    found = cidr(text)
    if str(found.network_address) != str(ipaddress.ip_address(text.partition("/")[0])):
        raise ValueError("has host bits set; write %s" % found)
    if found.prefixlen > found.max_prefixlen - 2:
        raise ValueError(
            "is too small to give out addresses; the prefix can be /%d at most" % (found.max_prefixlen - 2)
        )
    return found


def mac(text: str) -> None:
    """A MAC address, as Go's net.ParseMAC takes it."""
    if not re.fullmatch(r"([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}|([0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}", text):
        raise ValueError("is no MAC address")


def ifname(text: str) -> None:
    """The name of an interface; "" stands for the plugin's default."""
    try:
        if text:
            validate_if_name(text)
    except ValidationError:
        raise ValueError("is no interface name: at most 15 bytes, without blanks, '/' and ':'") from None


def path(text: str) -> None:
    """An absolute path; "" stands for the plugin's default."""
    if text and not text.startswith("/"):
        raise ValueError("is no absolute path")


FORMATS = {"ip": ip, "cidr": cidr, "network": network, "mac": mac, "ifname": ifname, "path": path}
