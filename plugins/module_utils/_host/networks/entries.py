# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The entries of a directory of network configurations: as they are, and as a plan will leave them."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Optional, Sequence, Set, Tuple

from ..addresses import result_addresses
from ..confdir import ConfFile, read_as, sort_key, with_folders
from ..errors import HostError
from ..files import Attributes
from ..hostview import HostView
from ..manifest import Manifest
from ..plan import Plan, Step
from ..problems import ERROR, WARNING, Finding
from .difference import fits
from .owners import Owners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...libcni.cache import Entry
    from ..runtimes.effective import Effective
    from .execute import ConfSteps
    from .request import ConfRequest, WantedNetwork


class ConfPlan(Plan):
    """A plan over one conf_dir.

    ``networks`` is ``[{name, path, action}]``, ``problems`` what the levels found, ``effective`` what the runtimes use,
    ``configured`` the changes of their own configurations. ``files_after`` are the files that the directory will have,
    ``written`` the names of those that a step changes. ``judged`` are the runtimes with the networks that they should
    have loaded after the steps, None if that is not known. ``reload`` is the step that tells a runtime that the
    directory has changed.
    """

    def __init__(self, conf_dir: str, manifest: Manifest, attributes: Attributes) -> None:
        super().__init__()
        self.conf_dir = conf_dir
        self.manifest = manifest
        self.attributes = attributes
        self.networks: List[Dict[str, Any]] = []
        self.problems: List[Finding] = []
        self.effective: List[Dict[str, Any]] = []
        self.configured: List[Dict[str, Any]] = []
        self.files_after: List[ConfFile] = []
        self.written: Set[str] = set()
        self.judged: Optional[Effective] = None
        self.reload: Optional[Step] = None
        self._changes: Optional[ConfSteps] = None
        self._deferred: List[Step] = []

    @property
    def changes(self) -> ConfSteps:
        if self._changes is None:
            from .execute import ConfSteps

            self._changes = ConfSteps(self, self.conf_dir, self.manifest, self.attributes)
        return self._changes

    def path(self, name: str) -> str:
        return os.path.join(self.conf_dir, name)

    def claims(self, name: str) -> bool:
        """Tell whether a step makes the file *name* managed."""
        return self._changes is not None and self._changes.claims(self.path(name))

    def leave_out(self, steps: Iterable[Step]) -> None:
        super().leave_out(steps)
        if not self.left:
            return
        for row in self.networks:
            row["action"] = "none" if row["action"] == "none" else "left"
        for row in self.configured:
            row.update(action="none" if row["action"] == "none" else "left", restart=False)
        # With steps left out, the predicted networks are not what the runtimes load.
        self.judged = None

    @property
    def restarting(self) -> List[str]:
        """The runtimes that have to be restarted to know what the plan writes."""
        return [row["runtime"] for row in self.configured if row["restart"]]

    def asks_runtimes(self, check_mode: bool) -> bool:
        """Tell whether a runtime can have loaded what is written. It cannot have loaded what is only planned."""
        return not check_mode and self.judged is not None and bool(self.judged.asked(self.restarting))

    def apply(self, workers: int = 1) -> None:
        """Execute the steps, in order, without the deferred ones."""
        if self.reload is not None:
            from ..runtimes.nomad import note_reload

            note_reload(self.reload)
        self.changes.execute([step for step in self.steps if step not in self._deferred])

    def apply_deferred(self, workers: int = 1) -> None:
        self.changes.execute(self._deferred)

    def defer_removals(self) -> List[Step]:
        """Take the removals at the end of the plan out of :meth:`apply`; return them."""
        kept = len(self.steps)
        while kept and self.steps[kept - 1].kind in ("remove", "set_aside", "reload"):
            kept -= 1
        self._deferred = self.steps[kept:]
        return self._deferred


