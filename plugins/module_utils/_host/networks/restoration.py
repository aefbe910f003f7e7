# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning which files to restore: those that were set aside, and the originals of adopted ones."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Set, Tuple

from ..confdir import ConfFile, parse_conf
from ..errors import HostError
from .difference import moved, would_change
from .state import ConfState
from .steps import PREVIOUS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request import WantedNetwork

Entry = Dict[str, Any]


class _Return:
    """The files that are restored for one entry of the request, and the networks of those files."""

    def __init__(self, state: ConfState, wanted: WantedNetwork) -> None:
        self.state = state
        self.wanted = wanted
        self.networks: Set[str] = {wanted.name} if wanted.name else set()
        self.names: List[str] = []
        self.foreign: List[ConfFile] = []
        self.removed = False

    def means(self, network: str, path: str) -> bool:
        """Tell whether the entry asks for *network* at *path*; if it names both, both must match."""
        if self.wanted.name and self.wanted.name != network:
            return False
        return not self.wanted.file or os.path.basename(path) == self.wanted.file


def restore_network(state: ConfState, wanted: WantedNetwork) -> Set[str]:
    """Plan to restore the files of the network of *wanted*, or what was at its file name.

    Returns the names of all files that `exclusive` must leave. A managed file is removed if an unmanaged file of the
    same network is restored; a managed file that replaced nothing stays.
    """
    work = _Return(state, wanted)
    for aside, record in _newest(state, work):
        _bring_back(work, aside, record)
    for file in list(state.files.values()):
        if state.is_managed(file.name) and file.name not in state.vacated | state.replaced:
            entry = state.manifest.networks[file.path]
            original = entry.get("original")
            if original and work.means(entry["network"], original.get("path", file.path)):
                work.networks.add(entry["network"])
                _bring_original(work, file, file.name, original)
    _remove_managed(work)
    there = [file for file in state.files.values() if _is_meant(work, file)]
    path = state.plan.path(work.names[0]) if work.names else (there[0].path if there else None)
    action = "restored" if work.names else ("removed" if work.removed else "none")
    state.report(wanted, path, action, ", ".join(sorted(work.networks)))
    return {file.name for file in there}.union(work.names)


def _is_meant(work: _Return, file: ConfFile) -> bool:
    return file.name == work.wanted.file or (file.network is not None and file.network in work.networks)


def _newest(state: ConfState, work: _Return) -> List[Tuple[str, Entry]]:
    """Return the files set aside that *work* asks for; of several with one original path, the latest."""
    newest: Dict[str, Tuple[str, Entry]] = {}
    for aside, record in sorted(state.records().items()):
        if work.means(record["network"], record["path"]):
            known = newest.get(record["path"])
            if known is None or os.lstat(aside).st_ctime_ns > os.lstat(known[0]).st_ctime_ns:
                newest[record["path"]] = (aside, record)
    return [newest[path] for path in sorted(newest)]


def _bring_back(work: _Return, aside: str, record: Entry) -> None:
    state = work.state
    if record["network"]:
        work.networks.add(record["network"])
    name = os.path.basename(record["path"])
    file = state.read_aside(aside, name)
    managed = record.get("managed") or {}
    if managed.get("original"):
        # The managed file had replaced an unmanaged one, which is the file to restore.
        _bring_original(work, file, os.path.basename(aside), managed["original"])
        return
    standing = state.standing(name)
    if not _is_free(work, name, file, standing) or (managed and standing is not None):
        return
    if standing is not None:
        _refuse_move(state, standing, file)
        state.replaced.add(name)
    replaced = None if standing is None else standing.text or b""
    state.plan.changes.bring_back(os.path.basename(aside), name, record, replaced, file.text)
    _will_stand(work, file, bool(managed))


def _bring_original(work: _Return, managed: ConfFile, current: str, original: Entry) -> None:
    """Plan to restore the kept original of the file *managed*, which has the name *current* now."""
    state = work.state
    path = original.get("path", managed.path)
    name = os.path.basename(path)
    file = ConfFile(name, path)
    with state.manifest.kept(original["sha256"]) as stream:
        file.text = stream.read()
    try:
        parse_conf(file, file.text)
    except HostError as error:
        file.error = error.msg
    standing = None if name == current else state.standing(name)
    # An interrupted run may have restored it already.
    there = standing is not None and standing.text == file.text and not state.is_managed(name)
    if name != current and not there and not _is_free(work, name, file, standing):
        return
    users = _refuse_move(state, managed, file)
    state.plan.changes.restore_original(name, current, original, (managed.text or b"", file.text), there, users)
    state.after.pop(current, None)
    if current in state.files:
        (state.replaced if name == current else state.vacated).add(current)
    _will_stand(work, file, False)


def _will_stand(work: _Return, file: ConfFile, managed: bool) -> None:
    work.state.after[file.name] = file.network
    work.state.contents[file.name] = file.text or b""
    work.names.append(file.name)
    if not managed:
        work.foreign.append(file)


def _is_free(work: _Return, name: str, file: ConfFile, standing: Optional[ConfFile]) -> bool:
    """Tell whether *file* can be restored to *name*, where *standing* is now.

    If it cannot, the reason is noted, unless it is there already.
    """
    state = work.state
    if standing is None:
        if name in state.after and name not in state.files:
            state.error("file_in_use", "cannot restore this file: another network of this task is written to it", name)
            return False
        if name not in state.vacated and os.path.lexists(state.plan.path(name)):
            state.error("not_regular", "cannot restore this file: a directory is in its place; remove it", name)
            return False
        return True
    if state.is_managed(name):
        holder = state.manifest.networks[standing.path]["network"]
        if holder in work.networks:
            return True
        text = (
            f"cannot restore the previous file: this one holds the managed network {holder!r}; remove {holder!r} first"
        )
        state.error("file_in_use", text, name)
        return False
    if standing.network != file.network:
        text = "cannot restore the file that was set aside: another file is in its place; move one of them away"
        state.error("file_in_use", text, name)
    return False


def _refuse_move(state: ConfState, managed: ConfFile, file: ConfFile) -> str:
    words = moved(managed.text, file.text or b"") if managed.network else []
    if not words:
        return ""
    return state.refuse_attached(str(managed.network), managed.name, would_change(words), file.text)


def _remove_managed(work: _Return) -> None:
    """Plan to remove managed files whose networks are in unmanaged files again."""
    state = work.state
    for network in sorted(work.networks):
        foreign = [file for file in work.foreign if file.network == network] or state.unmanaged_files(network)
        if not foreign:
            continue
        for file in state.managed_files(network):
            if file.name in state.after and file.name not in work.names:
                _refuse_move(state, file, foreign[0])
                state.plan.changes.remove(file.name, file.text, PREVIOUS)
                state.vacated.add(file.name)
                state.after.pop(file.name)
                work.removed = True
