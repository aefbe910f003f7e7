# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Planning of ``cni_gc``: what no live container owns, with the evidence for it.

Candidates are read first and live containers afterwards, so that a container that starts in between is found alive.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Sequence, Set, Tuple

from ...libcni.conf import NetworkConfigList, network_conf_from_bytes
from ...libcni.errors import CNIError
from .. import leases
from ..addresses import packed
from ..attachments import cache
from ..attachments.networks import Networks
from ..attachments.records import check_cache_dir
from ..attachments.verbs import Verbs
from ..binaries.types import MULTINET, MULTINET_DIR
from ..confdir import ConfFile, paths_of, plugins_in, scan_conf_dir
from ..containers import sources
from ..containers.live import LiveSet
from ..errors import HostError
from ..firewall import owners
from ..hostview import HostView
from ..kinds import text_of
from ..leases import Lease
from ..plan import DISRUPTIVE, SAFE, Step
from ..trust import check_trusted
from . import firewall_rules
from .entries import Entries, gc_verbs, lease_candidates
from .interfaces import Links, bridges_of
from .judge import FirstSeen, Judge, newest
from .outcome import ATTACHMENT, CACHE, DELETED, LEASE, LINK, ORDER, RULE, Candidate, GcPlan, GcSettings

_VERB = {ATTACHMENT: "del", LEASE: "release", RULE: "remove", CACHE: "remove", LINK: "remove"}


class GcPlanner:
    """Makes one plan. Reads files, namespaces and firewall rules, asks the runtimes, and changes nothing."""

    def __init__(self, settings: GcSettings) -> None:
        self._settings = settings
        self._verbs = Verbs(settings.bin_dirs, settings.cache_dir, settings.timeout)
        self._seen = FirstSeen()
        self._undated: List[str] = []
        self._problems: List[Dict[str, Any]] = []

    def make(self) -> GcPlan:
        """Return the plan.

        Raises HostError ``source_unusable``, ``missing_source``, ``processes_hidden``, ``netns_unusable``,
        ``kernel_unreadable``, ``unsafe_permissions``, and ``empty_live_set`` with the candidates in the fact
        ``collected``.
        """
        settings, plan = self._settings, GcPlan()
        plan.finish_deletions = self._verbs.finish_deletions
        files = scan_conf_dir(settings.conf_dir)
        contents, others = cache.read_cache(settings.cache_dir), cache.read_other_caches(settings.cache_dir)
        _check_access(settings, files, contents)
        configured = plugins_in(files, settings.conf_dir)
        of_pods = _pod_caches(configured, others)
        caches = [contents, *others, *(cached for cached in of_pods if cached not in others)]
        bridges = [bridges_of(configured), *(bridges_of(cached.networks) for cached in caches)]
        stores = leases.lease_stores([*configured, *contents.networks])
        found = self._leases(stores)
        firewall = self._rules(plan)
        names = {name for found in bridges for name in found}
        live = sources.find_live(caches, names, settings.keep_from, settings.keep)
        _tell_missing(live, plan, settings)
        plan.live, plan.complete, plan.why = live.rows(), live.complete, live.why
        plan.namespaces = len(live.namespaces.all)

        lists = _lists(files)
        disabled = {config.name for config in [*lists, *contents.configs] if config.disable_gc}
        holders, dates = _holders(found, caches), _dates(found, contents)
        judge = Judge(settings, live, disabled, dates, self._seen)
        entries = Entries(contents, live, plan, settings, self._verbs)
        if ATTACHMENT in settings.scope:
            self._judge(plan, judge, entries.attachments())
            for cached in of_pods:
                from .pods import Pods

                self._judge(plan, judge, Pods(cached, live, found, plan, settings).candidates())
        if LEASE in settings.scope:
            self._judge(plan, judge, lease_candidates(found, contents, live, plan, settings))
        if RULE in settings.scope:
            known = {network for network, _plugin in configured} | {name for _dir, name in stores}
            known.update(network for cached in caches for network, _plugin in cached.networks)
            ids = {container_id for pairs in holders.values() for _network, container_id in pairs}
            firewall.attribute(known, {*ids, *live.ids(), *(network_id[1] for network_id in dates)})
            self._judge(plan, judge, firewall_rules.rule_candidates(firewall, contents, live, holders, plan, settings))
        if CACHE in settings.scope:
            self._judge(plan, judge, entries.files())
            for cached in of_pods:
                from .pods import unfinished

                left = Entries(unfinished(cached), live, plan, settings, self._verbs)
                self._judge(plan, judge, left.files())
        if LINK in settings.scope:
            links = Links(bridges[0], bridges[1], caches, live, plan, settings)
            veths = links.veths()
            self._judge(plan, judge, veths)
            self._judge(plan, judge, links.bridges(veths, stores))
        self._undated = judge.undated

        if live.empty and not settings.allow_empty:
            _refuse(plan)
        for candidate in sorted(plan.candidates, key=lambda candidate: ORDER.index(candidate.kind)):
            if candidate.action == DELETED:
                plan.add(_step(candidate))
        if ATTACHMENT in settings.scope:
            pairs = [(lease.container_id, lease.ifname) for lease in found]
            # Plugins would remove everything they have if they got an empty live set.
            plan.verbs = [] if live.empty else gc_verbs(self._first(lists), live, pairs, settings)
        return plan

    def remember(self) -> None:
        """Record what has no date, for later runs. Raises HostError ``seen_not_written``."""
        self._seen.note(self._undated)

    def _judge(self, plan: GcPlan, judge: Judge, candidates: Sequence[Candidate]) -> None:
        for candidate in candidates:
            # A candidate that already has a reason to be left is left.
            if not candidate.reason:
                judge.decide(candidate)
            plan.candidates.append(candidate)

    def _leases(self, stores: Sequence[Tuple[str, str]]) -> List[Lease]:
        found = []
        for data_dir, network in stores:
            some, problems = leases.read_leases(data_dir, network)
            found.extend(some)
            self._problems.extend(entry for entry in problems if entry["code"] != "lease_empty")
        return found

    def _rules(self, plan: GcPlan) -> owners.FoundRules:
        if RULE not in self._settings.scope:
            return owners.FoundRules()
        found = owners.read_rules()
        for problem in found.problems:
            plan.warn(problem["code"], problem["message"])
        return found

    def _first(self, lists: Sequence[NetworkConfigList]) -> List[NetworkConfigList]:
        """Return each network once, as libcni loads it."""
        networks = Networks(self._settings.conf_dir, self._settings.bin_dirs, HostView())
        found = []
        for name in sorted({config.name for config in lists}):
            try:
                found.append(networks.load(name))
            except HostError as error:
                self._problems.append({"code": error.code, "message": error.msg})
        return found


