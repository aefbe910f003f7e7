# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What running daemons do to files of ours: it is told of, and left."""

from __future__ import annotations

import os
from typing import List, Optional

from .confdir import ConfFile
from .confstate import State
from .injected import injected, with_injected
from .netchange import shown
from .owners import CILIUM_SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .networks import Wanted


def keep_injections(state: State, wanted: Wanted, target: str, current: Optional[ConfFile]) -> bytes:
    """Return the text to write: what is wanted, and what a running daemon has put into it."""
    if current is None or state.request.force:
        return wanted.text
    plugins = injected(current.text, wanted.text, lambda kind: state.owners.injector(kind) is not None)
    if not plugins:
        return wanted.text
    text = with_injected(wanted.text, plugins)
    state.plan.leave(target, shown(text), shown(wanted.text))
    for plugin in plugins:
        owner = state.owners.injector(plugin["type"])
        if owner is not None:
            state.warning(
                "foreign_owner",
                "%s has put its plugin %s into this list and is running (%s, process %d), so the plugin stays; if you "
                "do not want it, %s (or remove it with 'force: true', and it will be back)"
                % (owner.owner.name, plugin["type"], owner.process, owner.pid, owner.setting),
                target,
            )
    return text


def taken_by_cilium(state: State, wanted: Wanted) -> bool:
    """Note that Cilium has renamed our file, and would do so again; True if it has, and nothing is to be done."""
    taken = [
        path
        for path, entry in sorted(state.manifest.networks.items())
        if entry["network"] == wanted.name
        and os.path.dirname(path) == state.request.conf_dir
        and os.path.lexists(path + CILIUM_SUFFIX)
    ]
    cilium = state.owners.named("Cilium") if taken and not state.request.force else None
    if cilium is None:
        return False
    path = taken[0]
    state.plan.leave(os.path.basename(path), {"path": path + CILIUM_SUFFIX}, {"path": path})
    state.warning(
        "foreign_owner",
        "Cilium, which is running (%s, process %d), has renamed this file to %s, and would do so again; set "
        "cni.exclusive=false among its Helm values (cni-exclusive in the ConfigMap cilium-config) and run again"
        % (cilium.process, cilium.pid, os.path.basename(path) + CILIUM_SUFFIX),
        os.path.basename(path),
    )
    state.report(wanted, path, "foreign")
    return True


def warn_of_cilium(state: State) -> None:
    """Say so if Cilium has renamed files of others here and will probably do so with what is new."""
    new = sorted(name for name in state.after if name not in state.files)
    taken = [name for name in _names(state.request.conf_dir) if name.endswith(CILIUM_SUFFIX)] if new else []
    cilium = state.owners.named("Cilium") if taken and not state.request.force else None
    if cilium is not None:
        state.warning(
            "foreign_owner",
            "Cilium, which is running (%s, process %d), has renamed other files here, such as %s, and may do so with "
            "this one; set cni.exclusive=false among its Helm values (cni-exclusive in the ConfigMap cilium-config)"
            % (cilium.process, cilium.pid, taken[0]),
            new[0],
        )


def _names(directory: str) -> List[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []
