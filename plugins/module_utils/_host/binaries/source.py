# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The source of the desired plugins on a host: sent by the controller, remembered, or read here."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from typing import Any, BinaryIO, Callable, Dict, Iterator, Mapping, Optional, TypeVar

from ..errors import HostError
from ..files import Attributes, read_attributes
from ..hostview import HostView
from ..manifest import Manifest
from ..paths import is_url
from ..trust import SCRIPT, host_machine, untrusted
from .outcome import Desired, PluginsPlan, Where
from .planner import ContentMissing, known_archive, plan_present
from .request import SourceNeeded
from .store import FILE, Store, WantedPlugins, plugin_names, scripts_in, select

R = TypeVar("R")


def attributes_of(mode: Any, owner: str, group: str) -> Attributes:
    """Return mode and owner for plugins, which root must be able to run. Raises as :func:`read_attributes`."""
    attributes = read_attributes(mode, owner, group)
    if not attributes.mode & 0o100:
        text = f"mode: {attributes.mode:04o} does not let the owner run the plugins; use '0755'"
        raise HostError(text, code="bad_mode")
    return attributes


def check_machines(machines: Mapping[str, str]) -> None:
    """Raise HostError ``wrong_machine`` unless all plugins (name -> machine) are for this host."""
    native = host_machine()
    wrong = sorted(name for name, machine in machines.items() if machine not in (SCRIPT, native))
    if wrong:
        raise HostError(
            f"{wrong[0]} is built for {machines[wrong[0]]}, but this host is {native}; nothing was installed. Use the "
            f"archive for {native}",
            code="wrong_machine",
        )


class Source:
    """The request's source. ``told`` is what the controller sends, the option ``_source``."""

    def __init__(self, params: Mapping[str, Any], tmpdir: Callable[[], str]) -> None:
        self.told: Dict[str, Any] = params["_source"]
        self.plugins = plugin_names(params["plugins"])
        self._tmpdir = tmpdir
        # A checksum overrides that of the release, and what has it may be anything.
        of_version = "" if params.get("checksum") else str(params.get("version") or "").lstrip("v")
        release, by = str(self.told.get("release") or of_version), str(params.get("installed_by") or "")
        self._nothing = WantedPlugins({}, release=release, installed_by=by)
        self.where = self.told["where"] or self._by_machine("urls")

    def _by_machine(self, table: str) -> str:
        return str(self.told.get(table, {}).get(host_machine()) or "")

    def at_hand(self, manifest: Manifest) -> Optional[WantedPlugins]:
        """Return the desired plugins if they are known without reading a source, else None."""
        if "files" in self.told:
            return self._told()
        checksum = self.told["checksum"] or self._by_machine("checksums")
        if not checksum:
            return None
        from .checksum import parse_checksum

        archive = known_archive(manifest, *parse_checksum(checksum))
        if archive is None:
            return None
        scripts = archive.get("scripts", ())
        files = select(archive["plugins"], self.plugins, self.where, scripts)
        return self._nothing._replace(files=files, archive=archive, scripts=scripts)

    def _told(self) -> WantedPlugins:
        check_machines(self.told["machines"])
        bundle = str(self.told.get("bundle"))

        def contents(names: Any) -> Iterator[Any]:
            from .archive import ArchiveSource

            with ArchiveSource(bundle, "what the controller sent") as archive:
                yield from archive.contents(names)

        files, archive, shipped = self.told["files"], self.told.get("archive"), self.told.get("shipped", ())
        scripts = scripts_in(self.told["machines"])
        return self._nothing._replace(files=files, archive=archive, scripts=scripts, contents=contents, shipped=shipped)

    def need(self, store: Store) -> Dict[str, Any]:
        """Return what the controller needs to know to send the rest: ``{machine, have}``, the latter name -> sha256."""
        names = store.names() if self.plugins is None else self.plugins
        current = {name: store.find(name) for name in names}
        return {"machine": host_machine(), "have": {n: f.sha256 for n, f in current.items() if f.kind == FILE}}

    def read_here(self) -> WantedPlugins:
        """Return the desired plugins from a directory or archive of this host, or the URL of one."""
        from .archive import ArchiveSource, DirectorySource, Selection

        path, checksum = self.where, self.told["checksum"] or self._by_machine("checksums")
        if not path:
            raise HostError(
                f"this release has no official archive for {host_machine()}; set 'src' to an archive or directory",
                code="no_release",
            )
        if not is_url(path) and os.path.isdir(path):
            if checksum:
                raise HostError(
                    f"checksum: {path} is a directory; only an archive has a checksum, so leave the option out",
                    code="bad_checksum",
                )
            return self._selected(Selection(DirectorySource(path, self.plugins), self.plugins), path)
        if is_url(path) and not checksum:
            raise HostError(
                f"no checksum is known for {path}; copy it from where the archive is published and set 'checksum'",
                code="checksum_required",
            )
        if is_url(path):
            from .download import fetch

            path = self._received(partial(fetch, path))
        archive = ArchiveSource(path, self.where)
        if checksum and untrusted([path]):
            # Its owner could still change it.
            archive = ArchiveSource(self._received(archive.copy), self.where)
        return self._selected(Selection(archive, self.plugins, checksum))

    def _received(self, write: Callable[[BinaryIO], None]) -> str:
        """Return a file of this run that *write* has filled."""
        fd, path = tempfile.mkstemp(dir=self._tmpdir())
        with os.fdopen(fd, "wb") as target:
            write(target)
        return path

    def _selected(self, selection: Any, folder: str = "") -> WantedPlugins:
        check_machines(selection.machines)
        parts = {"files": selection.files, "contents": selection.source.contents, "shipped": selection.files}
        return self._nothing._replace(archive=selection.archive, scripts=selection.scripts, folder=folder, **parts)


