# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of a directory of network configurations while a plan for it is made, and what is planned so far."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Set

from .confdir import ConfFile, parse, read_as, scan, sort_key
from .confplan import ConfPlan
from .errors import HostError
from .manifest import Manifest
from .netchange import fits
from .owners import Owners
from .problems import ERROR, WARNING, problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..libcni.cache import Entry
    from .networks import Request, Wanted


class State:
    """``files`` is what is there, ``after`` what will be: name of each file -> its network (None: nobody can tell).

    ``contents`` has the text of the files that will be written, moved or brought back, ``vacated`` the names that an
    earlier step of the plan frees, ``replaced`` those of our files that others come back to, ``disturbed`` the files of
    others that are adopted or set aside.
    """

    def __init__(self, request: Request, manifest: Manifest) -> None:
        self.request = request
        self.manifest = manifest
        self.plan = ConfPlan(request.conf_dir, manifest, request.attributes)
        self.files = {file.name: file for file in scan(request.conf_dir)}
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

    def report(self, wanted: Wanted, path: Optional[str], action: str, name: str = "") -> None:
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

    # ---- attachments

    def attached(self, network: str) -> List[Entry]:
        if self._attached is None:
            # Nobody asks while nothing changes, and then libcni's cache need not be compiled.
            from .netusers import attached

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
            parse(file, file.text)
        except HostError as error:
            file.error = error.msg
        return file
