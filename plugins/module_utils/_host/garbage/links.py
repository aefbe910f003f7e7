# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Interfaces of the host as candidates for ``cni_gc``: veths without an owner on CNI bridges, and unused bridges."""

from __future__ import annotations

from functools import partial
from typing import Iterator, List, Mapping, Sequence, Set, Tuple

from .. import netlink
from ..addresses import is_in, written
from ..errors import HostError
from ..kernel.objects import BY_KERNEL, ObjectKey, read_objects
from ..leases import last_reserved
from ..netlink import Link
from .candidate import ATTACHMENT, LINK, Candidate
from .inventory import Inventory, bridges_of

# What somebody may have added to a bridge: what it is called, and where its key has the interface and the name.
_ADDED = {"addr": ("address", 1, 2), "route": ("route", 7, 3), "neigh": ("neighbour", 1, 2)}


class Links:
    """Finds the interfaces of the host that nobody needs."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._host = inventory.live.namespaces.host
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
            if link.abroad and link.name not in self._inventory.live.namespaces.unseen:
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
        elif not candidate.container_id:
            candidate.leave("unclear", "it is in no result of an ADD, so somebody else may have made it")

    def bridges(self) -> Iterator[Candidate]:
        """Find the bridges of CNI networks that no configuration names and that no longer have a port.

        Attachments and veths have been decided on; those that are collected count as gone. Only what an ADD made is
        collected: a plugin also uses a bridge that the host had before.
        """
        inventory, going = self._inventory, self._inventory.going(LINK)
        busy = {link.master for link in self._links if link.name not in going}
        needed = {**inventory.configured, **bridges_of(self._staying())}
        footprints = inventory.verbs.store.read_shared().footprints
        recorded = [(owner, *entry) for owner, footprint in footprints.items() for entry in footprint.host.items()]
        # Of one that the host had, only flags are recorded, without a message.
        made = {entry.ifindex: "".join(owner) for owner, key, entry in recorded if key[0] == "link" and entry.raw}
        for link in self._links:
            if link.kind != "bridge" or link.index in busy or link.name in needed:
                continue
            network = made.get(link.index) or inventory.cached.get(link.name, "")
            evidence = f"attachments of the network {network} used it" if network else ""
            if not network:
                network, evidence = self._by_store(link)
            if not evidence or not inventory.settings.wants(network):
                continue
            lonely = f"no interface is a port of it, and no file in {inventory.settings.conf_dir} names it"
            candidate = self._candidate(link, network, "", [lonely, evidence])
            if link.index in made:
                candidate.managed = True
                self._leave_if_others_use(candidate, {key for _name, key, _entry in recorded})
            else:
                candidate.leave("unclear", "no footprint shows that an ADD made it, so the host may have had it before")
            yield candidate

    @staticmethod
    def _leave_if_others_use(candidate: Candidate, recorded: Set[ObjectKey]) -> None:
        for key, entry in read_objects().items():
            kind, device, name = _ADDED.get(str(key[0]), ("", 0, 0))
            added = kind and key[device] == candidate.ident and key not in recorded
            if added and not entry.derived and entry.value.get("proto") != BY_KERNEL:
                candidate.leave("in_use", f"it has the {kind} {key[name]}, which no ADD made")
                return

    def _staying(self) -> List[Tuple[str, Mapping[str, object]]]:
        """Return the plugins of attachments that are not collected, and of live ones in other caches."""
        inventory, going = self._inventory, self._inventory.going(ATTACHMENT)
        return [
            (entry.key.network, plugin.network)
            for contents in inventory.caches
            for entry in contents.entries
            if entry.attached is not None
            and entry.key is not None
            and (str(entry.key) not in going if contents is inventory.contents else inventory.live.homes.of(entry))
            for plugin in entry.attached.config.plugins
        ]

    def _by_store(self, link: Link) -> Tuple[str, str]:
        """Return (network, evidence) if host-local assigned an address of a bridge's subnet, else ("", "")."""
        own = [(written(raw), length) for raw, (index, length) in self._host.addresses.items() if index == link.index]
        for data_dir, network in self._inventory.stores:
            for ip in last_reserved(data_dir, network):
                if any(is_in(ip, address, length) for address, length in own):
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
