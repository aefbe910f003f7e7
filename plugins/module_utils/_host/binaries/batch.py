# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The changes of the plugin binaries of one directory. All are staged and tested before the first goes live."""

from __future__ import annotations

import os
import stat
import time
from typing import Any, BinaryIO, Callable, Dict, List, Optional

from ..errors import HostError
from ..files import TEMP_SUFFIX, Attributes, Directory, Staged, stage
from ..manifest import SETTLING, digest_of
from ..struct import struct
from ..trust import SCRIPT, check_plugin, host_machine, plugin_machine
from .store import LINK, MANAGED, ORIGINAL, FoundPlugin, Record, Store, WantedPlugins, release_facts, without
from .usable import ask_version

INSTALL = "install"
REPLACE = "replace"
REMOVE = "remove"
RESTORE = "restore"
SET_ATTRIBUTES = "set_attributes"


@struct
class PluginChange:
    """The change of one plugin.

    ``kind`` is one of the constants above, ``current`` the present file, ``target`` the record (see Manifest) of the
    desired one, None to remove it. ``keep`` is the origin with which the manifest's entry keeps the current file, "" if
    it does not, and ``release`` that file's release, if it is known. ``during`` and ``after`` are the manifest's entry
    while the change happens and when it is done (None: no entry). ``report`` is what a user sees in the result.
    """

    name: str
    kind: str
    current: FoundPlugin
    target: Record
    keep: str = ""
    release: str = ""
    during: Record = None
    after: Record = None
    staged: Optional[Staged] = None
    report: Record = None

    def answered(self, versions: List[str]) -> None:
        """Note the new binary's answer to VERSION in the manifest's entry and in the result."""
        for place in (self.during, self.after, self.report):
            if place is not None:
                place["cni_versions"] = versions


class PluginBatch:
    """The changes of one run, in the order of their steps.

    *desired* are the plugins that it installs.
    """

    def __init__(self, store: Store, desired: WantedPlugins) -> None:
        self.store = store
        self.manifest = store.manifest
        self.changes: List[PluginChange] = []
        self.desired = desired
        # Called when the versions of all new binaries are known and none is live; an exception ends the run.
        self.preflight: Callable[[], None] = lambda: None
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
                self.store.record(change.name, change.during)
            self.store.note_archive(self.desired.archive)
            self.manifest.save()
        return self._directory

    def _stage_all(self, directory: Directory) -> None:
        new = {c.name: c for c in self.changes if c.kind in (INSTALL, REPLACE)}
        shipped = sorted(set(new).intersection(self.desired.shipped))
        if shipped and self.desired.contents is not None:
            for name, stream in self.desired.contents(shipped):
                _stage_new(directory, new.pop(name), stream)
        for change in new.values():
            with self.manifest.kept(_sha256(change)) as stream:
                _stage_new(directory, change, stream)
        for change in self.changes:
            if change.kind != RESTORE or change.target is None:
                continue
            if "link" in change.target:
                temp = f".{change.name}.{os.urandom(6).hex()}{TEMP_SUFFIX}"
                os.symlink((change.target or {})["link"], temp, dir_fd=directory.fd)
                change.staged = Staged(directory, temp, change.name)
            else:
                with self.manifest.kept(_sha256(change)) as stream:
                    change.staged = stage(directory, change.name, stream, _attributes(change))

    def _keep(self, change: PluginChange) -> None:
        if not change.keep:
            return
        record: Dict[str, Any]
        # An older version is of no use once the file before the first one is another.
        outdated = (ORIGINAL, MANAGED) if change.keep == ORIGINAL else (change.keep,)
        if change.current.kind == LINK:
            record = {"origin": change.keep, "link": change.current.link}
        else:
            kept = self.manifest.keep(self.store.path(change.name))
            record = {"origin": change.keep, **kept, "archive": None, "cni_versions": None}
            entry = self.store.entry(change.name)
            if entry is not None and change.current.sha256 == entry["sha256"]:
                record.update(release_facts(entry), archive=entry["archive"], cni_versions=entry["cni_versions"])
            if change.release:
                record["release"] = change.release
        for entry in (change.during, change.after):
            if entry is not None:
                entry["history"] = [*without(entry, *outdated), record]

    def finish(self) -> None:
        """Write the manifest as it is after all changes, and remove what is no longer needed."""
        if self._directory is None:
            return
        for change in self.changes:
            self.store.record(change.name, change.after)
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
            current = fresh.find(change.name)
            versions = fresh.cni_versions(change.name, current)
            if versions:
                fresh.learn(change.name, current.sha256, versions)
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
        machine = plugin_machine(staged)
        staged.seek(0)
        sha256 = digest_of(staged)
    if sha256 != _sha256(change):
        raise HostError(
            f"{change.name} arrived with the sha256 {sha256} instead of {_sha256(change)}; nothing was installed. Run "
            "again",
            code="damaged_transfer",
        )
    if machine not in (SCRIPT, host_machine()):
        raise HostError(
            f"{change.name} is built for {machine}, but this host is {host_machine()}; nothing was installed",
            code="wrong_machine",
        )
    check_plugin(path)
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


def _set_attributes(directory: Directory, change: PluginChange) -> None:
    fd = os.open(change.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory.fd)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            text = f"{directory.join(change.name)} is no longer a regular file; run again"
            raise HostError(text, code="host_changed")
        attributes = _attributes(change)
        # The owner first: changing it clears set-id bits.
        os.fchown(fd, attributes.uid, attributes.gid)
        os.fchmod(fd, attributes.mode)
        os.fsync(fd)
    finally:
        os.close(fd)


ACTIONS = {
    INSTALL: "installed",
    REPLACE: "replaced",
    REMOVE: "removed",
    RESTORE: "restored",
    SET_ATTRIBUTES: "attributes",
}
