# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Plans a whole host: each section on the state that the earlier ones will leave."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Callable, Container, Dict, List, Mapping, Optional, Sequence, Set, Union

from ..attachments.request import ABSENT, PRESENT, Key, Networks, WantedAttachment
from ..errors import HostError
from ..hostview import HostView, Users
from ..named_netns import NetnsPlan, plan_netns
from ..netns import NETNS_DIR, inspect_planned
from ..networks.request import EFFECT_ARGUMENTS, NETWORKS_ARGUMENTS, conf_request
from ..plan import DISRUPTIVE, Plan
from ..problems import ERROR
from .plan import HostPlan, Part
from .request import HostRequest, bin_dir_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..attachments.drift import Present
    from ..attachments.outcome import AttachPlan
    from ..binaries.outcome import Desired, PluginsPlan
    from ..footprints.rehearsed import Rehearsed
    from ..kernel.objects import ObjectKey
    from ..leases import Lease
    from ..networks.entries import ConfPlan

# The order in which sections are planned and applied, and whether it is their removals that have this place.
_ORDER = (
    ("plugins", False),
    ("pod_networks", False),
    ("networks", False),
    ("runtime", False),
    ("netns", False),
    ("attachments", False),
    ("audit", False),
    ("netns", True),
    ("runtime", True),
    ("networks", True),
    ("plugins", True),
)

_MISSING = "missing_plugin"

# Sections whose option ``state`` can ask for removals only.
_UNDONE = ("plugins", "runtime", "netns")


