# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of a directory of network configurations while a plan for it is made, and what is planned so far."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

from ..confdir import ConfFile, parse_conf, read_as, scan_conf_dir, sort_key
from ..errors import HostError
from ..manifest import Manifest
from ..problems import ERROR, WARNING, problem
from .difference import fits
from .owners import Owners
from .steps import ConfPlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...libcni.cache import Entry
    from .request import ConfRequest, WantedNetwork


class ConfState:
    """``files`` is what is there, ``after`` what will be: name of each file -> its network (None: nobody can tell).

    ``contents`` has the text of the files that will be written, moved or brought back, ``vacated`` the names that an
    earlier step of the plan frees, ``replaced`` those of our files that others come back to, ``disturbed`` the files of
    others that are adopted or set aside.
    """

    def __init__(self, request: ConfRequest, manifest: Manifest) -> None:
        self.request = request
        self.manifest = manifest
        self.plan = ConfPlan(request.conf_dir, manifest, request.attributes)
        self.files = {file.name: file for file in scan_conf_dir(request.conf_dir)}
        self.after: Dict[str, Optional[str]] = {name: file.network for name, file in self.files.items()}
        self.contents: Dict[str, bytes] = {}
        self.vacated: Set[str] = set()
        self.replaced: Set[str] = set()
        self.disturbed: List[ConfFile] = []
        self.owners = Owners()
        self._reports: Dict[int, Dict[str, Any]] = {}
        self._attached: Optional[Dict[str, List[Entry]]] = None
        self._entries: Dict[str, Dict[str, Any]] = {}
        self._own: Dict[str, List[ConfFile]] = {}
        for file in self.files.values():
            entry = manifest.network_file(file.path, file.text)
            if entry is not None:
                self._entries[file.name] = entry
                self._own.setdefault(entry["network"], []).append(file)

    def error(self, code: str, message: str, file: str) -> None:
        self.plan.problems.append(problem(ERROR, code, message, self.plan.path(file)))

    def warning(self, code: str, message: str, file: str) -> None:
        self.plan.problems.append(problem(WARNING, code, message, self.plan.path(file)))

    def report(self, wanted: WantedNetwork, path: Optional[str], action: str, name: str = "") -> None:
        """Say what becomes of one entry of the request."""
        self._reports[id(wanted)] = {"name": wanted.name or name, "path": path, "action": action}

    def reports(self) -> List[Dict[str, Any]]:
        """Return what becomes of the request, in its order."""
        return [
            self._reports.get(id(wanted)) or {"name": wanted.name, "path": None, "action": "failed"}
            for wanted in self.request.networks
        ]

    # ---- whose file

    def is_ours(self, name: str) -> bool:
        return name in self._entries

    def own_files(self, network: str) -> List[ConfFile]:
        """Return the files that we wrote for *network*, whatever is in them now, as far as they stay so far."""
        return [file for file in self._own.get(network, []) if file.name not in self.vacated | self.replaced]

    def foreign_files(self, network: str) -> List[ConfFile]:
        """Return the files of others that hold *network* and stay where they are."""
        return [
            file
            for name, file in self.files.items()
            if file.network == network and not self.is_ours(name) and name not in self.vacated
        ]

    def standing(self, name: str) -> Optional[ConfFile]:
        """Return the file that stands at *name* when the next step is carried out."""
        return None if name in self.vacated else self.files.get(name)

    def records(self) -> Dict[str, Dict[str, Any]]:
        """Return the manifest's records of files that were set aside in this directory and are still there."""
        return {
            aside: record
            for aside, record in self.manifest.aside.items()
            if os.path.dirname(aside) == self.request.conf_dir and os.path.lexists(aside)
        }

    def read_aside(self, aside: str, name: str) -> ConfFile:
        """Return the file that was set aside as it is read under its future *name*."""
        file = read_as(self.request.conf_dir, os.path.basename(aside), name)
        if file is None:
            raise HostError("%s went away while this run was planning; run again" % aside, code="changed_meanwhile")
        return file

    def refuse_owned(self, file: ConfFile, what: str) -> bool:
        """Note an error if a daemon that is running would undo what is to be done to its file; True if so."""
        owner = self.owners.living(file)
        if owner is not None:
            self.error("foreign_owner", "%s; it cannot be %s: %s" % (owner.claim, what, owner.setting), file.name)
        return owner is not None

    # ---- the file of a network

    def target_of(self, wanted: WantedNetwork) -> str:
        """Return the name of the file that is to hold the network."""
        if wanted.file:
            return wanted.file
        if wanted.priority is None:
            own = self.own_files(wanted.name)
            if own:
                return own[0].name
            for path, entry in self.manifest.networks.items():
                # The file was deleted by somebody: it comes back under the name that it had.
                if entry["network"] == wanted.name and os.path.dirname(path) == self.request.conf_dir:
                    return os.path.basename(path)
            aside = self.own_aside(wanted.name)
            if aside is not None:
                return os.path.basename(str(aside[1]["path"]))
        return wanted.default_file()

    def check_targets(self, targets: Mapping[str, str]) -> None:
        users: Dict[str, str] = {}
        for network, target in targets.items():
            if target in users:
                self.error(
                    "file_in_use",
                    "the networks %r and %r would share this file; give one of them another 'file' or 'priority'"
                    % (users[target], network),
                    target,
                )
            users[target] = network

    def own_aside(self, network: str) -> Optional[Tuple[str, Dict[str, Any]]]:
        """Return path and record of a file of ours that `exclusive` has set aside for *network*."""
        found = [
            (aside, record)
            for aside, record in sorted(self.records().items())
            if record.get("managed") and record["network"] == network
        ]
        return found[0] if found else None

    def may_use(self, wanted: WantedNetwork, target: str, standing: Optional[ConfFile]) -> bool:
        """Note every reason against putting the network into *target*; True if there is none."""
        before = len(self.plan.problems)
        for foreign in self.foreign_files(wanted.name):
            # What is in the way goes aside anyway with `exclusive`.
            if (foreign.name != target or not wanted.file) and not self.request.exclusive:
                self.error("duplicate_name", _duplicate_text(wanted, foreign), foreign.name)
        if target in self.vacated:
            return len(self.plan.problems) == before
        if standing is None and os.path.lexists(self.plan.path(target)):
            self.error("not_regular", "a directory stands where the network's file belongs; remove it", target)
        elif standing is not None and not self.is_ours(target):
            self._check_foreign_target(wanted, target, standing)
        elif standing is not None:
            self._check_own_target(wanted, target)
        return len(self.plan.problems) == before

    def _check_foreign_target(self, wanted: WantedNetwork, target: str, standing: ConfFile) -> None:
        if standing.is_link or standing.is_special:
            text = "is a link or a special file that is not ours; remove it, or choose another 'file'"
            self.error("not_regular", text, target)
        elif not wanted.file:
            if standing.network != wanted.name:
                self.error(
                    "foreign_file",
                    "this file is not ours and stands where the network %r belongs; adopt it with 'file: %s' (its "
                    "original is kept), or choose another 'priority' or 'file'" % (wanted.name, target),
                    target,
                )
        elif standing.network not in (None, wanted.name) and not self.request.force:
            self.error(
                "file_in_use",
                "this file, which is not ours, holds the network %r; choose another 'file' for %r, or take it over "
                "with 'force: true' (its original is kept)" % (standing.network, wanted.name),
                target,
            )
        else:
            self.refuse_owned(standing, "adopted")

    def _check_own_target(self, wanted: WantedNetwork, target: str) -> None:
        holder = self.manifest.networks[self.plan.path(target)]["network"]
        if holder == wanted.name:
            return
        if any(other.present and other.name == holder for other in self.request.networks) or not wanted.file:
            self.error(
                "file_in_use",
                "this file holds our network %r, so %r cannot have it; choose another 'file' or 'priority', or move %r "
                "in a task before this one" % (holder, wanted.name, holder),
                target,
            )

    # ---- attachments

    def attached(self, network: str) -> List[Entry]:
        if self._attached is None:
            # Nobody asks while nothing changes, and then libcni's cache need not be compiled.
            from .attached import attached

            self._attached = attached(self.request.cache_dir)
        return self._attached.get(network, [])

    def refuse_attached(self, network: str, file: str, why: str, text: Optional[bytes] = None) -> None:
        """Note an error if containers are attached to *network*, unless force.

        *text* is what the network becomes. Attachments that were made with its bridge, subnets and ranges are no
        hindrance: who has edited the file since then left them behind, and they fit again.
        """
        if self.request.force:
            return
        users = [
            "%s/%s" % (entry.container_id, entry.if_name)
            for entry in self.attached(network)
            if text is None or not fits(entry.config, text)
        ]
        if users:
            self.error(
                "attachments_exist",
                "%s, but the network %r has %d attachments in %s: %s; detach them first (podwire.cni.cni_attach with "
                "'state: absent'), or set 'force: true' and leave them as they are"
                % (why, network, len(users), self.request.cache_dir, ", ".join(users)),
                file,
            )

    # ---- the directory as it will be

    def moved(self, old: str, new: str, network: str, text: Optional[bytes]) -> None:
        self.after.pop(old, None)
        self.after[new] = network
        self.contents[new] = text or b""

    def gone(self, file: ConfFile) -> None:
        """Note that a step takes the file from its name."""
        self.vacated.add(file.name)
        self.after.pop(file.name, None)

    def ours_after(self) -> Set[str]:
        """Return the names of the files that will be ours."""
        kept = set(self._entries) - self.vacated - self.replaced
        return {name for name in self.after if name in kept or self.plan.claims(name)}

    def planned(self) -> List[ConfFile]:
        """Return the files as they will be, in the order of the runtimes."""
        return [self._planned(name) for name in sorted(self.after, key=sort_key)]

    def _planned(self, name: str) -> ConfFile:
        if name not in self.contents:
            return self.files[name]
        file = ConfFile(name, self.plan.path(name))
        file.text = self.contents[name]
        try:
            parse_conf(file, file.text)
        except HostError as error:
            file.error = error.msg
        return file


def _duplicate_text(wanted: WantedNetwork, foreign: ConfFile) -> str:
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
