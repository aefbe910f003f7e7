# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Planning of ``cni_gc``: what no live container owns, with the evidence for it; and carrying it out."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from ...libcni.conf import NetworkConfigList
from ..attachments.caches import HostStores
from ..attachments.remains import Dropped
from ..attachments.request import Networks
from ..confdir import ConfFile
from ..containers import sources
from ..containers.live import LiveSet
from ..errors import HostError
from ..firewall import change
from ..hostview import HostView
from ..plan import DISRUPTIVE, SAFE, Plan, Step
from .candidate import ATTACHMENT, CACHE, DELETED, LEASE, LINK, RULE, Candidate, FirstSeen, GcSettings, Judge
from .inventory import Inventory
from .links import Links
from .verb import gc_verbs


def _pods(inventory: Inventory) -> Iterator[Candidate]:
    """Find the pods of podwire-multinet."""
    for contents in inventory.of_pods:
        # Imported late: few hosts have them.
        from .pods import Pods

        yield from Pods(inventory, contents).candidates()


# A finder of a scope yields what it finds when all before it have been decided on.
FINDERS: Sequence[Tuple[str, Callable[[Inventory], Iterator[Candidate]]]] = (
    ("attachments", Inventory.attachments),
    ("attachments", _pods),
    ("leases", Inventory.leased),
    ("rules", Inventory.rule_sets),
    ("cache", Inventory.useless_files),
    ("links", lambda inventory: Links(inventory).veths()),
    ("links", lambda inventory: Links(inventory).bridges()),
)
_VERB = {ATTACHMENT: "del", LEASE: "release", RULE: "remove", CACHE: "remove", LINK: "remove"}
# The order in which they are collected. As long as its address is reserved, no new container's rules can be taken for
# those of the dead one. So rules come first, then DELs, which free addresses.
_ORDER = (RULE, ATTACHMENT, LEASE, CACHE, LINK)


class GcPlan(Plan):
    """The plan, with a candidate for each object that does not clearly have a live owner, and a count of the rest.

    ``verbs``: for each network that has GC, whether it is sent, see verb.GcVerb. ``note_undated`` records what has no
    date for later runs; it raises HostError ``seen_not_written``.
    """

    def __init__(self, inventory: Inventory) -> None:
        super().__init__()
        self.note_undated: Callable[[], None] = lambda: None
        self.candidates = inventory.candidates
        self.kept = inventory.kept
        self.live = inventory.live
        self.verbs: List[Any] = []
        self._finish_deletions: Callable[[], Dropped] = inventory.verbs.finish_deletions
        self._errors: Dict[Any, HostError] = {}

    @property
    def pending(self) -> bool:
        return self.changed or any(verb.send for verb in self.verbs)

    def collect(self, candidate: Candidate) -> None:
        """Add the step that removes a candidate."""

        def drop() -> None:
            try:
                if callable(candidate.drop):
                    candidate.drop()
                elif candidate.drop.key in self._errors:
                    raise self._errors[candidate.drop.key]
            except HostError as error:
                candidate.fail(error)
                raise

        step = Step(
            _VERB[candidate.kind],
            candidate.step_target,
            DISRUPTIVE if candidate.kind == ATTACHMENT else SAFE,
            candidate.before,
            None,
            drop,
            item=candidate.key,
            # Only DELs run in parallel; a bridge is removed after its ports.
            lane=candidate.container_id if candidate.kind == ATTACHMENT else "",
            reason=candidate.why(),
        )
        self.add(step)

    def apply(self, workers: int = 1) -> None:
        for kind in _ORDER:
            steps = [step for step in self.steps if step.item[0] == kind]
            if kind == RULE and steps:
                drops = [candidate.drop for candidate in self.candidates if candidate.action == DELETED]
                sets = [drop for drop in drops if not callable(drop)]
                self._errors = change.drop_rules(sets)
            # Only DELs gain from running in parallel.
            self.apply_steps(steps, workers if kind == ATTACHMENT else 1)
            if kind == ATTACHMENT:
                self._note_remains(self._finish_deletions())
        # Plugins get GC when everything else is done, so that they find a clean host.
        for verb in self.verbs:
            if verb.send:
                verb.run()

    def _note_remains(self, dropped: Dropped) -> None:
        for key in dropped.rows:
            kept = dropped.kept(key)
            if kept:
                self.warn("rules_left", f"{key}: its DEL left objects that could not be removed ({kept}); run again")


def plan_gc(settings: GcSettings, stores: Optional[HostStores] = None) -> GcPlan:
    """Return a plan. Reads files, namespaces and firewall rules, asks the runtimes, and changes nothing.

    Raises HostError ``missing_source``, those of Inventory, and ``empty_live_set`` with the candidates in the fact
    ``collected``.
    """
    inventory = Inventory(settings, stores or HostStores(settings.cache_dir))
    plan, live = GcPlan(inventory), inventory.live
    for finding in inventory.rules.problems:
        plan.warn(finding.code, finding.message)
    _tell_missing(live, plan, settings)
    seen = FirstSeen()
    judge = Judge(settings, live, inventory.disabled, inventory.dates, seen)
    for scope, find in FINDERS:
        for candidate in list(find(inventory)) if scope in settings.scope else ():
            # A candidate that already has a reason to be left is left.
            if not candidate.reason:
                judge.decide(candidate)
            plan.candidates.append(candidate)
    plan.note_undated = lambda: seen.note(judge.undated)

    if live.empty and not settings.allow_empty:
        _refuse(plan)
    for candidate in sorted(plan.candidates, key=lambda candidate: _ORDER.index(candidate.kind)):
        if candidate.action == DELETED:
            plan.collect(candidate)
    # Plugins would remove everything they have if they got an empty live set.
    if "attachments" in settings.scope and not live.empty:
        pairs = [(lease.container_id, lease.ifname) for lease in inventory.leases]
        plan.verbs = gc_verbs(list(_as_loaded(inventory.files, settings)), live, pairs, settings)
    return plan


def _as_loaded(files: Sequence[ConfFile], settings: GcSettings) -> Iterator[NetworkConfigList]:
    """Yield the network of each conflist once, as libcni loads it; one that cannot be loaded gets no GC."""
    networks = Networks(settings.conf_dir, settings.bin_dirs, HostView())
    for name in sorted({file.network for file in files if file.network and file.kind == "conflist"}):
        try:
            yield networks.load(name)
        except HostError:
            continue


def _tell_missing(live: LiveSet, plan: GcPlan, settings: GcSettings) -> None:
    """Raise HostError ``missing_source``, in check mode warn, if ``keep_from`` names a runtime that was not found."""
    for name in settings.keep_from or ():
        if name not in sources.RUNTIMES or name in live.evidence:
            continue
        message = (
            f"keep_from names {name}, which was not found on this host; remove it, or omit keep_from to ask every "
            "source that is found"
        )
        if not settings.check_mode:
            raise HostError(message, code="missing_source", source=name)
        plan.warn("missing_source", message)


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
            live=plan.live.rows(),
        )
