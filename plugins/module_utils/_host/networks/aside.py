# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Planning what goes and what comes back: networks to remove, files to set aside, and files to restore."""

from __future__ import annotations

import os
import re
from typing import Any, Container, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from ..binaries.packages import DPKG, packages_of
from ..confdir import ConfFile
from .difference import moved
from .entries import ConfState
from .execute import ABSENT, NOT_REQUESTED, PREVIOUS, REPLACED
from .request import WantedNetwork

_PACKAGE_SETTINGS = {
    "cri-o": "; CRI-O uses the network that cni_default_network in crio.conf names, otherwise the first one",
    "podman": "; podman uses the network that default_network in containers.conf names, otherwise one named 'podman'",
}
_KUBECONFIG = re.compile(rb"""["']?kind["']?\s*:\s*["']?Config\b""")


Entry = Dict[str, Any]


class Removals:
    """Adds steps for networks that must not exist, and for what `exclusive` sets aside."""

    def __init__(self, state: ConfState) -> None:
        self.state = state

    def remove(self, desired: WantedNetwork) -> None:
        """Plan to remove the network's managed files; with force or `exclusive`, unmanaged ones are set aside."""
        plan = self.state.plan
        managed, foreign = self.state.managed_files(desired.name), self.state.unmanaged_files(desired.name)
        if foreign and not self.state.request.force and not self.state.request.exclusive:
            for file in foreign:
                self.state.error(
                    "foreign_file",
                    f"the network {desired.name!r} is in this unmanaged file, which cni_conf does not remove; set "
                    "'force: true' to set it aside (the file is renamed within the directory, never deleted)",
                    file.name,
                )
            return
        paths = [file.path for file in managed + foreign]
        for file in managed:
            self.state.refuse_attached(desired.name, file.name, "the network would be removed")
            plan.changes.remove(file.name, file.text)
            self.state.gone(file)
        for file in foreign:
            self._set_aside(file)
        for aside, record in self.state.managed_asides(desired.name):
            plan.changes.remove_aside(os.path.basename(aside))
            paths.append(record["path"])
        path = paths[0] if paths else None
        self.state.report(desired, path, "removed" if path else "none")

    def set_aside_others(self, present: Sequence[WantedNetwork], kept: Container[str]) -> None:
        """Plan to set aside the files that are not in *kept* and that runtimes read, or that hold *present* networks.

        *present* are the networks that must exist and that replace others.
        """
        for name, file in self.state.files.items():
            if name in self.state.after and name not in kept and self._may_go(file, present):
                self._set_aside(file, _texts(present))

    def make_room(self, present: Sequence[WantedNetwork], targets: Mapping[str, str]) -> None:
        """Plan to set aside unmanaged files in the places of *present* networks, unless they are adopted.

        *targets* are the names of the networks' files.
        """
        for desired in present:
            standing = self.state.standing(targets[desired.name])
            if standing is None or standing.name in self.state.managed:
                continue
            if not desired.file and self._may_go(standing, [desired]):
                self._set_aside(standing, _texts(present))

    def _may_go(self, file: ConfFile, present: Sequence[WantedNetwork]) -> bool:
        """Tell whether a file may be set aside: with `exclusive` any but special files and kubeconfigs.

        For *present* networks with `replace`, an unmanaged one that holds one of them.
        """
        if not self.state.request.exclusive:
            return file.name not in self.state.managed and file.network in [desired.name for desired in present]
        is_kubeconfig = "kubeconfig" in file.name.lower() or (file.error and _KUBECONFIG.search(file.text or b""))
        return not file.is_special and not is_kubeconfig

    def _set_aside(self, file: ConfFile, texts: Optional[Mapping[str, bytes]] = None) -> None:
        """Plan to set one file aside, or note what prevents it. *texts* are the planned conflists, by network."""
        reason = ABSENT if texts is None else NOT_REQUESTED if self.state.request.exclusive else REPLACED
        texts = texts or {}
        if self.state.refuse_owned(file, "set aside"):
            return
        if file.network is not None and file.network in texts:
            text = texts[file.network]
            self.state.refuse_move(file.network, file.name, moved(file.text, text), text)
        elif file.network:
            self.state.refuse_attached(file.network, file.name, "the network would be set aside")
        managed = self.state.manifest.networks[file.path] if file.name in self.state.managed else None
        network = managed["network"] if managed else file.network
        self.state.plan.changes.set_aside(file.name, network or "", managed, reason)
        if managed is None:
            self.state.disturbed.append(file)
        self.state.gone(file)

    def note_packages(self) -> None:
        """Warn about unmanaged files that the plan adopts or sets aside and that belong to a package."""
        packages = packages_of([file.path for file in self.state.disturbed])
        for file in self.state.disturbed:
            package = packages.get(file.path)
            if package is None:
                continue
            future = (
                "whose updates leave the change alone"
                if package.manager == DPKG
                else "whose next update brings the file back"
            )
            setting = next((text for name, text in _PACKAGE_SETTINGS.items() if package.name.startswith(name)), "")
            text = f"this file belongs to the package {package.name} {package.version}, {future}{setting}"
            self.state.warning("package_file", text, file.name)


def _texts(present: Sequence[WantedNetwork]) -> Dict[str, bytes]:
    return {desired.name: desired.text for desired in present}


