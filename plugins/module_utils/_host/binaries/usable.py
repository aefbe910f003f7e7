# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the plugins that a network names exist, may be executed, and support its spec version."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from ...libcni import version
from ..errors import HostError
from ..hostview import HostView
from ..manifest import digest_of, identity, is_settled
from ..paths import names_in
from ..problems import ERROR, WARNING, Finding
from ..trust import check_plugin
from .types import named_plugins, why_no_type

# A plugin answers VERSION in a few milliseconds; the timeout only ends one that hangs.
_TIMEOUT = 15.0


class Binaries:
    """The plugin binaries of *bin_dirs*: each is checked and asked once for all users of a view.

    The answer is kept in the manifest together with the identity of the file, so that an unchanged run executes
    nothing: unless the file has changed just now, as another change may have the same times. It reaches the disk only
    when a run saves the manifest. A binary that the plan installs or changes is not asked.
    """

    def __init__(self, bin_dirs: Sequence[str], view: HostView) -> None:
        self.bin_dirs = list(bin_dirs)
        self._view = view
        self._remembered = view.manifest.versions
        self._missing: Dict[str, HostError] = {}

    def ask(self, name: str) -> Tuple[str, List[str]]:
        """Return the path of plugin *name* and the spec versions that it supports.

        Raises HostError ``bad_type``, ``missing_plugin``, ``unsafe_permissions``, ``not_elf`` or ``plugin_failed``.
        """
        path = self._path(name)
        if self._view.changes_binary(path):
            return path, self._view.versions_after(path) or list(version.ALL)
        return path, list(self._record(path)["cni_versions"])

    def memory(self, name: str) -> Dict[str, Any]:
        """Return what is remembered about plugin *name*; the caller may add to it. Raises as :meth:`ask`."""
        path, _versions = self.ask(name)
        if self._view.changes_binary(path):
            raise HostError(f"{path} is not installed yet", code="missing_plugin")
        return self._record(path)

    def is_changing(self, plugin: Dict[str, Any]) -> bool:
        """Tell whether the plan installs or changes a binary that the plugin object names."""
        names = [name for _pointer, name in named_plugins(plugin)]
        return bool(self._view.changing_binaries(names, self.bin_dirs))

    def _record(self, path: str) -> Dict[str, Any]:
        answers = self._view.answers
        if path not in answers:
            try:
                answers[path] = self._usable(path)
            except HostError as error:
                answers[path] = error
        answer = answers[path]
        if isinstance(answer, HostError):
            raise answer
        return answer

    def _usable(self, path: str) -> Dict[str, Any]:
        try:
            return self._asked(path)
        except HostError as error:
            if not self._will_be_replaced(path, error):
                raise
            text = f"{path} is not the file that cni_plugins installed ({error.msg})"
            raise HostError(f"{text}; run cni_plugins again to replace it", code="missing_plugin") from error

    def _path(self, name: str) -> str:
        if name in self._missing:
            raise self._missing[name]
        path = self._view.plugin_path(name, self.bin_dirs)
        if path:
            return path
        what, remedy = why_no_type(name)
        code = "bad_type" if what else "missing_plugin"
        if not what:
            what = f"there is no plugin {name!r} in {', '.join(self.bin_dirs)}"
            meant = _meant(name, self.bin_dirs)
            remedy = f"{meant}install it (podwire.cni.cni_plugins), or add its directory to bin_dirs"
        self._missing[name] = HostError(f"{what}; {remedy}", code=code)
        raise self._missing[name]

    def _will_be_replaced(self, path: str, error: HostError) -> bool:
        """Tell whether the next cni_plugins replaces *path*: it is managed, and *error* says that it is unusable."""
        entry = self._view.manifest.binaries.get(path)
        if entry is None or entry["gone"]:
            return False
        status = os.stat(path)
        if error.code == "unsafe_permissions" and status.st_uid == 0 and not status.st_mode & 0o022:
            # The permissions of the directory are the problem.
            return False
        return error.code != "plugin_failed" or self.is_replaced(path)

    def is_replaced(self, path: str) -> bool:
        """Tell whether the file at *path*, which is managed, has another content than was installed."""
        entry = self._view.manifest.binaries.get(path)
        if entry is None or entry["gone"]:
            return False
        with open(path, "rb") as stream:
            return bool(digest_of(stream) != entry["sha256"])

    def _asked(self, path: str) -> Dict[str, Any]:
        real = check_plugin(path)
        status, now = os.stat(real), time.time_ns()
        known = self._remembered.get(real)
        if known and known.get("identity") == identity(status):
            return known
        try:
            versions = ask_version(real)
        except HostError as error:
            text = f"{error.msg}; it is not a CNI plugin, or it is damaged: install it again"
            raise HostError(text, code=error.code) from error
        record = {"identity": identity(status), "cni_versions": versions}
        if is_settled(status, now):
            self._remembered[real] = record
        return record

    def forget_missing(self) -> None:
        """Remove the memory of files that are gone."""
        for path in [path for path in self._remembered if not os.path.exists(path)]:
            del self._remembered[path]


