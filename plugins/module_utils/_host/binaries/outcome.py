# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan for the plugin binaries of one directory, and its report."""

from __future__ import annotations

import os
from typing import Any, Container, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

from ..errors import HostError
from ..files import Directory
from ..lock import LOCK_PATH, Lock
from ..manifest import Manifest
from ..plan import SAFE, Plan, Step
from ..trust import check_trusted
from .batch import (
    INSTALL,
    REMOVE,
    REPLACE,
    RESTORE,
    SET_ATTRIBUTES,
    Contents,
    PluginBatch,
    PluginChange,
    Record,
    make_bin_dir,
    record_plugin,
)
from .store import FILE, MISSING, FoundPlugin, Store

_ACTIONS = {
    INSTALL: "installed",
    REPLACE: "replaced",
    REMOVE: "removed",
    RESTORE: "restored",
    SET_ATTRIBUTES: "attributes",
}


class WantedPlugins:
    """The desired plugins.

    ``files`` is name -> sha256, ``archive`` None or ``{sha256, sha512, plugins}`` of the archive that they are from.
    ``contents`` yields the content of those in ``shipped``, see batch.Contents.
    """

    def __init__(
        self,
        files: Mapping[str, str],
        archive: Record = None,
        contents: Optional[Contents] = None,
        shipped: Iterable[str] = (),
    ) -> None:
        self.files = dict(files)
        self.archive = archive
        self.contents = contents
        self.shipped = set(shipped)


class Where(NamedTuple):
    """Where the networks and attachments are that need plugins. ``force``: breaking them is only a warning."""

    conf_dir: str
    bin_dirs: Sequence[str]
    cache_dir: str
    force: bool


class PluginsPlan(Plan):
    """A plan for the plugins of *bin_dir*. ``settled``: entries of the manifest that an interrupted run left behind."""

    def __init__(self, bin_dir: str, manifest: Manifest, wanted: Optional[WantedPlugins] = None) -> None:
        super().__init__()
        _check_bin_dir(bin_dir)
        self.manifest = manifest
        self.store = Store(bin_dir, manifest)
        self.batch = PluginBatch(
            self.store, manifest, wanted.contents if wanted else None, wanted.shipped if wanted else ()
        )
        self.settled: Dict[str, Record] = {}
        self._report: Dict[str, Dict[str, Any]] = {}

    def keep_as_is(self, name: str, found: FoundPlugin, versions: Optional[List[str]] = None) -> None:
        """Report a plugin that needs no change."""
        versions = versions or self.store.cni_versions(name, found)
        self._note(name, found.sha256 if found.kind == FILE else None, versions, "none")

    def change(self, change: PluginChange, step_class: str = SAFE) -> None:
        """Add a step for *change* and report it."""
        if not self.steps and change.kind != REMOVE and not os.path.lexists(self.store.bin_dir):
            state = {"mode": "0755", "owner": "0:0"}
            self.add(
                Step("make_directory", self.store.bin_dir, SAFE, None, state, lambda: make_bin_dir(self.store.bin_dir))
            )
        target = change.target
        after = None
        if target is not None and "link" in target:
            after = {"link": target["link"]}
        elif target is not None:
            after = _describe(target["sha256"], target["mode"], target["uid"], target["gid"], self._versions(change))
        found = change.found
        before = None
        if found.kind == FILE:
            versions = self.store.cni_versions(change.name, found)
            before = _describe(found.sha256, found.mode, found.uid, found.gid, versions)
        elif found.kind != MISSING:
            before = {"link": found.link}
        self.batch.changes.append(change)
        path = self.store.path(change.name)
        self.add(Step(change.kind, path, step_class, before, after, lambda: self.batch.commit(change)))
        sha256 = None if target is None else target.get("sha256")
        self._note(change.name, sha256, self._versions(change), _ACTIONS[change.kind])
        # The answers to VERSION while the plan is applied become part of the report and the diff.
        change.report, change.shown = self._report[change.name], after

    def restrict(self, classes: Container[str]) -> None:
        super().restrict(classes)
        if self.left:
            for change in self.batch.changes:
                there = change.found.sha256 if change.found.kind == FILE else None
                versions = self.store.cni_versions(change.name, change.found) if there else None
                self._note(change.name, there, versions, "left")

    def _versions(self, change: PluginChange) -> Optional[List[str]]:
        target = change.target or {"sha256": None}
        known: Optional[List[str]] = target.get("cni_versions")
        return known or self.store.cni_versions(change.name, FoundPlugin(FILE, str(target.get("sha256"))))

    def _note(self, name: str, sha256: Optional[str], versions: Optional[List[str]], action: str) -> None:
        self._report[name] = {
            "name": name,
            "path": self.store.path(name),
            "sha256": sha256,
            "cni_versions": versions,
            "action": action,
        }

    def report(self) -> List[Dict[str, Any]]:
        """Return ``[{name, path, sha256, cni_versions, action}]``; after a run with the answers to VERSION."""
        return [self._report[name] for name in sorted(self._report)]

    def apply(self, workers: int = 1) -> None:
        """Execute the steps one after another: nothing goes live before everything is staged and tested."""
        try:
            super().apply(1)
            self._settle()
            self.batch.finish()
        finally:
            self.batch.close()

    def _settle(self) -> None:
        for path, entry in self.settled.items():
            record_plugin(self.manifest.binaries, path, entry)
        self.manifest.versions.update(self.store.learned)

    def remember(self, seen: Dict[str, Any], lock_path: str = LOCK_PATH) -> None:
        """Save what an unchanged run found out, so that the next one is faster; a failure does not matter.

        *seen* is the lock's state from before this plan was made. If another module has applied changes since then,
        nothing is saved.
        """
        archive = self.batch.archive
        if archive is not None and archive["sha256"] in self.manifest.archives:
            archive = None
        if not (self.settled or self.store.learned or archive):
            return
        try:
            with Lock("cni_plugins", 0, seen, lock_path) as lock:
                if not lock.moved:
                    self._settle()
                    self.batch.note_archive()
                    self.manifest.save()
        except HostError:
            return


def _check_bin_dir(path: str) -> None:
    if os.path.lexists(path):
        with Directory(path):
            check_trusted(path)


def _describe(sha256: str, mode: int, uid: int, gid: int, versions: Optional[List[str]]) -> Dict[str, Any]:
    return {
        "sha256": sha256,
        "mode": "%04o" % mode,
        "owner": "%d:%d" % (uid, gid),
        "cni_versions": " ".join(versions) if versions else None,
    }
