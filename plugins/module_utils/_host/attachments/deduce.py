# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that the result of an ADD implies, for attachments of which nothing else is known.

Their values have only the members that are known: interfaces are up and have a MTU and MAC, addresses and routes exist.
A route has the metric, device and gateway of the present one that leads there.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from ...libcni import gojson, types
from ...libcni.errors import CNIError
from ..addresses import objects_in, packed, written
from ..firewall.chains import CHAIN, LEGACY, NFT, NFTABLES
from ..firewall.kinds import FIREWALL, IPMASQ, MACSPOOFCHK, PORTMAP, chain_name, instance_hash, made_by
from ..footprints.footprint import Footprint, Objects
from ..footprints.object_kinds import HOST
from ..footprints.state import Reading, other_end
from ..kernel.objects import KernelObject, ObjectKey
from ..kinds import member_of
from ..netlink import MAIN_TABLE, UNICAST
from ..ranges import IP, interface_of
from ..struct import grouped
from .store import Attached

_UP = {"flags": 1}
_USUAL_METRIC = {2: 0, 10: 1024}
# In results of these versions, the compared members are where the newest version has them.
_WITH_INTERFACES = ("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
Known = Iterator[Tuple[ObjectKey, Any]]


def made_rules(attached: Attached) -> List[str]:
    """Return the kinds of rules that the plugins of *attached* make for it."""
    some = [made_by(plugin.network, attached.capability_args) for plugin in attached.config.plugins]
    kinds = dict.fromkeys(kind for kinds in some for kind in kinds)
    # All other kinds are for addresses.
    return [kind for kind in kinds if attached.ips or kind == MACSPOOFCHK]


def deduce(attached: Attached, identity: Mapping[str, Any], reading: Reading) -> Footprint:
    """Return what the result of an ADD implies. *reading* has its namespace, and the firewall if it has rules."""
    deduction = _Deduction(attached, reading)
    host = {**dict(deduction.on_host()), **dict(deduction.rules())}
    return Footprint(_objects(host.items()), _objects(deduction.in_container()), identity)


def _objects(known: Iterable[Tuple[ObjectKey, Any]]) -> Objects:
    return {key: KernelObject(value) for key, value in known}


class _Deduction:
    def __init__(self, attached: Attached, reading: Reading) -> None:
        self._attached = attached
        self._ifname = attached.key.ifname
        self._reading = reading
        self._present = reading.spaces[attached.netns]
        self._result = _newest(attached.result)
        self._interfaces = objects_in(self._result.get("interfaces"))

    # ---- interfaces, addresses and routes

    def in_container(self) -> Known:
        for entry in self._interfaces:
            if entry.get("sandbox"):
                yield ("link", str(entry.get("name") or "")), self._link(entry)
        for address in objects_in(self._result.get("ips")):
            yield from self._address(address)
        # sbr moves routes to tables of its own.
        if not any(plugin.type == "sbr" for plugin in self._attached.config.plugins):
            for route in objects_in(self._result.get("routes")):
                yield from self._route(route)

    def _link(self, entry: Mapping[str, Any]) -> Dict[str, Any]:
        # The reference plugins set the configured MTU, but leave it out of their results.
        mtus = [member_of(plugin.network, "mtu") for plugin in reversed(self._attached.config.plugins)]
        mtus = [entry.get("mtu"), *(mtus if entry.get("name") == self._ifname else [])]
        mtu = next((mtu for mtu in mtus if isinstance(mtu, int) and mtu > 0), 0)
        mac = str(entry.get("mac") or "").lower().replace(":", "")
        settings: Dict[str, Any] = {"mtu": mtu, "mac": mac}
        return {**_UP, **{name: value for name, value in settings.items() if value}}

    def _address(self, entry: Mapping[str, Any]) -> Known:
        index, name = entry.get("interface"), self._ifname
        if isinstance(index, int):
            if not 0 <= index < len(self._interfaces) or not self._interfaces[index].get("sandbox"):
                return
            name = str(self._interfaces[index].get("name") or "")
        interface = interface_of(str(entry.get("address")))
        if interface is not None and ("link", name) in self._present:
            yield ("addr", name, _written(interface.ip), interface.network.prefixlen), {}

    def _route(self, entry: Mapping[str, Any]) -> Known:
        interface = interface_of(str(entry.get("dst")))
        if interface is None or entry.get("table"):
            return
        # The kernel drops the host bits of a destination.
        network, family = interface.network, 2 if interface.version == 4 else 10
        written_network = f"{_written(network.network_address)}/{network.prefixlen}"
        destination = written_network if network.prefixlen else "default/0"
        gateway = packed(str(entry.get("gw") or ""))
        value = {"gw": written(gateway)} if gateway else {}
        for key, present in self._present.items():
            if key[:4] == ("route", family, MAIN_TABLE, destination) and value.items() <= present.value.items():
                yield key, {"gw": present.value["gw"]}
                return
        yield ("route", family, MAIN_TABLE, destination, 0, _USUAL_METRIC[family], UNICAST, self._ifname), value

    def on_host(self) -> Known:
        port, bridge = self._port_and_bridge()
        for entry in self._interfaces:
            name = str(entry.get("name") or "")
            if not entry.get("sandbox"):
                mtu = {"mtu": entry["mtu"]} if isinstance(entry.get("mtu"), int) and entry["mtu"] else {}
                yield ("link", name), {**_UP, **mtu, **({"master": bridge} if bridge and name == port else {})}

    def _port_and_bridge(self) -> Tuple[str, str]:
        """Return the host's end of the container's veth, and the bridge in the result, "" for what there is not."""
        names = [str(entry.get("name") or "") for entry in self._interfaces if not entry.get("sandbox")]
        host = self._reading.spaces[HOST]
        links = {name: host["link", name] for name in names if ("link", name) in host}
        bridge = next((name for name, link in links.items() if link.value["kind"] == "bridge"), "")
        return other_end(host, self._present, self._ifname), bridge

    # ---- rules

    def rules(self) -> Known:
        """Yield a rule for each kind of rules that is gone. If not all rules could be read, none count as gone."""
        kinds = [kind for kind in made_rules(self._attached) if kind != FIREWALL]
        if not kinds:
            return
        # Imported late: most networks have no rules.
        from ..firewall.owners import group_rules

        rules = group_rules(self._reading.chains)
        if rules.problems:
            return
        effective = [rule_set for rule_set in rules.sets if rule_set.rules and not rule_set.inert]
        sets = grouped(((rule_set.plugin, rule_set.name), rule_set.family) for rule_set in effective)
        for kind in kinds:
            chain = self._lost_chain(kind, sets)
            if chain:
                # The chain itself may be there still. Where nothing could be read, nothing is gone.
                places = [(CHAIN, backend, "ipv4", "nat", "POSTROUTING") for backend in (NFT, NFTABLES, LEGACY)]
                for place in [place for place in places if not self._reading.chains.why_unread(place)][:1]:
                    yield (*place, f"-j {chain}"), 1

    def _lost_chain(self, kind: str, sets: Mapping[Tuple[str, str], List[str]]) -> Optional[str]:
        """Return the name of the chain of iptables that rules of a *kind* would be in, None if they are there."""
        network, container_id, ifname = self._attached.key
        if kind == MACSPOOFCHK:
            return None if (kind, f"{container_id}-{ifname}") in sets else f"cni-br-iface-{container_id}-{ifname}"
        if kind == PORTMAP:
            chain = chain_name("DN-", network, container_id)
            return None if (kind, container_id) in sets or (kind, chain) in sets else chain
        chain = chain_name("", network, container_id)
        families = {"ipv6" if ":" in address else "ipv4" for address in self._attached.ips}
        if (IPMASQ, instance_hash(network, ifname, container_id)) in sets or families <= {*sets.get((kind, chain), ())}:
            return None
        return chain


def _written(ip: IP) -> str:
    """Return an address as the kernel's answers have it, which write IPv4 in IPv6 with dots."""
    return written(packed(str(ip)))


def _newest(result: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """Return a result with its members where the newest version has them; {} if it is not a valid result."""
    if not result:
        return {}
    version = str(result.get("cniVersion") or "")
    if version in _WITH_INTERFACES:
        return dict(result)
    try:
        return types.create(version, gojson.dumps(dict(result))).as_version("1.1.0").to_dict()
    except CNIError:
        return {}
