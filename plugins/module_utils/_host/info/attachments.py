# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What ``cni_info`` reports on attachments: libcni's cache with the records beside it, and leases."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ...libcni import cache
from ...libcni.errors import CacheError, CNIError
from .. import leases as store
from ..attachments.records import (
    ADDING,
    ATTACHED,
    RECORDS,
    Attached,
    Record,
    Records,
    attached_from_entry,
    cache_dirs,
    record_from_bytes,
    refuse_link,
)
from ..attachments.request import Key
from ..binaries.types import types_of
from ..checks.view import pool_rows
from ..errors import HostError
from ..netns import Seen, look, same
from ..problems import WARNING, problem
from ..secrets import mask
from ..trust import untrusted

Rows = List[Dict[str, Any]]


class AttachmentsInfo:
    """What a cache directory holds: ``entries`` in order, their ``records``, and the ``problems`` of both.

    ``cache_dir``. ``states`` tells for each entry whether it is ``attached``, or known from its record:
    ``interrupted``, ``lost``.
    """

    def __init__(self, cache_dir: str) -> None:
        self.cache_dir = cache_dir
        self.entries: List[Attached] = []
        self.records: Dict[Key, Record] = {}
        self.problems: Rows = []
        folder = os.path.join(cache_dir, "results")
        paths = [os.path.join(folder, name) for name in _names(folder)]
        self.problems += untrusted([*cache_dirs(cache_dir), *paths])
        for name in _names(folder):
            self._read(os.path.join(folder, name), name)
        self.states = {attached.key: ATTACHED for attached in self.entries}
        self._read_records(cache_dir)
        known = {"-".join(key) for key in self.states}
        for name in _names(os.path.join(cache_dir, RECORDS)):
            if name not in known and not name.startswith("."):
                self._read_lonely(os.path.join(cache_dir, RECORDS, name))
        self.entries.sort(key=lambda attached: attached.key)

    def _read(self, path: str, name: str) -> None:
        data = cache.read_bytes(path)
        try:
            refuse_link(path)
            if data is None:
                raise CacheError("it cannot be read")
            entry = cache.Entry.from_bytes(data)
            key = Key(entry.network_name, entry.container_id, entry.if_name)
            if name != "-".join(key):
                raise CacheError("its content does not match its file name")
            self.entries.append(attached_from_entry(entry, key, path))
        except HostError as error:
            self.problems.append(problem(WARNING, error.code, error.msg, path))
        except CNIError as error:
            text = f"this is not a valid entry of libcni's cache: {error}"
            self.problems.append(problem(WARNING, "cache_damaged", text, path))

    def _read_records(self, cache_dir: str) -> None:
        records = Records(cache_dir)
        for attached in self.entries:
            try:
                record = records.read(attached.key)
            except HostError as error:
                self.problems.append(problem(WARNING, error.code, error.msg, cache_dir))
                continue
            if record is not None:
                self.records[attached.key] = record

    def _read_lonely(self, path: str) -> None:
        """Read a record without a cache entry: that of an interrupted ADD, or of one whose entry is lost."""
        key, record = record_from_bytes(cache.read_bytes(path) or b"")
        if record is None or record.state == ADDING:
            text = "an ADD was interrupted or could not be undone; the next cni_attach of it begins with a DEL"
            self.problems.append(problem(WARNING, "interrupted", text, path))
        else:
            text = "the cache entry of this attachment is lost; the next cni_attach of it restores the entry"
            self.problems.append(problem(WARNING, "cache_lost", text, path))
        if key is not None and record is not None and record.attached is not None:
            self.entries.append(record.attached)
            self.records[key] = record
            self.states[key] = "interrupted" if record.state == ADDING else "lost"


def _names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def attachments(here: AttachmentsInfo) -> Rows:
    """Return a row for each cached attachment."""
    names: Dict[str, List[str]] = {}
    for attached in here.entries:
        if attached.netns:
            names.setdefault(attached.netns, []).append(attached.key.ifname)
    seen = look(names)
    rows = [
        dict(
            _row(attached, here.records.get(attached.key), seen.get(attached.netns, Seen())),
            state=here.states[attached.key],
        )
        for attached in here.entries
    ]
    gone = {attached.key: row for attached, row in zip(here.entries, rows) if row["netns_state"] == "gone"}
    if gone:
        here.problems += _find_hidden(here.cache_dir, gone)
    return rows


def _find_hidden(cache_dir: str, rows: Mapping[Key, Dict[str, Any]]) -> Rows:
    """Correct *rows* of attachments whose paths lead nowhere, but which live; return problems."""
    # Imported late: nearly all paths lead somewhere.
    from ..attachments.cache import read_cache
    from ..containers.live import find_homes

    try:
        entries = [entry for entry in read_cache(cache_dir).entries if entry.key in rows]
        homes = find_homes(entries)
    except HostError as error:
        for row in rows.values():
            row["netns_state"] = "unknown"
        return [problem(WARNING, error.code, f"cannot determine which attachments are alive: {error.msg}")]
    for entry in entries:
        if entry.key is not None and homes.of(entry):
            ns = homes.namespace_of(entry)
            there = ns is None or ns.link_named(entry.key.ifname) is not None
            rows[entry.key].update(netns_state="hidden", interface=there)
    return []


def _row(attached: Attached, record: Optional[Record], seen: Seen) -> Dict[str, Any]:
    return {
        "network": attached.key.network,
        "container_id": attached.key.container_id,
        "ifname": attached.key.ifname,
        "netns": attached.netns,
        "netns_state": _netns_state(record, seen),
        "interface": attached.key.ifname in seen.links,
        "cni_version": attached.config.cni_version,
        "plugins": types_of([plugin.network for plugin in attached.config.plugins]),
        "args": mask(dict(attached.args)),
        "capability_args": mask(attached.capability_args),
        "ips": attached.ips,
        "result": mask(attached.result),
        "check_unusable": record.check if record else None,
    }


def _netns_state(record: Optional[Record], seen: Seen) -> str:
    """Return whether the namespace is still the one of the ADD."""
    if seen.identity is None:
        return "gone"
    if record is None or record.identity is None:
        return "unknown"
    return "same" if same(seen.identity, record.identity) else "other"


def leases(networks: Sequence[Tuple[str, Mapping[str, Any]]], entries: Sequence[Attached]) -> Tuple[Rows, Rows, Rows]:
    """Return host-local's reservations, how full the pools of *networks* are, and problems.

    The reservations of cached networks and of its default directory are included.
    """
    known = [*networks, *((entry.key.network, plugin.network) for entry in entries for plugin in entry.config.plugins)]
    every: List[store.Lease] = []
    problems: Rows = []
    for data_dir, network in store.lease_stores(known):
        found, wrong = store.read_leases(data_dir, network)
        every.extend(found)
        problems.extend(wrong)
    return [lease.row() for lease in every], pool_rows(networks, every), problems