def _pod_caches(
    configured: Sequence[Tuple[str, Mapping[str, Any]]], others: Sequence[cache.CacheContents]
) -> List[cache.CacheContents]:
    if not os.path.isdir(MULTINET_DIR) and not any(text_of(plugin, "type") == MULTINET for _name, plugin in configured):
        return []
    # Imported late, as above: few hosts have it.
    from .pods import pod_caches

    return pod_caches(configured, others)


def _tell_missing(live: LiveSet, plan: GcPlan, settings: GcSettings) -> None:
    """Raise HostError ``missing_source``, in check mode warn, if ``keep_from`` names a runtime that was not found."""
    for name in settings.keep_from or ():
        if name not in sources.RUNTIMES or name in live.found:
            continue
        message = (
            f"keep_from names {name}, which was not found on this host; remove it, or omit keep_from to ask every "
            "source that is found"
        )
        if not settings.check_mode:
            raise HostError(message, code="missing_source", source=name)
        plan.warn("missing_source", message)


def _check_access(settings: GcSettings, files: Sequence[ConfFile], contents: cache.CacheContents) -> None:
    """Raise HostError if users other than root can change where leases and rules are sought, or what a DEL runs."""
    check_trusted(settings.conf_dir)
    check_cache_dir(settings.cache_dir)
    paths = [part for file in files for part in paths_of(settings.conf_dir, file.path, file.network or "")]
    paths += [part.path for entry in contents.entries for part in entry.files]
    for path in paths:
        check_trusted(path)


def _lists(files: Sequence[ConfFile]) -> List[NetworkConfigList]:
    found = []
    for file in files:
        if file.kind == "conflist" and file.text is not None and not file.error:
            try:
                found.append(network_conf_from_bytes(file.text))
            except CNIError:
                continue
    return found


def _holders(found: Sequence[Lease], caches: Sequence[cache.CacheContents]) -> Dict[bytes, Set[Tuple[str, str]]]:
    """Return packed address -> (network, container ID) of those to which it was assigned."""
    holders: Dict[bytes, Set[Tuple[str, str]]] = {}
    for lease in found:
        if lease.container_id:
            holders.setdefault(packed(lease.ip), set()).add((lease.network, lease.container_id))
    for entry in [entry for contents in caches for entry in contents.entries]:
        if entry.key is not None:
            for ip in entry.ips:
                raw = packed(ip.partition("/")[0])
                holders.setdefault(raw, set()).add((entry.key.network, entry.key.container_id))
    return holders


def _dates(found: Sequence[Lease], contents: cache.CacheContents) -> Dict[Tuple[str, str], float]:
    """Return (network, container ID) -> when its newest dated object was made."""
    dates: Dict[Tuple[str, str], float] = {}
    for lease in found:
        if lease.status is not None and lease.container_id:
            newest(dates, (lease.network, lease.container_id), lease.status.st_mtime)
    for entry in contents.entries:
        if entry.key is not None:
            newest(dates, (entry.key.network, entry.key.container_id), entry.written)
    return dates


def _refuse(plan: GcPlan) -> None:
    """Refuse to collect anything if there is no live container, and report what would have been collected."""
    going = [candidate for candidate in plan.candidates if candidate.action == DELETED]
    for candidate in going:
        candidate.leave("empty_live_set", "no source names any live container")
    if going:
        raise HostError(
            f"no source names any live container, so {len(going)} objects would be collected; if no container is alive "
            "on this host, set allow_empty: true, otherwise name sources in keep_from or containers in keep",
            code="empty_live_set",
            collected=[candidate.row() for candidate in plan.candidates],
            live=plan.live,
        )


def _step(candidate: Candidate) -> Step:
    def remove() -> None:
        try:
            candidate.remove()
        except HostError as error:
            candidate.fail(error)
            raise

    return Step(
        _VERB[candidate.kind],
        candidate.target,
        DISRUPTIVE if candidate.kind == ATTACHMENT else SAFE,
        candidate.before,
        None,
        remove,
        item=candidate.key,
        # Only DELs run in parallel; a bridge is removed after its ports.
        lane=candidate.container_id if candidate.kind == ATTACHMENT else "",
        reason=candidate.why(),
    )
