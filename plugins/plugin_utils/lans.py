# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong between hosts: addresses that several of them use on one LAN, and networks that differ.

host-local knows the leases of its own host only. That is right for a network behind each host, and wrong for one that
the containers of several hosts share. The facts are those that ``cni_info`` returns, or only a network's configuration.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Container, Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple

from ..module_utils._host.addresses import packed
from ..module_utils._host.kinds import (
    HOST_LOCAL,
    INTERFACE,
    bridge_of,
    forwards,
    kind_of,
    lower_of,
    member_of,
    object_of,
    text_of,
    vlan_of,
)
from ..module_utils._host.netlink import MAIN_TABLE
from ..module_utils._host.ranges import Interface, Subnet, interface_of, range_of, range_sets, ranges_of
from .untrusted import number, rows, texts

DUPLICATE = "duplicate_address"
SHARED = "shared_range"
DIFFERENT = "network_differs"

REMEDY = "give each host its own range (rangeStart, rangeEnd), or use whereabouts or dhcp"
Reason = Tuple[str, str, Iterable[str]]
"""The code and message of a reason for attention, and the names of its hosts."""
RANGE, IN_USE, OF_HOST = "range", "in use", "of the host"
# Kinds of interfaces that do not lead out of a host; as a port of a bridge, also the host end of a container.
_PRIVATE = ("dummy", "ifb")
_INNER = (*_PRIVATE, "veth", "tun")
_DEFAULTS = ("0.0.0.0/0", "::/0")
_MOST_LISTED = 3


class Span(NamedTuple):
    """Addresses that a host uses, and for what: ``RANGE``, ``IN_USE`` or ``OF_HOST``, an address of its own."""

    first: bytes
    last: bytes
    words: str
    kind: str


class HostNetwork(NamedTuple):
    """A network of a host.

    ``shared``: it is on a LAN. ``drifts``: its file is not as declared. ``lan`` has the subnets of the interface below
    with the VLAN, and is empty if they are not known.
    """

    host: str
    groups: Sequence[str]
    network: str
    shared: bool
    drifts: bool
    lan: FrozenSet[Any]
    vlan: int
    mtu: int
    subnets: Sequence[Subnet]
    spans: Sequence[Span]

    @property
    def keys(self) -> FrozenSet[Any]:
        """What it has in common with other networks of its LAN."""
        return self.lan or frozenset([(self.vlan, self.network)])

    def subnets_of(self, version: int) -> str:
        return ", ".join(sorted({str(subnet) for subnet in self.subnets if subnet.version == version}))


def reasons_across(uses: Sequence[HostNetwork]) -> Dict[str, List[Tuple[str, str]]]:
    """Return code and message of each reason for attention that a host has because of others, by its name."""
    lans = _lans(uses)
    reasons: Dict[str, List[Tuple[str, str]]] = defaultdict(list)
    for code, message, hosts in [*_collisions(lans), *_differences(uses, lans)]:
        for host in hosts:
            reasons[host].append((code, message))
    return reasons


# ---- what a host uses


