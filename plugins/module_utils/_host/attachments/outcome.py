# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of ``cni_attach``, its plan, and what is planned for each entry of its request and became of it."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional

from ...libcni import gojson
from ...libcni.conf import NetworkConfigList
from ..addresses import result_addresses
from ..errors import HostError
from ..footprints.state import Drift
from ..plan import Plan, Step, workers_of
from ..struct import field, struct
from .drift import Drifts
from .request import PRESENT, Key, WantedAttachment
from .store import Attached, CachedAttachment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..networks.owners import Living


def attach_settings(options: Mapping[str, Any], check_mode: bool) -> AttachSettings:
    """Return the settings for *options*, those of cni_attach. Raises HostError ``bad_parallel``."""
    taken = {name: options[name] for name in ("conf_dir", "bin_dirs", "cache_dir", "on_drift", "force")}
    return AttachSettings(**taken, check_mode=check_mode, workers=workers_of(options["parallel"]))


# What to do about an attachment; RENEW is a DEL and an ADD, PUT_BACK writes what is missing.
NOTHING, ADD, RENEW, DELETE, PUT_BACK = "", "add", "renew", "delete", "put_back"
_ACTIONS = {ADD: "added", RENEW: "repaired", DELETE: "deleted", PUT_BACK: "repaired"}
# How what is planned can end, if it is not done.
FAILED, LEFT, ROLLED_BACK = "failed", "left", "rolled_back"
# Reasons to attach again what was asked for before.
DRIFTED = ("kernel", "check")
_SAME_AGAIN = ("netns", "interface", *DRIFTED)


@struct
class AttachSettings:
    """The options of cni_attach that planning and applying need. ``check_mode`` tolerates missing objects.

    ``rehearse``: see drift.Rehearse; None if no plugin may run. ``find_freed``: see drift.FindFreed. ``may_renew``: not
    if what is disruptive is left anyway.
    """

    conf_dir: str
    bin_dirs: List[str]
    cache_dir: str
    on_drift: str = "report"
    force: bool = False
    check_mode: bool = False
    workers: int = 1
    rehearse: Optional[Callable[..., Any]] = None
    find_freed: Optional[Callable[..., Any]] = None
    may_renew: bool = True


@struct
class Outcome:
    """One entry of the request, what is planned for it and what became of it.

    ``cached`` is what the store has, ``attached`` what is attached, or what an interrupted ADD left (None: nothing),
    ``adopted`` what is wrong with its cache entry (``lost`` or ``damaged``, "" for nothing), ``config`` the network as
    it is configured now (None: unknown), ``drift`` what differs (None: that was not looked for). ``planned`` is one of
    the constants above, ``reason`` why (see RETURN of cni_attach), ``words`` the same as a phrase, where the planner
    knows more than the code tells. ``injectors``: plugin -> daemon for the daemons that changed the network since the
    ADD. ``costs``: what an ADD takes from the host or the container, as phrases. ``made`` is the result of what was
    done, ``preview`` what the kernel would get from an ADD (None: nobody asked), ``ended`` how it ended otherwise.
    """

    wanted: WantedAttachment
    cached: Optional[CachedAttachment] = None
    attached: Optional[Attached] = None
    adopted: str = ""
    config: Optional[NetworkConfigList] = None
    drift: Optional[Drift] = None
    planned: str = NOTHING
    reason: str = ""
    words: str = ""
    injectors: Dict[str, Living] = field(default_factory=dict)
    costs: List[str] = field(default_factory=list)
    made: Optional[Dict[str, Any]] = None
    preview: Optional[Dict[str, Any]] = None
    ended: str = ""
    error: Optional[Dict[str, Any]] = None
    warnings: List[Dict[str, str]] = field(default_factory=list)

    @property
    def key(self) -> Key:
        return self.wanted.key

    @property
    def item(self) -> Key:
        """What fails and is left as one: the attachment, or all of its pod."""
        part = self.wanted.pod
        return self.key if part is None else part.unit.item or self.key

    @property
    def failed(self) -> bool:
        return self.error is not None

    @property
    def todo(self) -> str:
        """What is planned, unless it has ended otherwise."""
        return NOTHING if self.ended else self.planned

    @property
    def reroutes(self) -> bool:
        """Whether its pod asks for other default routes than the attachment has."""
        part = self.wanted.pod
        if part is None or self.attached is None or self.ended or self.wanted.state != PRESENT:
            return False
        return part.reroutes(self.attached.pod)

    @property
    def action(self) -> str:
        """What is or was done, see RETURN of cni_attach."""
        if self.ended or self.planned:
            again = self.planned == RENEW and self.reason == "interrupted"
            return self.ended or _ACTIONS[ADD if again else self.planned]
        if self.reason in DRIFTED:
            return "drifted"
        return "adopted" if self.adopted else "rerouted" if self.reroutes else "none"

    @property
    def result(self) -> Optional[Dict[str, Any]]:
        if self.made is not None and not self.ended:
            return self.made
        stays = self.todo in (NOTHING, PUT_BACK) and not self.failed
        return self.attached.result if self.attached and stays else None

    def fail(self, error: HostError) -> None:
        self.ended, self.error = FAILED, dict(error.facts, code=error.code, message=error.msg)

    def given(self, config: NetworkConfigList) -> Attached:
        """Return what an ADD of what was asked for is given."""
        wanted = self.wanted
        member = wanted.pod.member() if wanted.pod else None
        return Attached(self.key, config, wanted.netns, wanted.args, wanted.capability_args, None, member)

    def why(self) -> str:
        """Return as a phrase what is not as desired."""
        if self.todo == DELETE:
            return self.words or "state is absent"
        if self.todo == ADD:
            return "; ".join(["not attached", *self.costs])
        if self.reason == "config" and self.attached and self.config:
            # Imported late: networks seldom change.
            from ..changes import change_in_words

            states = (gojson.loads(config.expanded_bytes()) for config in (self.attached.config, self.config))
            return f"the network has changed: {change_in_words(*states)}"
        if self.reason == "args" and self.attached:
            return _different("args", dict(self.attached.args), dict(self.wanted.args))
        if self.reason == "capability_args" and self.attached:
            return _different(self.reason, asked_then(self.wanted, self.attached), self.wanted.capability_args)
        return self.words or _WORDS[self.reason].format(self)

    @property
    def arguments(self) -> Dict[str, Any]:
        """The capability args of a new ADD: of the same attachment, with its addresses, if the network can be asked."""
        asked = self.wanted.capability_args
        if self.todo != RENEW or self.reason not in _SAME_AGAIN or "ips" in asked:
            return asked
        if self.attached is None or self.config is None or not self.attached.ips:
            return asked
        takes = any(plugin.capabilities.get("ips") for plugin in self.config.plugins)
        return {**asked, "ips": self.attached.ips} if takes else asked

    def row(self) -> Dict[str, Any]:
        """Return the module's result for this attachment."""
        part = self.wanted.pod
        row = {
            "network": self.key.network,
            "container_id": self.key.container_id,
            "ifname": self.key.ifname,
            "netns": self.wanted.netns or (self.attached.netns if self.attached else ""),
            "action": self.action,
            "reason": "default_route" if self.action == "rerouted" else self.reason or self.adopted,
            "drift": self.words if self.action == "drifted" else "",
            "result": self.result,
            # The addresses of a new attachment are not known before its ADD.
            "ips": None if self.todo in (ADD, RENEW) and self.result is None else result_addresses(self.result),
            "error": self.error,
            "warnings": self.warnings,
            **({"pod": part.unit.name} if part else {}),
        }
        return row if self.preview is None else dict(row, preview=self.preview)


