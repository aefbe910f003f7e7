# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Planning of ``cni_attach``: what to attach, detach and attach again, so that a host is in its desired state."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

from ...libcni import gojson
from ...libcni.conf import NetworkConfigList
from .. import netlink
from ..addresses import result_macs
from ..binaries.types import types_of
from ..errors import HostError
from ..footprints.object_kinds import summarize
from ..footprints.state import DEDUCED, Drift
from ..hostview import HostView
from ..kinds import kind_of, lower_of, text_of
from ..netns import Netns, Seen, inspect_planned, same, visit
from ..plan import each_of
from ..trust import check_directory
from .drift import ADDED, Drifts, Present, present_in
from .outcome import (
    ADD,
    DELETE,
    NOTHING,
    PUT_BACK,
    RENEW,
    AttachPlan,
    AttachSettings,
    Outcome,
    asked_then,
    each_outcome,
)
from .request import ABSENT, PRESENT, Key, Networks, WantedAttachment
from .store import ADDING, ATTACHED, Attached, check_cache_dir
from .verbs import Failed, Verbs, ifname_in_use, require_container

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..networks.owners import Living, Owners


class AttachPlanner:
    """Makes one plan. Reads files and namespaces, asks plugins (VERSION, CHECK), and changes nothing."""

    def __init__(self, settings: AttachSettings, verbs: Verbs, view: Optional[HostView] = None) -> None:
        self._settings = settings
        self._verbs = verbs
        self._plan = AttachPlan(settings.check_mode)
        self._view = view or HostView()
        # Those of pods may be in other directories.
        self._networks: Dict[str, Networks] = {}
        self._seen: Dict[str, Seen] = {}
        self._renewals: List[Outcome] = []
        self._owners: Optional[Owners] = None

    def make(self, request: Sequence[WantedAttachment]) -> AttachPlan:
        """Return the plan. An error of one attachment is in its outcome; the others are planned.

        Raises HostError ``unsafe_permissions`` if users other than root can write to the directories.
        """
        networks = self._networks_in(self._settings.conf_dir)
        check_cache_dir(self._settings.cache_dir)
        if any(wanted.pod for wanted in request):
            # Imported late: most requests have no pods.
            from .pod_unit import with_members

            request = with_members(request, self._verbs.store, networks.load)
        outcomes = [Outcome(wanted) for wanted in request]
        self._plan.outcomes = outcomes
        each_outcome(outcomes, self._read)
        self._look_into_namespaces()
        each_outcome(outcomes, self._decide)
        stay = [o for o in outcomes if o.wanted.state == PRESENT and o.todo == NOTHING and not o.failed]
        self._find_drift([*stay, *(o for o in outcomes if o.reason == "interface" and not o.failed)])
        self._check([o for o in stay if not (o.failed or o.reason)])
        each_outcome((o for o in stay if o.injectors and o.todo == NOTHING), self._leave)
        each_outcome((o for o in outcomes if o.todo in (ADD, RENEW)), self._test_plugins)
        if self._settings.may_renew and not (self._settings.force or self._view.binaries):
            self._rehearse()
        self._note_capabilities(outcomes)
        if self._plan.drifts.any or any(o.todo != NOTHING or o.adopted or o.injectors or o.reroutes for o in outcomes):
            # Imported late: an unchanged run has no steps.
            from .steps import Steps

            Steps(self._settings, self._verbs, self._plan).add()
        return self._plan

    def _note_capabilities(self, outcomes: Sequence[Outcome]) -> None:
        if any(outcome.wanted.capability_args for outcome in outcomes):
            # Imported late: most requests have none.
            from .capabilities import notes

            for outcome, code, message in notes(outcomes, self._settings.cache_dir):
                self._plan.note(outcome, code, message)

    # ---- current state

    def _read(self, outcome: Outcome) -> None:
        cached = outcome.cached = self._verbs.store.read(outcome.key)
        recorded, absent = cached.recorded, outcome.wanted.state == ABSENT
        if cached.has_entry:
            outcome.attached = cached.attached
        elif cached.state == ATTACHED:
            if recorded is None or not self._verbs.attached_as(outcome.key.ifname, recorded.netns):
                self._restore(outcome, recorded)
            elif absent:
                # Another tool detached it, and the interface of that name is another network's now: DEL frees the
                # leases, and no plugin enters the namespace.
                outcome.attached, outcome.reason = recorded.changed(netns="", state="", identity=None), "lost"
        elif cached.state == ADDING and (recorded is None or not recorded.interface or absent):
            outcome.attached = recorded
            if recorded is None:
                # A guess at what an ADD was given: a power loss left only an empty record of it.
                with contextlib.suppress(HostError):
                    outcome.attached = self._as_configured(outcome)
            outcome.reason = "interrupted" if outcome.attached else ""

    @staticmethod
    def _restore(outcome: Outcome, attached: Optional[Attached]) -> None:
        """Use *attached* in place of the entry that the cache has lost."""
        outcome.attached = attached
        if attached is not None:
            outcome.adopted = "damaged" if _damage(outcome) else "lost"

    def _as_configured(self, outcome: Outcome) -> Attached:
        """Return what an ADD would be given now, for the DEL of an attachment that nothing else describes."""
        state = outcome.cached.state if outcome.cached else ""
        return outcome.given(self._load(outcome.wanted)).changed(state=state)

    def _networks_in(self, conf_dir: str) -> Networks:
        if conf_dir not in self._networks:
            check_directory(conf_dir, self._plan.refuse, self._settings.check_mode)
            self._networks[conf_dir] = Networks(conf_dir, self._settings.bin_dirs, self._view)
        return self._networks[conf_dir]

    def _load(self, wanted: WantedAttachment) -> NetworkConfigList:
        """Return the configured network. Raises HostError as Networks.load."""
        part = wanted.pod
        if part is not None and part.config is not None:
            return part.load(f"cannot attach {wanted.key}")
        conf_dir = part.conf_dir if part is not None else ""
        return self._networks_in(conf_dir or self._settings.conf_dir).load(wanted.key.network)

    def _look_into_namespaces(self) -> None:
        names: Dict[str, List[str]] = {}
        for outcome in self._plan.outcomes:
            paths = {outcome.wanted.netns} | ({outcome.attached.netns} if outcome.attached else set())
            for path in paths - {""}:
                names.setdefault(path, []).append(outcome.key.ifname)
        self._seen = inspect_planned(names, self._view.namespaces)

    # ---- decisions

    def _decide(self, outcome: Outcome) -> None:
        wanted = outcome.wanted
        if wanted.state == ABSENT:
            self._decide_absent(outcome)
            return
        try:
            outcome.config = self._load(wanted)
        except HostError as error:
            self._plan.tolerate(outcome, error)
        if wanted.pod and outcome.config is not None:
            # Imported late: most entries are no pods.
            from .pod import CONVENTIONAL

            # Its plugins do not get them, so the change of an annotation is no change of such a network.
            declared = {name for plugin in outcome.config.plugins for name, on in plugin.capabilities.items() if on}
            for name in CONVENTIONAL - declared:
                wanted.capability_args.pop(name, None)
        namespace = self._seen[wanted.netns]
        try:
            require_container(outcome.key, wanted.netns, namespace)
        except HostError as error:
            self._plan.tolerate(outcome, error)
        if outcome.config is not None and wanted.capability_args.get("ipRanges"):
            from .capability_args import check_ranges

            check_ranges(outcome.config, wanted.capability_args, f"cannot attach {outcome.key}")
        if outcome.attached is None and outcome.config is not None and outcome.key.ifname in namespace.links:
            # Imported late: entries are seldom lost.
            from .adoption import find_adoptable

            container = Netns(wanted.netns, namespace.identity)
            self._restore(outcome, find_adoptable(wanted, outcome.config, container))
        damage = _damage(outcome)
        if damage is not None and outcome.attached is None:
            if not self._settings.force:
                raise damage
            outcome.attached, outcome.reason = self._as_configured(outcome), "damaged"
        attached = outcome.attached
        if attached is None:
            outcome.planned = ADD
            if outcome.key.ifname in namespace.links and not self._settings.force:
                self._name_in_use(outcome)
            return
        outcome.reason = outcome.reason or self._difference(outcome, attached) or self._gone(outcome, attached)
        outcome.planned = RENEW if outcome.reason else NOTHING

    def _name_in_use(self, outcome: Outcome) -> None:
        if outcome.key.ifname == "lo" or self._leaves(outcome):
            return
        message = ifname_in_use(outcome.key, outcome.wanted.netns)
        # In check mode, an earlier task of the play that would detach another attachment has not done so.
        if not (self._settings.check_mode and self._verbs.attached_as(outcome.key.ifname, outcome.wanted.netns)):
            raise HostError(message, code="ifname_in_use")
        self._plan.note(outcome, "ifname_in_use", message)

    def _leaves(self, outcome: Outcome) -> bool:
        """Tell whether the interface is that of a network which the same pod no longer asks for."""
        return any(
            other.attached is not None and other.wanted.state == ABSENT
            for other in self._plan.outcomes
            if (other.item, other.key.ifname) == (outcome.item, outcome.key.ifname)
        )

    def _difference(self, outcome: Outcome, attached: Attached) -> str:
        """Return how the request differs from what was attached, "" if it does not."""
        wanted, config = outcome.wanted, outcome.config
        if config is not None and not _is_same(config, attached.config):
            if not self._settings.force:
                outcome.injectors = self._injectors(config, attached.config)
            if not outcome.injectors:
                return "config"
        if dict(wanted.args) != dict(attached.args):
            return "args"
        given = asked_then(wanted, attached)
        return "" if gojson.dumps(wanted.capability_args) == gojson.dumps(given) else "capability_args"

    def _injectors(self, now: NetworkConfigList, then: NetworkConfigList) -> Dict[str, Living]:
        """Return plugin -> running daemon for the daemons that made two networks differ; {} if anything else differs.

        *now* is the configured one, *then* that of the ADD. A daemon may have added its plugin, changed it or removed
        it.
        """
        # Imported late: networks seldom change.
        from ..networks.owners import Owners, split

        owners = self._owners = self._owners or Owners(self._settings.conf_dir)
        (rest_now, theirs_now), (rest_then, theirs_then) = (
            split(config.expanded_bytes(), lambda kind: owners.injector(kind) is not None) for config in (now, then)
        )
        if gojson.dumps(rest_now) != gojson.dumps(rest_then):
            return {}
        every = [*theirs_now, *theirs_then]
        changed = [plugin for plugin in every if plugin not in theirs_now or plugin not in theirs_then]
        daemons = {kind: owners.injector(kind) for kind in (text_of(plugin, "type") for plugin in changed)}
        return {kind: living for kind, living in daemons.items() if living is not None}

    def _leave(self, outcome: Outcome) -> None:
        """Leave an attachment alone although its network has changed."""
        outcome.reason = outcome.reason or "injected"
        daemons = " and ".join(
            f"{living.owner.name} (plugin {kind}; {living.process}, process {living.pid})"
            for kind, living in outcome.injectors.items()
        )
        what = f"{outcome.key}: the network was changed after the attachment was made, by the running {daemons}"
        rest = "the attachment is left alone until it is attached again for another reason"
        self._plan.note(outcome, "foreign_owner", f"{what}; {rest}; set force: true to attach it again now")

    def _gone(self, outcome: Outcome, attached: Attached) -> str:
        """Return what is gone of the attachment (``netns``, ``interface``), "" if nothing is."""
        identity, namespace = attached.identity, self._seen[outcome.wanted.netns]
        if identity is None and attached.netns:
            identity = self._seen[attached.netns].identity
            if identity is None and self._has_its_interface(attached, Netns(outcome.wanted.netns, namespace.identity)):
                # The path of the ADD exists only in the mount namespace of its runtime, or its mount was removed.
                identity = namespace.identity
        if not same(namespace.identity, identity):
            outcome.words = "its namespace was recreated"
            if namespace.identity is None:
                outcome.words = "its namespace is gone"
            elif attached.netns not in ("", outcome.wanted.netns):
                outcome.words = f"it is attached in {attached.netns}, want {outcome.wanted.netns}"
            return "netns"
        # Some networks make no interface of that name: if it did not exist after the ADD, it is not missing now.
        expected = attached.interface if attached.state == ATTACHED else attached.made_interface
        return "interface" if expected and outcome.key.ifname not in namespace.links else ""

    @staticmethod
    def _has_its_interface(attached: Attached, container: Netns) -> bool:
        """Tell whether the interface that the ADD made is in *container*, by its name and MAC."""
        mac = result_macs(attached.result).get(attached.key.ifname)
        links = visit([container], netlink.links).get(container.path, {}) if mac else {}
        return any(link.name == attached.key.ifname and link.mac == mac for link in links.values())

    def _decide_absent(self, outcome: Outcome) -> None:
        damage, force = _damage(outcome), self._settings.force
        if outcome.attached is None:
            remembered = damage is not None or bool(outcome.cached and outcome.cached.state)
            if not (remembered or force):
                return
            if damage is not None and not force:
                raise damage
            outcome.reason = "damaged" if remembered else "forced"
            try:
                outcome.attached = self._as_configured(outcome)
            except HostError as error:
                if not (remembered and force):
                    self._plan.tolerate(outcome, _unknown(outcome.key, error) if remembered else error)
        outcome.planned, part = DELETE, outcome.wanted.pod
        if part is not None and part.unit.item is not None:
            outcome.reason, outcome.words = "unrequested", "its pod no longer asks for the network"

    # ---- drift

    def _find_drift(self, outcomes: Sequence[Outcome]) -> None:
        """Find what the attachments that exist have lost, and what they share; decide what is done about it."""
        entries = [outcome.attached for outcome in outcomes if outcome.attached is not None and not outcome.adopted]
        identities = {path: seen.identity for path, seen in self._seen.items()}
        present = present_in(self._settings.cache_dir, entries, identities)
        if not present:
            return
        settings = self._settings
        drifts = Drifts(present, self._verbs.store.read_shared(), settings.rehearse, settings.find_freed)
        self._plan.drifts = drifts
        for problem in drifts.problems:
            self._plan.warn("rules_unreadable", f"{problem}; drift of what could not be read goes undetected")
        for damage in drifts.damages:
            self._plan.warn("footprint_damaged", damage)
        for outcome in outcomes:
            outcome.drift = drifts.of(outcome.key)
        each_outcome(outcomes, self._judge_lost)
        for drift in drifts.shared:
            self._judge_shared(drift, outcomes)

    def _judge_lost(self, outcome: Outcome) -> None:
        """Decide what is done about what an attachment has lost."""
        drift = outcome.drift
        if drift is None or not drift.differences:
            return
        # Imported late, as below: needed only if something has drifted.
        from ..footprints.repair import why_not

        if drift.additions:
            self._drifted(outcome, "kernel", f"{summarize(drift.additions, True)}; {ADDED}", {}, NOTHING)
        repair = RENEW if why_not(drift) else PUT_BACK
        if drift.lost and outcome.reason != "interface":
            self._drifted(outcome, "kernel", drift.reason, {}, repair)
        elif drift.lost:
            outcome.planned = repair

    def _judge_shared(self, drift: Drift, outcomes: Iterable[Outcome]) -> None:
        """Decide what is done about what attachments share and have lost."""
        from ..footprints.repair import why_not

        obstacle = why_not(drift)
        parts = [drift.reason, f"it cannot be put back: {obstacle}" if obstacle else ""]
        parts += [summarize(drift.additions, False), ADDED] if drift.additions else []
        message = f"{drift.target} has drifted: {'; '.join(filter(None, parts))}"
        if self._settings.on_drift == "fail":
            remedy = "" if obstacle else "; set on_drift: repair to put it back"
            error = HostError(f"{message}{remedy}", code="drifted")
            for outcome in outcomes:
                if outcome.drift is not None and drift.owner in ((), (outcome.key.network,)):
                    outcome.fail(error)
            return
        self._plan.warn("drifted", message, drift.target)
        if self._settings.on_drift == "repair" and drift.lost and not obstacle:
            self._plan.shared.append(drift)

    def _check(self, outcomes: Sequence[Outcome]) -> None:
        """Run the CHECKs, several at a time, and judge their outcomes in the order of the request.

        Where something shared is lost, CHECK would only tell it again, as if the attachment had to be made again.
        """
        lost = {drift.owner for drift in self._plan.drifts.shared}
        outcomes = [outcome for outcome in outcomes if not lost & {(), (outcome.key.network,)}]
        answers: Dict[Key, Union[Failed, HostError, None]] = {}

        def ask(outcome: Outcome) -> None:
            if outcome.attached is not None and self._may_check(outcome, outcome.attached):
                netns = outcome.attached.netns
                try:
                    with Netns(netns, self._seen[netns].identity) as container:
                        answers[outcome.key] = self._verbs.check(outcome.attached, container)
                except HostError as error:
                    answers[outcome.key] = error

        def judge(outcome: Outcome) -> None:
            answer = answers.get(outcome.key)
            if isinstance(answer, HostError):
                self._plan.tolerate(outcome, self._why(outcome, answer))
            elif answer is not None:
                self._judge_check(outcome, answer)

        each_of(ask, outcomes, self._settings.workers)
        each_outcome(outcomes, judge)

    def _why(self, outcome: Outcome, error: HostError) -> HostError:
        """Return *error* of a CHECK, or that a managed plugin is missing because another file has taken its name."""
        if outcome.attached is not None and error.code in ("not_elf", "unsafe_permissions", "unreadable"):
            try:
                self._networks_in(self._settings.conf_dir).test_plugins(outcome.attached.config)
            except HostError as other:
                return other
        return error

    def _may_check(self, outcome: Outcome, attached: Attached) -> bool:
        # CHECK reads the result from the cache.
        if outcome.adopted or not self._verbs.wants_check(attached.config):
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

    def _judge_check(self, outcome: Outcome, failure: Failed) -> None:
        """Distinguish drift from a CHECK that has never worked, and from one that crashed."""
        if failure.crashed or failure.is_same(outcome.attached.check if outcome.attached else None):
            known = outcome.drift is not None and outcome.drift.source != DEDUCED
            self._plan.note(outcome, "check_unusable", failure.unusable(outcome.key, known))
        else:
            self._drifted(outcome, "check", f"CHECK failed ({failure})", failure.facts())

    def _drifted(self, outcome: Outcome, reason: str, what: str, facts: Dict[str, Any], repair: str = RENEW) -> None:
        message = f"{outcome.key} has drifted: {what}"
        # Without its interface, it is made again in any case.
        is_gone = outcome.reason == "interface"
        if self._settings.on_drift == "fail" and not is_gone:
            how = {RENEW: "; set on_drift: repair to detach it and attach it again", NOTHING: ""}
            rest = how.get(repair, "; set on_drift: repair to put it back in place")
            raise HostError(f"{message}{rest}", code="drifted", **facts)
        if not is_gone:
            outcome.reason, outcome.words = reason, what
        self._plan.note(outcome, "drifted", message)
        if self._settings.on_drift == "repair" and repair != NOTHING:
            outcome.planned = repair

    # ---- what an ADD needs

    def _test_plugins(self, outcome: Outcome) -> None:
        if outcome.config is not None:
            try:
                self._networks_in(self._settings.conf_dir).test_plugins(outcome.config)
                self._test_needs(outcome, [plugin.network for plugin in outcome.config.plugins])
                if outcome.todo == RENEW:
                    _test_lower_devices(outcome.key, outcome.config)
                    self._renewals += [outcome] if outcome.reason != "interrupted" else []
                elif outcome.key.ifname != "lo":
                    self._note_others(outcome)
            except HostError as error:
                self._plan.tolerate(outcome, error)

    def _rehearse(self) -> None:
        """Fail those whose DEL would take away an interface, and whose ADD would fail, as far as that can be known."""
        renewals = {o.key: o for o in self._renewals if o.key.ifname in self._seen[o.wanted.netns].links}
        # Without the addresses of before: an ADD that does not get them is tried again without, too.
        presents = [Present(o.given(o.config), {}, None) for o in renewals.values() if o.config is not None]
        for key, error in (self._settings.rehearse(presents) if self._settings.rehearse and presents else {}).items():
            if isinstance(error, HostError) and error.code == "add_failed":
                rest = "nothing was detached; remove the cause and run again, or set force: true to try nevertheless"
                renewals[key].fail(HostError(f"cannot repair {key}: {error.msg}; {rest}", code="add_would_fail"))

    def _note_others(self, outcome: Outcome) -> None:
        """Note the interfaces that the container has: with one more, packets may go another way."""
        path = outcome.wanted.netns
        links = visit([Netns(path, self._seen[path].identity)], netlink.links).get(path, {})
        names = sorted(link.name for link in links.values() if link.up and link.name != "lo")
        if names:
            outcome.costs.append(f"its container also uses {', '.join(names)}")

    def _test_needs(self, outcome: Outcome, plugins: List[Dict[str, Any]]) -> None:
        """Test the tools and the state that the plugins need, and note which routes the host would lose."""
        # Imported late: needed only if something is attached.
        from ..checks.state import state_obstacles
        from ..firewall.tools import tool_obstacles
        from ..host_routes import explain_uplinks, uplinks_of_routers

        arguments = outcome.wanted.capability_args
        changing = self._view.changing_binaries(types_of(plugins), self._settings.bin_dirs)
        bin_dirs = None if changing else self._settings.bin_dirs
        obstacles = [*tool_obstacles(plugins, arguments, bin_dirs)]
        for obstacle in obstacles or state_obstacles(outcome.key.network, plugins, self._settings.cache_dir):
            if outcome.todo == RENEW and obstacle.code == "state_unwritable":
                text, rest = obstacle.error(f"cannot repair {outcome.key}").msg, "nothing was detached; run again"
                raise HostError(f"{text}; {rest}", code="leases_unwritable")
            raise obstacle.error(f"cannot attach {outcome.key}")
        uplinks = uplinks_of_routers(plugins, arguments, outcome.wanted.args)
        if uplinks:
            outcome.costs.append(f"the host loses its IPv6 default route on {', '.join(uplinks)}")
            self._plan.note(outcome, "host_route_lost", f"{outcome.key}: {explain_uplinks(uplinks)}")


