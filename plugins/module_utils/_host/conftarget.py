# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which file a network belongs in, and what speaks against it."""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional, Tuple

from .confdir import ConfFile
from .confstate import State

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
        aside = own_aside(state, wanted.name)
        if aside is not None:
            return os.path.basename(str(aside[1]["path"]))
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


def own_aside(state: State, network: str) -> Optional[Tuple[str, Dict[str, Any]]]:
    """Return path and record of a file of ours that `exclusive` has set aside for *network*."""
    found = [
        (aside, record)
        for aside, record in sorted(state.records().items())
        if record.get("managed") and record["network"] == network
    ]
    return found[0] if found else None


def may_use(state: State, wanted: Wanted, target: str, standing: Optional[ConfFile]) -> bool:
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
