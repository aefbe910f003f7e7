# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The plugin binaries of one directory: their files, sha256, spec versions, and whether they are managed."""

from __future__ import annotations

import os
import re
import stat
import time
from typing import (
    Any,
    BinaryIO,
    Callable,
    Collection,
    Dict,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Tuple,
    TypeVar,
)

from ...libcni.files import open_file
from ..errors import HostError
from ..manifest import Manifest, digest_of, identity, is_settled
from ..trust import SCRIPT

PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}\Z")

T = TypeVar("T")

Contents = Callable[[Iterable[str]], Iterable[Tuple[str, BinaryIO]]]
"""Yields ``(name, stream)`` for each of the given names; each stream is read before the next is asked for."""

Record = Optional[Dict[str, Any]]


def plugin_names(plugins: Optional[List[str]]) -> Optional[List[str]]:
    """Return the option ``plugins``, None for all. Raises HostError ``bad_plugin_name``."""
    if plugins is not None and not plugins:
        text = "plugins: the list is empty; name at least one, or leave the option out"
        raise HostError(text, code="bad_plugin_name")
    for name in plugins or ():
        if not PLAIN_NAME.match(name):
            raise HostError(
                f"plugins: {name!r} is not a plugin name; a name has at most 128 letters, digits, '.', '_', '+' and "
                "'-', and begins with a letter, a digit or '_'",
                code="bad_plugin_name",
            )
    return plugins


def scripts_in(machines: Mapping[str, str]) -> List[str]:
    """Return the names of the scripts, sorted; *machines* are those of all plugins."""
    return sorted(name for name, machine in machines.items() if machine == SCRIPT)


def select(
    members: Mapping[str, T], plugins: Optional[Iterable[str]], where: str, scripts: Iterable[str] = ()
) -> Dict[str, T]:
    """Return those of *members* that *plugins* names (None: all but *scripts*). Raises HostError ``missing_member``.

    A script is installed only if it is named: what a vendor packs beside the plugins, such as an installer, would be
    executed otherwise.
    """
    if plugins is None:
        left_out = set(scripts)
        if set(members) <= left_out:
            named = ", ".join(sorted(left_out))
            hint = f" (scripts are installed only if 'plugins' names them: {named})" if named else ""
            text = f"{where} has no ELF file in its root, so there is no plugin to install{hint}"
            raise HostError(text, code="missing_member")
        return {name: member for name, member in members.items() if name not in left_out}
    available = ", ".join(sorted(members)) or "none"
    missing = [name for name in plugins if name not in members]
    if missing:
        raise HostError(
            f"{where} has no plugin {', '.join(repr(name) for name in missing)}; its plugins are: {available}. Only "
            "regular ELF files and scripts in its root count",
            code="missing_member",
        )
    return {name: members[name] for name in plugins}


# The origin of a kept file, see Manifest.
ORIGINAL, MANAGED, DISPLACED = "original", "managed", "displaced"


def latest(entry: Mapping[str, Any], *origins: str) -> Record:
    """Return the newest kept file of these *origins*, None if there is none."""
    return next((record for record in reversed(entry["history"]) if record["origin"] in origins), None)


def without(entry: Mapping[str, Any], *origins: str) -> List[Dict[str, Any]]:
    """Return the history of an entry without the files of these *origins*."""
    return [record for record in entry["history"] if record["origin"] not in origins]


MISSING = "missing"
FILE = "file"
LINK = "link"
OTHER = "other"


class FoundPlugin(NamedTuple):
    """The object at a plugin's path. ``sha256`` is set for a FILE, ``link`` (its text) for a LINK."""

    kind: str
    sha256: str = ""
    mode: int = 0
    uid: int = 0
    gid: int = 0
    link: str = ""

    def is_kept(self, record: Optional[Dict[str, Any]]) -> bool:
        """Tell whether this has the content that the *record* of a kept file describes (see Manifest)."""
        if record is None or self.kind == MISSING:
            return False
        if "link" in record:
            return self.kind == LINK and self.link == record["link"]
        return self.kind == FILE and self.sha256 == record["sha256"]

    def is_exactly(self, record: Optional[Dict[str, Any]]) -> bool:
        """Tell whether this is what *record* describes, mode and owner included; None describes nothing there."""
        if record is None:
            return self.kind == MISSING
        return self.is_kept(record) and (
            self.kind == LINK or (self.mode, self.uid, self.gid) == (record["mode"], record["uid"], record["gid"])
        )

    def is_managed(self, entry: Optional[Dict[str, Any]]) -> bool:
        """Tell whether this is what the manifest's *entry* says was installed, now or before an interrupted run."""
        if entry is None or self.kind != FILE:
            return False
        return self.sha256 == entry["sha256"] or self.is_kept(latest(entry, MANAGED))


class WantedPlugins(NamedTuple):
    """The desired plugins.

    ``files`` is name -> sha256, ``archive`` None or ``{sha256, sha512, plugins}`` of the archive that they are from.
    ``contents`` yields the content of those in ``shipped``, see :data:`Contents`. ``release`` is the official one that
    they are from, such as 1.9.1, "" if that is not known. ``folder`` is the directory on this host that has them, and
    ``installed_by`` who installs them, "" for none.
    """

    files: Mapping[str, str]
    archive: Record = None
    contents: Optional[Contents] = None
    shipped: Collection[str] = ()
    release: str = ""
    scripts: Collection[str] = ()
    installed_by: str = ""
    folder: str = ""