class HostPlanner:
    """Makes one plan. Reads files, namespaces and runtimes, asks plugins (VERSION, CHECK), and changes nothing.

    *wanted* are the plugins of the section ``plugins``, or the error that prevents knowing them. Steps of classes that
    are not in *classes* are left. *rehearse*: a run refuses plugins with which the ADD of a network fails.
    """

    def __init__(
        self,
        request: HostRequest,
        wanted: Optional[Desired],
        classes: Container[str],
        check_mode: bool,
        rehearse: bool = False,
    ) -> None:
        self._request = request
        self._wanted = wanted
        self._classes = classes
        self._check_mode = check_mode
        self._rehearse = rehearse
        # The parts so far, how many of them an earlier plan made, and what the others will leave.
        self._parts: List[Part] = []
        self._done = 0
        self._view = HostView()
        self._makers: Dict[str, Callable[[], Plan]] = {
            "plugins": self._plan_plugins,
            "pod_networks": self._plan_pod_networks,
            "networks": self._plan_networks,
            "runtime": self._plan_runtime,
            "netns": self._plan_netns,
            "attachments": self._plan_attachments,
            "audit": self._plan_audit,
        }

    def make(self) -> HostPlan:
        """Return the plan. An error of a section is in its part; the others are planned."""
        return HostPlan(self._plan_after([]), self._plan_after, self._request.refused)

    def _plan_after(self, done: Sequence[Part]) -> List[Part]:
        """Return the parts that come after those in *done*."""
        self._parts, self._done, self._view = list(done), len(done), HostView()
        self._view.requested = {wanted.key: wanted.state == PRESENT for wanted in self._request.attachments}
        finished = {(part.section, part.late) for part in done}
        for section, late in _ORDER:
            if section in self._request.sections and (section, late) not in finished:
                self._parts.extend(self._part(section, late))
        return self._parts[self._done :]

    def _part(self, section: str, late: bool) -> List[Part]:
        """Return the plan of a section at one place of the order: none if the other place is its own."""
        # Those of networks are in the plan of its other steps.
        deferred = section == "networks" and late
        undone = section in _UNDONE and self._request.state_of(section) != PRESENT
        if late != undone and not deferred:
            return []
        try:
            if deferred:
                return self._removals()
            plan: Any = self._makers[section]()
        except HostError as error:
            failed = Part(section, None, lambda _workers: None, late)
            failed.error = self._cause(error)
            return [failed]
        if self._plugins_error:
            _forget_consequences(plan)
        plan.restrict(self._classes)
        self._leave_what_depends(section, plan)
        part = Part(section, plan, plan.apply, late)
        if section == "networks" and self._detaches:
            later = plan.defer_removals()
            part.steps = [step for step in part.steps if step not in later]
        if part.error is None:
            self._foretell(section, plan)
            if section == "plugins" and not {"networks", "runtime"}.intersection(self._request.sections):
                # Otherwise, those say whether runtimes run the plugins.
                self._warn_of_unused(plan)
        return [part]

    def _part_of(self, section: str) -> Optional[Part]:
        return next((part for part in self._parts if part.section == section), None)

    @property
    def _plugins_error(self) -> Optional[HostError]:
        """Why the section plugins has failed, None if it has not."""
        part = self._part_of("plugins")
        return part.error if part else None

    def _cause(self, error: HostError) -> HostError:
        """Return the error to report: that plugins are missing follows from that of the section plugins."""
        levels = [row for row in error.facts.get("problems", []) if row["level"] == ERROR]
        codes = {row["code"] for row in levels} or {error.code}
        return self._plugins_error or error if codes == {_MISSING} else error

    def _warn_of_unused(self, plan: Any) -> None:
        from ..runtimes.unused import warn_of_unused

        conf_dir = self._request.sections["plugins"]["conf_dir"]
        warn_of_unused(plan, plan.present, plan.store.bin_dir, conf_dir, self._view)

    def _foretell(self, section: str, plan: Any) -> None:
        """Note in the view what the plan of a section will leave on the host."""
        if section == "plugins":
            self._view.expect_binaries(plan.expected())
        elif section in ("networks", "pod_networks") and not plan.left:
            self._view.expect_files(plan.conf_dir, plan.files_after, plan.written)
        elif section == "netns":
            self._view.namespaces.update(plan.expected())

    @property
    def _detaches(self) -> bool:
        return any(wanted.state == ABSENT for wanted in self._request.attachments)

    def _removals(self) -> List[Part]:
        """Return the removals of networks that wait until attachments are detached."""
        first = self._part_of("networks")
        if first is None or first.plan is None or not self._detaches:
            return []
        plan: Any = first.plan
        if first.error is None and first in self._parts[: self._done]:
            # A part after them has failed, so this is a second plan, which shares its view.
            plan = self._plan_networks()
            plan.restrict(self._classes)
            self._foretell("networks", plan)
        part = Part("networks", plan, plan.apply_deferred, late=True)
        part.steps = plan.defer_removals() if plan.error is None else []
        if first.error is not None:
            part.plan = None
            for step in part.steps:
                step.state = "left_out"
        return [part] if part.steps else []

    def _leave_what_depends(self, section: str, plan: Plan) -> None:
        """Leave the steps that need networks which will not be as they should."""
        if section in ("runtime", "plugins") and self._networks_fail:
            # A runtime that is restarted now would load other networks than it should, and networks that stay need the
            # plugins that would be removed.
            plan.leave_out(list(plan.steps))
        elif section == "attachments":
            unready = self._unready_networks()
            # Whoever is only detached needs no network. A repair without its ADD would leave a container without one.
            kept = {wanted.key for wanted in self._request.attachments if wanted.state == ABSENT}
            plan.leave_out([s for s in plan.steps if s.item and s.item not in kept and s.item.network in unready])

    @property
    def _networks_fail(self) -> bool:
        """Whether networks will not be as requested, because of an error or of steps that are left."""
        parts = [part for part in self._parts if part.section == "networks"]
        return any(part.error or (part.plan and part.plan.left) for part in parts)

    def _unready_networks(self) -> Set[str]:
        """Return the names of the requested networks that will not be as requested."""
        if not self._networks_fail:
            return set()
        # Imported late, as all that only some sections need.
        from ..networks.difference import same_json

        contents: Dict[Optional[str], bytes] = {}
        for file in reversed(self._view.conf_files(self._request.sections["networks"]["conf_dir"])):
            contents[file.network] = file.text or b""
        wanted = self._request.sections["networks"]["networks"]
        return {
            str(given["name"])
            for given in wanted
            if given["content"] is None or not same_json(contents.get(given["name"]), given["content"].encode("utf-8"))
        }

    def _waiting(self) -> Set[Key]:
        """Return the attachments whose network or namespace an earlier section should have made, and has not."""
        options = self._request.sections["attachments"]
        unready = self._unready_networks()
        networks = Networks(options["conf_dir"], options["bin_dirs"], self._view)
        netns = self._part_of("netns")
        paths: Set[str] = set()
        if netns is not None and (netns.error is not None or (netns.plan and netns.plan.left)):
            names = self._request.sections["netns"]["names"]
            paths = {os.path.join(NETNS_DIR, name) for name in names}
            seen = inspect_planned(dict.fromkeys(paths, ()), self._view.namespaces)
            paths = {path for path in paths if seen[path].identity is None}
        waiting = [
            wanted
            for wanted in self._request.attachments
            if wanted.state == PRESENT
            and (wanted.netns in paths or (_is_of(wanted, unready) and not _has(networks, wanted.key.network)))
        ]
        # A pod waits for all of its networks.
        units = {id(wanted.pod.unit) for wanted in waiting if wanted.pod}
        together = [w.key for w in self._request.attachments if w.pod and id(w.pod.unit) in units]
        return {*(wanted.key for wanted in waiting), *together}

    # ---- sections

    def _plan_plugins(self) -> PluginsPlan:
        from ..binaries.source import plan_plugins

        self._view.built_in = _built_in
        options = self._request.sections["plugins"]
        plan = plan_plugins(options, bin_dir_of(options), self._wanted, self._view, self._check_mode)
        if plan.changed:
            # Imported late: only changes have a class.
            from ..networks.effects import classify_plugins

            classify_plugins(plan, plan.expected(), options, self._view)
        if self._rehearse and plan.changed and not options["force"]:
            from ..trials.new_plugins import rehearse_before

            rehearse_before(plan, options["conf_dir"], options["bin_dirs"])
        return plan

    def _plan_networks(self) -> ConfPlan:
        options = self._request.sections["networks"]
        # The section about runtimes tells which network they use.
        runtime: Any = [] if "runtime" in self._request.sections else None
        options = dict(options, runtime=runtime, ensure_effective=None, configure=None)
        return self._plan_conf(options)

    def _plan_pod_networks(self) -> ConfPlan:
        options = self._request.sections["pod_networks"]
        # No runtime reads this directory.
        options = dict(options, runtime=[], ensure_effective=None, on_not_effective="ignore", configure=None)
        return self._plan_conf(options)

    def _plan_runtime(self) -> ConfPlan:
        arguments = {**NETWORKS_ARGUMENTS, **EFFECT_ARGUMENTS}
        defaults = {name: spec.get("default") for name, spec in arguments.items()}
        options = dict(defaults, networks=[], validate=[], **self._request.sections["runtime"])
        networks = self._request.sections.get("networks")
        if networks is not None:
            written = [given["name"] for given in networks["networks"] if given["state"] == PRESENT]
            options.update(_expected=written, on_not_effective=networks["on_not_effective"])
        return self._plan_conf(options)

    def _plan_conf(self, options: Dict[str, Any]) -> ConfPlan:
        from ..networks.planner import plan_networks

        refused = options.get("_refused")
        if refused:
            raise HostError(refused["message"], refused["code"], problems=refused["problems"])
        return plan_networks(conf_request(options, self._check_mode), self._view)

    def _plan_netns(self) -> NetnsPlan:
        options = self._request.sections["netns"]
        return plan_netns(options["names"], options["state"] == PRESENT, self._check_mode)

    def _plan_attachments(self) -> AttachPlan:
        from ..attachments.outcome import LEFT, Outcome, attach_settings
        from ..attachments.planner import AttachPlanner
        from ..attachments.verbs import Verbs

        options = self._request.sections["attachments"]
        settings = attach_settings(options, self._check_mode)
        settings.rehearse, settings.find_freed = partial(_rehearse, settings.bin_dirs), partial(_find_freed, options)
        settings.may_renew = DISRUPTIVE in self._classes
        verbs = Verbs(options["bin_dirs"], options["cache_dir"], options["timeout"], checks=options["check"])
        waiting = self._waiting()
        request = self._request.attachments
        ready = [wanted for wanted in request if wanted.key not in waiting]
        plan = AttachPlanner(settings, verbs, self._view).make(ready)
        planned = {outcome.key: outcome for outcome in plan.outcomes}
        # The planner adds what pods no longer ask for, and leaves out what their own network attaches.
        asked = {wanted.key for wanted in request}
        added = [outcome for outcome in plan.outcomes if outcome.key not in asked]
        kept = [wanted for wanted in request if wanted.key in planned or wanted.key in waiting]
        plan.outcomes = [planned.get(wanted.key) or Outcome(wanted) for wanted in kept] + added
        for outcome in plan.outcomes:
            if outcome.key in waiting:
                # The section that has failed tells why.
                outcome.ended = LEFT
        if options["preview"] and self._check_mode:
            from ..trials.preview import add_previews

            add_previews(plan, settings.bin_dirs)
        return plan

    def _plan_audit(self) -> Plan:
        from ..trials.audit import plan_audit

        options = self._request.sections["audit"]
        # What attachments of both kinds share is repaired once, or left as that section says.
        part: Any = self._part_of("attachments")
        judged = part.plan.drifts.shared if part and part.plan else ()
        return plan_audit(options["bin_dirs"], options["cache_dir"], judged, partial(_find_freed, options))


