# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans for the plugin binaries of one directory: install, remove or restore them."""

from __future__ import annotations

import copy
import os
from functools import partial
from typing import Any, Dict, Iterable, List, Optional, Tuple

from ..errors import HostError
from ..files import Attributes
from ..hostview import HostView
from ..manifest import Manifest
from ..plan import DISRUPTIVE, SAFE
from .outcome import (
    INSTALL,
    REMOVE,
    REPLACE,
    RESTORE,
    SET_ATTRIBUTES,
    PluginChange,
    PluginsPlan,
    Record,
    WantedPlugins,
    Where,
)
from .store import MISSING, OTHER, FoundPlugin

# The manifest's entry of a path that never had a managed binary.
_NOTHING_MANAGED: Dict[str, Any] = {
    "sha256": "",
    "archive": None,
    "cni_versions": None,
    "gone": False,
    "replaced": None,
    "original": None,
    "displaced": None,
}


class ContentMissing(Exception):
    """The plan must write binaries whose content is not available on the host: *names*."""

    def __init__(self, names: List[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


def known_archive(manifest: Manifest, algorithm: str, digits: str) -> Record:
    """Return ``{sha256, sha512, plugins}`` of an archive that an earlier run has read, None for another archive."""
    for sha256, entry in manifest.archives.items():
        if digits == (sha256 if algorithm == "sha256" else entry.get("sha512")):
            return dict(entry, sha256=sha256)
    return None


def plan_present(
    bin_dir: str,
    wanted: WantedPlugins,
    attributes: Attributes,
    view: HostView,
    check_mode: bool,
    where: Optional[Where] = None,
) -> PluginsPlan:
    """Plan to install the *wanted* plugins in *bin_dir* with these *attributes*.

    *where* names the networks and attachments that they must not break. Raises ContentMissing if a run would have to
    write binaries that are neither in the contents nor kept on the host, and HostError ``unsafe_permissions``,
    ``path_is_link``, ``not_regular`` or ``network_unsupported``.
    """
    manifest = view.manifest
    plan = PluginsPlan(bin_dir, manifest, wanted)
    if manifest.error is not None:
        plan.refuse(manifest.error, check_mode)
    if attributes.uid != 0:
        plan.warn("owner_not_root", "modules of this collection run only plugins that root owns")
    plan.batch.archive = wanted.archive
    missing = []
    for name, sha256 in sorted(wanted.files.items()):
        try:
            found = plan.store.find(name)
            if found.kind == OTHER:
                raise _not_regular(plan.store.path(name))
        except HostError as error:
            plan.refuse(error, check_mode)
            continue
        target = {"sha256": sha256, "mode": attributes.mode, "uid": attributes.uid, "gid": attributes.gid}
        if found.is_exactly(target):
            _already_there(plan, name, found, wanted)
            continue
        if found.is_kept(target):
            kind = SET_ATTRIBUTES
        else:
            kind = INSTALL if found.kind == MISSING else REPLACE
            if name not in wanted.shipped and not manifest.has_kept(sha256):
                missing.append(name)
        change = PluginChange(name, kind, found, target)
        versions = plan.store.cni_versions(name, found) if kind == SET_ATTRIBUTES else None
        _record_install(change, plan.store.entry(name), wanted.archive, versions)
        plan.change(change)
    if missing and not check_mode:
        raise ContentMissing(missing)
    if where is not None and plan.batch.changes:
        # Imported here because only a change needs it.
        from .versions import refuse_unsupported

        plan.batch.preflight = partial(refuse_unsupported, plan.batch, view, where, plan.warn)
        # The versions of binaries that the host has kept are known before the run.
        try:
            plan.batch.preflight()
        except HostError as error:
            plan.refuse(error, check_mode)
    return plan


def _already_there(plan: PluginsPlan, name: str, found: FoundPlugin, wanted: WantedPlugins) -> None:
    entry = plan.store.entry(name)
    versions = None
    try:
        versions = plan.store.ask(name, found)
    except HostError as error:
        plan.warn(error.code, f"{plan.store.path(name)} has the desired content, but does not run: {error.msg}")
    plan.keep_as_is(name, found, versions)
    if entry is not None and not entry["gone"] and entry["sha256"] != found.sha256 and found.is_managed(entry):
        # An interrupted run got as far as the manifest.
        archive = wanted.archive["sha256"] if wanted.archive else None
        plan.settled[plan.store.path(name)] = dict(entry, sha256=found.sha256, archive=archive, cni_versions=versions)


def _record_install(change: PluginChange, entry: Record, archive: Record, versions: Optional[List[str]]) -> None:
    """Set the manifest's future entry, and the slots that keep the current file."""
    found = change.found
    new: Dict[str, Any] = dict(entry or _NOTHING_MANAGED)
    new.update(sha256=(change.target or {})["sha256"], archive=None, cni_versions=versions, gone=False)
    if archive is not None:
        new["archive"] = archive["sha256"]
    if found.kind == MISSING or found.is_kept(new["replaced"]) or found.is_kept(new["original"]):
        pass  # nothing is there, or an interrupted run has kept it already
    elif entry is None or (entry["gone"] and entry["original"] is None):
        change.keep = ["replaced", "original"]
    elif not found.is_managed(entry):
        change.keep = ["displaced"]
    elif change.kind != SET_ATTRIBUTES:
        change.keep = ["replaced"]
    change.during = change.after = new


def plan_absent(
    bin_dir: str, names: Iterable[str], view: HostView, conf_dir: str, cache_dir: str, force: bool
) -> PluginsPlan:
    """Plan to remove the plugins *names*.

    Raises HostError ``foreign_file`` for an unmanaged file, ``plugin_in_use`` for a needed plugin, both unless *force*.
    """
    plan = PluginsPlan(bin_dir, view.sound_manifest())
    changes = []
    for name in sorted(set(names)):
        found = plan.store.find(name)
        entry = plan.store.entry(name)
        if found.kind == OTHER:
            raise _not_regular(plan.store.path(name))
        if found.kind == MISSING:
            plan.keep_as_is(name, found)
            if entry is not None and not entry["gone"]:
                plan.settled[plan.store.path(name)] = _gone(entry)
            continue
        change = PluginChange(name, REMOVE, found, None)
        if found.is_managed(entry) and entry is not None:
            change.during = dict(entry, gone=True)
            change.after = _gone(entry)
        elif not force:
            raise _foreign(plan.store.path(name), "remove it")
        else:
            gone = dict(entry or _NOTHING_MANAGED, gone=True)
            gone["replaced"] = gone["original"]
            # A file that came after the managed one was removed, or where none ever was, can be restored.
            first = gone["original"] is None and (entry is None or entry["gone"])
            change.keep = ["replaced", "original"] if first else ["displaced"]
            change.during = change.after = gone
        changes.append(change)
    _add_removals(plan, changes, view, (conf_dir, cache_dir), force, "state is absent")
    return plan


def _gone(entry: Dict[str, Any]) -> Record:
    """Return the entry of a managed plugin after its removal: it has only what can be restored."""
    if entry["original"] is None and entry["displaced"] is None:
        return None
    return dict(entry, gone=True, replaced=entry["original"])


def _add_removals(
    plan: PluginsPlan,
    changes: List[PluginChange],
    view: HostView,
    directories: Tuple[str, str],
    force: bool,
    reason: str,
) -> None:
    removed = [change.name for change in changes if change.kind == REMOVE]
    used: Dict[str, List[str]] = {}
    if removed:
        # Imported here because only a removal needs it.
        from .versions import plugin_in_use, users_of

        used = users_of(removed, view, *directories)
        if used and not force:
            raise plugin_in_use(used)
    for change in changes:
        plan.change(change, DISRUPTIVE if change.name in used else SAFE, reason if change.kind == REMOVE else "")


def plan_restored(
    bin_dir: str, names: Optional[Iterable[str]], view: HostView, conf_dir: str, cache_dir: str, force: bool
) -> PluginsPlan:
    """Plan to restore the files that the plugins *names* (None: all managed ones) replaced.

    That is the previous version; with *force*, the file from before the first managed one. Plugins that replaced
    nothing are removed. Raises HostError ``foreign_file`` and ``plugin_in_use``, both unless *force*.
    """
    manifest = view.sound_manifest()
    plan = PluginsPlan(bin_dir, manifest)
    if names is None:
        names = [
            os.path.basename(path)
            for path, entry in manifest.binaries.items()
            # A removed plugin without an original has an entry only for a file that had displaced it.
            if os.path.dirname(path) == bin_dir and (not entry["gone"] or entry["original"] is not None)
        ]
    changes = []
    for name in sorted(set(names)):
        found = plan.store.find(name)
        entry = plan.store.entry(name)
        if entry is None or (entry["gone"] and found.kind != MISSING and not found.is_managed(entry)):
            plan.keep_as_is(name, found)
            continue
        target = entry["original"] if force else entry["replaced"]
        after = _restored(entry, target)
        if found.is_exactly(target):
            plan.keep_as_is(name, found)
            if after != entry:
                plan.settled[plan.store.path(name)] = after
            continue
        if found.kind == OTHER:
            raise _not_regular(plan.store.path(name))
        change = PluginChange(name, REMOVE if target is None else RESTORE, found, copy.deepcopy(target))
        change.after = after
        # A file that will be unmanaged is marked as gone first, so that it never counts as managed.
        change.during = dict(entry, gone=True) if after is None or after["gone"] else dict(entry)
        if found.kind != MISSING and not found.is_managed(entry) and not found.is_kept(target):
            if not force:
                raise _foreign(plan.store.path(name), "restore the previous file")
            change.keep = ["displaced"]
            change.after = after or dict(entry, gone=True, replaced=None, original=None)
        changes.append(change)
    _add_removals(plan, changes, view, (conf_dir, cache_dir), force, "it replaced no file")
    return plan


def _restored(entry: Dict[str, Any], target: Record) -> Record:
    """Return the manifest's entry when *target* is restored: none if it is unmanaged or nothing, else the older one."""
    if target is None or target == entry["original"]:
        return dict(entry, gone=True, replaced=None, original=None) if entry["displaced"] else None
    return dict(
        entry, sha256=target["sha256"], archive=target["archive"], cni_versions=target["cni_versions"], gone=False
    )


def _foreign(path: str, what: str) -> HostError:
    return HostError(
        f"{path} is not the file that this collection installed, so it was left alone. Set 'force: true' to {what} "
        "anyway; a copy is then kept in the state directory",
        code="foreign_file",
    )


def _not_regular(path: str) -> HostError:
    return HostError(
        f"{path} is a directory or a special file; nothing was changed. Move it away and run again",
        code="not_regular",
    )