class Store:
    """The current state of a plugin directory, and what the manifest has about it.

    Hashing 18 plugins costs more than everything else that an unchanged run does. So the manifest remembers sha256 and
    the answer to VERSION together with inode, size and times, as git's index does. ``learned`` is what this object has
    found out and the manifest does not have yet.
    """

    def __init__(self, bin_dir: str, manifest: Manifest) -> None:
        self.bin_dir = bin_dir
        self.manifest = manifest
        self.learned: Dict[str, Dict[str, Any]] = {}
        self._real = os.path.realpath(bin_dir)
        self._settled: Dict[str, str] = {}

    def path(self, name: str) -> str:
        return os.path.join(self.bin_dir, name)

    def entry(self, name: str) -> Optional[Dict[str, Any]]:
        """Return the manifest's entry of a plugin, None if it was never managed."""
        return self.manifest.binaries.get(self.path(name))

    def names(self) -> List[str]:
        """Return the names of all regular files that could be plugins."""
        try:
            with os.scandir(self.bin_dir) as entries:
                names = [e.name for e in entries if e.is_file(follow_symlinks=False) and PLAIN_NAME.match(e.name)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise HostError(f"cannot list {self.bin_dir}: {error.strerror}", code="no_directory") from error
        return sorted(names)

    def find(self, name: str) -> FoundPlugin:
        """Return the object at the plugin's path."""
        path = self.path(name)
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                return FoundPlugin(LINK, uid=status.st_uid, gid=status.st_gid, link=os.readlink(path))
            if not stat.S_ISREG(status.st_mode):
                return FoundPlugin(OTHER)
            sha256 = self._sha256(name, status)
        except (FileNotFoundError, NotADirectoryError):
            return FoundPlugin(MISSING)
        except OSError as error:
            raise HostError(f"cannot read {path}: {error.strerror}", code="unreadable") from error
        return FoundPlugin(FILE, sha256, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)

    def _sha256(self, name: str, status: os.stat_result) -> str:
        known = self.manifest.versions.get(self._key(name), {})
        if known.get("identity") == identity(status) and known.get("sha256"):
            return str(known["sha256"])
        now = time.time_ns()
        with open_file(self.path(name), follow=False) as stream:
            opened = os.fstat(stream.fileno())
            sha256 = digest_of(stream)
        if is_settled(opened, now):
            self._settled[name] = identity(opened)
        return sha256

    def _key(self, name: str) -> str:
        return os.path.join(self._real, name)

    def cni_versions(self, name: str, current: FoundPlugin) -> Optional[List[str]]:
        """Return the spec versions that the plugin supports, if they are known without executing it."""
        known = self._recorded(name, current.sha256, "cni_versions") if current.kind == FILE else None
        return list(known) if known else None

    def _recorded(self, name: str, sha256: str, fact: str) -> Any:
        """Return the *fact* that a record has about the plugin with this content, None if none has it."""
        entry = self.entry(name) or {}
        records = (entry, self.manifest.versions.get(self._key(name)), *entry.get("history", ()))
        same = (record for record in records if record and record.get("sha256") == sha256)
        return next((record[fact] for record in same if record.get(fact)), None)

    def release(self, name: str, sha256: str, path: str = "") -> str:
        """Return the release of the plugin with this content, "" if it is not known; a file at *path* is asked."""
        known = self._recorded(name, sha256, "release")
        if known:
            return str(known)
        # Imported late: only changes need it.
        from . import packages

        try:
            return packages.release_of(os.path.realpath(path)) if os.path.isfile(path) else ""
        except HostError:
            return ""

    def ask(self, name: str, current: FoundPlugin) -> List[str]:
        """Return the spec versions; executes VERSION if they are not known. Raises HostError."""
        versions = self.cni_versions(name, current)
        if versions is None:
            # Imported late: an unchanged run knows the answers.
            from .usable import ask_version

            versions = ask_version(self.path(name))
        self.learn(name, current.sha256, versions)
        return versions

    def learn(self, name: str, sha256: str, versions: List[str]) -> None:
        """Note digest and versions of the file, if a later change would show in its times."""
        settled = self._settled.get(name)
        if settled is not None:
            self.learned[self._key(name)] = {"identity": settled, "cni_versions": versions, "sha256": sha256}

    def record(self, name: str, entry: Record) -> None:
        """Write, or with None remove, the manifest's entry of a plugin."""
        if entry is None:
            self.manifest.binaries.pop(self.path(name), None)
        else:
            self.manifest.binaries[self.path(name)] = entry

    def note_archive(self, archive: Record) -> None:
        """Put the contents of *archive* into the manifest, so that no later run has to read the archive."""
        if archive is not None:
            entry = {key: archive[key] for key in ("sha512", "plugins")}
            if archive.get("scripts"):
                entry["scripts"] = archive["scripts"]
            self.manifest.archives[archive["sha256"]] = entry


def release_facts(record: Mapping[str, Any]) -> Dict[str, str]:
    """Return what a record of the manifest knows about where its file is from: its release, and who installed it."""
    return {key: str(record[key]) for key in ("release", "installed_by") if record.get(key)}


def without_release(entry: Mapping[str, Any]) -> Dict[str, Any]:
    """Return an entry of the manifest without what it knows about another file."""
    return {key: value for key, value in entry.items() if key not in ("release", "installed_by")}
