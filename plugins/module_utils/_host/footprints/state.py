# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a host and of containers' namespaces, read at one time, and how it differs from footprints.

Drift are objects of a footprint that are gone or have changed, and additions that do harm.
"""

from __future__ import annotations

import socket
from collections import Counter
from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ...libcni.kernel import attributes_in
from ..addresses import is_in
from ..errors import HostError
from ..firewall.chains import NO_POLICY, TABLE, FoundChains, read_chains, survives
from ..firewall.order import misplaced
from ..kernel.objects import CONF4, CONF6, OF_INTERFACES, ROUTE, KernelObject, ObjectKey, State, device_of, read_ways
from ..kernel.sysctls import GLOBAL, read_globals, sysctl_place
from ..leases import Lease, read_leases
from ..netlink import MAIN_TABLE, UNICAST
from ..netns import Netns, visit
from ..struct import field, struct
from .footprint import Footprint, Objects, Owner
from .object_kinds import (
    CHAIN_KEY_LENGTH,
    HOST,
    IN_FIREWALL,
    KINDS,
    LEASE,
    MISPLACED,
    SWITCH,
    Difference,
    is_whole,
    rules_by_chain,
    summarize,
)

LeaseStore = Tuple[str, str]
RECORDED, REHEARSED, DEDUCED = "recorded", "rehearsed", "deduced"
"""What is known of an owner is recorded at an ADD, shown by a rehearsal of it, or implied by its result."""
FORWARDING = dict(zip(OF_INTERFACES, ("ipv4/ip_forward", "ipv6/conf/all/forwarding")))
"""The global switches of forwarding, which also set what each interface does."""
# What keeps an address of the host from serving containers, of IPv4 and IPv6: a sysctl of its interface, and the value.
_OFF = ((CONF4, "forwarding", 0), (CONF6, "disable_ipv6", 1))
_MTU_WITHOUT_PORTS = 1500
# The place of the protocol in the header of a route, and RTA_GATEWAY.
_PROTOCOL, _GATEWAY = 5, 5


def _unread_chains() -> FoundChains:
    return FoundChains(unread={(): HostError("the firewall was not read", code="rules_unreadable")})


@struct
class Reading:
    """What was read: ``spaces`` (space -> objects), and the firewall ``chains`` of the host, if they were asked for.

    ``misplaced`` are recorded rules that are there, but not in their recorded order, and ``ours`` all recorded rules by
    their chain; see note_order.
    ``switched``: see switched_backends.

    Besides the kinds of kernel.objects there are ``(sysctl, name)`` with a text, and ``(lease, data dir, network,
    address)`` with the text of the file.
    """

    spaces: Dict[str, State]
    chains: FoundChains = field(default_factory=_unread_chains)
    misplaced: FrozenSet[ObjectKey] = frozenset()
    ours: Mapping[ObjectKey, Sequence[str]] = field(default_factory=dict)
    switched: Mapping[ObjectKey, str] = field(default_factory=dict)
    _counts: Dict[ObjectKey, Counter[str]] = field(default_factory=dict)

    def kernel_object(self, space: str, key: ObjectKey) -> Optional[KernelObject]:
        """Return the kernel's object, None if there is none. Parts of objects have none: rules, single sysctls."""
        return self.spaces.get(space, {}).get(key)

    def value(self, space: str, key: ObjectKey) -> Any:
        """Return the value of an object or of a part of one, None if it is not there."""
        kind = key[0]
        if kind in IN_FIREWALL:
            return self._in_firewall(key)
        if kind in OF_INTERFACES:
            values = self.kernel_object(space, key[:2])
            place = sysctl_place(str(kind), str(key[2]))
            return values.value[place] if values is not None and place < len(values.value) else None
        present = self.kernel_object(space, key)
        return None if present is None else present.value

    def leave_out(self, keys: Iterable[ObjectKey]) -> None:
        """Forget objects and rules of the host, as if they had not been there."""
        chains = self.chains.chains
        for key in keys:
            if key[0] not in IN_FIREWALL:
                self.spaces[HOST].pop(key, None)
            elif chains.pop(key, None) is None and key[:CHAIN_KEY_LENGTH] in chains:
                rules = chains[key[:CHAIN_KEY_LENGTH]].rules
                if key[-1] in rules:
                    rules.remove(str(key[-1]))

    def _in_firewall(self, key: ObjectKey) -> Any:
        place = key if len(key) == CHAIN_KEY_LENGTH or key[0] == TABLE else key[:-1]
        chain = self.chains.chains.get(place)
        if chain is None:
            return None
        if place == key:
            return chain.body
        if place not in self._counts:
            self._counts[place] = Counter(chain.rules)
        return self._counts[place][str(key[-1])] or None


