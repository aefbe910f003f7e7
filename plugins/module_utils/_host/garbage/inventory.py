# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has of attachments: one reading, and the finders of what does not clearly belong to a live container.

Objects are read first and live containers afterwards, so that a container that starts in between is found alive.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache, partial
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Set, Tuple

from ...libcni.conf import NetworkConfigList
from ...libcni.errors import PluginNotFoundError
from ...libcni.invoke import find_in_path
from .. import leases
from ..addresses import packed
from ..attachments.caches import CacheContents, HostStores, read_cache, remove_files
from ..attachments.store import LEFTOVER, OTHER, UNREADABLE, Attached, CachedAttachment, check_cache_dir
from ..attachments.verbs import Verbs
from ..binaries.types import MULTINET, MULTINET_DIR, types_of
from ..confdir import paths_of, plugins_in, scan_conf_dir
from ..containers import sources
from ..containers.live import LiveSet
from ..firewall import owners
from ..firewall.owners import RuleSet
from ..kinds import bridge_of, text_of
from ..leases import Lease
from ..struct import grouped
from ..trust import check_trusted
from .candidate import ATTACHMENT, CACHE, DELETED, LEASE, RULE, SCOPES, Candidate, GcSettings, when

# (network, container ID)
Holder = Tuple[str, str]


