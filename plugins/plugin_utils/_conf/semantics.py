# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the plugins that compare one value with another, which a schema cannot say."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Optional

from ansible_collections.podwire.cni.plugins.module_utils._host.problems import ERROR, WARNING

from .formats import Network, ip, network
from .source import Finding

_RANGE_KEYS = ("subnet", "rangeStart", "rangeEnd", "gateway")


def plugin_findings(plugin: dict[str, Any]) -> Iterator[Finding]:
    """Yield findings on a plugin's (folded, valid) configuration; pointers are relative to it."""
    rule = _PLUGINS.get(plugin["type"])
    if rule is not None:
        yield from rule(plugin)


def ipam_findings(ipam: dict[str, Any], plugin: dict[str, Any]) -> Iterator[Finding]:
    """Yield findings on a (folded, valid) ipam object of *plugin*; pointers are relative to the ipam object."""
    rule = _IPAM.get(ipam["type"])
    if rule is not None:
        capabilities = plugin.get("capabilities")
        yield from rule(ipam, capabilities if isinstance(capabilities, dict) else {})


# ---- plugins


def _bridge(plugin: dict[str, Any]) -> Iterator[Finding]:
    for index, entry in enumerate(plugin.get("vlanTrunk", [])):
        low, high = entry.get("minID"), entry.get("maxID")
        if low is not None and high is not None and high < low:
            text = "bridge: vlanTrunk[%d].maxID is %d, less than minID %d; exchange them" % (index, high, low)
            yield Finding(ERROR, "schema", text, ("vlanTrunk", index, "maxID"))


def _portmap(plugin: dict[str, Any]) -> Iterator[Finding]:
    backend = plugin.get("backend")
    if backend == "nftables" and plugin.get("externalSetMarkChain"):
        text = "portmap: externalSetMarkChain is for iptables only, and backend is nftables; remove one of them"
        yield Finding(ERROR, "schema", text, ("externalSetMarkChain",))
    flavours = [
        (key, "iptables" if plugin[key][0][:1] in ("-", "!") else "nftables")
        for key in ("conditionsV4", "conditionsV6")
        if plugin.get(key)
    ]
    for key, flavour in flavours:
        wanted = backend or flavours[0][1]
        if flavour != wanted:
            text = "portmap: %s is in the words of %s, and the rest is for %s; rewrite it, or change backend"
            yield Finding(ERROR, "schema", text % (key, flavour, wanted), (key,))


_PLUGINS: dict[str, Callable[[dict[str, Any]], Iterator[Finding]]] = {"bridge": _bridge, "portmap": _portmap}


# ---- IPAM plugins


def _host_local(ipam: dict[str, Any], capabilities: dict[str, Any]) -> Iterator[Finding]:
    ranges: list[tuple[int, dict[str, Any], tuple[Any, ...]]] = []
    groups = ipam.get("ranges", [])
    if "subnet" in ipam:
        ranges.append((0, ipam, ()))
    elif any(key in ipam for key in _RANGE_KEYS):
        text = 'host-local: subnet is missing, without which the range says nothing; write "subnet": "10.55.0.0/24"'
        yield Finding(ERROR, "schema", text)
    elif not groups and not capabilities.get("ipRanges"):
        text = 'host-local: there is no range to give addresses out of; write "ranges": [[{"subnet": "10.55.0.0/24"}]]'
        yield Finding(ERROR, "schema", text)
    for index, group in enumerate(groups, start=1):
        ranges.extend((index, entry, ("ranges", index - 1, number)) for number, entry in enumerate(group))
    spans = []
    for index, entry, place in ranges:
        yield from _range(entry, place)
        spans.append((index, _span(entry), network(entry["subnet"]), place))
    yield from _families(spans)
    yield from _overlaps(spans)


def _range(entry: dict[str, Any], place: tuple[Any, ...]) -> Iterator[Finding]:
    subnet = network(entry["subnet"])
    outside = [key for key in ("rangeStart", "rangeEnd") if key in entry and ip(entry[key]) not in subnet]
    for key in outside:
        text = "host-local: %s %s is not in the subnet %s; write an address of it" % (key, entry[key], subnet)
        yield Finding(ERROR, "schema", text, (*place, key))
    first, last = _span(entry)
    if not outside and first > last:
        text = "host-local: rangeEnd %s comes before rangeStart %s; exchange them" % (last, first)
        yield Finding(ERROR, "schema", text, (*place, "rangeEnd"))
    if "gateway" in entry and ip(entry["gateway"]).version != subnet.version:
        text = "host-local: gateway %s is not of the family of the subnet %s" % (entry["gateway"], subnet)
        yield Finding(ERROR, "schema", text, (*place, "gateway"))


def _span(entry: dict[str, Any]) -> tuple[Any, Any]:
    subnet = network(entry["subnet"])
    last = subnet.broadcast_address if subnet.version == 6 else subnet.broadcast_address - 1
    first: Any = ip(entry["rangeStart"]) if "rangeStart" in entry else subnet.network_address + 1
    return first, ip(entry["rangeEnd"]) if "rangeEnd" in entry else last


def _families(spans: list[tuple[int, tuple[Any, Any], Network, tuple[Any, ...]]]) -> Iterator[Finding]:
    first: dict[int, Network] = {}
    for index, _span_of, subnet, place in spans:
        other = first.setdefault(index, subnet)
        if other.version != subnet.version:
            text = (
                "host-local: %s and %s are in one list of ranges, which has to be of one family; give each its own list"
            )
            yield Finding(ERROR, "schema", text % (other, subnet), (*place, "subnet"))


def _overlaps(spans: list[tuple[int, tuple[Any, Any], Network, tuple[Any, ...]]]) -> Iterator[Finding]:
    for number, (_index, (low, high), subnet, place) in enumerate(spans):
        for _other_index, (other_low, other_high), other_subnet, _place in spans[:number]:
            if other_subnet.version == subnet.version and low <= other_high and other_low <= high:
                text = "host-local: the ranges %s to %s and %s to %s overlap; keep them apart"
                yield Finding(ERROR, "schema", text % (low, high, other_low, other_high), place)
                break


def _static(ipam: dict[str, Any], capabilities: dict[str, Any]) -> Iterator[Finding]:
    if not ipam.get("addresses") and not capabilities.get("ips"):
        text = (
            "static: there are no addresses, and without the capability 'ips' a runtime can hand over none; write "
            '"addresses": [{"address": "10.55.0.7/24"}]'
        )
        yield Finding(WARNING, "static_no_address", text)
    for index, entry in enumerate(ipam.get("addresses", [])):
        family = ip(entry["address"].partition("/")[0]).version
        gateway: Optional[str] = entry.get("gateway")
        if gateway and ip(gateway).version != family:
            text = "static: gateway %s is not of the family of the address %s" % (gateway, entry["address"])
            yield Finding(ERROR, "schema", text, ("addresses", index, "gateway"))


_IPAM: dict[str, Callable[[dict[str, Any], dict[str, Any]], Iterator[Finding]]] = {
    "host-local": _host_local,
    "static": _static,
}
