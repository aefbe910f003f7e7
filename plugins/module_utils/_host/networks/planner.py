# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the networks that are wanted and the directory as it is, to the plan that leads from one to the other."""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from ..binaries.packages import DPKG, packages_of
from ..binaries.usable import Binaries
from ..confdir import ConfFile
from ..errors import HostError
from ..files import Attributes
from ..manifest import Manifest
from ..plan import DISRUPTIVE, SAFE
from ..problems import WARNING, errors_of, place, strict, summary
from ..runtimes.confirm import confirm
from ..runtimes.effective import Effective
from ..secrets import mask
from ..trust import untrusted
from .difference import moves_addresses, readable_secret, same_json, shown_conflist
from .injected import injected, with_injected
from .owners import CILIUM_SUFFIX
from .plugins import check_plugins
from .request import ConfRequest, WantedNetwork
from .rules import directory_problems
from .state import ConfState
from .steps import ConfPlan
from .view import ConfView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtimes.change import RuntimeSettings
    from ..runtimes.planner import Setup

_PACKAGE_SETTINGS = {
    "cri-o": "; CRI-O takes the network that cni_default_network in crio.conf names, else the first one",
    "podman": "; podman takes the network that default_network in containers.conf names, else one named 'podman'",
}
_KUBECONFIG = re.compile(rb"""["']?kind["']?\s*:\s*["']?Config\b""")


def plan_networks(request: ConfRequest) -> ConfPlan:
    """Return the plan. HostError with all errors (``problems``) if one of them forbids to go on."""
    return ConfPlanner(request).make()