def read_spaces(wanted: Mapping[str, Iterable[ObjectKey]], namespaces: Iterable[Netns] = ()) -> Reading:
    """Read the host, and those of *namespaces* that *wanted* names: space -> the keys that will be asked for.

    All kernel objects of these spaces are read; sysctls, leases and the firewall as far as keys ask for them. A
    namespace that is gone is left out. Raises HostError.
    """
    names = sorted({name for path in wanted if path != HOST for name in sysctls_of(wanted[path])})
    visited = [namespace for namespace in namespaces if namespace.path in wanted]
    spaces = visit(visited, lambda: {**read_ways(), **read_globals(names)})
    if HOST not in wanted:
        return Reading(spaces)
    keys = list(wanted[HOST])
    stores = dict.fromkeys((str(key[1]), str(key[2])) for key in keys if key[0] == LEASE)
    inside = {str(key[2]) for path in wanted if path != HOST for key in wanted[path] if key[0] == "addr"}
    spaces[HOST] = {**read_ways(inside), **read_globals(sysctls_of(keys)), **read_stores(stores)}
    return Reading(spaces, read_chains() if any(key[0] in IN_FIREWALL for key in keys) else _unread_chains())


def read_stores(stores: Iterable[LeaseStore]) -> State:
    """Return the leases of stores of host-local, (data dir, network)."""
    leases: State = {}
    for data_dir, network in stores:
        for lease in read_leases(data_dir, network)[0]:
            leases[LEASE, data_dir, network, lease.ip] = KernelObject(lease.text)
    return leases


def unread(reading: Reading, key: ObjectKey) -> str:
    """Return why nothing is known of *key*, "" if it was read."""
    error = reading.chains.why_unread(key) if key[0] in IN_FIREWALL else None
    return error.msg if error is not None else ""


def other_end(host: State, inside: State, ifname: str) -> str:
    """Return the name of the host's end of a container's veth, "" if there is none."""
    mine = inside.get(("link", ifname))
    pair = (mine.peer[0], mine.ifindex) if mine is not None and mine.peer[1] else None
    veths = ((key[1], link) for key, link in host.items() if key[0] == "link" and link.value["kind"] == "veth")
    return next((str(name) for name, link in veths if (link.ifindex, link.peer[0]) == pair), "")


def sysctls_of(keys: Iterable[ObjectKey]) -> List[str]:
    """Return the names of the global sysctls among *keys*."""
    return [str(key[1]) for key in keys if key[0] == GLOBAL]


# ---- comparison


@struct
class Drift:
    """What an owner needs, where that is known from, and how the present state differs from it.

    ``owner``: the key of an attachment, the name of a network in a tuple, or () for what all networks share. ``netns``:
    the path of the container's namespace, "" for none. ``source``: one of the constants above. ``why``: why not all
    that it needs is known, "" if it is. ``unread``: why something of it could not be compared. ``freed``: leases that
    stand in the place of its own, and whose owner is dead. ``diversions``: see ways.
    """

    owner: Owner
    footprint: Footprint
    netns: str = ""
    source: str = RECORDED
    why: str = ""
    differences: List[Difference] = field(default_factory=list)
    unread: List[str] = field(default_factory=list)
    freed: Mapping[ObjectKey, Lease] = field(default_factory=dict)
    diversions: List[str] = field(default_factory=list)

    @property
    def own(self) -> bool:
        """Whether it is one attachment's."""
        return len(self.owner) > 1

    @property
    def target(self) -> str:
        """What steps and messages call the owner."""
        return "/".join(self.owner) or "shared firewall rules and forwarding"

    @property
    def lost(self) -> List[Difference]:
        """What may be put back."""
        return [difference for difference in self.differences if not difference.foreign]

    @property
    def additions(self) -> List[Difference]:
        """What others have added or set and does harm: it is never changed."""
        return [difference for difference in self.differences if difference.foreign]

    @property
    def reason(self) -> str:
        """What is lost, as a phrase."""
        return summarize(self.lost, self.own)

    @property
    def taken(self) -> List[ObjectKey]:
        """The leases that name another owner now."""
        return [difference.key for difference in self.lost if difference.key[0] == LEASE and difference.now is not None]


