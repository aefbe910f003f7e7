# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the networks that are wanted and the directory as it is, to the plan that leads from one to the other."""

from __future__ import annotations

import os
from typing import Dict, List, Optional, Sequence, Set

from .atomic import Attributes
from .confdir import ConfFile, drop_ins, parse, scan
from .confplan import ConfPlan
from .confrules import directory_problems
from .errors import HostError
from .manifest import Manifest
from .netchange import moves_addresses, same_json
from .netusers import attachments_of
from .plan import DISRUPTIVE, SAFE
from .pluginuse import Binaries, check_uses, uses_of
from .problems import ERROR, WARNING, errors_of, place, problem, summary
from .secrets import mask

DEFAULT_PRIORITY = 10


class Wanted:
    """One network of the request: ``text`` is the rendered list (empty for ``present=False``)."""

    __slots__ = ("file", "name", "present", "priority", "text")

    def __init__(
        self, name: str, present: bool, text: bytes = b"", file: Optional[str] = None, priority: Optional[int] = None
    ) -> None:
        self.name = name
        self.present = present
        self.text = text
        self.file = file
        self.priority = priority

    def default_file(self) -> str:
        return "%02d-%s.conflist" % (DEFAULT_PRIORITY if self.priority is None else self.priority, self.name)


class Request:
    """What the module was asked for. ``levels``: those of ``plugins`` and ``directory`` that apply."""

    def __init__(
        self,
        networks: Sequence[Wanted],
        conf_dir: str,
        bin_dirs: Sequence[str],
        cache_dir: str,
        attributes: Attributes,
        levels: Sequence[str] = ("plugins", "directory"),
        force: bool = False,
        tolerate_missing: bool = False,
    ) -> None:
        self.networks = list(networks)
        self.conf_dir = conf_dir
        self.bin_dirs = list(bin_dirs)
        self.cache_dir = cache_dir
        self.attributes = attributes
        self.levels = set(levels)
        self.force = force
        self.tolerate_missing = tolerate_missing


def make_plan(request: Request) -> ConfPlan:
    """Return the plan. HostError with all errors (``problems``) if one of them forbids to go on."""
    return _Planner(request).make()