class Inventory:
    """What was read, and who lives. ``kept`` counts what clearly belongs to a live container, by kind.

    ``contents`` is the cache of the settings, ``of_pods`` are those of podwire-multinet, ``caches`` all. ``configured``
    and ``cached`` are the bridges of networks -> their networks. ``dates``: owner -> when its newest dated object was
    made; ``holders``: packed address -> the owners to whom it was assigned. ``files``: the configured networks;
    ``disabled``: networks that set disableGC.

    Raises HostError ``source_unusable``, ``processes_hidden``, ``netns_unusable``, ``kernel_unreadable`` and
    ``unsafe_permissions``.
    """

    def __init__(self, settings: GcSettings, stores: HostStores) -> None:
        self.settings = settings
        self.verbs = Verbs(settings.bin_dirs, settings.cache_dir, settings.timeout)
        self.candidates: List[Candidate] = []
        self.kept: Dict[str, int] = dict.fromkeys(SCOPES.values(), 0)
        self.files = scan_conf_dir(settings.conf_dir)
        self.contents, others = stores.contents, stores.others
        self._check_access()
        disabled = [file.network for file in self.files if file.disable_gc and file.network]
        self.disabled = frozenset([*disabled, *(config.name for config in self.contents.configs if config.disable_gc)])
        configured = plugins_in(self.files)
        self.of_pods = _pod_caches(configured, others)
        self.caches = [self.contents, *others, *(cached for cached in self.of_pods if cached not in others)]
        self.configured = bridges_of(configured)
        bridges = [self.configured, *(bridges_of(cached.networks) for cached in self.caches)]
        self.cached = bridges[1]
        self.stores = leases.lease_stores([*configured, *self.contents.networks])
        self.leases = [lease for store in self.stores for lease in stores.read_leases(*store)[0]]
        self.rules = owners.read_rules() if "rules" in settings.scope else owners.FoundRules()
        names = {name for some in bridges for name in some}
        stores.live = sources.find_live(self.caches, names, settings.keep_from, dict(settings.keep or {}))
        self.live: LiveSet = stores.live
        self._booted = float(round(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)))
        # Attachments share what was loaded once.
        self._missing_plugin = lru_cache(maxsize=None)(partial(_missing_plugin, settings.bin_dirs))
        self.holders = self._find_holders()
        self.dates = self._find_dates()
        known = {network for network, _plugin in configured} | {name for _dir, name in self.stores}
        known.update(network for cached in self.caches for network, _plugin in cached.networks)
        ids = {container_id for pairs in self.holders.values() for _network, container_id in pairs}
        ids.update(self.live.ids(), (owner[1] for owner in self.dates))
        self.rules.sets = owners.attribute(self.rules.sets, known, ids)

    def _check_access(self) -> None:
        """Raise HostError if users other than root can change where leases and rules are sought, or what a DEL runs."""
        conf_dir = self.settings.conf_dir
        check_cache_dir(self.settings.cache_dir)
        paths = [conf_dir, *(part for file in self.files for part in paths_of(conf_dir, file.path, file.network or ""))]
        paths += [part.path for entry in self.contents.entries for part in entry.files]
        passed: Set[str] = set()
        for path in paths:
            check_trusted(path, passed)

    def _find_holders(self) -> Dict[bytes, List[Holder]]:
        holders = [(lease.ip, (lease.network, lease.container_id)) for lease in self.leases if lease.container_id]
        for entry in [entry for contents in self.caches for entry in contents.entries]:
            if entry.key is not None:
                holders += [(ip.partition("/")[0], entry.key[:2]) for ip in entry.ips]
        return grouped((packed(ip), holder) for ip, holder in holders)

    def _find_dates(self) -> Dict[Holder, float]:
        dated = [
            ((lease.network, lease.container_id), lease.status.st_mtime)
            for lease in self.leases
            if lease.status is not None and lease.container_id
        ]
        dated += [(entry.key[:2], entry.written) for entry in self.contents.entries if entry.key is not None]
        return {owner: max(moments) for owner, moments in grouped(dated).items()}

    def going(self, kind: str) -> Set[str]:
        """Return the targets of what is to be collected, as far as that has been decided."""
        collected = (candidate for candidate in self.candidates if candidate.action == DELETED)
        return {candidate.step_target for candidate in collected if candidate.kind == kind}

    # ---- the finders, each for what one scope collects

    def attachments(self) -> Iterator[Candidate]:
        """Find attachments whose namespace is no longer the one of their ADD, and interrupted ones."""
        for entry in self.contents.entries:
            key, attached = entry.key, entry.attached
            if key is None or attached is None or entry.problem or not self.settings.wants(key.network):
                continue
            home = self.live.homes.of(entry)
            if home and not entry.interrupted:
                self.kept[ATTACHMENT] += 1
                continue
            candidate = Candidate(
                ATTACHMENT,
                key.network,
                f"{key.container_id}/{key.ifname}",
                partial(self._detach, entry, attached),
                self._evidence(entry),
                target=str(key),
                container_id=key.container_id,
                ifname=key.ifname,
                addresses=entry.ips,
                since=entry.written,
                managed=entry.managed,
                cause="interrupted" if entry.interrupted else "",
                before={
                    "netns": attached.netns,
                    "args": dict(attached.args),
                    "capability_args": attached.capability_args,
                    "ips": entry.ips,
                },
                # The number of a process is given again: the live container of that ID is another one.
                reused=key.container_id.isdigit() and bool(self.live.homes.replaced(entry)),
            )
            missing = self._missing_plugin(attached.config)
            if home:
                candidate.leave("live", f"{home} still exists; the next cni_attach of it begins with a DEL")
            elif missing:
                candidate.leave("missing_plugin", missing)
            yield candidate

    def _evidence(self, entry: CachedAttachment) -> List[str]:
        evidence = ["its ADD was interrupted"] if entry.interrupted else []
        if not self.live.homes.of(entry):
            evidence.append(self.live.homes.death_of(entry))
        if 0 < entry.written < self._booted:
            evidence.append(f"the host was rebooted later, at {when(self._booted)}")
        return evidence

    def _detach(self, entry: CachedAttachment, attached: Attached) -> None:
        # Its namespace is gone, and the path may lead to that of another container.
        self.verbs.delete(attached.changed(netns=""), "", later=True)

    def leased(self) -> Iterator[Candidate]:
        """Find leases of host-local."""
        for lease in self.leases:
            if not self.settings.wants(lease.network):
                continue
            if lease.ifname and self.live.has(lease.container_id, lease.ifname):
                self.kept[LEASE] += 1
            else:
                yield self.reserved(lease)

    def reserved(self, lease: Lease) -> Candidate:
        """Return what a lease reserves."""
        owner = f"container {lease.container_id}, interface {lease.ifname}"
        if not lease.container_id:
            owner = "no container: the file is empty, as after a crash"
        elif not lease.ifname:
            owner = f"container {lease.container_id} (old format, without an interface)"
        if lease.container_id:
            managed = (lease.network, lease.container_id) in self.contents.made
        else:
            managed = (lease.network, packed(lease.ip)) in self.contents.made_addresses
        return Candidate(
            LEASE,
            lease.network,
            lease.ip,
            # host-local holds its lock for milliseconds.
            partial(leases.remove_lease, lease, self.settings.timeout),
            [f"{lease.path} reserves it for {owner}"],
            target=lease.path,
            container_id=lease.container_id,
            ifname=lease.ifname,
            addresses=[lease.ip],
            since=lease.status.st_mtime if lease.status else None,
            managed=managed,
            cause="" if lease.container_id else "empty",
            before={"container_id": lease.container_id, "ifname": lease.ifname},
        )

    def rule_sets(self) -> Iterator[Candidate]:
        """Find firewall rules of CNI plugins."""
        for ruleset in self.rules.sets:
            network, container_id = self._owner(ruleset)
            network = ruleset.owner.network or network
            if not self.settings.wants(network):
                continue
            if self.live.owner(container_id):
                self.kept[RULE] += 1
                continue
            candidate = self._rule_set(ruleset, network, container_id)
            start = ruleset.owner.claimed
            claimed = next((name for name in self.live.ids() if start and name.startswith(start)), "")
            if ruleset.unclear:
                candidate.leave("unclear", ruleset.unclear)
            elif ruleset.owner.container_id is None and claimed:
                candidate.leave("live", f"the ID of the live container {claimed} begins like that of its owner")
            elif not (container_id or start or ruleset.addresses or ruleset.inert):
                candidate.leave("no_owner", "nothing in it identifies its owner")
            yield candidate

    def _owner(self, ruleset: RuleSet) -> Holder:
        """Return the owner of rules, ("", "") if it is not known; of several, a live one."""
        if ruleset.owner.container_id is not None:
            return ruleset.owner.network or "", ruleset.owner.container_id
        holders = (owner for address in ruleset.addresses for owner in self.holders.get(packed(address), ()))
        return min(holders, key=lambda owner: (not self.live.owner(owner[1]), owner), default=("", ""))

    def _rule_set(self, ruleset: RuleSet, network: str, container_id: str) -> Candidate:
        evidence = [ruleset.text]
        if ruleset.owner.container_id is None and container_id:
            evidence.append(f"its address belonged to container {container_id}")
        return Candidate(
            RULE,
            network,
            " ".join(ruleset.key),
            ruleset,
            evidence,
            container_id=container_id,
            ifname=ruleset.owner.ifname or "",
            addresses=ruleset.addresses,
            managed=(network, container_id) in self.contents.made,
            before={"rules": [rule.text for rule in ruleset.rules]},
        )

    def useless_files(self) -> Iterator[Candidate]:
        """Find files that no DEL can use. If attachments are not in scope, also those from before the boot."""
        entries = list(self.contents.entries)
        for contents in self.of_pods:
            entries += [entry for entry in contents.entries if entry.problem == LEFTOVER]
        for entry in entries:
            network = entry.key.network if entry.key else ""
            if not self.settings.wants(network) or not (entry.problem or entry.attached):
                continue
            old = "attachments" not in self.settings.scope and entry.written < self._booted
            if entry.problem:
                yield self._file(entry, network, entry.problem, entry.message)
            elif old and not self.live.homes.of(entry):
                age = f"it is older than this boot ({when(self._booted)})"
                message = f"{age}, and {self.live.homes.death_of(entry)}"
                yield self._file(entry, network, "before_boot", message)

    def _file(self, entry: CachedAttachment, network: str, cause: str, message: str) -> Candidate:
        candidate = Candidate(
            CACHE,
            network,
            entry.files[0].path,
            partial(remove_files, entry.files),
            [message],
            container_id=entry.key.container_id if entry.key else "",
            ifname=entry.key.ifname if entry.key else "",
            since=entry.written,
            managed=entry.managed,
            cause=cause,
            before={"files": [file.path for file in entry.files]},
        )
        home = self.live.homes.of(entry)
        if cause in (OTHER, UNREADABLE):
            candidate.leave(cause, "its purpose is not known")
        elif home:
            candidate.leave("live", f"{home} still exists; cni_attach with force: true replaces the entry")
        elif entry.key is None:
            # There may be no other sign of its owner.
            for container_id in self.live.ids():
                if f"-{container_id}-" in entry.name or f"-{container_id}:" in entry.name:
                    candidate.leave("live", f"its name is that of an attachment of {container_id}, which is alive")
                    break
        return candidate