def ask_version(path: str, argv0: Optional[str] = None) -> List[str]:
    """Execute VERSION, as *argv0* if given: some binaries are several plugins, chosen by the name that they are run as.

    Raises HostError ``unsafe_permissions``, ``not_elf`` or ``plugin_failed``.
    """
    # Imported late: an unchanged run knows the answers.
    from ...libcni.errors import CNIError
    from ...libcni.invoke import get_version_info
    from ..executor import SafeExecutor

    try:
        return list(get_version_info(path, SafeExecutor(argv0=argv0), _TIMEOUT))
    except CNIError as error:
        raise HostError(f"{path} does not answer VERSION: {error}", code="plugin_failed") from error


def _meant(name: str, bin_dirs: Sequence[str]) -> str:
    """Return the question whether a plugin with a similar name is meant, "" if there is none."""
    import difflib

    available = [entry for path in bin_dirs for entry in names_in(path) if entry != name]
    near = difflib.get_close_matches(name, available, 1, 0.75)
    return f"did you mean {near[0]!r}? Otherwise " if near else ""


def release_numbers(release: str) -> Tuple[int, ...]:
    """Return ``1.9.0`` as numbers, which compare in the right order."""
    return tuple(int(part) for part in release.split("."))


def check_chain(
    binaries: Binaries,
    network: str,
    cni_version: str,
    chain: Iterable[Tuple[str, str, Dict[str, Any]]],
    tolerate_missing: bool,
) -> List[Finding]:
    """Return the problems of a network with the plugins that it names; *chain* has file, pointer and object of each.

    A missing binary is a warning if *tolerate_missing*. A binary that cannot be asked or does not support *cni_version*
    ("" counts as 0.1.0, as in libcni) is an error.
    """
    needed = cni_version or "0.1.0"
    problems = []
    answers: Dict[str, Tuple[str, List[str]]] = {}
    uses = [(file, *use) for file, pointer, plugin in chain for use in named_plugins(plugin, pointer)]
    for file, pointer, name in uses:
        try:
            answers[name] = binaries.ask(name)
        except HostError as error:
            level = WARNING if tolerate_missing and error.code == "missing_plugin" else ERROR
            problems.append(Finding(level, error.code, f"network {network!r}: {error.msg}", "", file, pointer))
    best = highest_common(versions for _path, versions in answers.values())
    for file, pointer, name in uses:
        if name in answers and needed not in answers[name][1]:
            path, versions = answers[name]
            supported = f"supports {', '.join(versions)}, but not the cniVersion {needed} of the conflist"
            what = f"network {network!r}: the plugin {name} ({path}) {supported}"
            problems.append(Finding(ERROR, "unsupported_by_plugin", what, _advice(best), file, pointer))
    return problems


def highest_common(answers: Any) -> Optional[str]:
    """Return the newest spec version that is in all of *answers* (lists of versions), None if there is none."""
    common = set(version.ALL)
    for versions in answers:
        common &= set(versions)
    return max(common, key=version.parse_version) if common else None


def _advice(best: Optional[str]) -> str:
    if best is None:
        return "its plugins have no version in common: install releases that belong together"
    highest = f'"cniVersion": "{best}", the highest that all plugins of this conflist support'
    return f"write {highest}, or install newer plugins"
