# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The plan to install plugin binaries in one directory."""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, List, Optional

from ..errors import HostError
from ..files import Attributes, check_group
from ..hostview import HostView
from ..manifest import Manifest
from .outcome import PluginsPlan, Where
from .store import DISPLACED, MANAGED, MISSING, ORIGINAL, OTHER, FoundPlugin, Record, latest, without, without_release

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .batch import PluginChange
    from .store import WantedPlugins

# The manifest's entry of a path that never had a managed binary.
NOTHING_MANAGED: Dict[str, Any] = {
    "sha256": "",
    "archive": None,
    "cni_versions": None,
    "gone": False,
    "history": [],
}


class ContentMissing(Exception):
    """The plan must write binaries whose content is not available on the host; the text has their names."""


def known_archive(manifest: Manifest, algorithm: str, digits: str) -> Record:
    """Return ``{sha256, sha512, plugins}`` of an archive that an earlier run has read, None for another archive."""
    for sha256, entry in manifest.archives.items():
        if digits == (sha256 if algorithm == "sha256" else entry.get("sha512")):
            return dict(entry, sha256=sha256)
    return None


def plan_present(
    bin_dir: str,
    desired: WantedPlugins,
    attributes: Attributes,
    view: HostView,
    check_mode: bool,
    where: Optional[Where] = None,
) -> PluginsPlan:
    """Plan to install the *desired* plugins in *bin_dir* with these *attributes*.

    *where* names the networks and attachments that they must not break. Raises ContentMissing if a run would have to
    write binaries that are neither in the contents nor kept on the host, and HostError ``unsafe_permissions``,
    ``path_is_link``, ``not_regular`` or ``network_unsupported``.
    """
    manifest = view.manifest
    plan = PluginsPlan(bin_dir, manifest, desired, check_mode)
    try:
        check_group(attributes)
    except HostError as error:
        plan.refuse(error, check_mode)
    if manifest.error is not None:
        plan.refuse(manifest.error, check_mode)
    missing = []
    for name, sha256 in sorted(desired.files.items()):
        try:
            current = plan.store.find(name)
            if current.kind == OTHER:
                raise not_regular(plan.store.path(name))
        except HostError as error:
            plan.refuse(error, check_mode)
            continue
        target = {"sha256": sha256, "mode": attributes.mode, "uid": attributes.uid, "gid": attributes.gid}
        if current.is_exactly(target):
            _already_there(plan, name, current, desired)
            continue
        from .batch import INSTALL, REPLACE, SET_ATTRIBUTES, PluginChange

        if current.is_kept(target):
            kind = SET_ATTRIBUTES
        else:
            kind = INSTALL if current.kind == MISSING else REPLACE
            if name not in desired.shipped and not manifest.has_kept(sha256):
                missing.append(name)
        change = PluginChange(name, kind, current, target)
        versions = plan.store.cni_versions(name, current) if kind == SET_ATTRIBUTES else None
        _record_install(change, plan.store.entry(name), desired.archive, versions)
        plan.change(change)
    if missing and not check_mode:
        raise ContentMissing(", ".join(missing))
    if where is not None and plan.steps:
        from .versions import refuse_unsupported

        plan.batch.preflight = partial(refuse_unsupported, plan.batch, view, where, plan.warn)
        # The versions of binaries that the host has kept are known before the run.
        try:
            plan.batch.preflight()
        except HostError as error:
            plan.refuse(error, check_mode)
    return plan


def _already_there(plan: PluginsPlan, name: str, current: FoundPlugin, desired: WantedPlugins) -> None:
    entry = plan.store.entry(name)
    versions = None
    try:
        versions = plan.store.ask(name, current)
    except HostError as error:
        plan.warn(error.code, f"{plan.store.path(name)} has the desired content, but does not run: {error.msg}")
    plan.keep_as_is(name, current, versions)
    if entry is not None and not entry["gone"] and entry["sha256"] != current.sha256 and current.is_managed(entry):
        # An interrupted run got as far as the manifest.
        archive = desired.archive["sha256"] if desired.archive else None
        known = without_release(entry)
        plan.settled[name] = dict(known, sha256=current.sha256, archive=archive, cni_versions=versions)


def _record_install(change: PluginChange, entry: Record, archive: Record, versions: Optional[List[str]]) -> None:
    """Set the manifest's future entry, and as what it keeps the current file."""
    from .batch import SET_ATTRIBUTES

    current = change.current
    new = dict(entry or NOTHING_MANAGED) if change.kind == SET_ATTRIBUTES else without_release(entry or NOTHING_MANAGED)
    new.update(sha256=(change.target or {})["sha256"], archive=None, cni_versions=versions, gone=False)
    if archive is not None:
        new["archive"] = archive["sha256"]
    if current.kind == MISSING or any(map(current.is_kept, without(new, DISPLACED))):
        pass  # nothing is there, or an interrupted run has kept it already
    elif entry is None or (entry["gone"] and latest(entry, ORIGINAL) is None):
        change.keep = ORIGINAL
    elif not current.is_managed(entry):
        change.keep = DISPLACED
    elif change.kind != SET_ATTRIBUTES:
        change.keep = MANAGED
    change.during = change.after = new


def not_regular(path: str) -> HostError:
    return HostError(
        f"{path} is a directory or a special file; nothing was changed. Move it away and run again",
        code="not_regular",
    )
