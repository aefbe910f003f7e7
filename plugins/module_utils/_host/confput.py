# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning of networks that are to be there."""

from __future__ import annotations

import os
from typing import Optional, Tuple

from .atomic import Attributes
from .confdir import ConfFile
from .confforeign import keep_injections, taken_by_cilium
from .confstate import State
from .conftarget import may_use, own_aside
from .netchange import moves_addresses, same_json
from .plan import DISRUPTIVE, SAFE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .networks import Wanted


def put(state: State, wanted: Wanted, target: str) -> None:
    """Plan what makes *target* hold the network."""
    own = state.own_files(wanted.name)
    if not own and taken_by_cilium(state, wanted):
        return
    standing = state.standing(target)
    if not may_use(state, wanted, target, standing):
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
    text = keep_injections(state, wanted, target, current)
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
            state.refuse_attached(wanted.name, target, "its bridge, subnet or ranges change", text)
        step_class = DISRUPTIVE if moved or renamed or held else SAFE
        state.contents[target] = text
        plan.put(target, wanted.name, current.text, text, step_class, replaces=True)
        return "updated" if action == "none" else action
    if (current.mode, current.uid, current.gid) != (wish.mode, wish.uid, wish.gid):
        plan.set_attributes(target, Attributes(current.mode, current.uid, current.gid))
        return "attributes" if action == "none" else action
    return action


def _brought_back(state: State, network: str, target: str) -> Tuple[Optional[ConfFile], str]:
    """Plan to bring a file of ours back from aside; return it, with the action to report."""
    found = own_aside(state, network)
    if found is None:
        return None, "none"
    aside, record = found
    file = state.read_aside(aside, target)
    state.plan.bring_back(os.path.basename(aside), target, record)
    state.contents[target] = file.text or b""
    return file, "restored"