def _damage(outcome: Outcome) -> Optional[HostError]:
    """Return why the cache entry cannot be used."""
    return outcome.cached.error if outcome.cached else None


def _is_same(config: NetworkConfigList, other: NetworkConfigList) -> bool:
    left, right = config.expanded_bytes(), other.expanded_bytes()
    return left == right or gojson.dumps(gojson.loads(left)) == gojson.dumps(gojson.loads(right))


def _test_lower_devices(key: Key, config: NetworkConfigList) -> None:
    """Raise HostError ``master_missing`` where DEL would succeed and ADD would not."""
    masters = {lower_of(plugin.network) for plugin in config.plugins if kind_of(plugin.network).parent == "master"}
    devices = {link.name: link.up for link in netlink.links().values()} if any(masters) else {}
    for master in masters - {""}:
        if not devices.get(master):
            what = f"its lower device {master} is {'down' if master in devices else 'gone'}; nothing was detached"
            raise HostError(f"cannot repair {key}: {what}; bring the device up and run again", code="master_missing")


def _unknown(key: Key, error: HostError) -> HostError:
    what = f"cannot detach {key}: its record does not tell what was attached, and {error.msg}"
    rest = "set force: true to remove the record, the leases and the firewall rules without DEL"
    return HostError(f"{what}; {rest}", code=error.code)