def _built_in(view: HostView, bin_dir: str) -> Users:
    # Imported late: only a plan that replaces or removes binaries asks.
    from ..runtimes.discover import built_in_users

    return built_in_users(view, bin_dir)


def _rehearse(bin_dirs: Sequence[str], attachments: Sequence[Present]) -> Mapping[Key, Union[Rehearsed, HostError]]:
    # Imported late: nearly all attachments have footprints.
    from ..trials.rehearsal import rehearse

    return rehearse(attachments, bin_dirs)


def _find_freed(options: Mapping[str, Any], taken: Mapping[ObjectKey, Key]) -> Mapping[ObjectKey, Lease]:
    # Imported late: hardly any lease is given to another container.
    from ..garbage.freed import find_freed

    return find_freed(options["conf_dir"], options["bin_dirs"], options["cache_dir"], taken)


def _forget_consequences(plan: Any) -> None:
    """Remove what only says that plugins are missing which the section plugins could not install."""
    plan.warnings = {warning: row for warning, row in plan.warnings.items() if warning[0] != _MISSING}
    if hasattr(plan, "problems"):
        plan.problems = [finding for finding in plan.problems if finding.code != _MISSING]
    for outcome in getattr(plan, "outcomes", ()):
        if outcome.error is not None and outcome.error["code"] == _MISSING:
            # Imported late: a failure is rare.
            from ..attachments.outcome import LEFT

            outcome.ended, outcome.error = LEFT, None


def _is_of(wanted: WantedAttachment, networks: Set[str]) -> bool:
    """Tell whether an attachment is to one of *networks*, which the request configures."""
    return wanted.key.network in networks and (wanted.pod is None or wanted.pod.config is None)


def _has(networks: Networks, name: str) -> bool:
    try:
        networks.load(name)
    except HostError:
        return False
    return True
