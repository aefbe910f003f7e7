# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The annotation `k8s.v1.cni.cncf.io/network-status`, as network-attachment-definition-client makes it from results."""

from __future__ import annotations

from .. import gojson
from ..fields import UNSET

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from ..types import Result

NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status"

_MEMBERS = ("name", "interface", "ips", "mac", "mtu", "default", "dns", "gateway")
_ZERO = ("0.0.0.0", "::")


def network_statuses(result: Result, name: str, default: bool) -> list[gojson.Struct]:
    """Return the entries of one network: one for each interface with a sandbox.

    A result with exactly one interface gives one entry with all addresses, whether it has a sandbox or not; one without
    interfaces gives none. `default`: it is the pod's first network; the entry whose address has a gateway is marked,
    else the first one. An address without an interface belongs to the last entry. Raises `ResultError`.
    """
    data = result.as_version("1.0.0").to_dict()
    interfaces = data.get("interfaces", [])
    ips = data.get("ips", [])
    common = {
        "name": name,
        "dns": gojson.Struct(data.get("dns", {})),
        "gateway": [route.get("gw", UNSET) for route in data.get("routes", []) if _is_default(route)],
    }
    nics = {index: nic for index, nic in enumerate(interfaces) if nic.get("sandbox")}
    if len(interfaces) == 1:
        nic = nics.get(0, {})
        return [_entry(common, nic, [_address(ip) for ip in ips], default)]
    marked = next((ip["interface"] for ip in ips if ip.get("gateway") and "interface" in ip), min(nics, default=None))
    addresses: dict[int, list[str]] = {index: [] for index in nics}
    for ip in ips:
        index = ip.get("interface", max(nics, default=None))
        if index in addresses:
            addresses[index].append(_address(ip))
    return [_entry(common, nic, addresses[index], default and index == marked) for index, nic in nics.items()]


def _is_default(route: t.Mapping[str, t.Any]) -> bool:
    # The client looks at the address only, so 0.0.0.0/1 counts.
    return route.get("dst", UNSET) == UNSET or route["dst"].partition("/")[0] in _ZERO


def _address(ip: t.Mapping[str, t.Any]) -> str:
    return str(ip.get("address", UNSET)).partition("/")[0]


def _entry(common: t.Mapping[str, t.Any], nic: t.Mapping[str, t.Any], ips: list[str], default: bool) -> gojson.Struct:
    own = {"interface": nic.get("name"), "ips": ips, "mac": nic.get("mac"), "mtu": nic.get("mtu"), "default": default}
    members = {**common, **own}
    return gojson.Struct((key, members[key]) for key in _MEMBERS if members[key] or key in ("name", "dns"))


def network_status_text(statuses: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """Return the text of the annotation for the entries of all networks."""
    return "[" + ",".join(gojson.dumps(status, 4).decode("utf-8") for status in statuses) + "]"
