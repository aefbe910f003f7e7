# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What podman has to understand of a network's first plugin, to show the network as one of its own.

It reads the plugins bridge, macvlan and ipvlan, and the ranges of host-local; a network where it cannot is left out.
(containers/common libnetwork/cni/cni_conversion.go:createNetworkFromCNIConfigList, convertIPAMConfToNetwork)
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ..addresses import packed, prefix_length

_TEXTS = ("type", "bridge", "master", "mode")
_NUMBERS = ("mtu", "vlan")
_FLAGS = ("isGateway", "isDefaultGateway", "forceAddress", "ipMasq", "hairpinMode", "promiscMode")
_ADDRESSES = ("gateway", "rangeStart", "rangeEnd")


def unconvertible(plugin: Dict[str, Any]) -> str:
    """Return what podman does not understand of *plugin*, "" if it understands all that it looks at."""
    if plugin.get("type") not in ("bridge", "macvlan", "ipvlan"):
        return ""
    for keys, kind in ((_TEXTS, str), (_NUMBERS, int), (_FLAGS, bool)):
        for key in keys:
            value = plugin.get(key)
            if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
                return f"{key} is not understood"
    ipam = plugin.get("ipam")
    if not isinstance(ipam, dict):
        return ""
    parts = _parts(ipam.get("ranges"))
    routes = ipam.get("routes") or []
    if parts is None or not isinstance(routes, list) or not all(isinstance(route, dict) for route in routes):
        return "the ranges or routes are not understood"
    if ipam.get("type") != "host-local":
        return ""
    for part in parts:
        if not _is_subnet(part.get("subnet")):
            return "a subnet is not understood"
        for key in _ADDRESSES:
            if part.get(key) not in (None, "") and not _is_address(part[key]):
                return f"{key} is not understood"
    return ""


def _parts(ranges: Any) -> Optional[List[Dict[str, Any]]]:
    """Return all ranges of a list of lists of objects, None if it is none; null counts as empty."""
    found: List[Dict[str, Any]] = []
    for entry in [] if ranges is None else ranges if isinstance(ranges, list) else [ranges]:
        if entry is not None and not isinstance(entry, list):
            return None
        found.extend(entry or [])
    return found if all(isinstance(part, dict) for part in found) else None


def _is_subnet(value: Any) -> bool:
    address, _slash, bits = value.partition("/") if isinstance(value, str) else ("", "", "")
    return _is_address(address) and prefix_length(bits, 128 if ":" in address else 32) is not None


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and bool(packed(value))