def wanted_keys(footprints: Iterable[Tuple[str, Footprint]]) -> Dict[str, List[ObjectKey]]:
    """Return what ``read_spaces`` has to read for footprints, each with the path of its container's namespace."""
    keys: Dict[str, List[ObjectKey]] = {HOST: []}
    for netns, footprint in footprints:
        keys[HOST].extend(footprint.host)
        if footprint.inside and netns:
            keys.setdefault(netns, []).extend(footprint.inside)
    return keys


def note_order(reading: Reading, order: Mapping[ObjectKey, Sequence[str]], footprints: Iterable[Footprint]) -> None:
    """Note in *reading* which rules of *footprints* do not stand in the recorded *order*, so that it is drift."""
    ours = rules_by_chain(footprint.host for footprint in footprints)
    chains = reading.chains.chains
    reading.ours = ours
    reading.misplaced = frozenset(
        (*place, rule)
        for place, rules in ours.items()
        if place in chains
        for rule in misplaced(order.get(place, ()), rules, chains[place].rules)
    )


def compare(reading: Reading, drift: Drift) -> None:
    """Note in *drift* how the present state differs from its footprint.

    Of what is only deduced, nobody knows what is missing in it, so no object counts as added by others.
    """
    netns, footprint = drift.netns, drift.footprint
    differences = list(_differences(reading, HOST, footprint.host))
    if netns in reading.spaces and netns != HOST:
        differences += _differences(reading, netns, footprint.inside)
        switched = {key[1]: reading.switched[key[1:3]] for key in footprint.host if key[1:3] in reading.switched}
        differences += [Difference(HOST, (SWITCH, was), was, now) for was, now in switched.items()]
        differences += _astray(reading, netns, footprint)
        if drift.source != DEDUCED:
            differences += _added_rules(reading, footprint)
            differences += _harmful(reading, netns, footprint.inside)
            differences += _misled(reading, netns, footprint)
    drift.differences = [*differences, *_harmful(reading, HOST, footprint.host)]
    if drift.lost:
        # Imported late: needed only if something has drifted.
        from .ways import diversions

        drift.diversions = diversions(reading.spaces, reading.chains, footprint, drift.lost)
    drift.unread = [reason for reason in dict.fromkeys(unread(reading, key) for key in footprint.host) if reason]


def _differences(reading: Reading, space: str, objects: Objects) -> Iterator[Difference]:
    for key, wanted in objects.items():
        if unread(reading, key):
            continue
        now = reading.value(space, key)
        if space == HOST and ":" in str(key) and reading.value(HOST, (CONF6, device_of(key), "disable_ipv6")) == 1:
            # The administrator has IPv6 off there, which is told instead.
            continue
        if key[-1] == "forwarding" and reading.value(space, (GLOBAL, FORWARDING.get(str(key[0]), ""))) == "0":
            # All have it off, which the switch tells.
            continue
        if wanted.value is None and key[0] == "route" and now is not None and not _is_same(wanted, reading, space, key):
            # Others have added it meanwhile.
            continue
        if key[0] == "link" and now is not None and is_whole(wanted.value):
            now = _without_followed_mtu(reading, space, key, wanted.value, now)
        if _differs(space, key, wanted.value, now):
            yield Difference(space, key, wanted.value, now)
        elif key in reading.misplaced:
            yield Difference(space, key, wanted.value, MISPLACED)