class HostNetworks:
    """What a host uses, from the result of cni_info, whose data may have any shape; ``conf`` alone is enough.

    *changed* are the paths that steps of the host would change.
    """

    def __init__(self, host: str, groups: Sequence[str], info: Mapping[str, Any], changed: Container[str] = ()) -> None:
        self._host, self._groups, self._info, self._changed = host, groups, info, changed
        kernel = object_of(info, "kernel")
        self._links = {text_of(link, "name"): link for link in _rows(kernel, "links")}
        self._ports = {text_of(link, "master") for link in self._links.values() if link.get("kind") not in _INNER}
        self._default = "that of the default route"
        for route in reversed(_rows(kernel, "routes")):
            device = text_of(route, "device")
            if text_of(route, "dst") in _DEFAULTS and route.get("table") == MAIN_TABLE:
                self._default = device
            # What is behind a router is outside, too.
            self._ports.update([device] if route.get("gateway") else [])
        self._in_use = self._addresses_in_use()

    def uses(self) -> Iterator[HostNetwork]:
        for row in _rows(self._info, "conf"):
            config = object_of(row, "config")
            for plugin in _rows(config, "plugins") or [config]:
                if kind_of(plugin).role == INTERFACE:
                    yield self._use(text_of(row, "network"), plugin, text_of(row, "path") in self._changed)
                    break

    def is_on_lan(self, plugin: Mapping[str, Any]) -> bool:
        """Tell whether the containers of a network share a LAN with those of other hosts."""
        below = self._below(plugin)
        return bool(below) and self._leads_out(below, self._links.get(below, {}), plugin)

    def _use(self, network: str, plugin: Mapping[str, Any], drifts: bool) -> HostNetwork:
        link = self._links.get(self._below(plugin), {})
        shared = self.is_on_lan(plugin)
        vlan = vlan_of(plugin)
        ipam = object_of(plugin, "ipam")
        ranges = ranges_of(ipam) if text_of(ipam, "type") == HOST_LOCAL else []
        static = _interfaces(text_of(row, "address") for row in _rows(ipam, "addresses"))
        spans = [Span(packed(str(part.start)), packed(str(part.end)), part.text, RANGE) for part in ranges]
        spans += [_span(str(address.ip), RANGE) for address in static]
        addresses: List[Interface] = []
        if shared:
            addresses = [
                address for address in _interfaces(texts(link.get("addresses"))) if not address.ip.is_link_local
            ]
            routers = {part.gateway for part in ranges}
            spans += [
                _span(str(address.ip), OF_HOST) for address in addresses if not vlan and address.ip not in routers
            ]
            # A network in two files has its containers once.
            spans += [_span(address, IN_USE) for address in self._in_use.pop(network, ()) if packed(address)]
        return HostNetwork(
            self._host,
            self._groups,
            network,
            shared,
            drifts,
            frozenset((vlan, address.network) for address in addresses if address.network.num_addresses > 1),
            vlan,
            number(member_of(plugin, "mtu")) or (number(link.get("mtu")) if shared else 0),
            [*(part.subnet for part in ranges), *(address.network for address in static)],
            spans,
        )

    def _below(self, plugin: Mapping[str, Any]) -> str:
        """Return the interface of the host below those of containers, "" for none."""
        # The host routes to containers of ipvlan's other modes.
        if text_of(plugin, "mode") in ("l3", "l3s"):
            return ""
        return bridge_of(plugin) or lower_of(plugin, lambda: self._default)

    def _leads_out(self, name: str, link: Mapping[str, Any], plugin: Mapping[str, Any]) -> bool:
        if kind_of(plugin).parent and link.get("kind") != "bridge":
            return link.get("kind") not in _PRIVATE
        return name in self._ports if link else _has_router_outside(plugin)

    def _addresses_in_use(self) -> Dict[str, List[str]]:
        """Return the addresses that containers of each network have."""
        dead = {text_of(row, "container_id") for row in _rows(self._info, "garbage") if row.get("collectable") is True}
        held = [(pool, owner) for pool in _rows(self._info, "pools") for owner in _rows(pool, "owners")]
        in_use: Dict[str, List[str]] = defaultdict(list)
        for network, row in [*held, *((row, row) for row in _rows(self._info, "attachments"))]:
            if row.get("netns_state") not in ("gone", "other") and text_of(row, "container_id") not in dead:
                in_use[text_of(network, "network")] += [ip.partition("/")[0] for ip in texts(row.get("ips"))]
        return in_use


def _has_router_outside(plugin: Mapping[str, Any]) -> bool:
    """Tell whether containers on a bridge of which nothing else is known have a router that is not their host."""
    if forwards(plugin) or member_of(plugin, "ipmasq") is True:
        return False
    ipam = object_of(plugin, "ipam")
    parts = [entry for _pointer, entries in range_sets(ipam) for entry in entries]
    routes = [text_of(route, "gw") for route in _rows(ipam, "routes")]
    return any(routes) or any(text_of(entry, "gateway") for entry in [*parts, *_rows(ipam, "addresses")])


def _rows(data: Mapping[str, Any], key: str) -> List[Mapping[str, Any]]:
    return rows(member_of(data, key))


def _interfaces(addresses: Iterable[str]) -> List[Interface]:
    return [interface for interface in map(interface_of, addresses) if interface]


def _span(address: str, kind: str) -> Span:
    return Span(packed(address), packed(address), address, kind)


class LanRange(NamedTuple):
    """Addresses that a network assigns on a LAN: the ``pointer`` in its configuration, the ``values`` that say them."""

    pointer: str
    values: List[str]
    words: str


def ranges_on_lans(config: Mapping[str, Any]) -> Iterator[LanRange]:
    """Yield the ranges and static addresses of a network, if its configuration says that it is on a LAN."""
    chain = _rows(config, "plugins")
    for index, plugin in enumerate(chain or [dict(config)]):
        if kind_of(plugin).role == INTERFACE and HostNetworks("", (), {}).is_on_lan(plugin):
            ipam, pointer = object_of(plugin, "ipam"), f"/plugins/{index}/ipam" if chain else "/ipam"
            sets = range_sets(ipam) if text_of(ipam, "type") == HOST_LOCAL else []
            for place, entries in sets:
                for position, entry in enumerate(entries):
                    part = range_of(entry)
                    values = [text_of(entry, key) for key in ("subnet", "rangestart", "rangeend")]
                    if part is not None:
                        where = f"{pointer}{place}/{position}" if place else pointer
                        yield LanRange(where, [value for value in values if value], part.text)
            for position, row in enumerate(_rows(ipam, "addresses") if text_of(ipam, "type") == "static" else []):
                address = text_of(row, "address")
                yield LanRange(f"{pointer}/addresses/{position}", [address], address)
            return