class ConfPlanner:
    """Makes one plan. Reads files and asks plugins (VERSION) and runtimes; changes nothing."""

    def __init__(self, request: ConfRequest) -> None:
        self.request = request
        self.state = ConfState(request, Manifest())
        self.plan = self.state.plan
        self.binaries = Binaries(request.bin_dirs, self.state.manifest)

    def make(self) -> ConfPlan:
        request, state = self.request, self.state
        present = [wanted for wanted in request.networks if wanted.present]
        if present and not os.path.isdir(request.conf_dir):
            self.plan.make_directory()
        targets = {wanted.name: state.target_of(wanted) for wanted in present}
        state.check_targets(targets)
        self._plan_steps(present, targets)
        planned = state.planned()
        if "plugins" in request.levels:
            wanted_names = set(targets.values())
            check_plugins(state.plan, self.binaries, [f for f in planned if f.name in wanted_names], request)
        self._test_access(present, targets)
        if "directory" in request.levels:
            before = list(state.files.values())
            view = ConfView(request.conf_dir, before, planned, state.ours_after(), set(targets.values()))
            self.plan.problems.extend(directory_problems(view, self.binaries))
            self._note_packages()
        self.binaries.forget_missing()
        self._try(self._find_effective, planned)
        self._finish()
        return self.plan

    def _try(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a part of the planning; in check mode, what it raises does not hide the rest."""
        try:
            function(*arguments)
        except HostError as error:
            self.plan.refuse(error, self.request.tolerate_missing)

    def _test_access(self, present: Sequence[WantedNetwork], targets: Dict[str, str]) -> None:
        """Warn of secrets that every user may read, and of a directory that others than root may write to."""
        for wanted in present:
            path = self.plan.path(targets[wanted.name])
            self.plan.problems += readable_secret(wanted.text, self.request.attributes.mode, path)
        self.plan.problems += untrusted([self.request.conf_dir])

    def _plan_steps(self, present: Sequence[WantedNetwork], targets: Dict[str, str]) -> None:
        """Plan what is to be done: removals last, so that a runtime is not left without any network.

        Except where what goes stands in the way.
        """
        state = self.state
        texts = {wanted.name: wanted.text for wanted in present}
        absent = [wanted for wanted in self.request.networks if not wanted.present and not wanted.restored]
        in_the_way = [w for w in absent if any(file.name in targets.values() for file in state.own_files(w.name))]
        for wanted in in_the_way:
            self._try(self._remove, wanted)
        if self.request.exclusive:
            self._try(self._make_room, present, targets, texts)
        for wanted in present:
            self._try(self._put, wanted, targets[wanted.name])
        kept: Set[str] = set(targets.values())
        kept |= self._restore()
        for wanted in absent:
            if wanted not in in_the_way:
                self._try(self._remove, wanted)
        if self.request.exclusive:
            self._try(self._set_aside_others, kept, texts)
        self._warn_of_cilium()

    def _restore(self) -> Set[str]:
        """Plan to bring back what was before; return the names of the files that then stay."""
        restored = [wanted for wanted in self.request.networks if wanted.restored]
        if not restored:
            return set()
        # Seldom asked for, so it is compiled only then.
        from .restoration import restore_network

        return set().union(*(restore_network(self.state, wanted) for wanted in restored))

    def _finish(self) -> None:
        problems = mask(strict(self.plan.problems) if self.request.strict else self.plan.problems)
        errors = errors_of(problems)
        if errors:
            error = HostError(summary(problems), code=errors[0]["code"], problems=problems)
            self.plan.refuse(error, self.request.tolerate_missing)
        self.plan.networks = self.state.reports()
        self.plan.problems = problems
        for entry in problems:
            if entry["level"] == WARNING:
                self.plan.warn(entry["code"], place(entry) + entry["message"])

    def _find_effective(self, files: Sequence[ConfFile]) -> None:
        request = self.request
        setup = self._setup(request.settings) if request.settings else None
        effective = Effective(
            request.runtimes,
            request.conf_dir,
            request.bin_dirs,
            files,
            self.state.manifest,
            request.tolerate_missing,
            setup.prepare if setup else None,
        )
        self.plan.effective = mask(effective.rows())
        restarting = [row["runtime"] for row in self.plan.configured if row["restart"]]
        self.plan.confirm = lambda: confirm(effective, restarting)
        if request.ensure_effective is not None:
            problems = effective.ensure(request.ensure_effective)
            if setup and not problems:
                problems = setup.not_loaded(request.ensure_effective)
            self.plan.problems.extend(problems)

    def _setup(self, settings: RuntimeSettings) -> Setup:
        # Most calls leave the runtimes as they are; their code is not compiled then.
        from ..runtimes.planner import Setup

        return Setup(self.plan, self.plan.configured, settings, self.request.tolerate_missing)

    # ---- networks that shall be there

    def _put(self, wanted: WantedNetwork, target: str) -> None:
        """Plan what makes *target* hold the network."""
        own = self.state.own_files(wanted.name)
        if not own and self._taken_by_cilium(wanted):
            return
        standing = self.state.standing(target)
        if not self.state.may_use(wanted, target, standing):
            return
        plan = self.plan
        source = standing if standing in own else (own[0] if own else None)
        action, held = "none", ""
        if standing is not None and standing not in own:
            if self.state.is_ours(target):
                # `file` gives this file of ours to another network: the old one is gone after that.
                held = self.state.manifest.networks[standing.path]["network"]
                self.state.refuse_attached(held, target, "the file is given to the network %r" % wanted.name)
            else:
                plan.adopt(target, wanted.name, standing.text or b"")
                self.state.disturbed.append(standing)
                action = "adopted"
        if source is not None and source.name != target:
            plan.rename(source.name, target, wanted.name)
            self.state.moved(source.name, target, wanted.name, source.text)
            action = "renamed" if action == "none" else action
        elif source is None and standing is None:
            source, action = self._brought_back(wanted.name, target)
        action = self._write(wanted, target, source or standing, held, action)
        for extra in own:
            if extra is not source:
                plan.remove(extra.name, extra.text)
                self.state.after.pop(extra.name, None)
        self.state.report(wanted, plan.path(target), action)

    def _write(self, wanted: WantedNetwork, target: str, current: Optional[ConfFile], held: str, action: str) -> str:
        """Plan what makes the file right once it has its name; return the action to report.

        *held* is the network whose file of ours is given away, "" for none.
        """
        plan, wish = self.state.plan, self.request.attributes
        text = self._keep_injections(wanted, target, current)
        self.state.after[target] = wanted.name
        if current is None:
            self.state.contents[target] = text
            plan.put(target, wanted.name, None, text, SAFE, replaces=False)
            return "created"
        if current.is_link or not same_json(current.text, text):
            renamed = not held and current.network is not None and current.network != wanted.name
            moved = moves_addresses(current.text, text)
            if renamed:
                # Rules and reservations of containers go by the network's name.
                why = "its name changes from %r to %r" % (current.network, wanted.name)
                self.state.refuse_attached(str(current.network), target, why)
            if moved and not held:
                self.state.refuse_attached(wanted.name, target, "its bridge, subnet or ranges change", text)
            step_class = DISRUPTIVE if moved or renamed or held else SAFE
            self.state.contents[target] = text
            plan.put(target, wanted.name, current.text, text, step_class, replaces=True)
            return "updated" if action == "none" else action
        if (current.mode, current.uid, current.gid) != (wish.mode, wish.uid, wish.gid):
            plan.set_attributes(target, Attributes(current.mode, current.uid, current.gid))
            return "attributes" if action == "none" else action
        return action

    def _brought_back(self, network: str, target: str) -> Tuple[Optional[ConfFile], str]:
        """Plan to bring a file of ours back from aside; return it, with the action to report."""
        found = self.state.own_aside(network)
        if found is None:
            return None, "none"
        aside, record = found
        file = self.state.read_aside(aside, target)
        self.plan.bring_back(os.path.basename(aside), target, record)
        self.state.contents[target] = file.text or b""
        return file, "restored"

    # ---- networks that shall not be there, and what `exclusive` sets aside

    def _remove(self, wanted: WantedNetwork) -> None:
        """Plan to remove our files of the network; those of others go aside with force, or with `exclusive`."""
        plan = self.plan
        own, foreign = self.state.own_files(wanted.name), self.state.foreign_files(wanted.name)
        if foreign and not self.request.force and not self.request.exclusive:
            for file in foreign:
                self.state.error(
                    "foreign_file",
                    "the network %r is in this file, which is not ours, so it stays; 'force: true' sets it aside (it "
                    "is renamed within the directory, never deleted)" % wanted.name,
                    file.name,
                )
            return
        paths = [file.path for file in own + foreign]
        for file in own:
            self.state.refuse_attached(wanted.name, file.name, "the network is removed")
            plan.remove(file.name, file.text)
            self.state.gone(file)
        for file in foreign:
            self._set_aside(file)
        for aside, record in sorted(self.state.records().items()):
            if record.get("managed") and record["network"] == wanted.name:
                plan.remove_aside(os.path.basename(aside))
                paths.append(record["path"])
        path = paths[0] if paths else None
        self.state.report(wanted, path, "removed" if path else "none")

    def _set_aside_others(self, kept: Iterable[str], texts: Mapping[str, bytes]) -> None:
        """Plan to set aside every file that runtimes read and that is not of the names *kept*.

        *texts* are the networks that will be there, by name.
        """
        keep = set(kept)
        for name, file in self.state.files.items():
            if name in self.state.after and name not in keep and _may_go(file):
                self._set_aside(file, texts)

    def _make_room(
        self, present: Sequence[WantedNetwork], targets: Mapping[str, str], texts: Mapping[str, bytes]
    ) -> None:
        """Plan to set aside files of others that stand where networks of the request belong, unless they are
        adopted.

        *targets* are the names of the networks' files, *texts* as for :meth:`_set_aside_others`.
        """
        for wanted in present:
            standing = self.state.standing(targets[wanted.name])
            if standing is not None and not wanted.file and not self.state.is_ours(standing.name) and _may_go(standing):
                self._set_aside(standing, texts)

    def _set_aside(self, file: ConfFile, texts: Optional[Mapping[str, bytes]] = None) -> None:
        """Plan to set one file aside, or note what forbids it. *texts* as for :meth:`_set_aside_others`."""
        texts = texts or {}
        if self.state.refuse_owned(file, "set aside"):
            return
        if file.network is not None and file.network in texts:
            if moves_addresses(file.text, texts[file.network]):
                why = "its bridge, subnet or ranges change"
                self.state.refuse_attached(file.network, file.name, why, texts[file.network])
        elif file.network:
            self.state.refuse_attached(file.network, file.name, "the network is set aside")
        managed = self.state.manifest.networks[file.path] if self.state.is_ours(file.name) else None
        network = managed["network"] if managed else file.network
        self.plan.set_aside(file.name, network or "", managed)
        if managed is None:
            self.state.disturbed.append(file)
        self.state.gone(file)

    def _note_packages(self) -> None:
        """Say of which packages the files of others are that the plan adopts or sets aside."""
        found = packages_of([file.path for file in self.state.disturbed])
        for file in self.state.disturbed:
            package = found.get(file.path)
            if package is None:
                continue
            future = (
                "leaves it where it is put" if package.manager == DPKG else "brings the file back at its next update"
            )
            setting = next((text for name, text in _PACKAGE_SETTINGS.items() if package.name.startswith(name)), "")
            text = "this file is of the package %s %s, which %s%s" % (package.name, package.version, future, setting)
            self.state.warning("package_file", text, file.name)

    # ---- what running daemons do to managed files: it is reported, and left

    def _keep_injections(self, wanted: WantedNetwork, target: str, current: Optional[ConfFile]) -> bytes:
        """Return the text to write: what is wanted, and what a running daemon has put into it."""
        if current is None or self.request.force:
            return wanted.text
        plugins = injected(current.text, wanted.text, lambda kind: self.state.owners.injector(kind) is not None)
        if not plugins:
            return wanted.text
        text = with_injected(wanted.text, plugins)
        self.plan.leave(target, shown_conflist(text), shown_conflist(wanted.text))
        for plugin in plugins:
            owner = self.state.owners.injector(plugin["type"])
            if owner is not None:
                self.state.warning(
                    "foreign_owner",
                    "%s has put its plugin %s into this list and is running (%s, process %d), so the plugin stays; if "
                    "you do not want it, %s (or remove it with 'force: true', and it will be back)"
                    % (owner.owner.name, plugin["type"], owner.process, owner.pid, owner.setting),
                    target,
                )
        return text

    def _taken_by_cilium(self, wanted: WantedNetwork) -> bool:
        """Note that Cilium has renamed our file, and would do so again; True if it has, and nothing is to be done."""
        taken = [
            path
            for path, entry in sorted(self.state.manifest.networks.items())
            if entry["network"] == wanted.name
            and os.path.dirname(path) == self.request.conf_dir
            and os.path.lexists(path + CILIUM_SUFFIX)
        ]
        cilium = self.state.owners.named("Cilium") if taken and not self.request.force else None
        if cilium is None:
            return False
        path = taken[0]
        self.plan.leave(os.path.basename(path), {"path": path + CILIUM_SUFFIX}, {"path": path})
        self.state.warning(
            "foreign_owner",
            "Cilium, which is running (%s, process %d), has renamed this file to %s, and would do so again; set "
            "cni.exclusive=false among its Helm values (cni-exclusive in the ConfigMap cilium-config) and run again"
            % (cilium.process, cilium.pid, os.path.basename(path) + CILIUM_SUFFIX),
            os.path.basename(path),
        )
        self.state.report(wanted, path, "foreign")
        return True

    def _warn_of_cilium(self) -> None:
        """Say so if Cilium has renamed files of others here and will probably do so with what is new."""
        new = sorted(name for name in self.state.after if name not in self.state.files)
        taken = [name for name in _names(self.request.conf_dir) if name.endswith(CILIUM_SUFFIX)] if new else []
        cilium = self.state.owners.named("Cilium") if taken and not self.request.force else None
        if cilium is not None:
            self.state.warning(
                "foreign_owner",
                "Cilium, which is running (%s, process %d), has renamed other files here, such as %s, and may do so "
                "with this one; set cni.exclusive=false among its Helm values (cni-exclusive in the ConfigMap "
                "cilium-config)" % (cilium.process, cilium.pid, taken[0]),
                new[0],
            )


def _may_go(file: ConfFile) -> bool:
    """Tell whether `exclusive` may set a file aside: not what is no file, and not somebody's access to a cluster."""
    is_kubeconfig = "kubeconfig" in file.name.lower() or (file.error and _KUBECONFIG.search(file.text or b""))
    return not file.is_special and not is_kubeconfig


def _names(directory: str) -> List[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []
