# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of IPAM plugins that compare one value with another, which a schema cannot say."""

from __future__ import annotations

import ipaddress
from typing import Any, Iterator, NamedTuple, Optional

from ansible_collections.podwire.cni.plugins.module_utils._host.problems import ERROR, WARNING
from ansible_collections.podwire.cni.plugins.module_utils.libcni import version as spec
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import VersionError

from .formats import Network, cidr, ip, network
from .source import Finding

_RANGE_KEYS = ("subnet", "rangeStart", "rangeEnd", "gateway")
# What RFC 4291 and IANA give to the public; other space is nobody's.
_UNICAST = ipaddress.IPv6Network("2000::/3")


def ipam_findings(ipam: dict[str, Any], plugin: dict[str, Any], version: Optional[str]) -> Iterator[Finding]:
    """Yield findings on a (folded, valid) ipam object of *plugin*; pointers are relative to the ipam object.

    *version* is the version of the list, None if it is negotiated.
    """
    # The plugin itself may be wrong in any way.
    capabilities = plugin.get("capabilities")
    capabilities = capabilities if isinstance(capabilities, dict) else {}
    kind = ipam["type"]
    if kind == "host-local":
        yield from _host_local(ipam, capabilities, version)
        if plugin.get("ipMasq") is True:
            yield from _public(ipam)
    elif kind == "static":
        yield from _static(ipam, capabilities, version)
    elif kind == "whereabouts":
        yield from _routes(ipam, {_family(text) for text in _whereabouts(ipam)})


def before(version: Optional[str], other: str) -> bool:
    """Tell whether *version* is known and older than *other*."""
    try:
        return version is not None and not spec.greater_than_or_equal_to(version, other)
    except VersionError:
        return False


class _Range(NamedTuple):
    """A range of host-local: where it is in the order of the text, its list, its addresses, its network, its place."""

    number: int
    group: int
    first: Any
    last: Any
    subnet: Network
    place: tuple[Any, ...]


# ---- host-local


def _host_local(ipam: dict[str, Any], capabilities: dict[str, Any], version: Optional[str]) -> Iterator[Finding]:
    if "subnet" not in ipam and any(ipam.get(key) for key in _RANGE_KEYS):
        text = 'host-local: subnet is missing, without which the range says nothing; write "subnet": "10.55.0.0/24"'
        yield Finding(ERROR, "schema", text)
    elif "subnet" not in ipam and not ipam.get("ranges") and not capabilities.get("ipRanges"):
        text = 'host-local: there is no range to give addresses out of; write "ranges": [[{"subnet": "10.55.0.0/24"}]]'
        yield Finding(ERROR, "schema", text)
    ranges: list[_Range] = []
    for entry, group, place in _entries(ipam):
        yield from _range(entry, place)
        first, last = _span(entry)
        ranges.append(_Range(len(ranges), group, first, last, network(entry["subnet"]), place))
    yield from _mixed(ranges)
    yield from _overlaps(ranges)
    groups = {entry.group: entry.subnet.version for entry in ranges}
    yield from _one_address(list(groups.values()), "host-local", version)
    if not capabilities.get("ipRanges"):
        yield from _routes(ipam, {entry.subnet.version for entry in ranges})


def _entries(ipam: dict[str, Any]) -> Iterator[tuple[dict[str, Any], int, tuple[Any, ...]]]:
    if "subnet" in ipam:
        yield ipam, 0, ()
    for index, group in enumerate(ipam.get("ranges", [])):
        for number, entry in enumerate(group):
            yield entry, index + 1, ("ranges", index, number)


def _range(entry: dict[str, Any], place: tuple[Any, ...]) -> Iterator[Finding]:
    subnet = network(entry["subnet"])
    outside = [key for key in ("rangeStart", "rangeEnd") if entry.get(key) and ip(entry[key]) not in subnet]
    for key in outside:
        text = "host-local: %s %s is not in the subnet %s; write an address of it" % (key, entry[key], subnet)
        yield Finding(ERROR, "schema", text, (*place, key))
    first, last = _span(entry)
    if not outside and first > last:
        text = "host-local: rangeEnd %s comes before rangeStart %s; exchange them" % (last, first)
        yield Finding(ERROR, "schema", text, (*place, "rangeEnd"))
    if entry.get("gateway") and ip(entry["gateway"]).version != subnet.version:
        text = "host-local: gateway %s is not of the family of the subnet %s; write one of its addresses"
        yield Finding(ERROR, "schema", text % (entry["gateway"], subnet), (*place, "gateway"))


