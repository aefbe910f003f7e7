# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning which networks to remove, and which files of others to set aside."""

from __future__ import annotations

import os
import re
from typing import Container, Dict, Mapping, Optional, Sequence

from ..binaries.packages import DPKG, packages_of
from ..confdir import ConfFile
from .difference import moved, would_change
from .request import WantedNetwork
from .state import ConfState
from .steps import ABSENT, NOT_REQUESTED, REPLACED

_PACKAGE_SETTINGS = {
    "cri-o": "; CRI-O uses the network that cni_default_network in crio.conf names, otherwise the first one",
    "podman": "; podman uses the network that default_network in containers.conf names, otherwise one named 'podman'",
}
_KUBECONFIG = re.compile(rb"""["']?kind["']?\s*:\s*["']?Config\b""")


class Removals:
    """Adds steps for networks that must not exist, and for what `exclusive` sets aside."""

    def __init__(self, state: ConfState) -> None:
        self.state = state

    def remove(self, wanted: WantedNetwork) -> None:
        """Plan to remove the network's managed files; with force or `exclusive`, unmanaged ones are set aside."""
        plan = self.state.plan
        own, foreign = self.state.managed_files(wanted.name), self.state.unmanaged_files(wanted.name)
        if foreign and not self.state.request.force and not self.state.request.exclusive:
            for file in foreign:
                self.state.error(
                    "foreign_file",
                    f"the network {wanted.name!r} is in this unmanaged file, which cni_conf does not remove; set "
                    "'force: true' to set it aside (the file is renamed within the directory, never deleted)",
                    file.name,
                )
            return
        paths = [file.path for file in own + foreign]
        for file in own:
            self.state.refuse_attached(wanted.name, file.name, "the network would be removed")
            plan.changes.remove(file.name, file.text)
            self.state.gone(file)
        for file in foreign:
            self._set_aside(file)
        for aside, record in sorted(self.state.records().items()):
            if record.get("managed") and record["network"] == wanted.name:
                plan.changes.remove_aside(os.path.basename(aside))
                paths.append(record["path"])
        path = paths[0] if paths else None
        self.state.report(wanted, path, "removed" if path else "none")

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
        for wanted in present:
            standing = self.state.standing(targets[wanted.name])
            if standing is None or self.state.is_managed(standing.name):
                continue
            if not wanted.file and self._may_go(standing, [wanted]):
                self._set_aside(standing, _texts(present))

    def _may_go(self, file: ConfFile, present: Sequence[WantedNetwork]) -> bool:
        """Tell whether a file may be set aside: with `exclusive` any but special files and kubeconfigs.

        For *present* networks with `replace`, an unmanaged one that holds one of them.
        """
        if not self.state.request.exclusive:
            return not self.state.is_managed(file.name) and file.network in [wanted.name for wanted in present]
        is_kubeconfig = "kubeconfig" in file.name.lower() or (file.error and _KUBECONFIG.search(file.text or b""))
        return not file.is_special and not is_kubeconfig

    def _set_aside(self, file: ConfFile, texts: Optional[Mapping[str, bytes]] = None) -> None:
        """Plan to set one file aside, or note what prevents it. *texts* are the planned conflists, by network."""
        reason = ABSENT if texts is None else NOT_REQUESTED if self.state.request.exclusive else REPLACED
        texts = texts or {}
        if self.state.refuse_owned(file, "set aside"):
            return
        if file.network is not None and file.network in texts:
            words = moved(file.text, texts[file.network])
            if words:
                self.state.refuse_attached(file.network, file.name, would_change(words), texts[file.network])
        elif file.network:
            self.state.refuse_attached(file.network, file.name, "the network would be set aside")
        managed = self.state.manifest.networks[file.path] if self.state.is_managed(file.name) else None
        network = managed["network"] if managed else file.network
        self.state.plan.changes.set_aside(file.name, network or "", managed, reason)
        if managed is None:
            self.state.disturbed.append(file)
        self.state.gone(file)

    def note_packages(self) -> None:
        """Warn about unmanaged files that the plan adopts or sets aside and that belong to a package."""
        found = packages_of([file.path for file in self.state.disturbed])
        for file in self.state.disturbed:
            package = found.get(file.path)
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
    return {wanted.name: wanted.text for wanted in present}