def each_outcome(outcomes: Iterable[Outcome], function: Callable[[Outcome], None]) -> None:
    """Call *function* for every outcome that has not failed; an error fails only its own outcome."""
    for outcome in list(outcomes):
        if not outcome.failed:
            try:
                function(outcome)
            except HostError as error:
                outcome.fail(error)


def asked_then(wanted: WantedAttachment, attached: Attached) -> Dict[str, Any]:
    """Return the capability args that the user asked for when *attached* was made."""
    given = dict(attached.capability_args)
    if "ips" not in wanted.capability_args and given.get("ips") == attached.ips:
        # A repair asked for the previous addresses, not the user.
        del given["ips"]
    return given


_WORDS = {
    "interface": "{0.key.ifname} is gone",
    "interrupted": "its ADD was interrupted",
    "damaged": "its cache entry is damaged",
}


def _different(what: str, given: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Return which arguments differ. They are data of a container, so their values are not shown."""
    names = [name for name in {**given, **wanted} if gojson.dumps(given.get(name)) != gojson.dumps(wanted.get(name))]
    return f"{what} differ: {', '.join(names)}"


class AttachPlan(Plan):
    """The plan, and the outcome of each entry in the order of the request.

    ``drifts`` is what was found, ``shared`` what attachments share and gets put back in place, ``shared_errors`` why
    some of that was not.
    """

    def __init__(self, check_mode: bool = False) -> None:
        super().__init__()
        self._check_mode = check_mode
        self.outcomes: List[Outcome] = []
        self.drifts = Drifts()
        self.shared: List[Drift] = []
        self.shared_errors: List[HostError] = []
        self.carry_out: Callable[[int], None] = super().apply

    def leave_out(self, steps: Iterable[Step]) -> None:
        super().leave_out(steps)
        left = {step.item for step in self.left}
        for outcome in self.outcomes:
            # What is put back in place does not wait for the rest of a pod.
            if outcome.key in left or (outcome.item in left and outcome.todo != PUT_BACK):
                outcome.ended = LEFT

    def apply(self, workers: int = 1) -> None:
        self.carry_out(workers)

    def note(self, outcome: Outcome, code: str, message: str) -> None:
        """Warn about one attachment."""
        outcome.warnings.append({"code": code, "message": message})
        self.warn(code, message, str(outcome.key))

    def tolerate(self, outcome: Outcome, error: HostError) -> None:
        """Raise *error*; in check mode, only warn if an earlier task may repair the cause.

        That is something missing, or a file with a wrong owner or mode, which cni_conf and cni_plugins correct.
        """
        repairable = error.code.startswith("missing_") or error.code == "unsafe_permissions"
        if not (self._check_mode and repairable):
            raise error
        self.note(outcome, error.code, error.msg)