def _is_same(removed: KernelObject, reading: Reading, space: str, key: ObjectKey) -> bool:
    """Tell whether a route is the one that the ADD removed: of the same protocol, through the same gateway."""
    present = reading.kernel_object(space, key)
    raws = [route.raw for route in (removed, present) if route is not None and route.raw]
    return len({(raw[_PROTOCOL], attributes_in(raw, ROUTE.size).get(_GATEWAY)) for raw in raws}) < 2


def _without_followed_mtu(reading: Reading, space: str, key: ObjectKey, was: Any, now: Any) -> Any:
    """Return a present value without a MTU that others limit: of a bridge its ports, else the lower device."""
    if now["kind"] == "bridge":
        links = (present.value for other, present in reading.spaces[space].items() if other[0] == "link")
        followed = min((link["mtu"] for link in links if link["master"] == key[1]), default=_MTU_WITHOUT_PORTS)
    else:
        lower = was["lower"] if isinstance(was["lower"], dict) else {}
        device = reading.value(HOST, ("link", lower.get("name", "")))
        followed = device["mtu"] if device is not None and device["mtu"] < was["mtu"] else -1
    return dict(now, mtu=was["mtu"]) if now["mtu"] == followed else now


def _differs(space: str, key: ObjectKey, was: Any, now: Any) -> bool:
    if was is None or now is None:
        return (was is None) != (now is None)
    return was != now and not KINDS[str(key[0])].same(space, was, now)


def _added_rules(reading: Reading, footprint: Footprint) -> Iterator[Difference]:
    """Yield the rules that others have added to chains that the ADD made for this attachment alone."""
    chains = reading.chains.chains
    for key, recorded in footprint.host.items():
        if recorded.value == NO_POLICY and key in chains:
            # Another interface of the container has its rules in the same chain.
            known = reading.ours.get(key, ())
            for rule in chains[key].rules:
                if (*key, rule) not in footprint.host and rule not in known and survives(key, rule):
                    yield Difference(HOST, (*key, rule), None, 1, True)


def _harmful(reading: Reading, space: str, objects: Objects) -> Iterator[Difference]:
    """Yield addresses with a recorded subnet that the interface did not have, and routes better than a container's.

    On the host, an address that brings no subnet along, such as keepalived's, does no harm. IPv6 may be off there, or
    forwarding of an interface alone, which a rehearsal does not show of a bridge. That of IPv6 is global.
    """
    mine: Dict[str, List[Tuple[str, int]]] = {}
    # Family -> metric and gateway.
    best: Dict[Any, Tuple[int, str]] = {}
    for key, wanted in objects.items():
        if wanted.value is None:
            continue
        if key[0] == "addr":
            mine.setdefault(str(key[1]), []).append((str(key[2]), int(key[3])))
            kind, name, off = _OFF[":" in str(key[2])]
            sysctl = (kind, str(key[1]), name)
            counts = kind == CONF6 or reading.value(HOST, (GLOBAL, FORWARDING[kind])) == "1"
            if space == HOST and counts and sysctl not in objects and reading.value(HOST, sysctl) == off:
                yield Difference(HOST, sysctl, 1 - off, off, True)
        elif key[0] == "route" and key[2] == MAIN_TABLE and key[3] == "default/0" and key[6] == UNICAST:
            metric = int(key[5])
            best[key[1]] = min(best.get(key[1], (metric, wanted.value["gw"])), (metric, wanted.value["gw"]))
    if not mine and not best:
        return
    for key, present in reading.spaces.get(space, {}).items():
        if key in objects or present.derived:
            continue
        if key[0] == "addr" and str(key[1]) in mine:
            added, prefix = str(key[2]), int(key[3])
            nets = mine[str(key[1])]
            if any(is_in(net, added, prefix) or (space != HOST and is_in(added, net, length)) for net, length in nets):
                yield Difference(space, key, None, present.value, True)
        elif space != HOST and key[0] == "route" and key[2] == MAIN_TABLE and key[1] in best:
            metric, gateway = best[key[1]]
            # Over another interface, such as a tunnel, a part of the traffic goes that way on purpose.
            elsewhere = key[6] != UNICAST or (("link", key[7]) in objects and present.value["gw"] != gateway)
            # Half of all addresses, or of IPv6 those of the Internet.
            broad = int(str(key[3]).rpartition("/")[2]) <= (1 if key[1] == socket.AF_INET else 3)
            if int(key[5]) < metric if key[3] == "default/0" else elsewhere and broad:
                yield Difference(space, key, None, present.value, True)


