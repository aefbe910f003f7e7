# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of ``cni_attach``'s plan, and what they do when they are applied."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ...libcni import gojson
from ...libcni.conf import NetworkConfigList
from ..errors import HostError
from ..netns import inspect_path
from ..plan import DISRUPTIVE, FOREIGN, SAFE, Step
from ..struct import grouped
from .drift import WAY_OUT, InPlaceSteps
from .outcome import ADD, DELETE, DRIFTED, NOTHING, PUT_BACK, RENEW, AttachPlan, AttachSettings, Outcome
from .request import Key, WantedAttachment
from .store import Attached
from .verbs import Added, Failed, Verbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .pod_part import PodRoutes
    from .pod_unit import PodTransaction
    from .recording import FirstAlone, Recording

# Codes of an ADD that failed and left nothing behind.
_TAKEN_BACK = ("add_failed", "missing_plugin")
# Reasons for a repair before which the container had nothing of the attachment.
_NEW_CONTAINER = ("interrupted", "netns")
# Reasons for a repair in which the new ADD differs from the previous one.
_OTHER_REQUEST = ("config", "args", "capability_args", "interrupted")


class Steps:
    """Adds the steps of its outcomes to a plan."""

    def __init__(self, settings: AttachSettings, verbs: Verbs, plan: AttachPlan) -> None:
        self._settings = settings
        self._verbs = verbs
        self._plan = plan
        self._recording: Optional[Recording] = None
        self._alone: Optional[FirstAlone] = None
        self._pods: Dict[Key, PodTransaction] = {}
        self._in_place = InPlaceSteps(plan, plan.drifts.order)

    def add(self) -> None:
        """Add the steps. Containers run in parallel; each has all DELs in reverse order, then the rest in order.

        What is lost and can be put back in place comes first. A default route is taken from a network before another
        network of the pod gets it.
        """
        self._add_lost()
        lanes = grouped((outcome.key.container_id, outcome) for outcome in self._plan.outcomes if not outcome.failed)
        for lane in lanes.values():
            for outcome in reversed(lane):
                if outcome.adopted and outcome.attached:
                    states, reason = (None, _before(outcome.attached)), f"its cache entry is {outcome.adopted}"
                    self._add_step("adopt", outcome, SAFE, states, self._adopt, reason)
                if outcome.todo == DELETE:
                    before = _before(outcome.attached) if outcome.attached else {"network": outcome.key.network}
                    self._add_step("del", outcome, DISRUPTIVE, (before, None), self._delete, outcome.why())
            moved = [outcome for outcome in lane if outcome.reroutes and outcome.todo in (NOTHING, PUT_BACK)]
            gaining = self._add_losing(moved) if moved else []
            for outcome in lane:
                if outcome.todo == ADD:
                    step_class, states = DISRUPTIVE if outcome.costs else SAFE, (None, _after(outcome))
                    self._add_step("add", outcome, step_class, states, self._attach, outcome.why())
                elif outcome.todo == RENEW and outcome.attached:
                    self._add_repair(outcome, outcome.attached)
            for outcome in gaining:
                self._add_reroute(outcome)
        for outcome in self._plan.outcomes:
            if outcome.injectors and outcome.todo == NOTHING and outcome.attached and not outcome.failed:
                self._add_leave(outcome, outcome.attached)
        self._plan.carry_out = self._carry_out

    def _add_lost(self) -> None:
        """Add the steps that put back what is lost."""
        steps = self._in_place
        drifted = [outcome for outcome in self._plan.outcomes if outcome.drift is not None and not outcome.failed]
        if self._settings.on_drift == "repair":
            for drift in [*(outcome.drift for outcome in drifted if outcome.drift), *self._plan.drifts.shared]:
                steps.leave_additions(drift)
        for drift in self._plan.shared:
            steps.add(drift, drift.reason, Key("".join(drift.owner), "", ""), self._plan.shared_errors.append)
        for outcome in drifted:
            if outcome.todo == PUT_BACK and outcome.drift is not None:
                steps.add(outcome.drift, outcome.why(), outcome.key, outcome.fail, WAY_OUT)

    def _carry_out(self, workers: int) -> None:
        """Execute the steps. What is lost is put back before an ADD makes it again.

        No ADD begins before all DELs are done, because it may get an address that one frees. A pod that stays is
        changed as one, with its DELs.
        """
        self._in_place.put_back()
        going = {outcome.key for outcome in self._plan.outcomes if outcome.todo == DELETE}
        self._plan.apply_steps([step for step in self._plan.steps if step.item in going], workers)
        # What the DELs have left goes before an ADD makes the same.
        dropped = self._verbs.finish_deletions()
        for outcome in self._plan.outcomes:
            self._note_remains(outcome, dropped.kept(outcome.key))
        if any(outcome.todo in (ADD, RENEW) for outcome in self._plan.outcomes):
            # Imported late: most calls attach nothing.
            from .recording import FirstAlone, Recording

            self._alone, self._recording = FirstAlone(), Recording(self._verbs.store, self._plan)
            self._recording.begin()
        self._plan.apply_steps([step for step in self._plan.steps if step.item not in going], workers)
        if self._recording is not None:
            self._recording.finish()

    def _add_repair(self, outcome: Outcome, attached: Attached) -> None:
        reason, states = outcome.why(), (_before(attached), _after(outcome))
        if outcome.reason == "config":
            _show_configs(states, attached, outcome)
        elif outcome.reason not in ("args", "capability_args"):
            # What a plugin says is long enough once, as the reason.
            states[0]["is"] = "drifted" if outcome.reason in DRIFTED else reason
            states[1]["is"] = "attached"
        self._add_step("repair", outcome, DISRUPTIVE, states, self._repair, reason, ("del", "add"))

    def _add_losing(self, moved: Sequence[Outcome]) -> List[Outcome]:
        """Add the steps of networks that lose a default route; return the others."""
        # Imported late, as below: few pods ask for it.
        from .pod_unit import gains_route

        gaining = [outcome for outcome in moved if gains_route(outcome)]
        for outcome in moved:
            if outcome not in gaining:
                self._add_reroute(outcome)
        return gaining

    def _add_reroute(self, outcome: Outcome) -> None:
        from .pod_unit import routes_states

        states = routes_states(outcome)
        self._add_step("reroute", outcome, DISRUPTIVE, states, self._reroute, "default-route differs")

    def _add_step(
        self,
        kind: str,
        outcome: Outcome,
        step_class: str,
        states: Tuple[Any, Any],
        act: Callable[[Outcome], None],
        reason: str,
        parts: Sequence[str] = (),
    ) -> None:
        key, item, action = outcome.key, outcome.item, partial(self._run, outcome, act)
        step = Step(kind, str(key), step_class, *states, action, reason, item, key.container_id, parts)
        self._plan.add(step)
        if item != key:
            # Imported late: most plans have no pods.
            from .pod_unit import PodTransaction

            self._pods.setdefault(item, PodTransaction()).steps.append((outcome, step))

    def _add_leave(self, outcome: Outcome, attached: Attached) -> None:
        states = _before(attached), dict(_after(outcome), ips=attached.ips)
        _show_configs(states, attached, outcome)
        names = " and ".join(living.owner.name for living in outcome.injectors.values())
        reason = f"{names}, which is running, changed the network"
        self._plan.add(Step("leave", str(outcome.key), FOREIGN, *states, lambda: None, reason=reason))

    # ---- applying

    def _run(self, outcome: Outcome, act: Callable[[Outcome], None]) -> None:
        """Change one attachment. If that fails, what was changed of the rest of its pod is taken back."""
        try:
            act(outcome)
        except HostError as error:
            pod = self._pods.get(outcome.item)
            if pod is None:
                outcome.fail(error)
                raise
            told = pod.fail(outcome, error)
            outcome.fail(told)
            raise told from error

    def _done_in_pod(self, outcome: Outcome, what: str, undo: Callable[[], object]) -> None:
        if outcome.item in self._pods:
            self._pods[outcome.item].done(outcome, what, undo)

    def _take_back(self, attached: Attached) -> None:
        """Detach what was attached in this run."""
        self._verbs.delete(attached, attached.netns)
        if self._recording is not None:
            self._recording.forget(attached.key)

    def _attach_again(self, outcome: Outcome, before: Attached) -> Added:
        """Attach as before what was detached in this run."""
        given = outcome.given(before.config).changed(args=before.args, capability_args=before.capability_args)
        return self._call(given, before.pod.routes if before.pod else None)

    def _reroute(self, outcome: Outcome) -> None:
        # Imported late, as below: few pods ask for it.
        from .default_routes import reroute

        check, undo = reroute(outcome, self._plan.outcomes, self._verbs)
        self._note_check(outcome, check, True)
        self._done_in_pod(outcome, "moved the default route of", undo)

    def _adopt(self, outcome: Outcome) -> None:
        if outcome.attached is not None:
            self._note_check(outcome, self._verbs.adopt(outcome.attached), False)

    def _note_check(self, outcome: Outcome, check: Optional[Failed], known: bool) -> None:
        if check is not None:
            self._plan.note(outcome, "check_unusable", check.unusable(outcome.key, known))

    def _repair(self, outcome: Outcome) -> None:
        self._delete(outcome)
        self._attach(outcome)

    def _delete(self, outcome: Outcome) -> None:
        attached, netns, renewed = outcome.attached, outcome.wanted.netns, outcome.todo == RENEW
        if attached is None:
            self._remove(outcome)
            return
        try:
            if renewed:
                self._test_repair(outcome)
            kept = self._verbs.delete(attached, netns, later=not renewed and outcome.item not in self._pods)
        except HostError as error:
            if renewed and error.code == "del_failed" and not self._verbs.is_there(attached, netns):
                text = f"{error.msg}. The interface is gone, so the container is attached again now"
                self._plan.note(outcome, "del_incomplete", text)
            elif not renewed and self._settings.force:
                self._remove(outcome)
            else:
                raise
            return
        if attached.made_interface and inspect_path(attached.netns, outcome.key.ifname).host:
            text = f"{outcome.key}: its namespace is the host's own, which no plugin enters; the interface "
            self._plan.note(outcome, "host_netns", f"{text}{outcome.key.ifname} that its ADD made is still on the host")
        if not renewed:
            self._done_in_pod(outcome, "ADD of", partial(self._attach_again, outcome, attached))
        self._note_remains(outcome, kept)

    def _note_remains(self, outcome: Outcome, kept: str) -> None:
        if kept:
            text = f"{outcome.key}: its DEL left objects that could not be removed ({kept}); cni_gc collects them"
            self._plan.note(outcome, "rules_left", text)

    def _remove(self, outcome: Outcome) -> None:
        """Remove what is left of an attachment whose DEL fails or cannot run."""
        said = self._verbs.remove(outcome.key, outcome.attached, outcome.wanted.netns)
        why = said if outcome.attached else f"its network is not known, so no DEL ran{said and '; '}{said}"
        what = f"{outcome.key}: its cache entry, leases and firewall rules were removed"
        text = f"{what} without a successful DEL ({why})"
        self._plan.note(outcome, "del_failed", text)

    def _test_repair(self, outcome: Outcome) -> None:
        """Raise HostError where DEL would succeed and ADD would not."""
        self._verbs.store.check_writable(outcome.key)
        if outcome.config is not None:
            # Imported late: needed only if something is repaired.
            from ..firewall.tools import try_tools

            plugins = [plugin.network for plugin in outcome.config.plugins]
            try_tools(f"cannot repair {outcome.key}", plugins, outcome.wanted.capability_args, self._settings.bin_dirs)

    def _attach(self, outcome: Outcome) -> None:
        if outcome.config is None:
            raise HostError(f"cannot attach {outcome.key}: its network is not known", code="missing_network")
        added = self._add(outcome, outcome.config)
        outcome.made = added.attached.result
        if outcome.todo == ADD or outcome.reason in _NEW_CONTAINER:
            self._done_in_pod(outcome, "DEL of", partial(self._take_back, added.attached))
        self._note_check(outcome, added.check, True)

    def _add(self, outcome: Outcome, config: NetworkConfigList) -> Added:
        """Run ADD. If it fails in a repair, attach as before, so that the container is no worse off."""
        try:
            return self._add_keeping_ips(outcome, config)
        except HostError as error:
            before = outcome.attached
            if outcome.todo != RENEW or before is None or error.code not in _TAKEN_BACK:
                raise
            try:
                added = self._attach_again(outcome, before)
            except HostError as second:
                text = f"{error.msg}; attaching it as before failed, too: {second.msg}"
                raise HostError(text, code=second.code, **error.facts) from error
            if outcome.reason not in _OTHER_REQUEST:
                return added
            raise HostError(f"{error.msg}; it is attached as before", code=error.code, **error.facts) from error

    def _add_keeping_ips(self, outcome: Outcome, config: NetworkConfigList) -> Added:
        given, arguments = outcome.given(config), outcome.arguments
        routes = outcome.wanted.pod.routes if outcome.wanted.pod else None
        if arguments is not given.capability_args:
            try:
                return self._call(given.changed(capability_args=arguments), routes)
            except HostError as error:
                if error.code != "add_failed":
                    raise
                text = f"{outcome.key}: could not get the addresses {', '.join(arguments['ips'])} again ({error.msg})"
                self._plan.note(outcome, "addresses_changed", text)
        return self._call(given, routes)

    def _call(self, given: Attached, routes: Optional[PodRoutes]) -> Added:
        moved = None
        if routes:
            from .default_routes import apply_routes

            moved = partial(apply_routes, self._verbs.store, routes, ())
        with self._alone.running(given.key.network) if self._alone else contextlib.nullcontext():
            return self._verbs.add(given, self._settings.force, self._recording, moved)


def _show_configs(states: Sequence[Dict[str, Any]], attached: Attached, outcome: Outcome) -> None:
    """Add the configurations then and now to the two *states* of a diff, which leaves out what they share."""
    for state, config in zip(states, (attached.config, outcome.config)):
        if config is not None:
            state["config"] = gojson.loads(config.expanded_bytes())


def _before(attached: Attached) -> Dict[str, Any]:
    return _state(attached, attached.capability_args, attached.ips)


def _after(outcome: Outcome) -> Dict[str, Any]:
    return _state(outcome.wanted, outcome.arguments, "known after the ADD")


def _state(
    given: Union[Attached, WantedAttachment], capability_args: Mapping[str, Any], ips: Union[List[str], str]
) -> Dict[str, Any]:
    """Return an attachment as the diff shows it. Its configuration is only of interest where it has changed."""
    args = {"args": dict(given.args), "capability_args": dict(capability_args)}
    state = {"network": given.key.network, "netns": given.netns, **args}
    return dict({name: value for name, value in state.items() if value}, ips=ips)