# ---- what hosts take from each other


def _lans(uses: Iterable[HostNetwork]) -> List[List[HostNetwork]]:
    """Return the networks of each LAN."""
    lans: Dict[Any, List[HostNetwork]] = {}
    for use in uses:
        if use.shared:
            lan, *others = list({id(lans[key]): lans[key] for key in use.keys if key in lans}.values()) or [[]]
            joined = [use, *(member for other in others for member in other)]
            lan.extend(joined)
            lans.update((key, lan) for member in joined for key in member.keys)
    return list({id(lan): lan for lan in lans.values()}.values())


def _collisions(lans: Iterable[Sequence[HostNetwork]]) -> Iterator[Reason]:
    """Yield a reason for each run of addresses that several hosts of a LAN use."""
    for lan in lans:
        run: List[Tuple[Span, HostNetwork]] = []
        last = b""
        spans = [(span, use) for use in lan for span in use.spans]
        for span, use in sorted(spans, key=lambda pair: pair[0]):
            if span.first > last:
                yield from _collision(run)
                run = []
            run.append((span, use))
            last = max(last, span.last)
        yield from _collision(run)


def _collision(run: Sequence[Tuple[Span, HostNetwork]]) -> Iterator[Reason]:
    hosts = sorted({use.host for _span, use in run})
    assigned = [(span, use) for span, use in run if span.kind != OF_HOST]
    # Hosts may hand an address of their own to each other, as keepalived does.
    if len(hosts) < 2 or not assigned:
        return
    holders: Dict[str, Set[str]] = defaultdict(set)
    for span, use in run:
        if span.kind != RANGE:
            holders[span.words].add(use.host)
    in_use = dict.fromkeys(span.words for span, _use in assigned if span.kind == IN_USE)
    twice = [address for address in in_use if len(holders[address]) > 1]
    ranges = list(dict.fromkeys(span.words for span, _use in assigned if span.kind == RANGE))
    what = f"{_listed(hosts)} use the same addresses of one LAN" + (f" ({_listed(ranges)})" if ranges else "")
    if twice:
        what = f"{_listed(twice)} {'is' if len(twice) == 1 else 'are'} in use twice: {what}"
    networks = _listed(sorted({use.network for _span, use in assigned}))
    code = DUPLICATE if twice else SHARED
    yield code, f"{networks}: {what}; {REMEDY}", hosts


# ---- networks that differ


def _differences(uses: Sequence[HostNetwork], lans: Sequence[Sequence[HostNetwork]]) -> Iterator[Reason]:
    """Yield a reason for each network with several values on one LAN or, if that is not known, in one group."""
    places = {id(use): index for index, lan in enumerate(lans) for use in lan if use.lan}
    networks: Dict[str, List[HostNetwork]] = defaultdict(list)
    for use in uses:
        # Drift is told where it is.
        if not use.drifts:
            networks[use.network].append(use)
    aspects: Any = (
        ("MTU", lambda use: use.mtu),
        ("subnet", lambda use: use.shared and use.subnets_of(4)),
        ("IPv6 subnet", lambda use: use.shared and use.subnets_of(6)),
    )
    code = DIFFERENT
    for network, same in sorted(networks.items()):
        for aspect, value_of in aspects:
            scopes: Dict[Any, Dict[str, str]] = defaultdict(dict)
            for use in filter(value_of, same):
                for scope in [places[id(use)]] if id(use) in places else use.groups:
                    scopes[scope][use.host] = str(value_of(use))
            for values in _unexplained(scopes):
                hosts: Dict[str, List[str]] = defaultdict(list)
                for host, value in sorted(values.items()):
                    hosts[value].append(host)
                shown = _listed([f"{value} on {_listed(names)}" for value, names in sorted(hosts.items())])
                yield code, f"{network}: the {aspect} is {shown}; write one value for all of them", values


def _unexplained(scopes: Mapping[Any, Mapping[str, str]]) -> Iterator[Mapping[str, str]]:
    """Yield the values by host of each scope in which they differ, the smallest first, and no host twice.

    Hosts that differ as groups of theirs do (two sites) are as somebody wants them.
    """
    uniform = {host for values in scopes.values() if len(set(values.values())) == 1 for host in values}
    told: Set[str] = set()
    for values in sorted(scopes.values(), key=len):
        if len(set(values.values())) > 1 and not uniform.issuperset(values) and told.isdisjoint(values):
            told.update(values)
            yield values


def _listed(words: Sequence[str]) -> str:
    more = len(words) - _MOST_LISTED
    shown = [*words[:_MOST_LISTED], *([f"{more} more"] if more > 0 else [])]
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))
