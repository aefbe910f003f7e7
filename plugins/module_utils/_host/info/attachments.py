# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What ``cni_info`` reports on attachments: libcni's cache with the records beside it, and leases."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ..attachments.caches import HostStores
from ..attachments.request import Key
from ..attachments.store import ADDING, ATTACHED, LEFTOVER, RECORDS, Attached, CachedAttachment, cache_dirs
from ..binaries.types import types_of
from ..errors import HostError
from ..leases import Lease, lease_stores
from ..model import pool_rows
from ..netns import Seen, inspect_paths, same
from ..problems import WARNING, Finding, unreadable
from ..struct import grouped
from ..trust import untrusted

Rows = List[Dict[str, Any]]


class AttachmentsInfo:
    """What the cache directory holds: ``entries`` in order, and the ``problems`` of their files.

    ``states`` tells for each entry whether it is ``attached``, or known from its record: ``interrupted``, ``lost``.
    """

    def __init__(self, stores: HostStores) -> None:
        cache_dir = stores.cache_dir
        self.entries: List[Attached] = []
        self.cached: List[CachedAttachment] = []
        self.states: Dict[Key, str] = {}
        self.problems: List[Finding] = []
        try:
            self.cached = [cached for cached in stores.contents.entries if cached.problem != LEFTOVER]
        except HostError as error:
            self.problems.append(unreadable(error, file=cache_dir))
        results = os.path.join(cache_dir, "results")
        files = [file.path for cached in self.cached for file in cached.files]
        entries = {path for path in files if os.path.dirname(path) == results}
        self.problems += untrusted([*cache_dirs(cache_dir), *sorted(entries)])
        for cached in self.cached:
            path = os.path.join(results, cached.name)
            self._add(cached, path if path in entries else "", os.path.join(cache_dir, RECORDS, cached.name))
        self.entries.sort(key=lambda attached: attached.key)

    def _add(self, cached: CachedAttachment, entry: str, record: str) -> None:
        """Add one attachment; *entry* and *record* are its files, "" if libcni has no entry."""
        if entry and not cached.has_entry:
            self._tell_entry(cached, entry)
        if cached.damage and cached.has_entry:
            self.problems.append(Finding(WARNING, "record_unreadable", cached.damage, file=record))
        elif cached.state and not cached.has_entry:
            self._tell_record(cached.state, record)
        attached = cached.attached or cached.recorded
        if attached is not None:
            self.entries.append(attached)
            alone = "interrupted" if cached.state == ADDING else "lost"
            self.states[attached.key] = ATTACHED if cached.has_entry else alone

    def _tell_entry(self, cached: CachedAttachment, path: str) -> None:
        """Report what is wrong with libcni's entry *path*."""
        if os.path.islink(path):
            text = f"the cache entry {path} is a symbolic link, which is not followed"
            self.problems.append(Finding(WARNING, "unsafe_permissions", text, file=path))
        else:
            text = f"this is not a valid entry of libcni's cache: {cached.message}"
            self.problems.append(Finding(WARNING, "cache_damaged", text, file=path))

    def _tell_record(self, state: str, path: str) -> None:
        """Report a record without a cache entry: that of an interrupted ADD, or of one whose entry is lost."""
        if state == ADDING:
            text = "an ADD was interrupted or could not be undone; the next cni_attach of it begins with a DEL"
            self.problems.append(Finding(WARNING, "interrupted", text, file=path))
        else:
            text = "the cache entry of this attachment is lost; the next cni_attach of it restores the entry"
            self.problems.append(Finding(WARNING, "cache_lost", text, file=path))


def attachments(cache: AttachmentsInfo) -> Rows:
    """Return a row for each cached attachment."""
    seen = inspect_paths(grouped((entry.netns, entry.key.ifname) for entry in cache.entries if entry.netns))
    # Attachments share what was loaded once.
    configs = {id(attached.config): attached.config for attached in cache.entries}
    types = {key: types_of([plugin.network for plugin in config.plugins]) for key, config in configs.items()}
    rows = [
        dict(
            _row(attached, seen.get(attached.netns, Seen())),
            state=cache.states[attached.key],
            plugins=types[id(attached.config)],
        )
        for attached in cache.entries
    ]
    gone = {attached.key: row for attached, row in zip(cache.entries, rows) if row["netns_state"] == "gone"}
    if gone:
        cache.problems += _find_hidden(cache.cached, gone)
    return rows


def _find_hidden(cached: Sequence[CachedAttachment], rows: Mapping[Key, Dict[str, Any]]) -> List[Finding]:
    """Correct *rows* of attachments whose paths lead nowhere, but which live; return problems."""
    # Imported late: nearly all paths lead somewhere.
    from ..containers.live import find_homes

    entries = [entry for entry in cached if entry.key in rows]
    try:
        homes = find_homes(cached)
    except HostError as error:
        for row in rows.values():
            row["netns_state"] = "unknown"
        return [unreadable(error, before="cannot determine which attachments are alive: ")]
    for entry in entries:
        if entry.key is not None and homes.of(entry):
            ns = homes.namespace_of(entry)
            interface = ns is None or ns.link_named(entry.key.ifname) is not None
            rows[entry.key].update(netns_state="hidden", interface=interface)
    return []


def _row(attached: Attached, seen: Seen) -> Dict[str, Any]:
    return {
        "network": attached.key.network,
        "container_id": attached.key.container_id,
        "ifname": attached.key.ifname,
        "netns": attached.netns,
        "netns_state": _netns_state(attached, seen),
        "interface": attached.key.ifname in seen.links,
        "cni_version": attached.config.cni_version,
        "args": dict(attached.args),
        "capability_args": attached.capability_args,
        "ips": attached.ips,
        "result": attached.result,
        "check_unusable": attached.check,
    }


def _netns_state(attached: Attached, seen: Seen) -> str:
    """Return whether the namespace is still the one of the ADD."""
    if seen.identity is None:
        return "gone"
    if attached.identity is None:
        return "unknown"
    return "same" if same(seen.identity, attached.identity) else "other"


def leases(
    stores: HostStores, networks: Sequence[Tuple[str, Mapping[str, Any]]], entries: Sequence[Attached]
) -> Tuple[Rows, Rows, List[Finding]]:
    """Return host-local's reservations, how full the pools of *networks* are, and problems.

    The reservations of cached networks and of its default directory are included.
    """
    # Attachments share what was loaded once.
    each = {id(entry.config): entry for entry in entries}.values()
    known = [*networks, *((entry.key.network, plugin.network) for entry in each for plugin in entry.config.plugins)]
    every: List[Lease] = []
    problems: List[Finding] = []
    for data_dir, network in lease_stores(known):
        reserved, wrong = stores.read_leases(data_dir, network)
        every.extend(reserved)
        problems.extend(wrong)
    return [lease.row() for lease in every], pool_rows(networks, every), problems