def _astray(reading: Reading, netns: str, footprint: Footprint) -> Iterator[Difference]:
    """Yield where packets of a container go another way than the interfaces with a route there; see read_ways."""
    host, present, inside = reading.spaces[HOST], reading.spaces[netns], footprint.inside
    routes = [(wanted.value, str(key[7])) for key, wanted in inside.items() if key[:3:2] == ("route", MAIN_TABLE)]
    for gateway, ifname in {(str(value.get("gw", "")), name): None for value, name in routes if value}:
        way = reading.value(netns, ("way", gateway))
        # Two interfaces may have the same subnet.
        near = any(key[:2] == ("addr", way) and is_in(gateway, str(key[2]), int(key[3])) for key in present)
        if way and way != ifname and not near:
            yield Difference(netns, ("way", gateway), ifname, way, True)
    for name, address in (key[1:3] for key, wanted in inside.items() if key[0] == "addr" and wanted.value is not None):
        way, device = reading.value(HOST, ("way", address)), _end_and_device(reading, netns, name)[1]
        astray = way and way != device and device and _is_routed(host, str(address), device)
        if name != "lo" and (way == "local" or astray):
            yield Difference(HOST, ("way", address), device or "the container", way, True)


def _misled(reading: Reading, netns: str, footprint: Footprint) -> Iterator[Difference]:
    """Yield entries of others that give packets between a container and the host to another MAC or port."""
    host, present, known = reading.spaces[HOST], reading.spaces[netns], {**footprint.inside, **footprint.host}
    for ifname in dict.fromkeys(key[1] for key in footprint.inside if key[0] == "addr"):
        end, device = _end_and_device(reading, netns, ifname)
        if not end:
            continue
        mac, router = present["link", ifname].value["mac"], host["link", device].value["mac"]
        macs: Dict[Tuple[str, ObjectKey], str] = {
            (HOST, ("neigh", device, key[2], 0)): mac for key in present if key[:2] == ("addr", ifname)
        }
        macs.update({(netns, ("neigh", ifname, key[2], 0)): router for key in host if key[:2] == ("addr", device)})
        for (space, place), wanted in macs.items():
            now = reading.value(space, place)
            if now is not None and now["mac"] != wanted and place not in known:
                yield Difference(space, place, None, now, True)
        ports = {key[1] for key, link in host.items() if key[0] == "link" and link.value["master"] == device} - {end}
        for key in [key for key in host if key[:3:2] == ("fdb", mac) and key[1] in ports and key not in known]:
            yield Difference(HOST, key, None, host[key].value, True)


def _end_and_device(reading: Reading, netns: str, ifname: Union[str, int]) -> Tuple[str, str]:
    """Return the host's end of a container's veth, and the interface that has its addresses: its bridge, or itself."""
    host = reading.spaces[HOST]
    end = other_end(host, reading.spaces[netns], str(ifname))
    return (end, host["link", end].value["master"] or end) if end else ("", "")


def _is_routed(host: State, address: str, device: str) -> bool:
    """Tell whether the main table has a route to an address on *device* itself."""
    direct = (key for key, route in host.items() if key[:3:2] == ("route", MAIN_TABLE) and not route.value["gw"])
    subnets = (str(key[3]).rpartition("/") for key in direct if key[7] == device)
    return any(target == address or is_in(address, target, int(length)) for target, _slash, length in subnets)
