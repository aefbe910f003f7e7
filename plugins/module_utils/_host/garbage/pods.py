# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What podwire-multinet recorded of its pods, as candidates for ``cni_gc``: each record stands for all its networks.

containerd 1.7 and 2.1 never repeat a DEL that failed after a failed ADD, so nobody else comes back for these records.
"""

from __future__ import annotations

import os
from functools import partial
from typing import List, Sequence

from ...libcni.conf import NetworkConfigList, conf_list_from_conf, network_plugin_conf_from_bytes
from ...libcni.errors import CacheError, CNIError
from ...libcni.multi.records import NetworkRecord, PodRecord, open_record, record_paths
from ..attachments.caches import CacheContents, remove_files
from ..attachments.request import Key
from ..attachments.store import Attached, CachedAttachment, CacheFile, load_config
from ..attachments.verbs import Verbs
from ..binaries.types import MULTINET
from ..errors import HostError
from ..struct import struct
from .candidate import ATTACHMENT, CACHE, Candidate
from .inventory import Inventory


@struct
class Pods:
    """Makes the candidates of one cache of podwire-multinet."""

    inventory: Inventory
    contents: CacheContents

    @property
    def verbs(self) -> Verbs:
        settings = self.inventory.settings
        return Verbs(settings.bin_dirs, self.contents.cache_dir, settings.timeout)

    def candidates(self) -> List[Candidate]:
        """Return a candidate for each record, and for each cached attachment that no record has."""
        candidates: List[Candidate] = []
        entries = [(entry.key, entry) for entry in self.contents.entries if entry.key]
        covered = set()
        try:
            paths = record_paths(self.contents.cache_dir)
        except CacheError as error:
            raise HostError(f"{error}; its pods may be alive", code="source_unusable") from error
        for path in paths:
            try:
                file = open_record(path, 0)
            except BlockingIOError:
                # An ADD or DEL runs, which is a sign of life.
                container_id = os.path.basename(path).partition(":")[0]
                covered.update([key for key, _entry in entries if key.container_id == container_id])
                continue
            except CacheError:
                continue
            if file is None:
                continue
            with file:
                record, since = file.record, os.fstat(file.lock).st_mtime
                if record is None:
                    candidates.append(self._damaged(path, since, file.reason))
                else:
                    keys = [Key(network.network, record.container_id, network.ifname) for network in record.networks]
                    covered.update(keys)
                    candidates.append(self._record(path, record, keys, since))
        candidates += [self._entry(entry, key) for key, entry in entries if key not in covered]
        wanted = [candidate for candidate in candidates if self.inventory.settings.wants(candidate.network)]
        self.inventory.kept[ATTACHMENT] += len([candidate for candidate in wanted if candidate.reason == "live"])
        return [candidate for candidate in wanted if candidate.reason != "live"]

    def _record(self, path: str, record: PodRecord, keys: Sequence[Key], since: float) -> Candidate:
        entries = {entry.key: entry for entry in self.contents.entries if entry.key is not None}
        cached = [entries[key] for key in keys if key in entries]
        owners = {key[1:] for key in keys}
        leased = [lease.ip for lease in self.inventory.leases if (lease.container_id, lease.ifname) in owners]
        candidate = Candidate(
            ATTACHMENT,
            record.network,
            f"{record.container_id}/{record.ifname}",
            partial(self._delete, path),
            [f"{path} records its networks: {', '.join(f'{key.network} ({key.ifname})' for key in keys)}"],
            target=f"{record.network}/{record.container_id}/{record.ifname}",
            container_id=record.container_id,
            ifname=record.ifname,
            addresses=list(dict.fromkeys([*(ip for entry in cached for ip in entry.ips), *leased])),
            since=since,
            before={"netns": record.netns, "networks": [str(key) for key in keys]},
        )
        live = self.inventory.live
        home = next(filter(None, map(live.homes.of, cached)), "")
        if not home and record.netns and live.namespaces.at(record.netns):
            home = record.netns
        if home:
            candidate.leave("live", f"{home} has it")
        return candidate

    def _entry(self, entry: CachedAttachment, key: Key) -> Candidate:
        attached = entry.attached
        candidate = Candidate(
            ATTACHMENT if attached else CACHE,
            key.network,
            f"{key.container_id}/{key.ifname}" if attached else entry.files[0].path,
            partial(self._delete_entry, entry),
            [f"{entry.files[0].path} is the entry of a pod that {MULTINET} has no record of"],
            target=str(key) if attached else "",
            container_id=key.container_id,
            ifname=key.ifname,
            addresses=entry.ips,
            since=entry.written,
            before={"netns": entry.netns, "ips": entry.ips},
        )
        home = self.inventory.live.homes.of(entry)
        if home:
            candidate.leave("live", f"{home} has it")
        return candidate

    def _damaged(self, path: str, since: float, reason: str) -> Candidate:
        container_id, _colon, ifname = os.path.basename(path).partition(":")
        return Candidate(
            CACHE,
            "",
            path,
            partial(remove_files, [CacheFile(path, None, None)]),
            [reason],
            container_id=container_id,
            ifname=ifname,
            since=since,
            cause="damaged",
            before={"files": [path]},
        )

    def _delete(self, path: str) -> None:
        """Run the DELs of a record, in reverse and without a namespace, and remove it. Raises HostError."""
        try:
            file = open_record(path, 0)
        except BlockingIOError as error:
            raise HostError(f"a call of {MULTINET} works on {path}; run again", code="host_changed") from error
        except CacheError as error:
            raise HostError(f"cannot read {path}: {error}", code="record_unreadable") from error
        if file is None:
            return
        with file:
            if file.record is None:
                raise HostError(f"cannot read {path}: {file.reason}", code="record_unreadable")
            verbs, failures = self.verbs, []
            for network in reversed(file.record.networks):
                try:
                    verbs.delete(_attached(network, file.record.container_id), "", later=True)
                except HostError as error:
                    failures.append(error)
            # One reading of the host serves all networks.
            verbs.finish_deletions()
            if failures:
                raise failures[0]
            remove_files([CacheFile(path, None, None)])

    def _delete_entry(self, entry: CachedAttachment) -> None:
        if entry.attached is None:
            remove_files(entry.files[:1])
        else:
            self.verbs.delete(entry.attached.changed(netns=""), "")


def _attached(network: NetworkRecord, container_id: str) -> Attached:
    key = Key(network.network, container_id, network.ifname)
    try:
        return Attached(key, _conflist(network), "", network.args, network.capability_args, None)
    except CNIError as error:
        text = f"cannot detach {key}: its recorded configuration is bad: {error}"
        raise HostError(text, code="del_failed") from error


def _conflist(network: NetworkRecord) -> NetworkConfigList:
    if network.is_list:
        return load_config(network.config)
    return conf_list_from_conf(network_plugin_conf_from_bytes(network.config))