class ConfState:
    """``files`` is the current state, ``after`` the planned one, both by name.

    ``managed``: name of each managed file -> the network that it was written for, whatever it contains now.
    ``drop_ins_after`` has the drop-ins of the networks whose drop-ins change, as they will be, ``vacated`` the names
    that an earlier step of the plan frees, ``replaced`` the names of managed files that unmanaged ones are restored to,
    ``disturbed`` the unmanaged files that are adopted or set aside.
    """

    def __init__(self, request: ConfRequest, view: HostView) -> None:
        self.request = request
        self.view = view
        self.manifest = manifest = view.sound_manifest()
        self.plan = ConfPlan(request.conf_dir, manifest, request.attributes)
        self.files = {file.name: file for file in view.conf_files(request.conf_dir)}
        self.after = dict(self.files)
        self.drop_ins_after: Dict[Optional[str], List[ConfFile]] = {}
        self.vacated: Set[str] = set()
        self.replaced: Set[str] = set()
        self.disturbed: List[ConfFile] = []
        self.owners = Owners(request.conf_dir)
        self._reports: Dict[int, Dict[str, Any]] = {}
        self._attached: Optional[Dict[str, List[Entry]]] = None
        entries = ((name, manifest.network_file(file.path, file.text)) for name, file in self.files.items())
        self.managed: Dict[str, str] = {name: entry["network"] for name, entry in entries if entry is not None}

    def error(self, code: str, message: str, file: str) -> None:
        self.plan.problems.append(Finding(ERROR, code, message, file=self.plan.path(file)))

    def warning(self, code: str, message: str, file: str) -> None:
        self.plan.problems.append(Finding(WARNING, code, message, file=self.plan.path(file)))

    def report(self, desired: WantedNetwork, path: Optional[str], action: str, name: str = "") -> None:
        """Note the result for one entry of the request."""
        self._reports[id(desired)] = {"name": desired.name or name, "path": path, "action": action}

    def reports(self) -> List[Dict[str, Any]]:
        """Return the results, in the order of the request."""
        return [
            self._reports.get(id(desired)) or {"name": desired.name, "path": None, "action": "failed"}
            for desired in self.request.networks
        ]

    # ---- managed and unmanaged files

    def managed_files(self, network: str) -> List[ConfFile]:
        """Return the managed files of *network*, without those that the plan removes."""
        removed = self.vacated | self.replaced
        return [self.files[name] for name, holder in self.managed.items() if holder == network and name not in removed]

    def unmanaged_files(self, network: str) -> List[ConfFile]:
        """Return the unmanaged files that hold *network* and stay where they are."""
        return [
            file
            for name, file in self.files.items()
            if file.network == network and name not in self.managed and name not in self.vacated
        ]

    def standing(self, name: str) -> Optional[ConfFile]:
        """Return the file that has the name *name* when the next step runs."""
        return None if name in self.vacated else self.files.get(name)

    def records(self) -> Dict[str, Dict[str, Any]]:
        """Return the manifest's records of files that were set aside in this directory and are still there."""
        return {
            aside: record
            for aside, record in self.manifest.aside.items()
            if os.path.dirname(aside) == self.request.conf_dir and os.path.lexists(aside)
        }

    def read_aside(self, aside: str, name: str) -> ConfFile:
        """Return a file that was set aside, read as if it had its future *name*."""
        file = read_as(self.request.conf_dir, os.path.basename(aside), name)
        if file is None:
            raise HostError(f"{aside} disappeared while this run was planning; run again", code="changed_meanwhile")
        return file

    def refuse_owned(self, file: ConfFile, what: str) -> bool:
        """Note an error if a running owner of the file would undo the change; True if so."""
        owner = self.owners.living(file)
        if owner is not None:
            self.error(
                "foreign_owner",
                f"this file is written by {owner}, so it cannot be {what}; {owner.owner.setting}",
                file.name,
            )
        return owner is not None

    def managed_asides(self, network: str) -> List[Tuple[str, Dict[str, Any]]]:
        """Return path and record of each managed file of *network* that `exclusive` has set aside."""
        records = sorted(self.records().items())
        return [row for row in records if row[1].get("managed") and row[1]["network"] == network]

    # ---- attachments

    def refuse_move(self, network: str, file: str, words: Sequence[str], text: bytes) -> str:
        """Do as :meth:`refuse_attached` if *words* say what would change for attachments; return whom it moves."""
        return self.refuse_attached(network, file, f"{', '.join(words)} would change", text) if words else ""

    def attached(self, network: str) -> List[Entry]:
        if self._attached is None:
            self._attached = _attached(self.request.cache_dir)
        return self._attached.get(network, [])

    def refuse_attached(self, network: str, file: str, why: str, text: Optional[bytes] = None) -> str:
        """Note an error if containers are attached to *network*, unless force. Return whom the change moves.

        *text* is the new conflist. Attachments that fit it do not prevent the change: the file was edited after they
        were made.
        """
        try:
            attached = self.attached(network)
        except HostError:
            if self.request.force:
                return ""
            raise
        drop_ins = self._appended(network, text) if attached and text is not None else []
        users = [
            _attachment(entry)
            for entry in attached
            if not self.view.releases((network, entry.container_id, entry.if_name), renewed=text is not None)
            and (text is None or not fits(entry.config, text, drop_ins))
        ]
        if users and not self.request.force:
            count = "1 attachment" if len(users) == 1 else f"{len(users)} attachments"
            self.error(
                "attachments_exist",
                f"{why}, but the network {network!r} has {count} in {self.request.cache_dir}: {', '.join(users)}; "
                "detach the containers first (podwire.cni.cni_attach with 'state: absent'), or set 'force: true' to "
                "change the network anyway",
                file,
            )
        return ", ".join(users)

    def _appended(self, network: str, text: bytes) -> List[Dict[str, Any]]:
        """Return the plugins that the drop-ins of *network* will append to the conflist *text*."""
        file = ConfFile("new.conflist", self.plan.path("new.conflist"), text)
        file.folder = self.drop_ins_after.get(network)
        return [plugin for drop_in in file.drop_ins for plugin in drop_in.plugins]

    # ---- the directory as it will be

    def will_hold(self, name: str, text: Optional[bytes]) -> None:
        """Note that a step writes, moves or restores the file, or changes its mode or owner."""
        self.after[name] = ConfFile(name, self.plan.path(name), text or b"")

    def gone(self, file: ConfFile) -> None:
        """Note that a step removes or renames the file."""
        self.vacated.add(file.name)
        self.after.pop(file.name, None)

    def ours_after(self) -> Set[str]:
        """Return the names of the files that will be managed."""
        kept = set(self.managed) - self.vacated - self.replaced
        return {name for name in self.after if name in kept or self.plan.claims(name)}

    def planned(self) -> List[ConfFile]:
        """Return the files as they will be, in the order of the runtimes."""
        return with_folders((self.after[name] for name in sorted(self.after, key=sort_key)), self.drop_ins_after)

    def written(self) -> Set[str]:
        """Return the names of the files that steps write, as :meth:`will_hold` means it."""
        return {name for name, file in self.after.items() if file is not self.files.get(name)}


def _attached(cache_dir: str) -> Dict[str, List[Entry]]:
    """Return the attachments in *cache_dir*, by network.

    Raises HostError ``cache_unreadable``: an unreadable cache does not mean that nothing is attached.
    """
    # Only a change asks for attachments, so an unchanged run does not compile libcni's cache.
    from ...libcni.cache import list_entries
    from ...libcni.errors import CacheError

    try:
        entries = list_entries(cache_dir)
    except CacheError as error:
        raise HostError(
            f"cannot tell which networks are in use: {error}; fix that, or set another cache_dir",
            code="cache_unreadable",
        ) from error
    attached: Dict[str, List[Entry]] = {}
    for entry in entries:
        attached.setdefault(entry.network_name, []).append(entry)
    return attached


def _attachment(entry: Entry) -> str:
    addresses = ", ".join(result_addresses(entry.result))
    return f"{entry.container_id}/{entry.if_name}" + (f" ({addresses})" if addresses else "")