class _Planner:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.manifest = Manifest()
        self.plan = ConfPlan(request.conf_dir, self.manifest, request.attributes)
        self.files = {file.name: file for file in scan(request.conf_dir)}
        # Name of each file -> network that it will hold; becomes the planned state, for the level `directory`.
        self.after: Dict[str, Optional[str]] = {name: file.network for name, file in self.files.items()}
        self.removed_first: Set[str] = set()

    def make(self) -> ConfPlan:
        request = self.request
        present = [wanted for wanted in request.networks if wanted.present]
        absent = [wanted for wanted in request.networks if not wanted.present]
        if present and not os.path.isdir(request.conf_dir):
            self.plan.make_directory()
        targets = {wanted.name: self._target(wanted) for wanted in present}
        self._check_targets(targets)
        # A removal comes last, so that a runtime is not left without any network; except where its name is needed.
        early = [w for w in absent if any(file.name in targets.values() for file in self._own_files(w.name))]
        for wanted in early:
            self._remove(wanted)
        for wanted in present:
            self._put(wanted, targets[wanted.name])
        for wanted in absent:
            if wanted not in early:
                self._remove(wanted)
        if "plugins" in request.levels:
            self._check_plugins(present, targets)
        if "directory" in request.levels:
            self.plan.problems.extend(
                directory_problems(
                    request.conf_dir, list(self.files.values()), self.after, {n for n in self.after if self._is_ours(n)}
                )
            )
        self._finish()
        return self.plan

    def _finish(self) -> None:
        problems = mask(self.plan.problems)
        errors = errors_of(problems)
        if errors:
            raise HostError(summary(problems), code=errors[0]["code"], problems=problems)
        order = {wanted.name: index for index, wanted in enumerate(self.request.networks)}
        self.plan.networks.sort(key=lambda entry: order[entry["name"]])
        self.plan.problems = problems
        for entry in problems:
            if entry["level"] == WARNING:
                self.plan.warn(entry["code"], place(entry) + entry["message"])

    def _error(self, code: str, message: str, file: str) -> None:
        self.plan.problems.append(problem(ERROR, code, message, self.plan.path(file)))

    # ---- whose file

    def _is_ours(self, name: str) -> bool:
        return self.plan.path(name) in self.manifest.networks

    def _own_files(self, network: str) -> List[ConfFile]:
        """Return the files that we wrote for *network*, whatever is in them now."""
        return [
            file
            for name, file in self.files.items()
            if self.manifest.networks.get(self.plan.path(name), {}).get("network") == network
        ]

    def _foreign_files(self, network: str) -> List[ConfFile]:
        return [file for name, file in self.files.items() if file.network == network and not self._is_ours(name)]

    # ---- present

    def _target(self, wanted: Wanted) -> str:
        if wanted.file:
            return wanted.file
        if wanted.priority is None:
            own = self._own_files(wanted.name)
            if own:
                return own[0].name
            for path, entry in self.manifest.networks.items():
                # The file was deleted by somebody: it comes back under the name that it had.
                if entry["network"] == wanted.name and os.path.dirname(path) == self.request.conf_dir:
                    return os.path.basename(path)
        return wanted.default_file()

    def _check_targets(self, targets: Dict[str, str]) -> None:
        users: Dict[str, str] = {}
        for network, target in targets.items():
            if target in users:
                self._error(
                    "file_in_use",
                    "the networks %r and %r would share this file; give one of them another 'file' or 'priority'"
                    % (users[target], network),
                    target,
                )
            users[target] = network

    def _put(self, wanted: Wanted, target: str) -> None:
        own = self._own_files(wanted.name)
        standing = self.files.get(target)
        if not self._may_use(wanted, target, standing):
            return
        plan = self.plan
        source = standing if standing in own else (own[0] if own else None)
        action = "none"
        held = ""
        if standing is not None and standing not in own and target not in self.removed_first:
            if self._is_ours(target):
                # `file` gives this file of ours to another network: the old one is gone after that.
                held = self.manifest.networks[plan.path(target)]["network"]
                self._refuse_attached(held, target, "the file is given to the network %r" % wanted.name)
            else:
                plan.adopt(target, wanted.name, standing.text or b"")
                action = "adopted"
        if source is not None and source.name != target:
            plan.rename(source.name, target, wanted.name)
            self._moved(source.name, target, wanted.name)
            action = "renamed" if action == "none" else action
        current = source or (standing if target not in self.removed_first else None)
        action = self._write(wanted, target, current, bool(held), action)
        self.after[target] = wanted.name
        for extra in own:
            if extra is not source:
                plan.remove(extra.name, extra.text)
                self.after.pop(extra.name, None)
        plan.networks.append({"name": wanted.name, "path": plan.path(target), "action": action})

    def _write(self, wanted: Wanted, target: str, current: Optional[ConfFile], renames: bool, action: str) -> str:
        """Plan what makes the file right once it has its name; return the action to report."""
        plan, wish = self.plan, self.request.attributes
        if current is None:
            plan.put(target, wanted.name, None, wanted.text, SAFE, replaces=False)
            return "created"
        if current.is_link or not same_json(current.text, wanted.text):
            moved = renames or moves_addresses(current.text, wanted.text)
            if moved and not renames:
                self._refuse_attached(wanted.name, target, "its bridge, subnet or ranges change")
            step_class = DISRUPTIVE if moved else SAFE
            plan.put(target, wanted.name, current.text, wanted.text, step_class, replaces=True)
            return "updated" if action == "none" else action
        if (current.mode, current.uid, current.gid) != (wish.mode, wish.uid, wish.gid):
            plan.set_attributes(target, Attributes(current.mode, current.uid, current.gid))
            return "attributes" if action == "none" else action
        return action

    def _moved(self, old: str, new: str, network: str) -> None:
        self.after.pop(old, None)
        self.after[new] = network

    def _may_use(self, wanted: Wanted, target: str, standing: Optional[ConfFile]) -> bool:
        """Note every reason against putting the network into *target*; True if there is none."""
        before = len(self.plan.problems)
        for foreign in self._foreign_files(wanted.name):
            if foreign.name != target or not wanted.file:
                self._error("duplicate_name", self._duplicate_text(wanted, foreign), foreign.name)
        path = self.plan.path(target)
        if standing is None and os.path.lexists(path):
            self._error("not_regular", "a directory stands where the network's file belongs; remove it", target)
        elif standing is not None and not self._is_ours(target) and standing.network != wanted.name:
            self._check_foreign_target(wanted, target, standing)
        elif standing is not None and self._is_ours(target):
            self._check_own_target(wanted, target)
        return len(self.plan.problems) == before

    def _duplicate_text(self, wanted: Wanted, foreign: ConfFile) -> str:
        if foreign.kind == "conflist" and not foreign.is_link:
            return (
                "this file, which is not ours, already has a network named %r, and of two a runtime takes the one that "
                "sorts first; adopt it with 'file: %s' (its original is kept), or choose another name"
                % (wanted.name, foreign.name)
            )
        return (
            "this file, which is not ours and cannot hold a list of ours, already has a network named %r; set it aside "
            "first with 'state: absent' and 'force: true', or choose another name" % wanted.name
        )

    def _check_foreign_target(self, wanted: Wanted, target: str, standing: ConfFile) -> None:
        if standing.is_link:
            self._error("not_regular", "is a link that is not ours; remove it, or choose another 'file'", target)
        elif not wanted.file:
            self._error(
                "foreign_file",
                "this file is not ours and stands where the network %r belongs; adopt it with 'file: %s' (its original "
                "is kept), or choose another 'priority' or 'file'" % (wanted.name, target),
                target,
            )
        elif standing.network and not self.request.force:
            self._error(
                "file_in_use",
                "this file, which is not ours, holds the network %r; choose another 'file' for %r, or take it over "
                "with 'force: true' (its original is kept)" % (standing.network, wanted.name),
                target,
            )

    def _check_own_target(self, wanted: Wanted, target: str) -> None:
        holder = self.manifest.networks[self.plan.path(target)]["network"]
        if holder == wanted.name or target in self.removed_first:
            return
        if any(other.present and other.name == holder for other in self.request.networks) or not wanted.file:
            self._error(
                "file_in_use",
                "this file holds our network %r, so %r cannot have it; choose another 'file' or 'priority', or move %r "
                "in a task before this one" % (holder, wanted.name, holder),
                target,
            )

    # ---- absent

    def _remove(self, wanted: Wanted) -> None:
        plan = self.plan
        own, foreign = self._own_files(wanted.name), self._foreign_files(wanted.name)
        if foreign and not self.request.force:
            for file in foreign:
                self._error(
                    "foreign_file",
                    "the network %r is in this file, which is not ours, so it stays; 'force: true' sets it aside (it "
                    "is renamed within the directory, never deleted)" % wanted.name,
                    file.name,
                )
            return
        for file in own + foreign:
            self._refuse_attached(wanted.name, file.name, "the network is removed")
            if file in own:
                plan.remove(file.name, file.text)
                self.removed_first.add(file.name)
            else:
                plan.set_aside(file.name, wanted.name)
            self.after.pop(file.name, None)
        path = plan.path((own + foreign)[0].name) if own or foreign else None
        plan.networks.append({"name": wanted.name, "path": path, "action": "removed" if path else "none"})

    def _refuse_attached(self, network: str, file: str, why: str) -> None:
        if self.request.force:
            return
        attached = attachments_of(self.request.cache_dir, network)
        if attached:
            self._error(
                "attachments_exist",
                "%s, but the network %r has %d attachments in %s: %s; detach them first (podwire.cni.cni_attach with "
                "'state: absent'), or set 'force: true' and leave them as they are"
                % (why, network, len(attached), self.request.cache_dir, ", ".join(attached)),
                file,
            )

    # ---- level `plugins`

    def _check_plugins(self, present: Sequence[Wanted], targets: Dict[str, str]) -> None:
        binaries = Binaries(self.request.bin_dirs, self.manifest)
        for wanted in present:
            target = self.plan.path(targets[wanted.name])
            file = ConfFile(targets[wanted.name], target)
            try:
                parse(file, wanted.text)
            except HostError as error:
                self._error("not_loadable", "libcni cannot load this network: %s" % error.msg, file.name)
                continue
            uses = []
            for index, plugin in enumerate(file.plugins):
                uses.extend(uses_of(target, "/plugins/%d" % index, plugin))
            extras = [] if file.inlined_only else drop_ins(self.request.conf_dir, wanted.name)
            for extra in extras:
                self._note_drop_in(extra, wanted.name)
                for plugin in extra.plugins:
                    uses.extend(uses_of(extra.path, "", plugin))
            self.plan.problems.extend(
                check_uses(binaries, wanted.name, file.cni_version, uses, self.request.tolerate_missing)
            )
        binaries.forget_missing()

    def _note_drop_in(self, file: ConfFile, network: str) -> None:
        if file.error:
            text = "%s; because of it no runtime with libcni 1.3 or later loads the network %r: mend or remove it"
            self.plan.problems.append(problem(ERROR, "drop_in_broken", text % (file.error, network), file.path))
            return
        text = "libcni 1.3 and later append this plugin to the network %r, older ones do not; it is not ours and stays"
        self.plan.problems.append(problem(WARNING, "drop_in", text % network, file.path))
