# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Plans to remove the plugin binaries of one directory, or to restore those that they replaced."""

from __future__ import annotations

import copy
import os
from typing import Any, Dict, Iterable, List, Optional

from ..errors import HostError
from ..hostview import HostView
from ..plan import DISRUPTIVE, SAFE
from .batch import REMOVE, RESTORE, PluginChange
from .outcome import PluginsPlan, Where
from .planner import NOTHING_MANAGED, not_regular
from .store import DISPLACED, MANAGED, MISSING, ORIGINAL, OTHER, Record, latest, release_facts, without, without_release


def plan_absent(bin_dir: str, names: Iterable[str], view: HostView, where: Where) -> PluginsPlan:
    """Plan to remove the plugins *names*.

    Raises HostError ``foreign_file`` for an unmanaged file, ``plugin_in_use`` for a needed plugin, both unless
    *where* has force.
    """
    plan = PluginsPlan(bin_dir, view.sound_manifest())
    changes = []
    for name in sorted(set(names)):
        current = plan.store.find(name)
        entry = plan.store.entry(name)
        if current.kind == OTHER:
            raise not_regular(plan.store.path(name))
        if current.kind == MISSING:
            plan.keep_as_is(name, current)
            if entry is not None and not entry["gone"]:
                plan.settled[name] = _gone(entry, MANAGED)
            continue
        change = PluginChange(name, REMOVE, current, None)
        if current.is_managed(entry) and entry is not None:
            change.during = dict(entry, gone=True)
            change.after = _gone(entry, MANAGED)
        elif not where.force:
            raise _foreign(plan.store.path(name), "remove it")
        else:
            gone = dict(entry or NOTHING_MANAGED, gone=True)
            gone["history"] = without(gone, MANAGED)
            # A file that came after the managed one was removed, or where none ever was, can be restored.
            first = latest(gone, ORIGINAL) is None and (entry is None or entry["gone"])
            change.keep = ORIGINAL if first else DISPLACED
            change.during = change.after = gone
        changes.append(change)
    _add_removals(plan, changes, view, where, "state is absent")
    return plan


def _gone(entry: Dict[str, Any], *origins: str) -> Record:
    """Return the entry of a plugin that is no longer managed, without the kept files of *origins*; None for no file."""
    history = without(entry, *origins)
    return dict(entry, gone=True, history=history) if history else None


def _add_removals(plan: PluginsPlan, changes: List[PluginChange], view: HostView, where: Where, reason: str) -> None:
    removed = [change.name for change in changes if change.kind == REMOVE]
    used: Dict[str, List[str]] = {}
    if removed:
        from .versions import plugin_in_use, users_of

        used = users_of(removed, view, where, plan.store.bin_dir)
        if used and not where.force:
            raise plugin_in_use(used)
    for change in changes:
        plan.change(change, DISRUPTIVE if change.name in used else SAFE, reason if change.kind == REMOVE else "")


def plan_restored(bin_dir: str, names: Optional[Iterable[str]], view: HostView, where: Where) -> PluginsPlan:
    """Plan to restore the files that the plugins *names* (None: all managed ones) replaced.

    That is the previous version; with force, the file from before the first managed one. Plugins that replaced
    nothing are removed. Raises HostError ``foreign_file`` and ``plugin_in_use``, both unless *where* has force.
    """
    manifest = view.sound_manifest()
    plan = PluginsPlan(bin_dir, manifest)
    if names is None:
        names = [
            os.path.basename(path)
            for path, entry in manifest.binaries.items()
            # A removed plugin without an original has an entry only for a file that had displaced it.
            if os.path.dirname(path) == bin_dir and (not entry["gone"] or latest(entry, ORIGINAL) is not None)
        ]
    changes = []
    for name in sorted(set(names)):
        current = plan.store.find(name)
        entry = plan.store.entry(name)
        if entry is None or (entry["gone"] and current.kind != MISSING and not current.is_managed(entry)):
            plan.keep_as_is(name, current)
            continue
        target = latest(entry, ORIGINAL) if where.force else latest(entry, ORIGINAL, MANAGED)
        after = _restored(entry, target)
        if current.is_exactly(target):
            plan.keep_as_is(name, current)
            if after != entry:
                plan.settled[name] = after
            continue
        if current.kind == OTHER:
            raise not_regular(plan.store.path(name))
        change = PluginChange(name, REMOVE if target is None else RESTORE, current, copy.deepcopy(target))
        change.after = after
        # A file that will be unmanaged is marked as gone first, so that it never counts as managed.
        change.during = dict(entry, gone=True) if after is None or after["gone"] else dict(entry)
        if current.kind != MISSING and not current.is_managed(entry) and not current.is_kept(target):
            if not where.force:
                raise _foreign(plan.store.path(name), "restore the previous file")
            change.keep = DISPLACED
            change.after = after or dict(entry, gone=True, history=[])
        changes.append(change)
    _add_removals(plan, changes, view, where, "it replaced no file")
    return plan


def _restored(entry: Dict[str, Any], target: Record) -> Record:
    """Return the manifest's entry when *target* is restored: none if it is unmanaged or nothing, else the older one."""
    if target is None or target["origin"] == ORIGINAL:
        return _gone(entry, ORIGINAL, MANAGED)
    of_file = {key: target[key] for key in ("sha256", "archive", "cni_versions")}
    return {**without_release(entry), **of_file, **release_facts(target), "gone": False}


def _foreign(path: str, what: str) -> HostError:
    return HostError(
        f"{path} is not the file that this collection installed, so it was left alone. Set 'force: true' to {what} "
        "anyway; a copy is then kept in the state directory",
        code="foreign_file",
    )
