# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning of networks that are not to be there, and of all that `exclusive` sets aside."""

from __future__ import annotations

import os
import re
from typing import Iterable, Mapping, Optional, Sequence

from .confdir import ConfFile
from .confstate import State
from .netchange import moves_addresses
from .packages import DPKG, packages_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .networks import Wanted

_PACKAGE_SETTINGS = {
    "cri-o": "; CRI-O takes the network that cni_default_network in crio.conf names, else the first one",
    "podman": "; podman takes the network that default_network in containers.conf names, else one named 'podman'",
}
_KUBECONFIG = re.compile(rb"""["']?kind["']?\s*:\s*["']?Config\b""")


def remove(state: State, wanted: Wanted) -> None:
    """Plan to remove our files of the network; those of others go aside with force, or with `exclusive`."""
    plan = state.plan
    own, foreign = state.own_files(wanted.name), state.foreign_files(wanted.name)
    if foreign and not state.request.force and not state.request.exclusive:
        for file in foreign:
            state.error(
                "foreign_file",
                "the network %r is in this file, which is not ours, so it stays; 'force: true' sets it aside (it "
                "is renamed within the directory, never deleted)" % wanted.name,
                file.name,
            )
        return
    paths = [file.path for file in own + foreign]
    for file in own:
        state.refuse_attached(wanted.name, file.name, "the network is removed")
        plan.remove(file.name, file.text)
        _gone(state, file)
    for file in foreign:
        set_aside(state, file)
    for aside, record in sorted(state.records().items()):
        if record.get("managed") and record["network"] == wanted.name:
            plan.remove_aside(os.path.basename(aside))
            paths.append(record["path"])
    path = paths[0] if paths else None
    state.report(wanted, path, "removed" if path else "none")


def set_aside_others(state: State, kept: Iterable[str], texts: Mapping[str, bytes]) -> None:
    """Plan to set aside every file that runtimes read and that is not of the names *kept*.

    *texts* are the networks that will be there, by name.
    """
    keep = set(kept)
    for name, file in state.files.items():
        if name in state.after and name not in keep and _may_go(file):
            set_aside(state, file, texts)


def make_room(state: State, present: Sequence[Wanted], targets: Mapping[str, str], texts: Mapping[str, bytes]) -> None:
    """Plan to set aside files of others that stand where networks of the request belong, unless they are to be adopted.

    *targets* are the names of the networks' files, *texts* as for :func:`set_aside_others`.
    """
    for wanted in present:
        standing = state.standing(targets[wanted.name])
        if standing is not None and not wanted.file and not state.is_ours(standing.name) and _may_go(standing):
            set_aside(state, standing, texts)


def set_aside(state: State, file: ConfFile, texts: Optional[Mapping[str, bytes]] = None) -> None:
    """Plan to set one file aside, or note what forbids it. *texts* as for :func:`set_aside_others`."""
    texts = texts or {}
    if state.refuse_owned(file, "set aside"):
        return
    if file.network is not None and file.network in texts:
        if moves_addresses(file.text, texts[file.network]):
            why = "its bridge, subnet or ranges change"
            state.refuse_attached(file.network, file.name, why, texts[file.network])
    elif file.network:
        state.refuse_attached(file.network, file.name, "the network is set aside")
    managed = state.manifest.networks[file.path] if state.is_ours(file.name) else None
    network = managed["network"] if managed else file.network
    state.plan.set_aside(file.name, network or "", managed)
    if managed is None:
        state.disturbed.append(file)
    _gone(state, file)


def _gone(state: State, file: ConfFile) -> None:
    state.vacated.add(file.name)
    state.after.pop(file.name, None)


def _may_go(file: ConfFile) -> bool:
    """Tell whether `exclusive` may set a file aside: not what is no file, and not somebody's access to a cluster."""
    is_kubeconfig = "kubeconfig" in file.name.lower() or (file.error and _KUBECONFIG.search(file.text or b""))
    return not file.is_special and not is_kubeconfig


def note_packages(state: State) -> None:
    """Say of which packages the files of others are that the plan adopts or sets aside."""
    found = packages_of([file.path for file in state.disturbed])
    for file in state.disturbed:
        package = found.get(file.path)
        if package is None:
            continue
        future = "leaves it where it is put" if package.manager == DPKG else "brings the file back at its next update"
        setting = next((text for name, text in _PACKAGE_SETTINGS.items() if package.name.startswith(name)), "")
        text = "this file is of the package %s %s, which %s%s" % (package.name, package.version, future, setting)
        state.warning("package_file", text, file.name)