def _span(entry: dict[str, Any]) -> tuple[Any, Any]:
    subnet = network(entry["subnet"])
    last = subnet.broadcast_address if subnet.version == 6 else subnet.broadcast_address - 1
    first: Any = ip(entry["rangeStart"]) if entry.get("rangeStart") else subnet.network_address + 1
    return first, ip(entry["rangeEnd"]) if entry.get("rangeEnd") else last


def _mixed(ranges: list[_Range]) -> Iterator[Finding]:
    first: dict[int, Network] = {}
    for entry in ranges:
        other = first.setdefault(entry.group, entry.subnet)
        if other.version != entry.subnet.version:
            text = (
                "host-local: %s and %s are in one list of ranges, which has to be of one family; give each its own list"
            )
            yield Finding(ERROR, "schema", text % (other, entry.subnet), (*entry.place, "subnet"))


def _overlaps(ranges: list[_Range]) -> Iterator[Finding]:
    widest: Optional[_Range] = None
    # A range that ends outside of its subnet's family has been spoken of.
    comparable = [entry for entry in ranges if entry.first.version == entry.last.version == entry.subnet.version]
    for entry in sorted(comparable, key=lambda entry: (entry.subnet.version, entry.first, entry.number)):
        if widest is None or widest.subnet.version != entry.subnet.version or entry.first > widest.last:
            widest = entry
            continue
        text = "host-local: the ranges %s to %s and %s to %s overlap; keep them apart"
        message = text % (entry.first, entry.last, widest.first, widest.last)
        yield Finding(ERROR, "schema", message, max(entry, widest).place)
        widest = max(entry, widest, key=lambda entry: entry.last)


def _public(ipam: dict[str, Any]) -> Iterator[Finding]:
    for entry, _group, place in _entries(ipam):
        subnet = network(entry["subnet"])
        if subnet.is_global and (subnet.version == 4 or subnet.subnet_of(_UNICAST)):
            text = (
                "host-local: %s is public address space and ipMasq replaces its addresses, so containers cannot reach "
                "whoever has them; write a private network such as %s"
            )
            private = "10.55.0.0/24" if subnet.version == 4 else "fd00:55::/64"
            yield Finding(WARNING, "public_subnet", text % (subnet, private), (*place, "subnet"))


# ---- static and whereabouts


def _static(ipam: dict[str, Any], capabilities: dict[str, Any], version: Optional[str]) -> Iterator[Finding]:
    addresses = ipam.get("addresses", [])
    if not addresses and not capabilities.get("ips"):
        text = (
            "static: there are no addresses, and without the capability 'ips' a runtime can hand over none; write "
            '"addresses": [{"address": "10.55.0.7/24"}]'
        )
        yield Finding(WARNING, "static_no_address", text)
    families = [_family(entry["address"]) for entry in addresses]
    for index, (entry, family) in enumerate(zip(addresses, families)):
        if entry.get("gateway") and ip(entry["gateway"]).version != family:
            text = "static: gateway %s is not of the family of the address %s; write one of its network"
            message = text % (entry["gateway"], entry["address"])
            yield Finding(ERROR, "schema", message, ("addresses", index, "gateway"))
    yield from _one_address(families, "static", version)
    if not capabilities.get("ips"):
        yield from _routes(ipam, set(families))


def _whereabouts(ipam: dict[str, Any]) -> Iterator[str]:
    entries = [ipam, *ipam.get("ipRanges", [])]
    yield from (entry["range"].rpartition("-")[2] for entry in entries if entry.get("range"))
    yield from (entry["address"] for entry in ipam.get("addresses", []))


# ---- all of them


def _family(text: str) -> int:
    return ip(text.partition("/")[0]).version


def _one_address(families: list[int], owner: str, version: Optional[str]) -> Iterator[Finding]:
    if before(version, "0.3.0") and len(families) != len(set(families)):
        text = "%s: version %s of the specification knows one address of each family only; write a later cniVersion"
        yield Finding(ERROR, "schema", text % (owner, version))


def _routes(ipam: dict[str, Any], families: set[int]) -> Iterator[Finding]:
    for index, route in enumerate(ipam.get("routes", [])):
        family = cidr(route["dst"]).version
        if families and family not in families:
            text = "%s: the route to %s goes nowhere, since containers get no IPv%d address; remove it, or add a range"
            message = text % (ipam["type"], route["dst"], family)
            yield Finding(WARNING, "route_family", message, ("routes", index, "dst"))
