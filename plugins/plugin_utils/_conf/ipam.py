# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of IPAM plugins that compare one value with another, which a schema cannot say."""

from __future__ import annotations

import ipaddress
from typing import Any, Iterator, NamedTuple, Optional

from ...module_utils._host.kinds import INTERFACE, UNKNOWN_KIND, bridge_of, forwards, kind_of, object_of
from ...module_utils._host.problems import ERROR, INFO, WARNING
from ...module_utils._host.ranges import Range, range_sets, span_of
from ...module_utils.libcni import version as spec
from ...module_utils.libcni.errors import VersionError
from .formats import Network, cidr, ip, network
from .positions import Fault
from .yaml_text import values

Version = Optional[str]
_RANGE_KEYS = ("subnet", "rangeStart", "rangeEnd", "gateway")
# Global unicast space by RFC 4291 and IANA; other space is not assigned.
_UNICAST = ipaddress.IPv6Network("2000::/3")
# Parts of it that are not routed on the internet: 6to4 (RFC 7526) and documentation (RFC 9637). Older Pythons do not
# know them.
_NOT_ROUTED = (ipaddress.IPv6Network("2002::/16"), ipaddress.IPv6Network("3fff::/20"))
# The bridge of kube-router and Kilo (fixed in their code), which write the node's ranges into the file.
_FILLED_IN = "kube-bridge"
_DEFAULTS = (ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0"))
_LINK_LOCAL = ipaddress.IPv6Network("fe80::/10")
# The kernel takes it for no gateway at all; IPv6 has no such address.
_NO_GATEWAY = ipaddress.IPv4Address("0.0.0.0")
# RT_SCOPE_LINK: an IPv4 gateway must be reachable through such a route.
_LINK_SCOPE = 253


# The key beside gateway, and what reads its value.
_BESIDE: dict[str, tuple[str, Any]] = {
    "host-local": ("subnet", network),
    "static": ("address", cidr),
    "whereabouts": ("range", cidr),
}


def exchanged(ipam: dict[str, Any], kind: str) -> Iterator[Fault]:
    """Yield where a network and its gateway stand in each other's place in a (folded) ipam object."""
    key, read = _BESIDE.get(kind, ("", None))
    for place, entry in values(ipam) if key else ():
        net, gateway = (entry.get(name) if isinstance(entry, dict) else None for name in (key, "gateway"))
        if isinstance(net, str) and isinstance(gateway, str):
            host, _slash, length = gateway.partition("/")
            try:
                ip(net)
                ends = (read(gateway).network_address + 1, read(gateway).broadcast_address - 1)
            except ValueError:
                continue
            what, right = f"{key} and gateway are exchanged", (gateway, net)
            if ip(host) in ends:
                what, right = f"the gateway has the prefix length of the {key}", (f"{net}/{length}", host)
            text = f'{kind}: {what}; write "{key}": "{right[0]}", "gateway": "{right[1]}"'
            yield Fault(ERROR, "subnet_exchanged", text, (*place, key))


def ipam_findings(ipam: dict[str, Any], plugin: dict[str, Any], version: Version, user: str = "") -> Iterator[Fault]:
    """Yield findings on a (folded, valid) ipam object of *plugin*; pointers are relative to the ipam object.

    *version* is the version of the conflist, None if it is negotiated. *user* is ``pod`` if a pod asks Multus for the
    network, ``multus`` if it is one of Multus' own delegates.
    """
    kind = ipam["type"]
    if kind == "host-local":
        yield from _host_local(ipam, plugin, version)
        if plugin.get("ipMasq") is True:
            yield from _public(ipam)
    elif kind == "static":
        yield from _static(ipam, plugin, version, user)
    elif kind == "whereabouts":
        gateways: dict[int, Any] = {ip(gateway).version: ip(gateway) for gateway in [ipam.get("gateway")] if gateway}
        entries = [ipam, *ipam.get("ipRanges", [])]
        texts = [entry["range"].rpartition("-")[2] for entry in entries if entry.get("range")]
        texts += [entry["address"] for entry in ipam.get("addresses", [])]
        yield from _routes(ipam, plugin, [cidr(text) for text in texts], gateways, version)


def _handed_over(plugin: dict[str, Any], key: str) -> bool:
    """Tell whether a runtime may pass *key*, or the configuration sets it in place of a runtime."""
    # The rest of the plugin may be invalid.
    places = (plugin.get("capabilities"), plugin.get("runtimeConfig"))
    return any(isinstance(place, dict) and bool(place.get(key)) for place in places)


def before(version: Version, other: str) -> bool:
    """Tell whether *version* is known and older than *other*."""
    try:
        return version is not None and not spec.greater_than_or_equal_to(version, other)
    except VersionError:
        return False


class _Entry(NamedTuple):
    """A range of host-local: its place, by which several are ordered, the pointer of its list, and its addresses."""

    place: tuple[Any, ...]
    group: str
    span: Range


class _Route(NamedTuple):
    """What distinguishes two routes in the kernel."""

    target: Network
    gateway: Any
    priority: int
    table: int


# ---- host-local


def _host_local(ipam: dict[str, Any], plugin: dict[str, Any], version: Version) -> Iterator[Fault]:
    more = _handed_over(plugin, "ipRanges")
    alone = [key for key in _RANGE_KEYS if ipam.get(key) and "subnet" not in ipam]
    if alone and ipam.get("ranges"):
        text = f"host-local ignores {alone[0]}, because no subnet is beside it; write it into the range, or remove it"
        yield Fault(WARNING, "no_effect", text, (alone[0],))
    elif alone:
        text = 'host-local: the range has no subnet; write "subnet": "10.55.0.0/24"'
        yield Fault(ERROR, "schema", text)
    elif "subnet" not in ipam and not ipam.get("ranges") and not more:
        yield _no_range(plugin)
    entries = list(_entries(ipam))
    gateways: dict[int, Any] = {}
    for entry in entries:
        yield from _range(entry)
        gateways.setdefault(entry.span.subnet.version, entry.span.gateway)
    yield from _mixed(entries)
    yield from _overlaps(entries)
    groups = {entry.group: entry.span.subnet.version for entry in entries}
    yield from _one_address(list(groups.values()), "host-local", version)
    yield from _routes(ipam, plugin, [] if more else [entry.span.subnet for entry in entries], gateways, version)


def _no_range(plugin: dict[str, Any]) -> Fault:
    if plugin.get("bridge") == _FILLED_IN:
        text = "host-local has no range yet; kube-router and Kilo write the node's range into the file when they start"
        return Fault(INFO, "range_filled_in", text)
    if kind_of(plugin) is UNKNOWN_KIND:
        text = f"host-local has no range, so ADD fails unless the plugin {plugin.get('type')} fills one in"
        return Fault(INFO, "range_filled_in", text)
    text = 'host-local: there is no range to allocate addresses from; write "ranges": [[{"subnet": "10.55.0.0/24"}]]'
    return Fault(ERROR, "schema", text)


def _entries(ipam: dict[str, Any]) -> Iterator[_Entry]:
    for group, entries in range_sets(ipam):
        for number, entry in enumerate(entries):
            span = span_of(entry)
            if span is not None:
                yield _Entry(("ranges", int(group.rpartition("/")[2]), number) if group else (), group, span)


def _range(entry: _Entry) -> Iterator[Fault]:
    place, (subnet, first, last, gateway) = entry.place, entry.span
    outside = [(key, address) for key, address in (("rangeStart", first), ("rangeEnd", last)) if address not in subnet]
    for key, address in outside:
        text = f"host-local: {key} {address} is not in the subnet {subnet}; write an address of the subnet"
        yield Fault(ERROR, "schema", text, (*place, key))
    if not outside and int(first) > int(last):
        text = f"host-local: rangeEnd {last} comes before rangeStart {first}; swap them"
        yield Fault(ERROR, "schema", text, (*place, "rangeEnd"))
    if gateway.version != subnet.version:
        text = f"host-local: {gateway} and {subnet} are of different families; write a gateway in the subnet"
        yield Fault(ERROR, "schema", text, (*place, "gateway"))
    if first == last == gateway:
        text = f"host-local: the only address of the range is {first}, its gateway, so none is free; widen the range"
        yield Fault(ERROR, "schema", text, place)


def _mixed(entries: list[_Entry]) -> Iterator[Fault]:
    first: dict[str, Network] = {}
    for entry in entries:
        subnet = entry.span.subnet
        other = first.setdefault(entry.group, subnet)
        if other.version != subnet.version:
            text = f"host-local: a list has one family, and not {other} and {subnet}; give each its own list"
            yield Fault(ERROR, "schema", text, (*entry.place, "subnet"))


def _overlaps(entries: list[_Entry]) -> Iterator[Fault]:
    # A range that ends outside of its subnet's family is already reported.
    comparable = [entry for entry in entries if len({part.version for part in entry.span[:3]}) == 1]
    widest: Optional[_Entry] = None
    for entry in sorted(comparable, key=lambda entry: (entry.span.subnet.version, int(entry.span.start), entry.place)):
        span = entry.span
        if widest is None or not span.overlaps(widest.span):
            widest = entry
            continue
        other = widest.span
        message = f"host-local: {span.start} to {span.end} overlaps {other.start} to {other.end}; keep them apart"
        yield Fault(ERROR, "schema", message, max(entry, widest).place)
        widest = max(entry, widest, key=lambda entry: int(entry.span.end))


def _public(ipam: dict[str, Any]) -> Iterator[Fault]:
    for entry in _entries(ipam):
        subnet: Any = entry.span.subnet
        routed = subnet.version == 4 or (
            subnet.subnet_of(_UNICAST) and not any(subnet.subnet_of(part) for part in _NOT_ROUTED)
        )
        if subnet.is_global and routed:
            private = "10.55.0.0/24" if subnet.version == 4 else "fd00:55::/64"
            text = (
                f"host-local: {subnet} is public address space and ipMasq replaces its addresses, so containers cannot "
                f"reach the hosts that own these addresses; write a private network such as {private}"
            )
            yield Fault(WARNING, "public_subnet", text, (*entry.place, "subnet"))


# ---- static


def _static(ipam: dict[str, Any], plugin: dict[str, Any], version: Version, user: str) -> Iterator[Fault]:
    addresses = ipam.get("addresses", [])
    # These replace the configured addresses.
    replaced = _handed_over(plugin, "ips") or bool(object_of(object_of(plugin, "args"), "cni").get("ips"))
    if not addresses and not replaced:
        yield _no_address(user)
    families: list[int] = [cidr(entry["address"]).version for entry in addresses]
    gateways: dict[int, Any] = {}
    for index, (entry, family) in enumerate(zip(addresses, families)):
        place = ("addresses", index, "gateway")
        gateway = ip(entry["gateway"]) if entry.get("gateway") else None
        if gateway is None:
            continue
        gateways.setdefault(family, gateway)
        if gateway.version != family:
            text = (
                f"static: gateway {gateway} and address {entry['address']} are of different families; write a "
                "gateway in the address's network"
            )
            yield Fault(ERROR, "schema", text, place)
        elif gateway == ip(entry["address"].partition("/")[0]):
            text = f"static: the address {gateway} is its own gateway, which leads nowhere; change one of them"
            yield Fault(WARNING, "own_gateway", text, place)
    yield from _one_address(families, "static", version)
    if plugin.get("type") == "ptp":
        yield from _without_gateway(addresses, plugin)
    subnets = [] if replaced else [cidr(entry["address"]) for entry in addresses]
    if bridge_of(plugin) and forwards(plugin):
        for subnet in subnets:
            gateways.setdefault(subnet.version, subnet.network_address + 1)
    yield from _routes(ipam, plugin, subnets, gateways, version)


def _no_address(user: str) -> Fault:
    if user == "multus":
        text = (
            "static: there are no addresses, and Multus passes none to its own networks without the capability; write "
            '"capabilities": {"ips": true} beside ipam, or addresses'
        )
        return Fault(WARNING, "static_no_address", text)
    if user == "pod":
        # Multus also puts them into CNI_ARGS, which static reads.
        text = (
            "static: there are no addresses, so ADD fails unless the pod asks for them (ips in its annotation); write "
            '"capabilities": {"ips": true} beside ipam, as Multus documents, or addresses'
        )
    else:
        text = (
            "static: there are no addresses, so ADD fails unless CNI_ARGS has them (IP, and GATEWAY); if that is not "
            'intended, write "addresses": [{"address": "10.55.0.7/24"}]'
        )
    return Fault(INFO, "static_no_address", text)


def _without_gateway(addresses: list[dict[str, Any]], plugin: dict[str, Any]) -> Iterator[Fault]:
    """Yield where ptp gets an address without the gateway that it assigns to the host end."""
    rule = "ptp assigns the gateway to the host end of the veth, and every ADD fails without one"
    for index, entry in enumerate(addresses):
        if not entry.get("gateway"):
            address = entry["address"]
            text = f'static: {address} has no gateway; {rule}: write "gateway" beside it'
            yield Fault(ERROR, "schema", text, ("addresses", index))
    if object_of(object_of(plugin, "args"), "cni").get("ips"):
        text = f"static: args.cni.ips replaces the addresses, and has no gateways; {rule}: write addresses instead"
        yield Fault(ERROR, "schema", text)
    elif _handed_over(plugin, "ips"):
        text = (
            f"static: addresses of the capability 'ips' have no gateways; {rule}: pass them as IP and GATEWAY in args"
        )
        yield Fault(WARNING, "ptp_no_gateway", text)


# ---- all of them


def _one_address(families: list[int], owner: str, version: Version) -> Iterator[Fault]:
    if before(version, "0.3.0") and len(families) != len(set(families)):
        text = f"{owner}: cniVersion {version} allows one address of each family only; write a later cniVersion"
        yield Fault(ERROR, "schema", text)


def _routes(
    ipam: dict[str, Any], plugin: dict[str, Any], subnets: list[Network], gateways: dict[int, Any], version: Version
) -> Iterator[Fault]:
    """Yield findings on the routes.

    *subnets* are those of the containers' addresses, empty if unknown; *gateways* are used by routes without ``gw``, by
    family.
    """
    # These set up addresses and routes with the same library (plugins/pkg/ipam), and fail where the kernel refuses.
    kind, refused = ipam["type"], ERROR if kind_of(plugin).role == INTERFACE else WARNING
    families: set[int] = {subnet.version for subnet in subnets}
    near, seen = list(subnets), _default_routes(ipam, plugin, families, gateways)
    for index, route in enumerate(ipam.get("routes", [])):
        target, place = cidr(route["dst"]), ("routes", index)
        if families and target.version not in families:
            text = (
                f"{kind}: the route to {route['dst']} goes nowhere, since containers get no IPv{target.version} "
                "address; remove it, or add a range"
            )
            yield Fault(WARNING, "route_family", text, (*place, "dst"))
            continue
        if ip(route["dst"].partition("/")[0]) != target.network_address:
            # IPv6 clears the bits, and then CHECK does not find the route.
            verb, level = ("ADD", refused) if target.version == 4 else ("CHECK", WARNING)
            text = f"{kind}: the route to {route['dst']} has host bits set, so every {verb} fails; write {target}"
            if verb == "ADD" or not before(version, "0.4.0"):
                yield Fault(level, "schema", text, (*place, "dst"))
        gw = ip(route["gw"]) if route.get("gw") else None
        if gw is not None and gw.version != target.version:
            text = (
                f"{kind}: the route to {target} has the gateway {gw} of the other family, so every ADD fails; write "
                f"an IPv{target.version} address"
            )
            yield Fault(refused, "schema", text, (*place, "gw"))
        elif (
            gw is not None
            and target.version in families
            and kind != "whereabouts"
            and not (gw == _NO_GATEWAY or gw in _LINK_LOCAL or any(gw in subnet for subnet in near))
        ):
            # The separate configuration file of whereabouts may contain more ranges.
            listed = ", ".join(str(subnet) for subnet in subnets if subnet.version == gw.version)
            text = (
                f"{kind}: the route to {target} has the gateway {gw}, which is in none of the containers' subnets "
                f"({listed}), so every ADD fails (network is unreachable); write an address of these subnets, or leave "
                "gw out"
            )
            # CNI_ARGS may add an address to those of static.
            level = refused if kind == "host-local" else WARNING
            yield Fault(level, "gateway_outside", text, (*place, "gw"))
        key = _Route(target, gw or gateways.get(target.version), route.get("priority", 0), route.get("table") or 254)
        if key.gateway in (None, _NO_GATEWAY) and (target.version == 6 or route.get("scope") == _LINK_SCOPE):
            near.append(target)
        if key in seen:
            text = f"{kind}: the route to {target} occurs twice{seen[key]}, so every ADD fails (file exists); remove it"
            yield Fault(refused, "route_twice", text, place)
        seen[key] = ""


def _default_routes(
    ipam: dict[str, Any], plugin: dict[str, Any], families: set[int], gateways: dict[int, Any]
) -> dict[_Route, str]:
    """Return the default routes that bridge adds by itself: where no default route names its ``gw``."""
    if plugin.get("type") != "bridge" or not plugin.get("isDefaultGateway"):
        return {}
    named = {cidr(route["dst"]) for route in ipam.get("routes", []) if route.get("gw")}
    targets = [target for target in _DEFAULTS if target.version in families and target not in named]
    return {_Route(target, gateways.get(target.version), 0, 254): " (isDefaultGateway adds it)" for target in targets}
