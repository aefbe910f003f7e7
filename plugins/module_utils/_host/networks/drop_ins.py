# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Planning the drop-ins of networks: the files of the folder ``<conf_dir>/<network>/``.

Runtimes with libcni 1.3 append their plugins to the network's chain. They look at the folder only when they load the
network's own file, and containerd notices only a write of that file.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from ..confdir import ConfFile, drop_ins, sort_key
from .difference import moved_plugins, readable_secret, same_json
from .entries import ConfState
from .execute import ABSENT, NOT_REQUESTED
from .request import WantedNetwork


class DropInFiles:
    """Adds the steps for the drop-ins of the networks of a request."""

    def __init__(self, state: ConfState) -> None:
        self._state = state
        self._conf_dir = state.request.conf_dir

    def _managed(self) -> Dict[str, List[str]]:
        """Return the paths of the managed drop-ins, by network."""
        paths: Dict[str, List[str]] = {}
        for path, entry in sorted(self._state.manifest.networks.items()):
            if os.path.dirname(os.path.dirname(path)) == self._conf_dir and os.path.lexists(path):
                paths.setdefault(entry["network"], []).append(path)
        return paths

    def put(self, desired: WantedNetwork, target: str) -> Tuple[Any, Any]:
        """Plan the drop-ins of *desired*, whose file is *target*; return the states before and after, (None, None) for
        no change.
        """
        wanted = desired.drop_ins or {}
        state, changes = self._state, self._state.plan.changes
        present = {file.name: file for file in drop_ins(self._conf_dir, desired.name)}
        managed = [os.path.basename(path) for path in self._managed().get(desired.name, [])]
        after = dict(present)
        steps: List[Callable[[str], None]] = []
        for name, text in wanted.items():
            path = os.path.join(desired.name, name)
            current = present.get(name)
            state.plan.problems += readable_secret(text, state.request.attributes.mode, state.plan.path(path))
            if current is not None and name not in managed:
                state.error("foreign_file", "this drop-in is unmanaged; move it away, or choose another 'file'", path)
            elif current is None or current.is_link or not same_json(current.text, text):
                folder = os.path.realpath(os.path.dirname(state.plan.path(path)))
                after[name] = ConfFile(name, os.path.join(folder, name), text)
                before = None if current is None else current.text or b""
                steps.append(partial(changes.put_drop_in, desired.name, name, target, before, text))
        for name in managed:
            if name not in wanted and name in present:
                text = present[name].text or b""
                remove = partial(changes.remove_drop_in, desired.name, name, target, text, NOT_REQUESTED)
                steps.append(remove)
                del after[name]
        if after == present:
            return None, None
        state.drop_ins_after[desired.name] = [after[name] for name in sorted(after, key=sort_key)]
        words = moved_plugins(_plugins(present.values()), _plugins(after.values()))
        users = state.refuse_move(desired.name, target, words, desired.text)
        for step in steps:
            step(users)
        return {"drop_ins": sorted(present)}, {"drop_ins": sorted(after)}

    def remove_orphans(self) -> None:
        """Plan to remove the managed drop-ins of networks that lose their managed file, or that must not exist."""
        state = self._state
        kept = {state.after[name].network for name in state.ours_after()}
        # Whether libcni loads its file or not.
        kept.update(desired.name for desired in state.request.networks if desired.present)
        unwanted = [desired.name for desired in state.request.networks if not desired.present]
        for network, paths in self._managed().items():
            if network in kept or not (network in state.managed.values() or network in unwanted):
                continue
            present = {file.name: file for file in drop_ins(self._conf_dir, network)}
            for name in map(os.path.basename, paths):
                if name in present:
                    text = present.pop(name).text or b""
                    state.plan.changes.remove_drop_in(network, name, "", text, ABSENT, "")
            state.drop_ins_after[network] = list(present.values())


def _plugins(files: Iterable[Optional[ConfFile]]) -> List[Dict[str, Any]]:
    return [plugin for file in files if file is not None for plugin in file.plugins]
