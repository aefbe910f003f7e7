# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan for the plugin binaries of one directory, and its report."""

from __future__ import annotations

import os
import stat
import time
from typing import (
    Any,
    BinaryIO,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

from ..errors import HostError
from ..files import TEMP_SUFFIX, Attributes, Directory, Staged, make_directory, stage
from ..lock import LOCK_PATH, Lock
from ..manifest import Manifest, digest_of
from ..plan import SAFE, Plan, Step
from ..trust import check_executable, check_trusted, elf_machine, host_machine
from .store import FILE, LINK, MISSING, SETTLING, FoundPlugin, Store, ask_version

Contents = Callable[[Iterable[str]], Iterator[Tuple[str, BinaryIO]]]
"""Yields ``(name, stream)`` for each of the given names; each stream is read before the next is asked for."""

Record = Optional[Dict[str, Any]]

INSTALL = "install"
REPLACE = "replace"
REMOVE = "remove"
RESTORE = "restore"
SET_ATTRIBUTES = "set_attributes"


class PluginChange:
    """The change of one plugin.

    ``kind`` is one of the constants above, ``found`` the current file, ``target`` the record (see Manifest) of the
    desired one, None to remove it. ``keep`` has the slots of the manifest's entry (``replaced``, ``original``,
    ``displaced``) that get the current file. ``during`` and ``after`` are the manifest's entry while the change happens
    and when it is done (None: no entry). ``report`` (in the result) and ``shown`` (in the diff) are what a user sees.
    """

    def __init__(self, name: str, kind: str, found: FoundPlugin, target: Record) -> None:
        self.name = name
        self.kind = kind
        self.found = found
        self.target = target
        self.keep: List[str] = []
        self.during: Record = None
        self.after: Record = None
        self.staged: Optional[Staged] = None
        self.report: Record = None
        self.shown: Record = None

    def answered(self, versions: List[str]) -> None:
        """Note the new binary's answer to VERSION in the manifest's entry and in everything that is shown."""
        for place in (self.during, self.after, self.report):
            if place is not None:
                place["cni_versions"] = versions
        if self.shown is not None:
            self.shown["cni_versions"] = " ".join(versions)


class PluginBatch:
    """The changes of one run, in the order of their steps. *contents* yields the new binaries; see Contents."""

    def __init__(
        self, store: Store, manifest: Manifest, contents: Optional[Contents], from_contents: Iterable[str]
    ) -> None:
        self.store = store
        self.manifest = manifest
        self.changes: List[PluginChange] = []
        self.archive: Record = None
        # Called when the versions of all new binaries are known and none is live; an exception ends the run.
        self.preflight: Callable[[], None] = lambda: None
        self._contents = contents
        self._from_contents = set(from_contents)
        self._directory: Optional[Directory] = None

    def commit(self, change: PluginChange) -> None:
        """Make *change* live. The first call prepares all of them."""
        directory = self._prepare()
        if change.kind == REMOVE:
            directory.remove(change.name)
        elif change.kind == SET_ATTRIBUTES:
            _set_attributes(directory, change)
        elif change.staged is not None:
            change.staged.publish()
            change.staged = None

    def _prepare(self) -> Directory:
        if self._directory is None:
            self._directory = Directory(self.store.bin_dir)
            self._directory.remove_stale_temps()
            self.manifest.remove_stale_temps()
            self._stage_all(self._directory)
            self.preflight()
            for change in self.changes:
                self._keep(change)
                record_plugin(self.manifest.binaries, self.store.path(change.name), change.during)
            self.note_archive()
            self.manifest.save()
        return self._directory

    def note_archive(self) -> None:
        """Put the contents of the archive into the manifest, so that no later run has to read the archive."""
        if self.archive is not None:
            self.manifest.archives[self.archive["sha256"]] = {k: self.archive[k] for k in ("sha512", "plugins")}

    def _stage_all(self, directory: Directory) -> None:
        new = {c.name: c for c in self.changes if c.kind in (INSTALL, REPLACE)}
        shipped = sorted(set(new) & self._from_contents)
        if shipped and self._contents is not None:
            for name, stream in self._contents(shipped):
                _stage_new(directory, new.pop(name), stream)
        for change in new.values():
            with self.manifest.kept(_sha256(change)) as stream:
                _stage_new(directory, change, stream)
        for change in self.changes:
            if change.kind != RESTORE or change.target is None:
                continue
            if "link" in change.target:
                change.staged = _stage_link(directory, change)
            else:
                with self.manifest.kept(_sha256(change)) as stream:
                    change.staged = stage(directory, change.name, stream, _attributes(change))

    def _keep(self, change: PluginChange) -> None:
        if not change.keep:
            return
        record: Dict[str, Any]
        if change.found.kind == LINK:
            record = {"link": change.found.link}
        else:
            record = dict(self.manifest.keep(self.store.path(change.name)), archive=None, cni_versions=None)
            entry = self.store.entry(change.name)
            if entry is not None and change.found.sha256 == entry["sha256"]:
                record.update(archive=entry["archive"], cni_versions=entry["cni_versions"])
        for entry in (change.during, change.after):
            if entry is not None:
                entry.update(dict.fromkeys(change.keep, record))

    def finish(self) -> None:
        """Write the manifest as it is after all changes, and remove what is no longer needed."""
        if self._directory is None:
            return
        for change in self.changes:
            record_plugin(self.manifest.binaries, self.store.path(change.name), change.after)
        self._learn()
        # Saved first: the manifest on disk must not refer to files that are gone.
        self.manifest.save()
        self.manifest.prune()
        self.manifest.save()

    def _learn(self) -> None:
        """Read the new files, so that the next run does not have to."""
        time.sleep(1.5 * SETTLING / 10**9)
        fresh = Store(self.store.bin_dir, self.manifest)
        for change in self.changes:
            found = fresh.find(change.name)
            versions = fresh.cni_versions(change.name, found)
            if versions:
                fresh.learn(change.name, found.sha256, versions)
        self.manifest.versions.update(fresh.learned)

    def close(self) -> None:
        """Remove files that were staged and not published."""
        for change in self.changes:
            if change.staged is not None:
                change.staged.discard()
                change.staged = None
        if self._directory is not None:
            os.close(self._directory.fd)
            self._directory = None


def make_bin_dir(path: str) -> None:
    """Create the directory, owned by root and with mode 0755."""
    make_directory(path, 0o755)


def record_plugin(entries: Dict[str, Dict[str, Any]], path: str, entry: Record) -> None:
    """Write, or with None remove, an entry of the manifest."""
    if entry is None:
        entries.pop(path, None)
    else:
        entries[path] = entry


def _sha256(change: PluginChange) -> str:
    return str(change.target["sha256"]) if change.target else ""


def _attributes(change: PluginChange) -> Attributes:
    target = change.target or {}
    return Attributes(target["mode"], target["uid"], target["gid"])


def _stage_new(directory: Directory, change: PluginChange, stream: BinaryIO) -> None:
    """Stage a binary as root's own, test it, then give it its owner and mode."""
    change.staged = stage(directory, change.name, stream, Attributes(0o755, os.geteuid(), os.getegid()))
    path = change.staged.path
    with open(path, "rb") as staged:
        machine = elf_machine(staged)
        staged.seek(0)
        sha256 = digest_of(staged)
    if sha256 != _sha256(change):
        raise HostError(
            f"{change.name} arrived with the sha256 {sha256} instead of {_sha256(change)}; nothing was installed. Run "
            "again",
            code="damaged_transfer",
        )
    if machine != host_machine():
        raise HostError(
            f"{change.name} is built for {machine}, but this host is {host_machine()}; nothing was installed",
            code="wrong_machine",
        )
    check_executable(path)
    try:
        change.answered(ask_version(path, directory.join(change.name)))
    except HostError as error:
        raise HostError(
            f"the new {change.name} does not run on this host, so nothing was installed: {error.msg}. If it is not a "
            f"CNI plugin, leave it out with 'plugins'; if {directory.path} is mounted noexec, use another bin_dir",
            code="plugin_failed",
        ) from error
    attributes = _attributes(change)
    os.chown(path, attributes.uid, attributes.gid)
    os.chmod(path, attributes.mode)


def _stage_link(directory: Directory, change: PluginChange) -> Staged:
    temp = f".{change.name}.{os.urandom(6).hex()}{TEMP_SUFFIX}"
    os.symlink((change.target or {})["link"], temp, dir_fd=directory.fd)
    return Staged(directory, temp, change.name)


def _set_attributes(directory: Directory, change: PluginChange) -> None:
    fd = os.open(change.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory.fd)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise HostError(
                f"{directory.join(change.name)} is no longer a regular file; run again", code="host_changed"
            )
        attributes = _attributes(change)
        # The owner first: changing it clears set-id bits.
        os.fchown(fd, attributes.uid, attributes.gid)
        os.fchmod(fd, attributes.mode)
        os.fsync(fd)
    finally:
        os.close(fd)


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
    ``contents`` yields the content of those in ``shipped``, see batch.Contents. ``release`` is the official one that
    they are from, such as 1.9.1, "" if that is not known.
    """

    def __init__(
        self,
        files: Mapping[str, str],
        archive: Record = None,
        contents: Optional[Contents] = None,
        shipped: Iterable[str] = (),
        release: str = "",
    ) -> None:
        self.files = dict(files)
        self.archive = archive
        self.contents = contents
        self.shipped = set(shipped)
        self.release = release


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
        self._release = wanted.release if wanted else ""
        self._report: Dict[str, Dict[str, Any]] = {}

    def keep_as_is(self, name: str, found: FoundPlugin, versions: Optional[List[str]] = None) -> None:
        """Report a plugin that needs no change."""
        versions = versions or self.store.cni_versions(name, found)
        self._note(name, found.sha256 if found.kind == FILE else None, versions, "none")

    def change(self, change: PluginChange, step_class: str = SAFE, reason: str = "") -> None:
        """Add a step for *change* and report it; *reason*: why the plugin is removed."""
        if not self.steps and change.kind != REMOVE and not os.path.lexists(self.store.bin_dir):
            self._add_directory(self.store.bin_dir)
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
        reason = reason or self._reason(change, before, after)
        self.add(Step(change.kind, path, step_class, before, after, lambda: self.batch.commit(change), reason=reason))
        sha256 = None if target is None else target.get("sha256")
        self._note(change.name, sha256, self._versions(change), _ACTIONS[change.kind])
        # The answers to VERSION while the plan is applied become part of the report and the diff.
        change.report, change.shown = self._report[change.name], after

    def _add_directory(self, path: str) -> None:
        state = {"mode": "0755", "owner": "0:0"}
        step = Step("make_directory", path, SAFE, None, state, lambda: make_bin_dir(path), reason="does not exist")
        self.add(step)

    def _reason(self, change: PluginChange, before: Record, after: Record) -> str:
        """Return how the current file differs from the desired one."""
        if change.kind == RESTORE:
            return "the previous file is wanted"
        if change.found.kind == MISSING:
            return "not installed"
        if change.found.kind == LINK:
            return "is a symbolic link"
        if change.kind == SET_ATTRIBUTES:
            # Imported late: unchanged runs do not need it.
            from ..changes import change_in_words

            return change_in_words(before, after)
        here = self.store.release(change.name, change.found)
        if here and self._release and here != self._release:
            return f"is release {here}, want {self._release}"
        return f"sha256 differs from {self._release}" if self._release else "its content differs"

    def leave_out(self, steps: Iterable[Step]) -> None:
        super().leave_out(steps)
        if self.left:
            for change in self.batch.changes:
                there = change.found.sha256 if change.found.kind == FILE else None
                versions = self.store.cni_versions(change.name, change.found) if there else None
                self._note(change.name, there, versions, "left")

    def expected(self) -> Dict[str, Optional[List[str]]]:
        """Return for the path of each binary that a step changes: the spec versions of the new one, None for no file.

        The list is empty if only a run can tell.
        """
        return {
            self.store.path(change.name): (self._versions(change) or []) if change.target is not None else None
            for change in ([] if self.left else self.batch.changes)
        }

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
        "mode": f"{mode:04o}",
        "owner": f"{uid}:{gid}",
        "cni_versions": " ".join(versions) if versions else None,
    }
