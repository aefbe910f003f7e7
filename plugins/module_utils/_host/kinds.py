# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of CNI plugins, one row each, and the one reader of the keys of their configuration.

Source: the configuration structs of the reference plugins (plugins/main, meta and ipam), releases 0.8.7 to 1.9.1.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional

from ..libcni import gojson
from .addresses import DEFAULT_DATA_DIR

# What a plugin is for.
INTERFACE, META, IPAM = "interface", "meta", "ipam"
HOST_LOCAL = "host-local"


class PluginKind(NamedTuple):
    """What is known about the plugins of one type.

    ``moving``: the keys that decide which addresses, interfaces and rules an ADD makes, and where its DEL looks for
    them, with their defaults; None for every key. ``role``: INTERFACE makes the container's interface, META works on
    one that exists, IPAM assigns addresses. ``parent``: the key that names the interface of the host under the
    container's one; ``default_parent``: without it, the interface of the default route is taken. ``alone``: fails if
    the container has an interface of that name. ``outside``: its interface is part of a network outside of the host,
    to which the host routes nothing. ``takes_device``: moves a device into the container, or makes one that can exist
    only once. ``rules``: it may make firewall rules. ``inside``: all that it makes ends with the container's namespace.
    ``reference``: it is a reference plugin, which needs nothing but a namespace and its configuration.
    """

    moving: Optional[Mapping[str, Any]] = None
    role: str = ""
    parent: str = ""
    default_parent: bool = False
    alone: bool = False
    outside: bool = False
    takes_device: bool = False
    rules: bool = False
    inside: bool = False
    reference: bool = True


_MASQUERADING = {"ipMasq": None, "ipMasqBackend": None}

KINDS: Dict[str, PluginKind] = {
    "bandwidth": PluginKind({}, META),
    "bridge": PluginKind(
        {
            "bridge": "cni0",
            "vlan": None,
            "vlanTrunk": None,
            "preserveDefaultVlan": True,
            "forceAddress": None,
            "macspoofchk": None,
            "disableContainerInterface": None,
            **_MASQUERADING,
        },
        INTERFACE,
        alone=True,
        rules=True,
    ),
    "dhcp": PluginKind({"daemonSocketPath": "/run/cni/dhcp.sock"}, IPAM),
    "dummy": PluginKind({}, INTERFACE, alone=True, outside=True),
    "firewall": PluginKind(
        {"backend": None, "iptablesAdminChainName": "CNI-ADMIN", "firewalldZone": "trusted", "ingressPolicy": "open"},
        META,
        rules=True,
    ),
    "flannel": PluginKind(
        {"subnetFile": "/run/flannel/subnet.env", "dataDir": "/var/lib/cni/flannel", "delegate": None},
        alone=True,
        reference=False,
    ),
    "host-device": PluginKind(
        dict.fromkeys(("device", "hwaddr", "kernelpath", "pciBusID")),
        INTERFACE,
        "device",
        alone=True,
        outside=True,
        takes_device=True,
    ),
    HOST_LOCAL: PluginKind(
        {**dict.fromkeys(("subnet", "rangeStart", "rangeEnd", "gateway", "ranges")), "dataDir": DEFAULT_DATA_DIR}, IPAM
    ),
    "ib-sriov": PluginKind(takes_device=True, reference=False),
    "ipvlan": PluginKind(
        {"master": None, "mode": "l2", "linkInContainer": None}, INTERFACE, "master", default_parent=True, outside=True
    ),
    "loopback": PluginKind({}, inside=True),
    "macvlan": PluginKind(
        {"master": None, "mode": "bridge", "linkInContainer": None},
        INTERFACE,
        "master",
        default_parent=True,
        alone=True,
        outside=True,
    ),
    "ovs": PluginKind(parent="bridge", outside=True, reference=False),
    "portmap": PluginKind({"backend": None, "markMasqBit": 13, "externalSetMarkChain": None}, META, rules=True),
    "ptp": PluginKind(_MASQUERADING, INTERFACE, alone=True, rules=True),
    "sbr": PluginKind({"table": None}, META, inside=True),
    "sriov": PluginKind(outside=True, takes_device=True, reference=False),
    "static": PluginKind({"addresses": None}, IPAM),
    "tap": PluginKind({"bridge": None}, INTERFACE, outside=True),
    "tuning": PluginKind({"dataDir": "/run/cni/tuning"}, META, inside=True),
    "vlan": PluginKind(
        dict.fromkeys(("master", "vlanId", "linkInContainer")),
        INTERFACE,
        "master",
        alone=True,
        outside=True,
        takes_device=True,
    ),
    "vrf": PluginKind({"vrfname": None, "table": None}, META, inside=True),
}
UNKNOWN_KIND = PluginKind(reference=False)
"""What is known about any other type."""
IFNAME = "IFNAME"
"""What tuning replaces by the name of its interface."""
REFERENCE = frozenset(name for name, kind in KINDS.items() if kind.reference)
"""The types of the reference plugins."""


