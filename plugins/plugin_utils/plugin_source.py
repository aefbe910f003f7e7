# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of cni_plugins: the source of the plugins, the question to a host, and the files for it."""

from __future__ import annotations

import contextlib
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..module_utils._host.binaries.archive import ArchiveSource, DirectorySource, Selection
from ..module_utils._host.binaries.checksum import parse_checksum
from ..module_utils._host.binaries.download import check_url, shown_url
from ..module_utils._host.binaries.store import plugin_names
from ..module_utils._host.errors import HostError
from ..module_utils._host.manifest import digest_of
from ..module_utils._host.paths import is_url
from ..module_utils._host.trust import MACHINES
from ..module_utils.libcni.files import open_file
from . import archive_cache, builtin_plugins, releases


def read_answer(answer: object) -> tuple[str, Mapping[Any, Any]]:
    """Return the machine of a host, and the digests of the files that it has. It is not trusted: all is checked."""
    machine = answer.get("machine") if isinstance(answer, Mapping) else None
    have = answer.get("have") if isinstance(answer, Mapping) else None
    if machine not in MACHINES.values() or not isinstance(have, Mapping):
        raise HostError(
            "the host did not return the answer of this collection's module, or no CNI plugins exist for its machine "
            "architecture",
            code="bad_answer",
        )
    # The word from the table of the collection, not from the host.
    return next(word for word in MACHINES.values() if word == machine), have


class PluginSource:
    """The source from the options: ``where`` is a path or URL, or empty for the official release for the machine.

    Raises HostError for options that are wrong or do not go together, before any host is asked.
    """

    def __init__(self, options: Mapping[str, Any], find: Callable[[str], str] | None) -> None:
        """*find* resolves a path on the controller; None: the source is on the host."""
        # Empty text counts as not set, because surveys send it.
        src, version, checksum = (options[name] or "" for name in ("src", "version", "checksum"))
        if not (src or version):
            raise HostError(
                "src and version are empty: set 'src' to an archive or a directory, or 'version' to an official "
                "release",
                code="no_source",
            )
        is_builtin = src == builtin_plugins.SOURCE
        if is_builtin and find is None:
            raise HostError(
                "src: the collection's own plugins are on the controller; leave remote_src out", code="bad_source"
            )
        # They are scripts, which are installed only by name.
        self.plugins = plugin_names(options["plugins"] or (list(builtin_plugins.NAMES) if is_builtin else None))
        self.checksum = ":".join(parse_checksum(checksum)) if checksum else ""
        self.urls: dict[str, str] = {}
        self.checksums: dict[str, str] = {}
        if version:
            number = releases.parse_version(version)
            self.urls = {} if src else releases.urls(number)
            self.checksums = {} if checksum else releases.checksums(number)
            if not checksum and not self.checksums:
                raise HostError(
                    f"version: no checksum is known for the release {number}; set 'checksum' to the published one",
                    code="checksum_required",
                )
        self.where = src
        self._is_url = is_url(src)
        if self._is_url:
            check_url(src)
            if not self.checksum and not self.checksums:
                raise HostError(
                    f"src: no checksum is known for {shown_url(src)}; set 'checksum' to the published one, or "
                    "'version' to the official release that it mirrors",
                    code="checksum_required",
                )
        elif is_builtin:
            self.where = builtin_plugins.directory()
        elif src and find is not None:
            self.where = find(src)
        elif src and not src.startswith("/"):
            raise HostError(f"src: {src!r} is not an absolute path, which remote_src needs", code="path_not_absolute")
        self._is_here = find is not None and not self._is_url
        self._is_directory = self._is_here and bool(src) and os.path.isdir(self.where)
        if self._is_directory and (checksum or version):
            raise HostError(
                f"{'checksum' if checksum else 'version'}: {self.where} is a directory; only an archive has a checksum",
                code="bad_checksum",
            )

    def question(self, only_ask: bool) -> dict[str, Any]:
        """Return the module's ``_source`` for the first call, with the digests of what is on the controller."""
        told: dict[str, Any] = {"where": self.where, "only_ask": only_ask, "last": False, "urls": self.urls}
        if self._is_directory:
            selection = Selection(DirectorySource(self.where, self.plugins), self.plugins)
            return {**told, "files": selection.files, "machines": selection.machines}
        checksum = self.checksum
        if self._is_here and self.where and not checksum and not self.checksums:
            try:
                with open_file(self.where) as stream:
                    checksum = f"sha256:{digest_of(stream)}"
            except OSError as error:
                raise HostError(f"src: cannot read {self.where}: {error.strerror}", code="bad_source") from error
        told["release"] = releases.of_checksum(checksum)
        return {**told, "checksum": checksum, "checksums": self.checksums}

    @contextlib.contextmanager
    def opened(self, machine: str) -> Iterator[Shipment]:
        """Fetch and verify the source for *machine*, and read its members."""
        if self._is_directory:
            yield Shipment(Selection(DirectorySource(self.where, self.plugins), self.plugins))
            return
        checksum = self.checksum or self.checksums.get(machine, "")
        url = self.where if self._is_url else self.urls.get(machine, "")
        if not checksum and (url or not self.where or self.checksums):
            raise HostError(
                f"version: no checksum is known for the machine {machine} in this release; set 'checksum' to the "
                "published one, or 'src' to another archive",
                code="checksum_required",
            )
        if not url and not self.where:
            raise HostError(
                f"version: there is no official archive for the machine {machine}; set 'src' to another archive",
                code="no_release",
            )
        path = archive_cache.obtain(url, checksum) if url else self.where
        with ArchiveSource(path, shown_url(url) if url else path) as archive:
            yield Shipment(Selection(archive, self.plugins, checksum))


class Shipment(NamedTuple):
    """What a host may lack of an opened source."""

    selection: Selection

    def lacking(self, have: Mapping[Any, Any]) -> list[str]:
        """Return the plugins that a host with these digests lacks; always names from the source."""
        return sorted(name for name, digest in self.selection.files.items() if have.get(name) != digest)

    def told(self, bundle: str | None, shipped: list[str]) -> dict[str, Any]:
        """Return the module's ``_source`` for the second call; *bundle* is the path on the host of the sent file."""
        selection = self.selection
        told = {"where": selection.source.shown, "only_ask": False, "last": True, "bundle": bundle, "shipped": shipped}
        told.update(files=selection.files, machines=selection.machines)
        return told if selection.archive is None else {**told, "archive": selection.archive}

    def bundle(self, names: list[str], path: str) -> str:
        """Return the path of a file to send with *names* in it: the archive itself if all are needed, else *path*."""
        source, members = self.selection.source, self.selection.members
        if isinstance(source, ArchiveSource) and set(names) == set(members):
            return source.path
        with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as bundle:
            for name, stream in source.contents(names):
                entry = tarfile.TarInfo(name)
                entry.size = members[name].size
                bundle.addfile(entry, stream)
        return path