class Restoration:
    """The files that are restored for one entry of the request, and the networks of those files."""

    def __init__(self, state: ConfState, desired: WantedNetwork) -> None:
        self.state = state
        self.wanted = desired
        self.networks: Set[str] = {desired.name} if desired.name else set()
        self.names: List[str] = []
        self.foreign: List[ConfFile] = []
        self.removed = False

    def means(self, network: str, path: str) -> bool:
        """Tell whether the entry asks for *network* at *path*; if it names both, both must match."""
        if self.wanted.name and self.wanted.name != network:
            return False
        return not self.wanted.file or os.path.basename(path) == self.wanted.file

    def plan(self) -> Set[str]:
        """Plan to restore the files of the network, or what was at its file name.

        Returns the names of all files that `exclusive` must leave. A managed file is removed if an unmanaged file of
        the same network is restored; a managed file that replaced nothing stays.
        """
        state = self.state
        for aside, record in self._newest():
            self._bring_back(aside, record)
        for file in list(state.files.values()):
            if file.name in state.managed and file.name not in state.vacated | state.replaced:
                entry = state.manifest.networks[file.path]
                original = entry.get("original")
                if original and self.means(entry["network"], original.get("path", file.path)):
                    self.networks.add(entry["network"])
                    self._bring_original(file, file.name, original)
        self._remove_managed()
        known, name = state.files.values(), self.wanted.file
        present = [file for file in known if file.name == name or file.network in self.networks]
        path = state.plan.path(self.names[0]) if self.names else (present[0].path if present else None)
        action = "restored" if self.names else ("removed" if self.removed else "none")
        state.report(self.wanted, path, action, ", ".join(sorted(self.networks)))
        return {file.name for file in present}.union(self.names)

    def _newest(self) -> List[Tuple[str, Entry]]:
        """Return the files set aside that are asked for; of several with one original path, the latest."""
        state = self.state
        newest: Dict[str, Tuple[str, Entry]] = {}
        for aside, record in sorted(state.records().items()):
            if self.means(record["network"], record["path"]):
                known = newest.get(record["path"])
                if known is None or os.lstat(aside).st_ctime_ns > os.lstat(known[0]).st_ctime_ns:
                    newest[record["path"]] = (aside, record)
        return [newest[path] for path in sorted(newest)]

    def _bring_back(self, aside: str, record: Entry) -> None:
        state = self.state
        if record["network"]:
            self.networks.add(record["network"])
        name = os.path.basename(record["path"])
        file = state.read_aside(aside, name)
        managed = record.get("managed") or {}
        if managed.get("original"):
            # The managed file had replaced an unmanaged one, which is the file to restore.
            self._bring_original(file, os.path.basename(aside), managed["original"])
            return
        standing = state.standing(name)
        if not self._is_free(name, file, standing) or (managed and standing is not None):
            return
        if standing is not None:
            self._refuse_move(standing, file)
            state.replaced.add(name)
        replaced = None if standing is None else standing.text or b""
        state.plan.changes.bring_back(os.path.basename(aside), name, record, replaced, file.text)
        self._will_stand(file, bool(managed))

    def _bring_original(self, managed: ConfFile, current: str, original: Entry) -> None:
        """Plan to restore the kept original of the file *managed*, which has the name *current* now."""
        state = self.state
        path = original.get("path", managed.path)
        name = os.path.basename(path)
        with state.manifest.kept(original["sha256"]) as stream:
            file = ConfFile(name, path, stream.read())
        standing = None if name == current else state.standing(name)
        # An interrupted run may have restored it already.
        restored = standing is not None and standing.text == file.text and name not in state.managed
        if name != current and not restored and not self._is_free(name, file, standing):
            return
        users = self._refuse_move(managed, file)
        state.plan.changes.restore_original(
            name, current, original, (managed.text or b"", file.text or b""), restored, users
        )
        state.after.pop(current, None)
        (state.replaced if name == current else state.vacated).add(current)
        self._will_stand(file, False)

    def _will_stand(self, file: ConfFile, managed: bool) -> None:
        self.state.will_hold(file.name, file.text)
        self.names.append(file.name)
        if not managed:
            self.foreign.append(file)

    def _is_free(self, name: str, file: ConfFile, standing: Optional[ConfFile]) -> bool:
        """Tell whether *file* can be restored to *name*, where *standing* is now.

        If it cannot, the reason is noted, unless it is there already.
        """
        state = self.state
        if standing is None:
            if name in state.after and name not in state.files:
                state.error(
                    "file_in_use", "cannot restore this file: another network of this task is written to it", name
                )
                return False
            if name not in state.vacated and os.path.lexists(state.plan.path(name)):
                state.error("not_regular", "cannot restore this file: a directory is in its place; remove it", name)
                return False
            return True
        if name in state.managed:
            holder = state.managed[name]
            if holder in self.networks:
                return True
            text = f"cannot restore the previous file: this one holds the managed network {holder!r}; remove it first"
            state.error("file_in_use", text, name)
            return False
        if standing.network != file.network:
            text = "cannot restore the file that was set aside: another file is in its place; move one of them away"
            state.error("file_in_use", text, name)
        return False

    def _refuse_move(self, managed: ConfFile, file: ConfFile) -> str:
        text = file.text or b""
        words = moved(managed.text, text) if managed.network else []
        return self.state.refuse_move(str(managed.network), managed.name, words, text)

    def _remove_managed(self) -> None:
        """Plan to remove managed files whose networks are in unmanaged files again."""
        state = self.state
        for network in sorted(self.networks):
            foreign = [file for file in self.foreign if file.network == network] or state.unmanaged_files(network)
            if not foreign:
                continue
            for file in state.managed_files(network):
                if file.name in state.after and file.name not in self.names:
                    self._refuse_move(file, foreign[0])
                    state.plan.changes.remove(file.name, file.text, PREVIOUS)
                    state.gone(file)
                    self.removed = True
