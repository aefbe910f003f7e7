# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Decides what is done about the drift of attachments that stay, and about CHECKs that fail."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

from ..binaries.types import types_of
from ..errors import HostError
from ..footprints.object_kinds import summarize
from ..footprints.state import DEDUCED, Drift
from ..hostview import HostView
from ..netns import Netns, Seen, same
from ..plan import each_of
from .attached import Attached
from .drift import ADDED, Drifts, find_drift, present_in
from .networks import Networks
from .outcome import NOTHING, PUT_BACK, RENEW, AttachPlan, AttachSettings, Outcome, each_outcome
from .request import Key
from .verbs import Failed, Verbs


class LostParts:
    """What gets put back in place: of ``attachments``, and what they have ``shared``; and what others have added.

    ``order``: that of rules in chains.
    """

    def __init__(self) -> None:
        self.order: Mapping[Tuple[Any, ...], Sequence[str]] = {}
        self.attachments: List[Tuple[Outcome, Drift]] = []
        self.shared: List[Drift] = []
        self.additions: List[Drift] = []

    def __bool__(self) -> bool:
        return bool(self.attachments or self.shared or self.additions)


class DriftFinder:
    """Decides what is done about drift, and notes it in the outcomes. ``lost`` is what gets put back in place.

    *seen*: what the paths of namespaces lead to.
    """

    def __init__(
        self,
        settings: AttachSettings,
        verbs: Verbs,
        plan: AttachPlan,
        view: HostView,
        networks: Networks,
        seen: Mapping[str, Seen],
    ) -> None:
        self._settings = settings
        self._verbs = verbs
        self._plan = plan
        self._view = view
        self._networks = networks
        self._seen = seen
        self._drifts = Drifts()
        self.lost = LostParts()

    def find(self, stay: Sequence[Outcome], gone: Sequence[Outcome]) -> None:
        """Find drift of the attachments that *stay*. *gone* are those whose interface is gone."""
        entries = [o.attached for o in [*stay, *gone] if o.attached is not None and not o.lost]
        cache_dir, identities = self._settings.cache_dir, {path: seen.identity for path, seen in self._seen.items()}
        present = present_in(cache_dir, entries, identities)
        if present:
            self._drifts = find_drift(present, self._verbs.store.read_shared(), self._settings.rehearse)
            self._judge_all([*stay, *gone])
        left = [outcome for outcome in stay if not (outcome.failed or outcome.reason)]
        # Where something is lost, CHECK would only tell it again, as if the attachment itself had to be made again.
        lost = {drift.owner for drift in self._drifts.shared}
        self._check([one for one in left if not lost & {(), (one.key.network,)}])

    def _judge_all(self, outcomes: Sequence[Outcome]) -> None:
        for problem in self._drifts.problems:
            self._plan.warn("rules_unreadable", f"{problem}; drift of what could not be read goes undetected")
        for damage in self._drifts.damages:
            self._plan.warn("footprint_damaged", damage)
        self.lost.order = self._drifts.order
        each_outcome(outcomes, self._judge_lost)
        for drift in self._drifts.shared:
            self._judge_shared(drift, outcomes)

    def _judge_lost(self, outcome: Outcome) -> None:
        """Decide what is done about what an attachment has lost."""
        drift = self._drifts.of(outcome.key)
        if drift is None or not drift.differences:
            return
        # Imported late, as below: needed only if something has drifted.
        from ..footprints.repair import why_not

        if drift.additions:
            text = summarize(drift.additions, True)
            self._drifted(outcome, "kernel", f"{text}; {ADDED}", {}, NOTHING)
            self.lost.additions.append(drift)
        if not drift.lost:
            return
        obstacle = why_not(drift)
        if outcome.reason == "interface":
            if not obstacle:
                self._put_back(outcome, drift)
            return
        self._drifted(outcome, "kernel", drift.reason, {}, RENEW if obstacle else PUT_BACK)
        if outcome.todo == PUT_BACK:
            self._put_back(outcome, drift)

    def _put_back(self, outcome: Outcome, drift: Drift) -> None:
        outcome.todo, outcome.keep_ips = PUT_BACK, []
        self.lost.attachments.append((outcome, drift))

    def _judge_shared(self, drift: Drift, outcomes: Iterable[Outcome]) -> None:
        """Decide what is done about what attachments share and have lost."""
        from ..footprints.repair import why_not

        obstacle = why_not(drift)
        message = f"{drift.target} has drifted: {drift.reason or summarize(drift.additions, False)}"
        if drift.additions:
            message += f"; {ADDED}"
            self.lost.additions.append(drift)
        if obstacle:
            message += f"; it cannot be put back: {obstacle}"
        if self._settings.on_drift == "fail":
            remedy = "" if obstacle else "; set on_drift: repair to put it back"
            error = HostError(f"{message}{remedy}", code="drifted")
            for outcome in outcomes:
                if self._drifts.of(outcome.key) is not None and drift.owner in ((), (outcome.key.network,)):
                    outcome.fail(error)
            return
        self._plan.warn("drifted", message, drift.target)
        if self._settings.on_drift == "repair" and drift.lost and not obstacle:
            self.lost.shared.append(drift)

    def _check(self, outcomes: Sequence[Outcome]) -> None:
        """Run the CHECKs, several at a time, and judge their outcomes in the order of the request."""
        failures: Dict[Key, Failed] = {}
        errors: Dict[Key, HostError] = {}

        def ask(outcome: Outcome) -> None:
            if outcome.attached is not None and self._may_check(outcome, outcome.attached):
                netns = outcome.attached.netns
                try:
                    with Netns(netns, self._seen[netns].identity) as container:
                        failure = self._verbs.check(outcome.attached, container)
                except HostError as error:
                    errors[outcome.key] = error
                else:
                    if failure is not None:
                        failures[outcome.key] = failure

        def judge(outcome: Outcome) -> None:
            if outcome.key in errors:
                self._plan.tolerate(outcome, self._why(outcome, errors[outcome.key]))
            elif outcome.key in failures:
                self._judge(outcome, failures[outcome.key])

        each_of(ask, outcomes, self._settings.workers)
        each_outcome(outcomes, judge)

    def _why(self, outcome: Outcome, error: HostError) -> HostError:
        """Return *error* of a CHECK, or that a managed plugin is missing because another file has taken its name."""
        if outcome.attached is not None and error.code in ("not_elf", "unsafe_permissions", "unreadable"):
            try:
                self._networks.test_plugins(outcome.attached.config)
            except HostError as other:
                return other
        return error

    def _may_check(self, outcome: Outcome, attached: Attached) -> bool:
        # CHECK reads the result from the cache.
        if outcome.lost or not self._verbs.wants_check(attached.config):
            return False
        if not same(self._seen[attached.netns].identity, self._seen[outcome.wanted.netns].identity):
            # The namespace still exists, but under another path. CHECK compares the path with the one of the ADD.
            return False
        uses = types_of([plugin.network for plugin in attached.config.plugins])
        changing = self._view.changing_binaries(uses, self._settings.bin_dirs)
        if changing:
            text = f"{outcome.key}: CHECK did not run, because this plan changes {', '.join(changing)}; run again"
            self._plan.note(outcome, "check_unusable", text)
            return False
        # dhcp's CHECK renews the lease.
        return not (self._settings.check_mode and "dhcp" in uses)

    def _judge(self, outcome: Outcome, failure: Failed) -> None:
        """Distinguish drift from a CHECK that has never worked, and from one that crashed."""
        if failure.crashed or failure.is_same(outcome.attached.check if outcome.attached else None):
            drift = self._drifts.of(outcome.key)
            known = drift is not None and drift.source != DEDUCED
            self._plan.note(outcome, "check_unusable", failure.unusable(outcome.key, known))
        else:
            self._drifted(outcome, "check", f"CHECK failed ({failure})", failure.facts())

    def _drifted(self, outcome: Outcome, reason: str, what: str, facts: Dict[str, Any], repair: str = RENEW) -> None:
        message = f"{outcome.key} has drifted: {what}"
        if self._settings.on_drift == "fail":
            how = {RENEW: "; set on_drift: repair to detach it and attach it again", NOTHING: ""}
            rest = how.get(repair, "; set on_drift: repair to put it back in place")
            raise HostError(f"{message}{rest}", code="drifted", **facts)
        outcome.reason, outcome.words = reason, what
        self._plan.note(outcome, "drifted", message)
        if self._settings.on_drift == "repair" and repair != NOTHING:
            outcome.todo = repair
            if repair == RENEW:
                outcome.keep_ips = outcome.ips_to_keep()
        else:
            outcome.action = "drifted"