def bridges_of(networks: Iterable[Tuple[str, Mapping[str, object]]]) -> Dict[str, str]:
    """Return bridge -> network for all plugins of the type bridge."""
    bridges: Dict[str, str] = {}
    for network, plugin in networks:
        if bridge_of(plugin):
            bridges.setdefault(bridge_of(plugin), network)
    return bridges


def _pod_caches(
    configured: Sequence[Tuple[str, Mapping[str, Any]]], known: Sequence[CacheContents]
) -> List[CacheContents]:
    """Return the caches of podwire-multinet: those of *known* that are, and others that the networks name.

    Raises HostError ``source_unusable``, ``unsafe_permissions``.
    """
    named = {text_of(plugin, "cnidir") for _name, plugin in configured if text_of(plugin, "type") == MULTINET}
    if not named and not os.path.isdir(MULTINET_DIR):
        return []
    # Imported late: few hosts have it.
    from ...libcni.multi.records import FOLDER

    folders = {os.path.normpath(folder or MULTINET_DIR) for folder in {*named, MULTINET_DIR}}
    by_folder = {contents.cache_dir: contents for contents in known}
    caches = []
    for folder in sorted(folders):
        if folder.startswith("/") and "\0" not in folder and os.path.isdir(os.path.join(folder, FOLDER)):
            check_cache_dir(folder)
            check_trusted(os.path.join(folder, FOLDER))
            caches.append(by_folder.get(folder) or read_cache(folder, is_other=True))
    return caches


def _missing_plugin(bin_dirs: Sequence[str], config: NetworkConfigList) -> str:
    """Return which plugin that a DEL needs is missing, in words; "" if none is."""
    for name in types_of([plugin.network for plugin in config.plugins]):
        try:
            find_in_path(name, bin_dirs)
        except PluginNotFoundError:
            return f"its DEL needs the plugin {name}, which is not in {', '.join(bin_dirs)}"
    return ""
