# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The steps that change a directory of network configurations, and how they are applied."""

from __future__ import annotations

import contextlib
import hashlib
import os
from functools import partial
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..errors import HostError
from ..files import Attributes, Directory, make_directory, stage, write
from ..manifest import Manifest
from ..plan import DISRUPTIVE, FOREIGN, SAFE, Plan, Step
from .difference import difference_in_words, shown_change, shown_conflist

ABSENT = "state is absent"
NOT_REQUESTED = "is not one of the requested files"
REPLACED = "a requested network replaces it"
PREVIOUS = "the previous file is wanted"

ASIDE_SUFFIX = ".podwire-aside"


class ReadChange(NamedTuple):
    """What a step does to the files that runtimes read: which name it vacates, and which it fills ("": none).

    ``drop_ins`` is the network whose drop-ins it changes.
    """

    vacates: str = ""
    fills: str = ""
    drop_ins: str = ""


class ConfSteps:
    """Adds steps to *plan* and executes them. ``file_changes`` are those of them that change what runtimes read.

    The manifest has a file before the file goes live; after the steps, entries without a file are removed again.
    """

    def __init__(self, plan: Plan, conf_dir: str, manifest: Manifest, attributes: Attributes) -> None:
        self._plan = plan
        self.conf_dir = conf_dir
        self.manifest = manifest
        self.attributes = attributes
        self._intents: Dict[str, Dict[str, Any]] = {}
        self._touched: Set[str] = set()
        self._adopted: Set[str] = set()
        self._vacated: Set[str] = set()
        # The paths that were managed before the steps.
        self._known: Set[str] = set()
        self._directory: Optional[Directory] = None
        self.file_changes: List[Tuple[Step, ReadChange]] = []

    def path(self, name: str) -> str:
        return os.path.join(self.conf_dir, name)

    def claims(self, path: str) -> bool:
        """Tell whether a step makes the file at *path* managed."""
        return path in self._intents

    # ---- planning

    def make_directory(self) -> None:
        action = partial(make_directory, self.conf_dir, 0o755)
        self._step("make_directory", self.conf_dir, "does not exist", (None, {"mode": "0755"}), action)

    def put(
        self, name: str, network: str, before: Optional[bytes], after: bytes, replaces: bool, users: str = ""
    ) -> None:
        """Write a managed file; *replaces*: a file is expected to be there, with whatever content.

        *users* are the attachments that this moves.
        """
        path = self.path(name)
        self._own(path, network, hashlib.sha256(after).hexdigest())

        def action() -> None:
            if not replaces:
                self._expect_nothing(path)
            self._claim(path)
            write(self._open(), name, after, self.attributes)
            self._loaded(path)

        if replaces:
            states: Tuple[Any, Any] = shown_change(before, after)
            reason = difference_in_words(before, after)
            self._step("write", path, reason, states, action, users, ReadChange(fills=name))
        else:
            states = None, shown_conflist(after)
            self._step("create", path, "does not exist", states, action, users, ReadChange(fills=name))

    def rename(self, old: str, new: str, network: str) -> None:
        """Rename a managed file; the new name is free, or that of a file adopted just before."""
        old_path, new_path = self.path(old), self.path(new)
        entry = self.manifest.networks[old_path]
        replaces = new_path in self._adopted
        self._own(new_path, network, entry["sha256"])
        if not replaces:
            self._intents[new_path]["original"] = entry.get("original")
        self._touched.add(old_path)

        def action() -> None:
            if not replaces:
                self._expect_nothing(new_path)
            elif entry.get("original"):
                # The entry of the new name keeps the original of the adopted file.
                self._return_original(old, network, entry["original"])
            self._claim(new_path)
            self._open().rename(old, new)
            self._loaded(new_path)

        states = {"path": old_path}, {"path": new_path}
        self._step("rename", old_path, f"want the name {new}", states, action, change=ReadChange(old, new))

    def adopt(self, name: str, network: str, text: bytes) -> None:
        """Adopt an unmanaged file, which holds *text*. The original is kept before the manifest has the file."""
        path = self.path(name)
        self._adopted.add(path)
        self._own(path, network, hashlib.sha256(text).hexdigest())

        def action() -> None:
            entry = self._intents[path]
            entry["original"] = dict(self.manifest.keep(path), path=path)
            self.manifest.networks[path] = entry
            self.manifest.save()

        self._step("adopt", path, "is not managed yet", ({"managed": False}, {"managed": True}), action)

    def set_attributes(self, name: str, before: Attributes) -> None:
        def action() -> None:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._open().fd)
            try:
                os.fchown(fd, self.attributes.uid, self.attributes.gid)
                os.fchmod(fd, self.attributes.mode)
            finally:
                os.close(fd)

        from ..changes import change_in_words

        states = _describe(before), _describe(self.attributes)
        self._step("set_attributes", self.path(name), change_in_words(*states), states, action)

    def remove(self, name: str, before: Optional[bytes], reason: str = ABSENT) -> None:
        """Remove a managed file. If it replaced an adopted one, the original is written again, set aside."""
        path = self.path(name)
        self._touched.add(path)
        original = self.manifest.networks[path].get("original")
        network = self.manifest.networks[path]["network"]

        def action() -> None:
            if original:
                self._return_original(name, network, original)
            self._open().remove(name)

        states = shown_conflist(before or b""), None
        self._step("remove", path, reason, states, action, change=ReadChange(name))

    def put_drop_in(
        self, network: str, name: str, conflist: str, before: Optional[bytes], after: bytes, users: str
    ) -> None:
        """Write a drop-in of *network*, whose file is *conflist*; *before* is the present content, None for none.

        *users* are the attachments that this moves.
        """
        folder = self.path(network)
        path = os.path.join(folder, name)
        self._own(path, network, hashlib.sha256(after).hexdigest())

        def action() -> None:
            if before is None:
                self._expect_nothing(path)
            self._unload(conflist)
            make_directory(folder, 0o755)
            with Directory(folder) as directory:
                directory.remove_stale_temps()
                write(directory, name, after, self.attributes)

        if before is None:
            states: Tuple[Any, Any] = None, shown_conflist(after)
            self._step("create", path, "does not exist", states, action, users, ReadChange(drop_ins=network))
        else:
            reason, states = difference_in_words(before, after), shown_change(before, after)
            self._step("write", path, reason, states, action, users, ReadChange(drop_ins=network))

    def remove_drop_in(self, network: str, name: str, conflist: str, before: bytes, why: str, users: str) -> None:
        """Remove a managed drop-in, and its folder if nothing else is in it. *users* are those that this moves."""
        folder = self.path(network)
        path = os.path.join(folder, name)
        self._touched.add(path)

        def action() -> None:
            self._unload(conflist)
            with Directory(folder) as directory:
                directory.remove(name)
            with contextlib.suppress(OSError):
                os.rmdir(folder)

        states = shown_conflist(before), None
        self._step("remove", path, why, states, action, users, ReadChange(drop_ins=network))

    def write_again(self, name: str, text: bytes, states: Tuple[Any, Any]) -> None:
        """Write a managed file with the content that it has, so that runtimes notice its drop-ins."""
        path = self.path(name)

        def action() -> None:
            self._claim(path)
            write(self._open(), name, text, self.attributes)
            self._loaded(path)

        self._step("write", path, "runtimes read its drop-ins only when it is written", states, action)

    def _unload(self, conflist: str) -> None:
        """Record that runtimes have not noticed the drop-ins of a file, before they change."""
        entry = self.manifest.networks.get(self.path(conflist))
        if entry is not None and not entry.get("unread"):
            entry["unread"] = True
            self.manifest.save()

    def _loaded(self, path: str) -> None:
        # It is saved after the steps; a crash before costs one more write.
        self.manifest.networks.get(path, {}).pop("unread", None)

    def set_aside(self, name: str, network: str, managed: Optional[Dict[str, Any]], reason: str) -> None:
        """Rename a file so that no runtime reads it; the manifest records how to restore it.

        *managed* is the manifest's entry of a managed file, which stays managed.
        """
        path = self.path(name)
        aside = self._aside_name(name)
        self._vacated.add(path)

        def action() -> None:
            self._record_aside(aside, path, network, managed)
            self._open().rename(name, aside)
            if managed:
                self.manifest.networks.pop(path, None)

        states = {"path": path}, {"path": self.path(aside)}
        self._step("set_aside", path, reason, states, action, change=ReadChange(name))

    def bring_back(
        self,
        aside: str,
        name: str,
        record: Dict[str, Any],
        replaced: Optional[bytes] = None,
        text: Optional[bytes] = None,
        reason: str = PREVIOUS,
    ) -> None:
        """Rename a file that was set aside back to *name*.

        *text* is its content. *replaced* is the content of the managed file that it replaces, None for none.
        """
        path = self.path(name)
        managed = record.get("managed")
        if managed:
            self._intents[path] = dict(managed)
            self._touched.add(path)

        def action() -> None:
            if replaced is None:
                self._expect_nothing(path)
            else:
                self._yield(path, replaced)
            self._claim(path)
            self._open().rename(aside, name)
            if not managed:
                self.manifest.networks.pop(path, None)

        states: Tuple[Any, Any] = {"path": self.path(aside)}, {"path": path}
        if replaced is not None:
            states = shown_change(replaced, text or b"")
        self._step("restore", path, reason, states, action, change=ReadChange(fills=name))

    def restore_original(
        self, name: str, current: str, original: Dict[str, Any], texts: Tuple[bytes, bytes], restored: bool, users: str
    ) -> None:
        """Restore a kept original to *name* and remove the managed file *current*, which may be the same or set aside.

        *texts* are those of the managed file and of the original; *restored*: an interrupted run did it already.
        *users* are the attachments that this moves.
        """
        path, managed = self.path(name), self.path(current)

        def action() -> None:
            if name == current:
                self._yield(path, texts[0])
            elif not restored:
                self._expect_nothing(path)
            if not restored:
                self._publish_original(name, original)
            if name != current:
                self._open().remove(current)
            self.manifest.networks.pop(managed, None)

        self._step("restore", path, PREVIOUS, shown_change(*texts), action, users, ReadChange(current, name))

    def remove_aside(self, aside: str) -> None:
        path = self.path(aside)
        self._step("remove", path, ABSENT, ({"path": path}, None), lambda: self._open().remove(aside))

    def leave(self, name: str, reason: str, before: Any, after: Any) -> None:
        """Report what another program has done to a managed file, and leave it."""
        self._plan.add(Step("leave", self.path(name), FOREIGN, before, after, lambda: None, reason=reason))

    def _own(self, path: str, network: str, digest: str) -> None:
        # An entry from an earlier step of this plan counts first, mainly for its original.
        known = self._intents.get(path) or self.manifest.networks.get(path) or {}
        self._intents[path] = {"network": network, "sha256": digest, "original": known.get("original")}
        self._touched.add(path)

    def _step(
        self,
        kind: str,
        target: str,
        reason: str,
        states: Tuple[Any, Any],
        action: Callable[[], None],
        users: str = "",
        change: Optional[ReadChange] = None,
    ) -> None:
        """Add a step, which is disruptive if it moves *users*; its *change* decides later (see :mod:`effects`)."""
        step_class = DISRUPTIVE if users else SAFE
        step = Step(kind, target, step_class, *states, action, reason=reason + (f"; moves {users}" if users else ""))
        self._plan.add(step)
        if change is not None:
            self.file_changes.append((step, change))

    # ---- applying

    def execute(self, steps: Sequence[Step]) -> None:
        # The manifest is correct at every moment.
        self.manifest.remove_stale_temps()
        self._known = set(self.manifest.networks)
        self.manifest.networks.update(
            {path: entry for path, entry in self._intents.items() if path not in self._adopted | self._vacated}
        )
        self.manifest.save()
        try:
            self._plan.apply_steps(steps, 1)
        except HostError:
            for step in steps:
                if step.kind == "create" and step.state != "done":
                    self._disown(step.target)
            # The next run settles what cannot be settled now; the first error is the one to report.
            with contextlib.suppress(HostError, OSError):
                self._settle()
            raise
        self._settle()

    def _settle(self) -> None:
        if self._directory is not None:
            os.close(self._directory.fd)
            self._directory = None
        manifest = self.manifest
        for path in [path for path in self._touched if not os.path.lexists(path)]:
            manifest.networks.pop(path, None)
        for path in [path for path in manifest.aside if os.path.dirname(path) == self.conf_dir]:
            if not os.path.lexists(path):
                del manifest.aside[path]
        manifest.save()
        manifest.prune()

    def _open(self) -> Directory:
        if self._directory is None:
            self._directory = Directory(self.conf_dir)
            self._directory.remove_stale_temps()
        return self._directory

    def _claim(self, path: str) -> None:
        """Record *path* as managed now, if an unmanaged file had that name when the plan began."""
        if path in self._vacated:
            self.manifest.networks[path] = self._intents[path]
            self.manifest.save()

    def _disown(self, path: str) -> None:
        """Forget that *path* was about to become managed: whatever is there now was made by somebody else."""
        if path not in self._known:
            self.manifest.networks.pop(path, None)

    def _expect_nothing(self, path: str) -> None:
        if os.path.lexists(path):
            self._disown(path)
            raise HostError(
                f"{path} appeared while this run was planning, so it was not replaced; run again",
                code="changed_meanwhile",
            )

    def _aside_name(self, name: str) -> str:
        candidate, number = name + ASIDE_SUFFIX, 1
        while os.path.lexists(self.path(candidate)):
            number += 1
            candidate = f"{name}.{number}{ASIDE_SUFFIX}"
        return candidate

    def _record_aside(self, aside: str, path: str, network: str, managed: Optional[Dict[str, Any]] = None) -> None:
        record: Dict[str, Any] = {"path": path, "network": network}
        if managed:
            record["managed"] = managed
        self.manifest.aside[self.path(aside)] = record
        self.manifest.save()

    def _yield(self, path: str, text: bytes) -> None:
        """Record that a managed file, which holds *text*, is being replaced by an unmanaged one."""
        self.manifest.networks[path]["yields"] = hashlib.sha256(text).hexdigest()
        self.manifest.save()

    def _return_original(self, name: str, network: str, original: Dict[str, Any]) -> None:
        path = original.get("path", self.path(name))
        aside = self._aside_name(os.path.basename(path))
        self._record_aside(aside, path, network)
        self._publish_original(aside, original)

    def _publish_original(self, name: str, original: Dict[str, Any]) -> None:
        with self.manifest.kept(original["sha256"]) as source:
            attributes = Attributes(original["mode"], original["uid"], original["gid"])
            stage(self._open(), name, source, attributes).publish()


def _describe(attributes: Attributes) -> Dict[str, Any]:
    return {"mode": f"{attributes.mode:04o}", "owner": attributes.uid, "group": attributes.gid}
