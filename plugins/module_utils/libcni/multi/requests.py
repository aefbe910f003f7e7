# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""What a network can be asked for: port mappings, bandwidth, MAC and IP addresses.

Each decoder takes a decoded JSON value and returns it as Go would write it again. Errors are `JSONError`.
"""

from __future__ import annotations

import re

from .. import gojson
from ..errors import JSONError
from ..fields import decode_cidr, decode_ip, required_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

_PORT = ("hostPort", "containerPort", "protocol", "hostIP")
_BANDWIDTH = ("ingressRate", "ingressBurst", "egressRate", "egressBurst")

# Go's net.ParseMAC: pairs with one separator, groups of four with dots, or, since Go 1.27, digits alone.
_MAC = r"[0-9a-fA-F]{2}(?:([:-])[0-9a-fA-F]{2})(?:\1[0-9a-fA-F]{2})+|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4})+|[0-9a-fA-F]+"
_MAC_BYTES = (6, 8, 20)


def decode_port_mappings(value: t.Any, where: str) -> list[gojson.Struct] | None:
    """Return port mappings with lower-case keys, None for null. An element must not be null, which Go accepts."""
    if value is None:
        return None
    return [_port_mapping(item, f"{where}/{index}") for index, item in enumerate(gojson.as_list(value, where))]


def _port_mapping(value: t.Any, where: str) -> gojson.Struct:
    found: dict[str, t.Any] = {"hostPort": 0, "containerPort": 0}
    for name, item in gojson.struct_items(required_object(value, where), _PORT):
        decode: t.Callable[[t.Any, str], t.Any] = gojson.as_int if name.endswith("Port") else gojson.as_string
        if item is not None:
            found[name] = decode(item, f"{where}/{name}")
    return gojson.Struct((name, found[name]) for name in _PORT if name in found and found[name] != "")


def decode_bandwidth(value: t.Any, where: str) -> gojson.Struct | None:
    """Return all four limits in bit/s and bit, None for null."""
    if value is None:
        return None
    found = dict.fromkeys(_BANDWIDTH, 0)
    for name, item in gojson.struct_items(gojson.as_object(value, where), _BANDWIDTH):
        if item is not None:
            found[name] = gojson.as_int(item, f"{where}/{name}")
    return gojson.Struct(found)


def decode_strings(value: t.Any, where: str) -> list[str] | None:
    """Return a list of strings, None for null."""
    if value is None:
        return None
    return [gojson.as_string(item, f"{where}/{index}") for index, item in enumerate(gojson.as_list(value, where))]


def decode_gateways(value: t.Any, where: str) -> list[str] | None:
    """Return addresses in canonical form, "" for an empty one; None for null."""
    if value is None:
        return None
    return [decode_ip(item, f"{where}/{index}") for index, item in enumerate(gojson.as_list(value, where))]


def is_mac(text: str) -> bool:
    """Tell whether `text` is a hardware address of 6, 8 or 20 bytes, in a form that Go reads."""
    if re.fullmatch(_MAC, text) is None:
        return False
    return len(re.sub("[:.-]", "", text)) in [2 * count for count in _MAC_BYTES]


def is_address(text: str) -> bool:
    """Tell whether `text` is an IP address, with or without a prefix length."""
    decode = decode_cidr if "/" in text else decode_ip
    try:
        return decode(text, "") != ""
    except JSONError:
        return False
