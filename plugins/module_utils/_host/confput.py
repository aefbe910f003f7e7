# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning of networks that are to be there."""

from __future__ import annotations

import os
from typing import Dict, List, Mapping, Optional, Tuple

from .atomic import Attributes
from .confdir import ConfFile
from .confstate import State
from .injected import injected, with_injected
from .netchange import moves_addresses, same_json, shown
from .owners import CILIUM_SUFFIX
from .plan import DISRUPTIVE, SAFE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .networks import Wanted


def target_of(state: State, wanted: Wanted) -> str:
    """Return the name of the file that is to hold the network."""
    if wanted.file:
        return wanted.file
    if wanted.priority is None:
        own = state.own_files(wanted.name)
        if own:
            return own[0].name
        for path, entry in state.manifest.networks.items():
            # The file was deleted by somebody: it comes back under the name that it had.
            if entry["network"] == wanted.name and os.path.dirname(path) == state.request.conf_dir:
                return os.path.basename(path)
        aside = _own_aside(state, wanted.name)
        if aside is not None:
            return os.path.basename(aside[1]["path"])
    return wanted.default_file()


def check_targets(state: State, targets: Mapping[str, str]) -> None:
    users: Dict[str, str] = {}
    for network, target in targets.items():
        if target in users:
            state.error(
                "file_in_use",
                "the networks %r and %r would share this file; give one of them another 'file' or 'priority'"
                % (users[target], network),
                target,
            )
        users[target] = network


def put(state: State, wanted: Wanted, target: str) -> None:
    """Plan what makes *target* hold the network."""
    own = state.own_files(wanted.name)
    if not own and _taken_by_cilium(state, wanted):
        return
    standing = state.standing(target)
    if not _may_use(state, wanted, target, standing):
        return
    plan = state.plan
    source = standing if standing in own else (own[0] if own else None)
    action, held = "none", ""
    if standing is not None and standing not in own:
        if state.is_ours(target):
            # `file` gives this file of ours to another network: the old one is gone after that.
            held = state.manifest.networks[standing.path]["network"]
            state.refuse_attached(held, target, "the file is given to the network %r" % wanted.name)
        else:
            plan.adopt(target, wanted.name, standing.text or b"")
            state.disturbed.append(standing)
            action = "adopted"
    if source is not None and source.name != target:
        plan.rename(source.name, target, wanted.name)
        state.moved(source.name, target, wanted.name, source.text)
        action = "renamed" if action == "none" else action
    elif source is None and standing is None:
        source, action = _brought_back(state, wanted.name, target)
    action = _write(state, wanted, target, source or standing, held, action)
    for extra in own:
        if extra is not source:
            plan.remove(extra.name, extra.text)
            state.after.pop(extra.name, None)
    state.report(wanted, plan.path(target), action)


def _write(state: State, wanted: Wanted, target: str, current: Optional[ConfFile], held: str, action: str) -> str:
    """Plan what makes the file right once it has its name; return the action to report.

    *held* is the network whose file of ours is given away, "" for none.
    """
    plan, wish = state.plan, state.request.attributes
    text = _kept_injections(state, wanted, target, current)
    state.after[target] = wanted.name
    if current is None:
        state.contents[target] = text
        plan.put(target, wanted.name, None, text, SAFE, replaces=False)
        return "created"
    if current.is_link or not same_json(current.text, text):
        renamed = not held and current.network is not None and current.network != wanted.name
        moved = moves_addresses(current.text, text)
        if renamed:
            # Rules and reservations of containers go by the network's name.
            why = "its name changes from %r to %r" % (current.network, wanted.name)
            state.refuse_attached(str(current.network), target, why)
        if moved and not held:
            state.refuse_attached(wanted.name, target, "its bridge, subnet or ranges change")
        step_class = DISRUPTIVE if moved or renamed or held else SAFE
        state.contents[target] = text
        plan.put(target, wanted.name, current.text, text, step_class, replaces=True)
        return "updated" if action == "none" else action
    if (current.mode, current.uid, current.gid) != (wish.mode, wish.uid, wish.gid):
        plan.set_attributes(target, Attributes(current.mode, current.uid, current.gid))
        return "attributes" if action == "none" else action
    return action


# ---- what others did to our files


def _kept_injections(state: State, wanted: Wanted, target: str, current: Optional[ConfFile]) -> bytes:
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


def _taken_by_cilium(state: State, wanted: Wanted) -> bool:
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


# ---- a file of ours that was set aside


def _own_aside(state: State, network: str) -> Optional[Tuple[str, Dict[str, str]]]:
    """Return path and record of a file of ours that `exclusive` has set aside for *network*."""
    found = [
        (aside, record)
        for aside, record in sorted(state.records().items())
        if record.get("managed") and record["network"] == network
    ]
    return found[0] if found else None


def _brought_back(state: State, network: str, target: str) -> Tuple[Optional[ConfFile], str]:
    """Plan to bring a file of ours back from aside; return it, with the action to report."""
    found = _own_aside(state, network)
    if found is None:
        return None, "none"
    aside, record = found
    file = state.read_aside(aside, target)
    state.plan.bring_back(os.path.basename(aside), target, record)
    state.contents[target] = file.text or b""
    return file, "restored"


# ---- reasons against


def _may_use(state: State, wanted: Wanted, target: str, standing: Optional[ConfFile]) -> bool:
    """Note every reason against putting the network into *target*; True if there is none."""
    before = len(state.plan.problems)
    for foreign in state.foreign_files(wanted.name):
        # What is in the way goes aside anyway with `exclusive`.
        if (foreign.name != target or not wanted.file) and not state.request.exclusive:
            state.error("duplicate_name", _duplicate_text(wanted, foreign), foreign.name)
    if target in state.vacated:
        return len(state.plan.problems) == before
    if standing is None and os.path.lexists(state.plan.path(target)):
        state.error("not_regular", "a directory stands where the network's file belongs; remove it", target)
    elif standing is not None and not state.is_ours(target):
        _check_foreign_target(state, wanted, target, standing)
    elif standing is not None:
        _check_own_target(state, wanted, target)
    return len(state.plan.problems) == before


def _duplicate_text(wanted: Wanted, foreign: ConfFile) -> str:
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


def _check_foreign_target(state: State, wanted: Wanted, target: str, standing: ConfFile) -> None:
    if standing.is_link or standing.is_special:
        text = "is a link or a special file that is not ours; remove it, or choose another 'file'"
        state.error("not_regular", text, target)
    elif not wanted.file:
        if standing.network != wanted.name:
            state.error(
                "foreign_file",
                "this file is not ours and stands where the network %r belongs; adopt it with 'file: %s' (its original "
                "is kept), or choose another 'priority' or 'file'" % (wanted.name, target),
                target,
            )
    elif standing.network not in (None, wanted.name) and not state.request.force:
        state.error(
            "file_in_use",
            "this file, which is not ours, holds the network %r; choose another 'file' for %r, or take it over "
            "with 'force: true' (its original is kept)" % (standing.network, wanted.name),
            target,
        )
    else:
        state.refuse_owned(standing, "adopted")


def _check_own_target(state: State, wanted: Wanted, target: str) -> None:
    holder = state.manifest.networks[state.plan.path(target)]["network"]
    if holder == wanted.name:
        return
    if any(other.present and other.name == holder for other in state.request.networks) or not wanted.file:
        state.error(
            "file_in_use",
            "this file holds our network %r, so %r cannot have it; choose another 'file' or 'priority', or move %r "
            "in a task before this one" % (holder, wanted.name, holder),
            target,
        )