def kind_of(plugin: Mapping[str, Any]) -> PluginKind:
    """Return what is known about the type of *plugin*; of an unknown type, every key counts."""
    return kind_named(text_of(plugin, "type"))


def kind_named(plugin_type: str) -> PluginKind:
    """Return what is known about a type of plugin, as :func:`kind_of` does."""
    return KINDS.get(plugin_type, UNKNOWN_KIND)


def bridge_of(plugin: Mapping[str, Any]) -> str:
    """Return the bridge of a plugin of the type bridge, "" for any other plugin."""
    return set_or_default(plugin, "bridge") if text_of(plugin, "type") == "bridge" else ""


def forwards(plugin: Mapping[str, Any]) -> bool:
    """Tell whether the host is the router of the containers of *plugin*, whose ADD switches forwarding on."""
    if text_of(plugin, "type") != "bridge":
        return text_of(plugin, "type") == "ptp"
    # isDefaultGateway implies isGateway, which has no effect without addresses (bridge.go: cmdAdd).
    is_gateway = True in (member_of(plugin, "isgateway"), member_of(plugin, "isdefaultgateway"))
    return is_gateway and text_of(object_of(plugin, "ipam"), "type") != ""


def lower_of(plugin: Mapping[str, Any], way_out: Callable[[], str] = str) -> str:
    """Return the interface of the host under the container's one, "" for none; *way_out*: that of the default route."""
    kind = kind_of(plugin)
    if not kind.parent or member_of(plugin, "linkincontainer") is True:
        return ""
    return text_of(plugin, kind.parent) or (way_out() if kind.default_parent else "")


def vlan_of(plugin: Mapping[str, Any]) -> int:
    """Return the ID of the VLAN that containers of *plugin* are in, 0 for none."""
    vlan = member_of(plugin, "vlanid" if text_of(plugin, "type") == "vlan" else "vlan")
    return vlan if isinstance(vlan, int) and not isinstance(vlan, bool) else 0


def delegate_of(plugin: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the plugin that *plugin* runs instead of itself, an empty object for none."""
    delegate = object_of(plugin, "delegate")
    if text_of(plugin, "type") == "flannel":
        delegate = {"type": "bridge", "isGateway": True, **delegate}
        put_member(delegate, "ipam", {"type": HOST_LOCAL, **object_of(plugin, "ipam")})
    return delegate


def lease_dir(plugin: Mapping[str, Any], default: str = DEFAULT_DATA_DIR) -> str:
    """Return the directory of the leases of *plugin*, "" unless host-local assigns them below an absolute path."""
    ipam = object_of(plugin, "ipam")
    path = text_of(ipam, "datadir") or default
    return os.path.normpath(path) if text_of(ipam, "type") == HOST_LOCAL and path[0] == "/" and "\0" not in path else ""


# ---- keys


def text_of(data: Mapping[str, Any], key: str) -> str:
    """Return the text of a member, "" if it is anything else. *key* is in lowercase."""
    value = member_of(data, key)
    return value if isinstance(value, str) else ""


def set_or_default(plugin: Mapping[str, Any], name: str) -> str:
    """Return the text of a member of *plugin*, or else its default in the table."""
    return text_of(plugin, gojson.fold(name)) or str((kind_of(plugin).moving or {})[name])


def object_of(data: Mapping[str, Any], key: str) -> Dict[str, Any]:
    """Return the object in a member, an empty one if it is anything else. *key* is in lowercase."""
    value = member_of(data, key)
    return value if isinstance(value, dict) else {}


def member_of(data: Mapping[str, Any], key: str) -> Any:
    """Return a member as a struct of Go gets it: *key* (in lowercase) matches any case; None for none.

    Plugins get their keys sorted. A later spelling overrides an earlier one, except that null leaves anything but a
    list as it is, and that two objects are merged.
    """
    value = None
    for name in sorted(name for name in data if gojson.fold(name) == key):
        value = _over(value, data[name])
    return value


def put_member(data: Dict[str, Any], name: str, value: Any) -> None:
    """Set a member instead of all spellings of its *name*; None removes them."""
    key = gojson.fold(name)
    for spelling in [spelling for spelling in data if gojson.fold(spelling) == key]:
        del data[spelling]
    if value is not None:
        data[name] = value


def _over(before: Any, value: Any) -> Any:
    if value is None and not isinstance(before, list):
        return before
    if not isinstance(before, dict) or not isinstance(value, dict):
        return value
    merged = dict(before)
    for name in sorted(value):
        put_member(merged, name, _over(member_of(merged, gojson.fold(name)), value[name]))
    return merged


def tuned_sysctls(plugins: Iterable[Mapping[str, Any]]) -> List[str]:
    """Return the sysctls that tuning is told to set, as paths below /proc/sys/net."""
    # tuning also takes them from args.cni, where others put what they mean for it.
    places = [place for plugin in plugins for place in (plugin, object_of(object_of(plugin, "args"), "cni"))]
    names = [name for place in places for name in object_of(place, "sysctl")]
    paths = [name if "/" in name else name.replace(".", "/") for name in names]
    return [path[len("net/") :] for path in paths if path.startswith("net/") and ".." not in path.split("/")]
