# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Finds drift of attachments that stay: by their footprints, by CHECK, and else by the results of their ADDs."""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, Iterable, Mapping, Sequence

from ..binaries.types import types_of
from ..errors import HostError
from ..footprints.object_kinds import summarize
from ..hostview import HostView
from ..netns import Netns, Seen, same
from ..plan import FOREIGN, SAFE, Step, each_of
from .drift import Damage, FootprintDrift, Lost, LostParts, Shared
from .networks import Networks
from .outcome import NOTHING, PUT_BACK, RENEW, AttachPlan, AttachSettings, Outcome, each_outcome
from .records import Attached
from .request import Key
from .verbs import Failed, Verbs, can_check

_ADDED = "others have added it, so it is left"


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
        self._drift = FootprintDrift(settings.cache_dir, settings.rebuild)
        self.lost = LostParts()

    def find(self, stay: Sequence[Outcome], gone: Sequence[Outcome]) -> None:
        """Find drift of the attachments that *stay*. *gone* are those whose interface is gone."""
        self._find_lost([*stay, *gone])
        left = [outcome for outcome in stay if not (outcome.failed or outcome.reason)]
        # Where something is lost, CHECK would only tell it again, as if the attachment itself had to be made again.
        lost = {shared.network for shared in self._drift.shared}
        self._check([one for one in left if not (one.key in self._drift.footprints and lost & {"", one.key.network})])
        footprints = self._drift.footprints
        self._compare([one for one in left if not (one.failed or one.reason or one.key in footprints)])

    def _find_lost(self, outcomes: Sequence[Outcome]) -> None:
        there = [outcome.attached for outcome in outcomes if outcome.attached is not None and not outcome.lost]
        if not there:
            return
        self._drift.compare(there, {path: seen.identity for path, seen in self._seen.items()})
        self.lost.order = self._drift.order
        for problem in self._drift.problems:
            self._plan.warn("rules_unreadable", f"{problem}; drift of what could not be read goes undetected")
        for damage in self._drift.damages:
            self._note_damage(damage)
        each_outcome((outcome for outcome in outcomes if outcome.key in self._drift.footprints), self._judge_lost)
        for shared in self._drift.shared:
            self._judge_shared(shared, outcomes)

    def _note_damage(self, damage: Damage) -> None:
        """Plan to set a damaged note aside, and to write what was found again."""
        rest = "it is set aside and rebuilt by a rehearsal"
        if damage.obstacle:
            rest = f"it is set aside, and only results of ADDs are compared, because {damage.obstacle}"
        self._plan.warn("footprint_damaged", f"the footprint of {damage.target} is damaged; {rest}")
        states = {"footprint": "damaged"}, {"footprint": "unknown" if damage.footprint is None else "rebuilt"}
        action = partial(self._drift.rewrite, damage)
        # Of its network, but apart from the attachment's other steps.
        item = Key("".join(damage.owner[:1]), damage.target, "footprint")
        reason = "its footprint is damaged"
        self._plan.add(Step("record", damage.target, SAFE, *states, action, item, "footprints", reason=reason))

    def _judge_lost(self, outcome: Outcome) -> None:
        """Decide what is done about what an attachment has lost."""
        lost, additions = self._drift.of(outcome.key).lost, self._drift.of(outcome.key).additions
        if not (lost or additions) or outcome.attached is None:
            return
        # Imported late, as below: needed only if something has drifted.
        from ..footprints.repair import why_not

        if additions:
            self._drifted(outcome, "kernel", f"{summarize(additions, True)}; {_ADDED}", {}, NOTHING)
            self._leave(str(outcome.key), summarize(additions, True))
        if not lost:
            return
        obstacle = why_not(lost, self._drift.footprints[outcome.key], outcome.attached.netns)
        if outcome.reason == "interface":
            if not obstacle:
                self._put_back(outcome)
            return
        self._drifted(outcome, "kernel", summarize(lost, True), {}, RENEW if obstacle else PUT_BACK)
        if outcome.todo == PUT_BACK:
            self._put_back(outcome)

    def _leave(self, target: str, reason: str) -> None:
        """Report what others have added: it is never removed."""
        if self._settings.on_drift == "repair":
            states = {"drift": reason}, {"drift": reason, "left": _ADDED}
            self._plan.add(Step("repair", target, FOREIGN, *states, lambda: None, reason=f"{reason}; {_ADDED}"))

    def _put_back(self, outcome: Outcome) -> None:
        outcome.todo, outcome.keep_ips = PUT_BACK, []
        netns = outcome.attached.netns if outcome.attached else ""
        footprint, lost = self._drift.footprints[outcome.key], self._drift.of(outcome.key).lost
        self.lost.attachments.append((outcome, Lost(footprint, netns, lost)))

    def _judge_shared(self, shared: Shared, outcomes: Iterable[Outcome]) -> None:
        """Decide what is done about what attachments share and have lost."""
        from ..footprints.repair import why_not

        lost, additions = shared.compared.lost, shared.compared.additions
        reason, obstacle = summarize(lost or additions, False), why_not(lost, shared.footprint, "")
        message = f"{shared.target} has drifted: {reason}"
        if additions:
            message += f"; {_ADDED}"
            self._leave(shared.target, summarize(additions, False))
        if obstacle:
            message += f"; it cannot be put back: {obstacle}"
        if self._settings.on_drift == "fail":
            remedy = "" if obstacle else "; set on_drift: repair to put it back"
            error = HostError(f"{message}{remedy}", code="drifted")
            for outcome in outcomes:
                if outcome.key in self._drift.footprints and shared.network in ("", outcome.key.network):
                    outcome.fail(error)
            return
        self._plan.warn("drifted", message, shared.target)
        if self._settings.on_drift == "repair" and lost and not obstacle:
            self.lost.shared.append((shared, reason))

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
        if outcome.lost or not can_check(attached.config):
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
        if failure.crashed or failure.is_same(outcome.record.check if outcome.record else None):
            # Imported late: an unchanged run has no steps.
            from .steps import check_unusable

            footprint = outcome.key in self._drift.footprints
            self._plan.note(outcome, "check_unusable", check_unusable(outcome.key, failure, footprint))
        else:
            self._drifted(outcome, "check", f"CHECK failed ({failure})", failure.facts())

    def _compare(self, outcomes: Sequence[Outcome]) -> None:
        """Find drift that no CHECK found: most plugins check only their own part."""
        there = [outcome.attached for outcome in outcomes if outcome.attached is not None]
        if not there:
            return
        # Imported late: nearly all attachments have footprints.
        from . import kernel_drift

        kernel = kernel_drift.read_kernel(there, {path: seen.identity for path, seen in self._seen.items()})
        for entry in kernel.missing.problems:
            self._plan.warn(entry["code"], f"{entry['message']}; lost firewall rules go undetected")

        def judge(outcome: Outcome) -> None:
            lost = kernel.drift(outcome.attached, outcome.record) if outcome.attached else []
            if lost:
                self._drifted(outcome, "kernel", "; ".join(lost), {})

        each_outcome(outcomes, judge)

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
