# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Firewall rules of CNI plugins as candidates for ``cni_gc``."""

from __future__ import annotations

import threading
from functools import partial
from typing import Callable, Dict, List, Mapping, Optional, Set, Tuple

from ..addresses import packed
from ..attachments.cache import CacheContents
from ..containers.live import LiveSet
from ..errors import HostError
from ..firewall import change
from ..firewall.owners import FoundRules, RuleSet
from .outcome import DELETED, RULE, Candidate, GcPlan, GcSettings

# Packed address -> (network, container ID) of all to which leases and attachments assign it.
Holders = Mapping[bytes, Set[Tuple[str, str]]]


class RuleBatch:
    """Removes all rule sets that a plan collects in few transactions, when the first of them is to be removed."""

    def __init__(self) -> None:
        self._all: List[Tuple[Candidate, RuleSet]] = []
        self._errors: Optional[Dict[Tuple[str, str, str, str], Optional[HostError]]] = None
        # The steps of a plan run in several threads.
        self._lock = threading.Lock()

    def add(self, candidate: Candidate, ruleset: RuleSet) -> None:
        self._all.append((candidate, ruleset))

    def remove(self, ruleset: RuleSet) -> None:
        with self._lock:
            if self._errors is None:
                wanted = [one for candidate, one in self._all if candidate.action == DELETED]
                self._errors = {one.key: error for one, error in change.drop_rules(wanted)}
        error = self._errors.get(ruleset.key)
        if error is not None:
            raise error


def rule_candidates(
    found: FoundRules, contents: CacheContents, live: LiveSet, holders: Holders, plan: GcPlan, settings: GcSettings
) -> List[Candidate]:
    """Return the rules that do not clearly belong to a live container; the rest is counted as kept."""
    batch = RuleBatch()
    wanted = []
    for one in found.sets:
        owner = _owner(one, live, holders)
        network = one.owner.network or owner[0]
        if not settings.wants(network):
            continue
        if live.owner(owner[1]):
            plan.kept[RULE] += 1
            continue
        candidate = _candidate(one, network, owner[1], contents, partial(batch.remove, one))
        batch.add(candidate, one)
        start = one.owner.claimed
        claimed = next((name for name in live.ids() if start and name.startswith(start)), "")
        if one.unclear:
            candidate.leave("unclear", one.unclear)
        elif one.owner.container_id is None and claimed:
            candidate.leave("live", f"the ID of the live container {claimed} begins like that of its owner")
        elif not (owner[1] or one.owner.claimed or one.addresses or one.inert):
            candidate.leave("no_owner", "nothing in it identifies its owner")
        wanted.append(candidate)
    return wanted


def _owner(one: RuleSet, live: LiveSet, holders: Holders) -> Tuple[str, str]:
    """Return (network, container ID) of the owner, ("", "") if it is not known; of several, the live one."""
    if one.owner.container_id is not None:
        return one.owner.network or "", one.owner.container_id
    found = sorted(owner for address in one.addresses for owner in holders.get(packed(address), ()))
    for network, container_id in found:
        if live.owner(container_id):
            return network, container_id
    return found[0] if found else ("", "")


def _candidate(
    one: RuleSet, network: str, container_id: str, contents: CacheContents, remove: Callable[[], None]
) -> Candidate:
    evidence = [one.text]
    if one.owner.container_id is None and container_id:
        evidence.append(f"its address belonged to container {container_id}")
    return Candidate(
        RULE,
        network,
        " ".join(one.key),
        " ".join(one.key),
        remove,
        container_id=container_id,
        ifname=one.owner.ifname or "",
        addresses=one.addresses,
        managed=(network, container_id) in contents.made,
        before={"rules": [rule.text for rule in one.rules]},
        evidence=evidence,
    )
