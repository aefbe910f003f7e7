# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The plan for the plugin binaries of one directory, and its report."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ...libcni.files import open_file
from ..errors import HostError
from ..files import Directory, make_directory
from ..lock import LOCK_PATH, Lock
from ..manifest import Manifest
from ..plan import DISRUPTIVE, SAFE, Plan, Step
from ..trust import SCRIPT, check_directory, plugin_machine
from .store import FILE, LINK, MISSING, FoundPlugin, Record, Store, WantedPlugins, release_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .batch import PluginBatch, PluginChange


Desired = Union[WantedPlugins, HostError]
"""The desired plugins, or why they are not known."""


class Where(NamedTuple):
    """Where the networks and attachments are that need plugins. ``force``: breaking them is only a warning."""

    conf_dir: str
    bin_dirs: Sequence[str]
    cache_dir: str
    force: bool


class PluginsPlan(Plan):
    """A plan for the plugins of *bin_dir*. ``settled``: entries, by plugin, that an interrupted run left behind."""

    def __init__(
        self, bin_dir: str, manifest: Manifest, desired: Optional[WantedPlugins] = None, check_mode: bool = False
    ) -> None:
        super().__init__()
        if os.path.lexists(bin_dir):
            with Directory(bin_dir):
                check_directory(bin_dir, self.refuse, check_mode)
        self.manifest = manifest
        self.store = Store(bin_dir, manifest)
        self.settled: Dict[str, Record] = {}
        self._wanted = desired or WantedPlugins({})
        self._batch: Optional[PluginBatch] = None
        self._report: Dict[str, Dict[str, Any]] = {}

    @property
    def batch(self) -> PluginBatch:
        if self._batch is None:
            from .batch import PluginBatch

            self._batch = PluginBatch(self.store, self._wanted)
        return self._batch

    def keep_as_is(self, name: str, current: FoundPlugin, versions: Optional[List[str]] = None) -> None:
        """Report a plugin that needs no change."""
        versions = versions or self.store.cni_versions(name, current)
        self._note(name, current.sha256 if current.kind == FILE else None, versions, "none")

    def change(self, change: PluginChange, step_class: str = SAFE, reason: str = "") -> None:
        """Add a step for *change* and report it; *reason*: why the plugin is removed.

        What may be a downgrade is never safe.
        """
        from .batch import ACTIONS, INSTALL, REMOVE, REPLACE

        if not self.steps and change.kind != REMOVE and not os.path.lexists(self.store.bin_dir):
            state, make = {"mode": "0755", "owner": "0:0"}, partial(make_directory, self.store.bin_dir, 0o755)
            self.add(Step("make_directory", self.store.bin_dir, SAFE, None, state, make, reason="does not exist"))
        target, releases = change.target, self._releases(change)
        # Releases that are equal do not tell the files apart.
        alike = releases[0] == releases[1] and change.kind not in (INSTALL, REMOVE)
        after = None if target is None else _describe(target, releases[1], alike)
        missing = change.current.kind == MISSING
        before = None if missing else _describe(change.current._asdict(), releases[0], alike)
        self.batch.changes.append(change)
        path = self.store.path(change.name)
        verdict = self._compare(change, *releases)
        agreed = self._agreed(change, verdict[0])
        reason = reason or self._reason(change, (before, after), releases, verdict, agreed)
        step_class = DISRUPTIVE if verdict[1] or agreed else step_class
        change.release = releases[0]
        if change.kind in (INSTALL, REPLACE) and change.after is not None:
            change.after.update(release_facts({"release": releases[1], "installed_by": self._wanted.installed_by}))
        step = Step(change.kind, path, step_class, before, after, lambda: self.batch.commit(change), reason=reason)
        step.row = change.name
        self.add(step)
        self._note(change.name, (target or {}).get("sha256"), self._versions(change), ACTIONS[change.kind])
        # The answers to VERSION while the plan is applied become part of it.
        change.report = self._report[change.name]

    def _releases(self, change: PluginChange) -> Tuple[str, str]:
        """Return the releases of the present file and of the one after the change, "" for one that is not known."""
        from .batch import REMOVE, SET_ATTRIBUTES

        if change.kind == SET_ATTRIBUTES:
            return "", ""
        if change.kind == REMOVE:
            return self.store.release(change.name, change.current.sha256), ""
        name, sha256, folder = change.name, str((change.target or {}).get("sha256", "")), self._wanted.folder
        before = self.store.release(name, change.current.sha256, self.store.path(name))
        after = self._wanted.release or self.store.release(name, sha256, os.path.join(folder, name) if folder else "")
        return before, after

    def _compare(self, change: PluginChange, before: str, after: str) -> Tuple[Optional[bool], str]:
        """Return whether the new file is newer than the present one, None if that is not known, and why it is not safe.

        One of the same release is safe, and so is the installed one where somebody has replaced it.
        """
        from .batch import REPLACE, RESTORE

        if before and after:
            from .usable import release_numbers

            old, new = release_numbers(before), release_numbers(after)
            return new > old, "a downgrade" if new < old else ""
        entry, target = self.store.entry(change.name) or {}, change.target or {}
        installed = not entry.get("gone") and entry.get("sha256") == target.get("sha256")
        if change.kind not in (REPLACE, RESTORE) or change.current.kind == MISSING or installed:
            return None, ""
        from ...libcni.version import ALL

        present, supported = (
            [version for version in ALL if version in (versions or ())]
            for versions in (self.store.cni_versions(change.name, change.current), self._versions(change))
        )
        if not present or not supported or present[-1] == supported[-1]:
            return None, "not known to be newer"
        if ALL.index(supported[-1]) > ALL.index(present[-1]):
            return True, ""
        lost = ", ".join(version for version in present if version not in supported)
        return False, f"it no longer supports CNI {lost}, a downgrade"

    def _agreed(self, change: PluginChange, newer: Optional[bool]) -> str:
        """Return who has installed the present file, "" for nobody, or if the inventory has moved on to a *newer* one.

        It has not if it has the file that was replaced then.
        """
        from .batch import REPLACE

        entry = self.store.entry(change.name) or {}
        if change.kind != REPLACE or self._wanted.installed_by or entry.get("sha256") != change.current.sha256:
            return ""
        replaced = [record["sha256"] for record in entry.get("history", ()) if record.get("sha256")]
        moved_on = newer and (change.target or {}).get("sha256") not in replaced
        return "" if moved_on else str(entry.get("installed_by") or "")

    def _reason(
        self,
        change: PluginChange,
        shown: Tuple[Any, Any],
        releases: Tuple[str, str],
        verdict: Tuple[Any, str],
        agreed: str,
    ) -> str:
        """Return how the present file differs from the desired one; *verdict*: see _compare, *agreed*: by whom."""
        from .batch import RESTORE, SET_ATTRIBUTES

        if change.kind == SET_ATTRIBUTES:
            from ..changes import change_in_words

            return change_in_words(*shown)
        desired, (newer, words) = self._wanted.release, verdict
        if all(releases) and releases[0] != releases[1]:
            words = " to ".join(releases) + (", a downgrade" if words else "")
        if change.kind == RESTORE:
            return f"the previous file is wanted; {words}" if words else "the previous file is wanted"
        if change.current.kind == MISSING:
            return "not installed"
        if change.current.kind == LINK:
            return f"is a symbolic link; {words}" if words else "is a symbolic link"
        if agreed:
            (before, after), older = releases, words and newer is False
            says = f"says {after}" if after not in ("", before) else f"has {'an older' if older else 'another'} one"
            return f"upgraded{f' to {before}' if before else ''} by {agreed}; the inventory {says}"
        if not all(releases):
            differs = f"sha256 differs from {desired}" if desired else "content differs"
            return f"{differs}; {words}" if words else differs
        return words or f"sha256 differs from {releases[1]}"

    def leave_out(self, steps: Iterable[Step]) -> None:
        super().leave_out(steps)
        if self.left:
            for change in self.batch.changes:
                sha256 = change.current.sha256 if change.current.kind == FILE else None
                versions = self.store.cni_versions(change.name, change.current) if sha256 else None
                self._note(change.name, sha256, versions, "left")

    def expected(self) -> Dict[str, Optional[List[str]]]:
        """Return for the path of each binary that a step changes: the spec versions of the new one, None for no file.

        The list is empty if only a run can tell.
        """
        return {
            self.store.path(change.name): (self._versions(change) or []) if change.target is not None else None
            for change in (self._batch.changes if self._batch is not None and not self.left else [])
        }

    def _versions(self, change: PluginChange) -> Optional[List[str]]:
        target = change.target or {"sha256": None}
        known: Optional[List[str]] = target.get("cni_versions")
        return known or self.store.cni_versions(change.name, FoundPlugin(FILE, str(target.get("sha256"))))

    def _note(self, name: str, sha256: Optional[str], versions: Optional[List[str]], action: str) -> None:
        self._report[name] = {
            "name": name,
            "path": self.store.path(name),
            "kind": self._kind(name),
            "sha256": sha256,
            "cni_versions": versions,
            "action": action,
        }

    def _kind(self, name: str) -> Optional[str]:
        """Return "elf" or "script": what the source has, else what is there; None if nothing is."""
        if name in self._wanted.files:
            return SCRIPT if name in self._wanted.scripts else "elf"
        try:
            with open_file(self.store.path(name)) as stream:
                machine = plugin_machine(stream)
        except (OSError, ValueError):
            return None
        return machine if machine in (None, SCRIPT) else "elf"

    @property
    def present(self) -> List[str]:
        """The plugins that the directory has after the plan, of those that it is about."""
        return sorted(name for name, row in self._report.items() if row["sha256"])

    def report(self) -> List[Dict[str, Any]]:
        """Return ``[{name, path, kind, sha256, cni_versions, action}]``; after a run with the answers to VERSION."""
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
        for name, entry in self.settled.items():
            self.store.record(name, entry)
        self.manifest.versions.update(self.store.learned)

    def remember(self, seen: Dict[str, Any], lock_path: str = LOCK_PATH) -> None:
        """Save what an unchanged run found out, so that the next one is faster; a failure does not matter.

        *seen* is the lock's state from before this plan was made. If another module has applied changes since then,
        nothing is saved.
        """
        archive = self._wanted.archive
        if archive is not None and archive["sha256"] in self.manifest.archives:
            archive = None
        if not (self.settled or self.store.learned or archive):
            return
        try:
            with Lock("cni_plugins", 0, seen, lock_path) as lock:
                if not lock.moved:
                    self._settle()
                    self.store.note_archive(archive)
                    self.manifest.save()
        except HostError:
            return


def _describe(file: Mapping[str, Any], release: str, alike: bool) -> Dict[str, Any]:
    """Return what a diff shows of a file or link; *alike*: only its content tells it from the other one."""
    if file.get("link"):
        return {"version": f"link to {file['link']}"}
    version = release or "version unknown"
    return {
        "version": f"{version}, sha256 {str(file['sha256'])[:12]}" if alike else version,
        "mode": f"{file['mode']:04o}",
        "owner": f"{file['uid']}:{file['gid']}",
    }