def with_plugins(params: Mapping[str, Any], tmpdir: Callable[[], str], bin_dir: str, work: Callable[[Desired], R]) -> R:
    """Call *work* with the desired plugins, again with their contents if it raises ContentMissing; return its result.

    If the source cannot be used, *work* gets the HostError. *params* are the options of cni_plugins with ``state:
    present``. Raises SourceNeeded.
    """
    try:
        return _with_source(params, tmpdir, bin_dir, work)
    except HostError as error:
        return work(error)


def _with_source(params: Mapping[str, Any], tmpdir: Callable[[], str], bin_dir: str, work: Callable[[Desired], R]) -> R:
    if params["_source"] is None:
        raise HostError(
            "state=present works only through the action plugin of the same name; call it as podwire.cni.cni_plugins",
            code="no_action_plugin",
        )
    failed = params["_source"].get("error")
    if failed:
        raise HostError(str(failed["message"]), str(failed["code"]))
    source = Source(params, tmpdir)
    manifest = Manifest()
    desired = source.at_hand(manifest)
    ask = source.told["only_ask"]
    if desired is not None and not ask:
        try:
            return work(desired)
        except ContentMissing as missing:
            if source.told["last"]:
                text = f"the files in {bin_dir} have changed during this run ({missing}); run again"
                raise HostError(text, code="host_changed") from missing
    if ask or not params["remote_src"]:
        raise SourceNeeded(source.need(Store(bin_dir, manifest)))
    return work(source.read_here())


def plan_plugins(
    params: Mapping[str, Any], bin_dir: str, desired: Optional[Desired], view: HostView, check_mode: bool
) -> PluginsPlan:
    """Return the plan for *params*, the options of cni_plugins. *desired* is needed for ``state: present``.

    Raises HostError, and ContentMissing as :func:`planner.plan_present`.
    """
    if isinstance(desired, HostError):
        plan = PluginsPlan(bin_dir, view.manifest, check_mode=check_mode)
        plan.refuse(desired, check_mode)
        return plan
    where = Where(params["conf_dir"], params["bin_dirs"], params["cache_dir"], params["force"])
    if desired is not None:
        attributes = attributes_of(params["mode"], params["owner"], params["group"])
        return plan_present(bin_dir, desired, attributes, view, check_mode, where)
    from .removal import plan_absent, plan_restored

    names = plugin_names(params["plugins"])
    if params["state"] == "absent":
        return plan_absent(bin_dir, names or [], view, where)
    return plan_restored(bin_dir, names, view, where)
