# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The entries of a directory of network configurations: as they are, and as a plan will leave them."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Mapping, Optional, Set, Tuple

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
    """``files`` is the current state, ``after`` the planned one: name of each file -> its network (None: unknown).

    ``contents`` has the text of the files that will be written, moved or restored, or get another mode or owner,
    ``drop_ins_after`` has the drop-ins of the networks whose drop-ins change, as they will be,
    ``vacated`` the names that an earlier step of the plan frees, ``replaced`` the names of managed files that unmanaged
    ones are restored to, ``disturbed`` the unmanaged files that are adopted or set aside.
    """

    def __init__(self, request: ConfRequest, view: HostView) -> None:
        self.request = request
        self.view = view
        self.manifest = manifest = view.sound_manifest()
        self.plan = ConfPlan(request.conf_dir, manifest, request.attributes)
        self.files = {file.name: file for file in view.conf_files(request.conf_dir)}
        self.after: Dict[str, Optional[str]] = {name: file.network for name, file in self.files.items()}
        self.contents: Dict[str, bytes] = {}
        self.drop_ins_after: Dict[Optional[str], List[ConfFile]] = {}
        self.vacated: Set[str] = set()
        self.replaced: Set[str] = set()
        self.disturbed: List[ConfFile] = []
        self.owners = Owners(request.conf_dir)
        self._reports: Dict[int, Dict[str, Any]] = {}
        self._attached: Optional[Dict[str, List[Entry]]] = None
        # The managed files by network.
        self.managed: Dict[str, List[ConfFile]] = {}
        for file in self.files.values():
            entry = manifest.network_file(file.path, file.text)
            if entry is not None:
                self.managed.setdefault(entry["network"], []).append(file)
        self._managed_names = {file.name for files in self.managed.values() for file in files}

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

    def is_managed(self, name: str) -> bool:
        return name in self._managed_names

    def managed_files(self, network: str) -> List[ConfFile]:
        """Return the managed files of *network*, whatever they contain now, without those that the plan removes."""
        return [file for file in self.managed.get(network, []) if file.name not in self.vacated | self.replaced]

    def unmanaged_files(self, network: str) -> List[ConfFile]:
        """Return the unmanaged files that hold *network* and stay where they are."""
        return [
            file
            for name, file in self.files.items()
            if file.network == network and not self.is_managed(name) and name not in self.vacated
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

    # ---- the file of a network

    def target_of(self, desired: WantedNetwork) -> str:
        """Return the name of the file for the network."""
        if desired.file:
            return desired.file
        if desired.priority is None:
            managed = self.managed_files(desired.name)
            if managed:
                return managed[0].name
            for path, entry in self.manifest.networks.items():
                # The file was deleted, and is written again under the name that it had.
                if entry["network"] == desired.name and os.path.dirname(path) == self.request.conf_dir:
                    return os.path.basename(path)
            asides = self.managed_asides(desired.name)
            if asides:
                return os.path.basename(str(asides[0][1]["path"]))
        return desired.default_file()

    def check_targets(self, targets: Mapping[str, str]) -> None:
        users: Dict[str, str] = {}
        for network, target in targets.items():
            if target in users:
                self.error(
                    "file_in_use",
                    f"the networks {users[target]!r} and {network!r} would share this file; give one of them another "
                    "'file' or 'priority'",
                    target,
                )
            users[target] = network

    def managed_asides(self, network: str) -> List[Tuple[str, Dict[str, Any]]]:
        """Return path and record of each managed file of *network* that `exclusive` has set aside."""
        records = sorted(self.records().items())
        return [row for row in records if row[1].get("managed") and row[1]["network"] == network]

    def may_use(self, desired: WantedNetwork, target: str, standing: Optional[ConfFile]) -> bool:
        """Note every reason that prevents writing the network to *target*; True if there is none."""
        before = len(self.plan.problems)
        for foreign in self.unmanaged_files(desired.name):
            # With `exclusive` or `replace`, such a file is set aside.
            if (foreign.name != target or not desired.file) and not (self.request.exclusive or desired.replace):
                self.error("duplicate_name", _duplicate_text(desired, foreign), foreign.name)
        if target in self.vacated:
            return len(self.plan.problems) == before
        if standing is None and os.path.lexists(self.plan.path(target)):
            self.error("not_regular", "a directory is in the place of the network's file; remove it", target)
        elif standing is not None and not self.is_managed(target):
            self._check_foreign_target(desired, target, standing)
        elif standing is not None:
            self._check_own_target(desired, target)
        return len(self.plan.problems) == before

    def _check_foreign_target(self, desired: WantedNetwork, target: str, standing: ConfFile) -> None:
        if standing.is_link or standing.is_special:
            text = "is an unmanaged link or special file; remove it, or choose another 'file'"
            self.error("not_regular", text, target)
        elif not desired.file:
            if standing.network != desired.name:
                self.error(
                    "foreign_file",
                    f"this unmanaged file is in the place of the network {desired.name!r}; adopt it with 'file: "
                    f"{target}' (its original is kept), or choose another 'priority' or 'file'",
                    target,
                )
        elif standing.network not in (None, desired.name) and not self.request.force:
            self.error(
                "file_in_use",
                f"this unmanaged file holds the network {standing.network!r}; choose another 'file' for "
                f"{desired.name!r}, or adopt it with 'force: true' (its original is kept)",
                target,
            )
        else:
            self.refuse_owned(standing, "adopted")

    def _check_own_target(self, desired: WantedNetwork, target: str) -> None:
        holder = self.manifest.networks[self.plan.path(target)]["network"]
        if holder == desired.name:
            return
        if any(other.present and other.name == holder for other in self.request.networks) or not desired.file:
            self.error(
                "file_in_use",
                f"this file holds the managed network {holder!r}, so {desired.name!r} cannot have it; choose another "
                f"'file' or 'priority', or move {holder!r} to another file in an earlier task",
                target,
            )

    # ---- attachments

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

    def moved(self, old: str, new: str, network: str, text: Optional[bytes]) -> None:
        self.after.pop(old, None)
        self.after[new] = network
        self.contents[new] = text or b""

    def gone(self, file: ConfFile) -> None:
        """Note that a step removes or renames the file."""
        self.vacated.add(file.name)
        self.after.pop(file.name, None)

    def ours_after(self) -> Set[str]:
        """Return the names of the files that will be managed."""
        kept = self._managed_names - self.vacated - self.replaced
        return {name for name in self.after if name in kept or self.plan.claims(name)}

    def planned(self) -> List[ConfFile]:
        """Return the files as they will be, in the order of the runtimes."""
        files = (
            ConfFile(name, self.plan.path(name), self.contents[name]) if name in self.contents else self.files[name]
            for name in sorted(self.after, key=sort_key)
        )
        return with_folders(files, self.drop_ins_after)


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
