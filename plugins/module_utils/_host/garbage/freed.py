# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Leases that name another owner than the container that uses the address: whether that owner is dead."""

from __future__ import annotations

from typing import Dict, Mapping, Sequence

from ..addresses import packed
from ..attachments.caches import HostStores
from ..attachments.request import Key
from ..errors import HostError
from ..kernel.objects import ObjectKey
from ..leases import Lease, read_leases
from .candidate import DELETED, FirstSeen, GcSettings, Judge
from .inventory import Inventory


def find_freed(
    conf_dir: str, bin_dirs: Sequence[str], cache_dir: str, taken: Mapping[ObjectKey, Key]
) -> Dict[ObjectKey, Lease]:
    """Return those of *taken* (place of a lease -> the attachment that uses its address) whose owner is dead.

    The evidence is that of cni_gc. If it cannot be read, everything may be alive.
    """
    try:
        inventory = Inventory(GcSettings(conf_dir, bin_dirs, cache_dir, scope=("leases",)), HostStores(cache_dir))
    except HostError:
        return {}
    judge = Judge(inventory.settings, inventory.live, inventory.disabled, inventory.dates, FirstSeen())
    freed: Dict[ObjectKey, Lease] = {}
    for place, key in taken.items():
        _kind, data_dir, network, address = map(str, place)
        for lease in read_leases(data_dir, network)[0]:
            unused = lease.ip == address and not _is_in_use(inventory, address, key)
            if unused and _is_dead(inventory, judge, lease, key):
                freed[place] = lease
    return freed


def _is_dead(inventory: Inventory, judge: Judge, lease: Lease, key: Key) -> bool:
    """Tell whether the owner of *lease* is dead, or is another interface of the container of *key*."""
    own = lease.container_id == key.container_id
    if own and lease.ifname in ("", key.ifname):
        return True
    if not own and lease.ifname and inventory.live.has(lease.container_id, lease.ifname):
        return False
    candidate = inventory.reserved(lease)
    # That the attachment itself uses the address, and lives, is known.
    candidate.addresses, candidate.container_id = (), "" if own else lease.container_id
    judge.decide(candidate)
    return candidate.action == DELETED


def _is_in_use(inventory: Inventory, address: str, key: Key) -> bool:
    """Tell whether anything but the attachment *key* has an address."""
    raw, homes = packed(address), inventory.live.homes
    entries = [entry for contents in inventory.caches for entry in contents.entries]
    own = [home for entry in entries if entry.key == key for home in [homes.namespace_of(entry)] if home is not None]
    for namespace in inventory.live.namespaces.all:
        if raw in namespace.addresses:
            link = namespace.links.get(namespace.addresses[raw][0])
            if namespace not in own or link is None or link.name != key.ifname:
                return True
    others = [entry for entry in entries if entry.key != key and homes.of(entry)]
    return any(raw == packed(ip.partition("/")[0]) for entry in others for ip in entry.ips)
