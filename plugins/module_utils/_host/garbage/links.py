# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Interfaces of the host as candidates for ``cni_gc``: veths without an owner on CNI bridges, and unused bridges."""

from __future__ import annotations

from functools import partial
from typing import Iterator, List, Mapping, Sequence, Set, Tuple

from .. import netlink
from ..addresses import packed
from ..containers.namespaces import Namespace
from ..containers.sources import other_runtime
from ..errors import HostError
from ..leases import last_reserved
from ..netlink import Link
from .candidate import ATTACHMENT, LINK, Candidate
from .inventory import Inventory, bridges_of


class Links:
    """Finds the interfaces of the host that nobody needs."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._live = inventory.live
        host = inventory.live.namespaces.host
        self._host: Namespace = host or inventory.live.namespaces.all[0]
        self._links = sorted(self._host.links.values(), key=lambda link: link.name)
        self._taken: Set[int] = {index for index, _prefix in self._host.addresses.values()}

    def veths(self) -> Iterator[Candidate]:
        """Find the veths on bridges of CNI networks whose other end is in no namespace that can be read."""
        inventory = self._inventory
        bridges = dict(inventory.cached, **inventory.configured)
        owners = {
            name: (entry.key.network, entry.key.container_id)
            for entry in inventory.contents.entries
            if entry.key
            for name in entry.host_ends
        }
        for link in self._links:
            bridge = self._host.links.get(link.master)
            if link.kind != "veth" or bridge is None or bridge.kind != "bridge" or bridge.name not in bridges:
                continue
            network, container_id = owners.get(link.name, (bridges[bridge.name], ""))
            if not inventory.settings.wants(network):
                continue
            if link.abroad and link.name not in self._live.namespaces.unseen:
                inventory.kept[LINK] += 1
                continue
            candidate = self._candidate(link, network, container_id, [f"it is a port of the bridge {bridge.name}"])
            if link.abroad:
                # The kernel removes both ends with the namespace of either.
                candidate.leave("live", "its other end is in a network namespace that exists, but nothing leads to it")
            else:
                self._leave_if_used(candidate, link)
            yield candidate

    def _leave_if_used(self, candidate: Candidate, link: Link) -> None:
        other = self._host.links.get(link.link)
        candidate.evidence.append(f"its other end, {other.name if other else link.link}, is on the host as well")
        if other is None or other.master or other.up or other.index in self._taken:
            candidate.leave("in_use", "the other end is up, has an address or is a port of a bridge")

    def bridges(self) -> Iterator[Candidate]:
        """Find the bridges of CNI networks that no configuration names and that no longer have a port.

        Attachments and veths have been decided on; those that are collected count as gone.
        """
        inventory, going = self._inventory, self._inventory.going(LINK)
        busy = {link.master for link in self._links if link.name not in going}
        needed = {**inventory.configured, **bridges_of(self._staying())}
        for link in self._links:
            if link.kind != "bridge" or link.index in busy or link.name in needed:
                continue
            network = inventory.cached.get(link.name, "")
            cache_dir, conf_dir = inventory.settings.cache_dir, inventory.settings.conf_dir
            evidence = f"attachments of the network {network} in {cache_dir} used it" if network else ""
            if not network:
                network, evidence = self._by_store(link)
            if not evidence or not inventory.settings.wants(network):
                continue
            lonely = f"no interface is a port of it, and no file in {conf_dir} names it"
            candidate = self._candidate(link, network, "", [lonely, evidence])
            candidate.managed = link.name in inventory.cached
            runtime = other_runtime(self._live)
            if runtime and not candidate.managed:
                candidate.leave("other_runtime", f"{runtime} and may have a network that uses it")
            yield candidate

    def _staying(self) -> List[Tuple[str, Mapping[str, object]]]:
        """Return the plugins of attachments that are not collected, and of live ones in other caches."""
        inventory, going = self._inventory, self._inventory.going(ATTACHMENT)
        return [
            (entry.key.network, plugin.network)
            for contents in inventory.caches
            for entry in contents.entries
            if entry.attached is not None
            and entry.key is not None
            and (str(entry.key) not in going if contents is inventory.contents else self._live.homes.of(entry))
            for plugin in entry.attached.config.plugins
        ]

    def _by_store(self, link: Link) -> Tuple[str, str]:
        """Return (network, evidence) if host-local assigned an address of a bridge's subnet, else ("", "")."""
        own = [(raw, prefix) for raw, (index, prefix) in self._host.addresses.items() if index == link.index]
        for data_dir, network in self._inventory.stores:
            for ip in last_reserved(data_dir, network):
                if any(_in_subnet(packed(ip), raw, prefix) for raw, prefix in own):
                    return network, f"host-local assigned {ip} of its subnet to a container of the network {network}"
        return "", ""

    def _candidate(self, link: Link, network: str, container_id: str, evidence: Sequence[str]) -> Candidate:
        return Candidate(
            LINK,
            network,
            link.name,
            partial(_remove, link, link.kind == "bridge"),
            list(evidence),
            container_id=container_id,
            managed=bool(container_id) and (network, container_id) in self._inventory.contents.made,
            before={"kind": link.kind, "index": link.index},
        )


def _remove(link: Link, is_bridge: bool) -> None:
    if is_bridge:
        ports = [port.name for port in netlink.links().values() if port.master == link.index]
        if ports:
            raise HostError(f"not removed: {ports[0]} has become a port of {link.name} meanwhile", code="link_in_use")
    netlink.delete_link(link.index, link.name)


def _in_subnet(raw: bytes, other: bytes, prefix: int) -> bool:
    """Tell whether two packed addresses are in one subnet with *prefix* bits."""
    if len(raw) != len(other):
        return False
    shift = (len(raw) - 1) * 8 - prefix
    one, two = int.from_bytes(raw[1:], "big"), int.from_bytes(other[1:], "big")
    return one >> shift == two >> shift
