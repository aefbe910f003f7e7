# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Plans the steps from the current state of a directory to the requested networks."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ..binaries.usable import Binaries
from ..checks.directory import check_plugins, directory_problems
from ..checks.view import ConfView
from ..confdir import ConfFile
from ..errors import HostError
from ..files import Attributes, check_group
from ..hostview import HostView
from ..kinds import text_of
from ..paths import names_in
from ..plan import FOREIGN
from ..problems import ERROR, WARNING, Finding, error_of, errors_of, strict
from ..runtimes.effective import Effective
from ..secrets import mask
from ..trust import untrusted
from .difference import moved, readable_secret, same_json, shown_change
from .entries import ConfPlan, ConfState
from .owners import CILIUM_SUFFIX, injected, with_injected
from .request import ConfRequest, WantedNetwork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .aside import Removals
    from .drop_ins import DropInFiles


_NOT_EXCLUSIVE = "set cni.exclusive=false in its Helm values (cni-exclusive in the ConfigMap cilium-config)"


def plan_networks(request: ConfRequest, view: Optional[HostView] = None) -> ConfPlan:
    """Return the plan. Raises HostError with all errors (``problems``) if there are any."""
    return ConfPlanner(request, view or HostView()).make()


class ConfPlanner:
    """Makes one plan. Reads files and asks plugins (VERSION) and runtimes; changes nothing."""

    def __init__(self, request: ConfRequest, view: HostView) -> None:
        self.request = request
        self.view = view
        self.state = ConfState(request, view)
        self.plan = self.state.plan
        self.binaries = Binaries(request.bin_dirs, view)

    def make(self) -> ConfPlan:
        request, state = self.request, self.state
        present = [desired for desired in request.networks if desired.present]
        if present and not os.path.isdir(request.conf_dir):
            self.plan.changes.make_directory()
        if present:
            self._try(check_group, request.attributes)
        targets = {desired.name: self._target_of(desired) for desired in present}
        self._check_targets(targets)
        self._plan_steps(present, targets)
        planned = self.plan.files_after = state.planned()
        self.plan.written = state.written()
        if "plugins" in request.levels:
            requested = [file for file in planned if file.name in targets.values()]
            self.plan.problems += check_plugins(self.binaries, requested, request.tolerate_missing)
        self._test_access(present, targets)
        if "directory" in request.levels:
            before = list(state.files.values())
            ours = state.ours_after()
            own = {os.path.join(network.name, name) for network in present for name in network.drop_ins or ()}
            own.update(os.path.relpath(path, request.conf_dir) for path in state.manifest.networks)
            view = ConfView(request.conf_dir, before, planned, ours, set(targets.values()), self.view, own)
            self.plan.problems += directory_problems(view, self.binaries)
            if state.disturbed:
                self._removals().note_packages()
        self.binaries.forget_missing()
        self._try(self._find_effective, planned)
        if any(step.step_class != FOREIGN for step in self.plan.steps):
            self._try(self._classify, planned)
        self._finish()
        return self.plan

    def _try(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call one part of the planning; in check mode, an error in it does not hide the rest."""
        try:
            function(*arguments)
        except HostError as error:
            self.plan.refuse(error, self.request.tolerate_missing)

    def _test_access(self, present: Sequence[WantedNetwork], targets: Dict[str, str]) -> None:
        """Warn about secrets that every user may read, and about a directory that not only root may write to."""
        for desired in present:
            path = self.plan.path(targets[desired.name])
            self.plan.problems += readable_secret(desired.text, self.request.attributes.mode, path)
        self.plan.problems += untrusted([self.request.conf_dir])

    def _plan_steps(self, present: Sequence[WantedNetwork], targets: Dict[str, str]) -> None:
        """Plan all steps. Removals come last, so that no runtime is left without a network.

        The exception is a file that is in the place of a requested one: it is removed first.
        """
        state = self.state
        absent = [desired for desired in self.request.networks if not desired.present and not desired.restored]
        in_the_way = [w for w in absent if any(file.name in targets.values() for file in state.managed_files(w.name))]
        for desired in in_the_way:
            self._try(self._removals().remove, desired)
        replacing = [desired for desired in present if desired.replace or self.request.exclusive]
        if replacing:
            self._try(self._removals().make_room, replacing, targets)
        for desired in present:
            self._try(self._put, desired, targets[desired.name])
        kept: Set[str] = set(targets.values())
        kept |= self._restore()
        for desired in absent:
            if desired not in in_the_way:
                self._try(self._removals().remove, desired)
        if replacing:
            self._try(self._removals().set_aside_others, replacing, kept)
        # Most hosts have no drop-ins.
        if any(os.path.dirname(path) != self.request.conf_dir for path in self.state.manifest.networks):
            self._try(self._drop_ins().remove_orphans)
        self._warn_of_cilium()

    def _drop_ins(self) -> DropInFiles:
        from .drop_ins import DropInFiles

        return DropInFiles(self.state)

    def _removals(self) -> Removals:
        from .aside import Removals

        return Removals(self.state)

    def _restore(self) -> Set[str]:
        """Plan to restore what was there before; return the names of the files that `exclusive` must leave."""
        restored = [desired for desired in self.request.networks if desired.restored]
        if not restored:
            return set()
        from .aside import Restoration

        return set().union(*(Restoration(self.state, desired).plan() for desired in restored))

    def _finish(self) -> None:
        problems = [Finding(*mask(finding)) for finding in self.plan.problems]
        self.plan.problems = problems = strict(problems) if self.request.strict else problems
        if errors_of(problems):
            self.plan.refuse(error_of(problems), self.request.tolerate_missing)
        self.plan.networks = self.state.reports()
        for finding in problems:
            if finding.level == WARNING:
                self.plan.warn(finding.code, finding.sentence)

    def _find_effective(self, files: Sequence[ConfFile]) -> None:
        request = self.request
        setup = None
        if request.settings:
            from ..runtimes.setup import Setup

            setup = Setup(self.plan, self.plan.configured, request.settings, request.tolerate_missing, self.view)
        effective = Effective(
            request.runtimes,
            request.conf_dir,
            request.bin_dirs,
            files,
            self.view,
            request.tolerate_missing,
            setup.prepare if setup else None,
        )
        self.plan.effective = mask(effective.rows())
        self.plan.judged = effective
        self._tell_nomad(effective)
        unmet = effective.unmet() if "plugins" in request.levels else []
        if request.ensure_effective is not None:
            problems = effective.ensure(request.ensure_effective)
            unmet = [finding for finding in unmet if finding._replace(level=ERROR) not in problems]
            if setup and not problems:
                problems = setup.not_loaded(request.ensure_effective)
            self.plan.problems += problems
        elif request.on_not_effective != "ignore":
            self.plan.problems += self._displaced(effective)
        self.plan.problems += unmet
        self.plan.problems += [finding for finding in effective.unused() if not self._has_use(finding, files)]
        wished = {
            network.name: network.drop_ins for network in request.networks if network.present and network.drop_ins
        }
        if wished:
            self.plan.problems += effective.ignored_drop_ins(wished)

    def _displaced(self, effective: Effective) -> List[Finding]:
        """Return which runtimes of the host use none of the networks that are written, but an unmanaged one."""
        request = self.request
        managed = {*map(self.plan.path, self.state.ours_after()), *self.view.written}
        runtimes = effective.displaced(request.expected, managed)
        present = [str(file.network) for file in effective.files if file.network in request.expected]
        name = next((name for name in present if not self._is_attached(name)), "") if runtimes else ""
        level = ERROR if request.on_not_effective == "error" else WARNING
        findings = [effective.not_effective(runtime, name) for runtime in runtimes if name]
        intended = "; or, if that is intended, set on_not_effective (cni_networks_ensure_effective) to ignore"
        return [finding._replace(level=level, remedy=finding.remedy + intended) for finding in findings]

    def _is_attached(self, network: str) -> bool:
        """Tell whether attachments of this collection use a network, or will do so."""
        requested = any(key[0] == network for key, exists in self.view.requested.items() if exists)
        return requested or bool(self.state.attached(network))

    def _classify(self, files: Sequence[ConfFile]) -> None:
        """Give the steps the class of their effects, on all runtimes of the host, whatever the request names."""
        from .effects import classify_changes

        request, folders = self.request, self.state.drop_ins_after
        changes = self.plan.changes.file_changes
        classify_changes(changes, request.conf_dir, request.bin_dirs, files, folders, self.view)

    def _has_use(self, finding: Finding, files: Sequence[ConfFile]) -> bool:
        """Tell whether attachments of this collection use a directory that no runtime reads, or an error says so."""
        if finding.code != "conf_dir_unused":
            return False
        names = {file.network for file in files if file.network}
        return self.request.ensure_effective is not None or any(map(self._is_attached, names))

    def _tell_nomad(self, effective: Effective) -> None:
        readers = filter(effective.reads_here, effective.runtimes)
        pids = [runtime.pid for runtime in readers if runtime.name == "nomad" and runtime.pid]
        if pids and "nomad" not in self.plan.restarting:
            from ..runtimes.nomad import reload_step

            changes = any(step.kind not in ("leave", "configure") for step in self.plan.steps)
            self.plan.reload = reload_step(pids[0], changes)
            if self.plan.reload is not None:
                self.plan.add(self.plan.reload)

    # ---- the file of a network

    def _target_of(self, desired: WantedNetwork) -> str:
        """Return the name of the file for the network."""
        if desired.file:
            return desired.file
        if desired.priority is None:
            managed = self.state.managed_files(desired.name)
            if managed:
                return managed[0].name
            for path, entry in self.state.manifest.networks.items():
                # The file was deleted, and is written again under the name that it had.
                if entry["network"] == desired.name and os.path.dirname(path) == self.request.conf_dir:
                    return os.path.basename(path)
            asides = self.state.managed_asides(desired.name)
            if asides:
                return os.path.basename(str(asides[0][1]["path"]))
        return desired.default_file()

    def _check_targets(self, targets: Dict[str, str]) -> None:
        users: Dict[str, str] = {}
        for network, target in targets.items():
            if target in users:
                self.state.error(
                    "file_in_use",
                    f"the networks {users[target]!r} and {network!r} would share this file; give one of them another "
                    "'file' or 'priority'",
                    target,
                )
            users[target] = network

    def _may_use(self, desired: WantedNetwork, target: str, standing: Optional[ConfFile]) -> bool:
        """Note every reason that prevents writing the network to *target*; True if there is none."""
        before = len(self.plan.problems)
        for foreign in self.state.unmanaged_files(desired.name):
            # With `exclusive` or `replace`, such a file is set aside.
            if (foreign.name != target or not desired.file) and not (self.request.exclusive or desired.replace):
                self.state.error("duplicate_name", _duplicate_text(desired, foreign), foreign.name)
        if target in self.state.vacated:
            return len(self.plan.problems) == before
        if standing is None and os.path.lexists(self.plan.path(target)):
            self.state.error("not_regular", "a directory is in the place of the network's file; remove it", target)
        elif standing is not None and target not in self.state.managed:
            self._check_foreign_target(desired, target, standing)
        elif standing is not None:
            self._check_own_target(desired, target)
        return len(self.plan.problems) == before

    def _check_foreign_target(self, desired: WantedNetwork, target: str, standing: ConfFile) -> None:
        if standing.is_link or standing.is_special:
            text = "is an unmanaged link or special file; remove it, or choose another 'file'"
            self.state.error("not_regular", text, target)
        elif not desired.file:
            if standing.network != desired.name:
                self.state.error(
                    "foreign_file",
                    f"this unmanaged file is in the place of the network {desired.name!r}; adopt it with 'file: "
                    f"{target}' (its original is kept), or choose another 'priority' or 'file'",
                    target,
                )
        elif standing.network not in (None, desired.name) and not self.request.force:
            self.state.error(
                "file_in_use",
                f"this unmanaged file holds the network {standing.network!r}; choose another 'file' for "
                f"{desired.name!r}, or adopt it with 'force: true' (its original is kept)",
                target,
            )
        else:
            self.state.refuse_owned(standing, "adopted")

    def _check_own_target(self, desired: WantedNetwork, target: str) -> None:
        holder = self.state.managed[target]
        if holder == desired.name:
            return
        if any(other.present and other.name == holder for other in self.request.networks) or not desired.file:
            self.state.error(
                "file_in_use",
                f"this file holds the managed network {holder!r}, so {desired.name!r} cannot have it; choose another "
                f"'file' or 'priority', or move {holder!r} to another file in an earlier task",
                target,
            )

    # ---- networks that must exist

    def _put(self, desired: WantedNetwork, target: str) -> None:
        """Plan the steps after which *target* holds the network."""
        managed = self.state.managed_files(desired.name)
        if not managed and self._taken_by_cilium(desired):
            return
        standing = self.state.standing(target)
        if not self._may_use(desired, target, standing):
            return
        plan = self.plan
        # Before the file itself, whose write makes runtimes notice them.
        before, after = self._drop_ins().put(desired, target) if desired.drop_ins is not None else (None, None)
        source = standing if standing in managed else (managed[0] if managed else None)
        action, held = "none", ""
        if standing is not None and standing not in managed:
            if target in self.state.managed:
                # `file` gives this managed file to another network, which removes the old one.
                held = self.state.managed[target]
                self.state.refuse_attached(held, target, f"the file would go to the network {desired.name!r}")
            else:
                plan.changes.adopt(target, desired.name, standing.text or b"")
                self.state.disturbed.append(standing)
                action = "adopted"
        if source is not None and source.name != target:
            plan.changes.rename(source.name, target, desired.name)
            self.state.after.pop(source.name, None)
            self.state.will_hold(target, source.text)
            action = "renamed" if action == "none" else action
        elif source is None and standing is None:
            source, action = self._brought_back(desired.name, target)
        action = self._write(desired, target, source or standing, held, action)
        if after is not None or self.state.manifest.networks.get(plan.path(target), {}).get("unread"):
            action = self._write_again(desired, target, source or standing, action, (before, after))
        for extra in managed:
            if extra is not source:
                plan.changes.remove(extra.name, extra.text, f"its network is in {target}")
                self.state.after.pop(extra.name, None)
        self.state.report(desired, plan.path(target), action)

    def _write(self, desired: WantedNetwork, target: str, current: Optional[ConfFile], held: str, action: str) -> str:
        """Plan the content and attributes of a file that has its name; return the action to report.

        *held* is the network that loses its managed file, "" for none.
        """
        plan, wish = self.state.plan, self.request.attributes
        text = self._keep_injections(desired, target, current)
        if current is None:
            users = ""
            if all(file.network != desired.name for file in self.state.files.values()):
                # The file may have been deleted while containers were attached.
                why = "its attachments were made with another configuration"
                users = self.state.refuse_attached(desired.name, target, why, text)
            self.state.will_hold(target, text)
            plan.changes.put(target, desired.name, None, text, replaces=False, users=users)
            return "created"
        if current.is_link or not same_json(current.text, text):
            renamed = not held and current.network is not None and current.network != desired.name
            users = ""
            if renamed:
                # Firewall rules and leases of containers are filed under the network's name.
                why = f"its name would change from {current.network!r} to {desired.name!r}"
                users = self.state.refuse_attached(str(current.network), target, why)
            if not held:
                users = self.state.refuse_move(desired.name, target, moved(current.text, text), text) or users
            self.state.will_hold(target, text)
            plan.changes.put(target, desired.name, current.text, text, replaces=True, users=users)
            return "updated" if action == "none" else action
        if (current.mode, current.uid, current.gid) != (wish.mode, wish.uid, wish.gid):
            self.state.will_hold(target, current.text)
            plan.changes.set_attributes(target, Attributes(current.mode, current.uid, current.gid))
            return "attributes" if action == "none" else action
        return action

    def _write_again(
        self, desired: WantedNetwork, target: str, current: Optional[ConfFile], action: str, states: Tuple[Any, Any]
    ) -> str:
        """Plan to write a file again if no step of the plan makes runtimes notice its drop-ins."""
        if any(change.fills == target for _step, change in self.plan.changes.file_changes):
            return action
        text = current.text if current is not None and current.text is not None else desired.text
        self.state.will_hold(target, text)
        self.plan.changes.write_again(target, text, states)
        return "updated" if action == "none" else action

    def _brought_back(self, network: str, target: str) -> Tuple[Optional[ConfFile], str]:
        """Plan to restore a managed file that was set aside; return it, with the action to report."""
        asides = self.state.managed_asides(network)
        if not asides:
            return None, "none"
        aside, record = asides[0]
        file = self.state.read_aside(aside, target)
        self.plan.changes.bring_back(os.path.basename(aside), target, record, reason="its network is wanted again")
        self.state.will_hold(target, file.text)
        return file, "restored"

    # ---- what running programs do to managed files: it is reported, and left

    def _keep_injections(self, desired: WantedNetwork, target: str, current: Optional[ConfFile]) -> bytes:
        """Return the text to write: the requested conflist, with the plugins that a running program has added to it."""
        if current is None or self.request.force:
            return desired.text
        plugins = injected(current.text, desired.text, lambda kind: self.state.owners.injector(kind) is not None)
        if not plugins:
            return desired.text
        text = with_injected(desired.text, plugins)
        added = ", ".join(text_of(plugin, "type") for plugin in plugins)
        shown = shown_change(text, desired.text)
        self.plan.changes.leave(target, f"a running program has added {added}", *shown)
        for plugin in plugins:
            kind = text_of(plugin, "type")
            owner = self.state.owners.injector(kind)
            if owner is not None:
                self.state.warning(
                    "foreign_owner",
                    f"{owner}, has added its plugin {kind} to this conflist, so the plugin stays; to get rid of it, "
                    f"{owner.owner.setting} ('force: true' removes it only until it is added again)",
                    target,
                )
        return text

    def _taken_by_cilium(self, desired: WantedNetwork) -> bool:
        """Tell whether Cilium has renamed the managed file and would do so again; if so, note it and plan nothing."""
        taken = [
            path
            for path, entry in sorted(self.state.manifest.networks.items())
            if entry["network"] == desired.name
            and os.path.dirname(path) == self.request.conf_dir
            and os.path.lexists(path + CILIUM_SUFFIX)
        ]
        cilium = self.state.owners.named("Cilium") if taken and not self.request.force else None
        if cilium is None:
            return False
        path = taken[0]
        self.plan.changes.leave(
            os.path.basename(path), "Cilium has renamed it", {"path": path + CILIUM_SUFFIX}, {"path": path}
        )
        self.state.warning(
            "foreign_owner",
            f"{cilium}, has renamed this file to {os.path.basename(path) + CILIUM_SUFFIX}, and would do so again; "
            f"{_NOT_EXCLUSIVE} and run again",
            os.path.basename(path),
        )
        self.state.report(desired, path, "foreign")
        return True

    def _warn_of_cilium(self) -> None:
        """Warn if Cilium has renamed files of other owners here and will probably rename new ones."""
        new = sorted(name for name in self.state.after if name not in self.state.files)
        names = names_in(self.request.conf_dir) if new else []
        taken = next((name for name in names if name.endswith(CILIUM_SUFFIX)), "")
        cilium = self.state.owners.named("Cilium") if taken and not self.request.force else None
        if cilium is not None:
            self.state.warning(
                "foreign_owner",
                f"{cilium}, has renamed other files here, such as {taken}, and may rename this one; {_NOT_EXCLUSIVE}",
                new[0],
            )


def _duplicate_text(desired: WantedNetwork, foreign: ConfFile) -> str:
    if foreign.kind == "conflist" and not foreign.is_link:
        return (
            f"this unmanaged file already has a network named {desired.name!r}, and runtimes load the one that sorts "
            f"first; adopt it with 'file: {foreign.name}' (its original is kept), set it aside with 'replace: true', "
            "or choose another name"
        )
    return (
        f"this unmanaged file already has a network named {desired.name!r}, and cannot be adopted because it is a link "
        "or not a .conflist; replace it with 'replace: true' (it is set aside, and 'state: restored' brings it back), "
        "or choose another name"
    )
