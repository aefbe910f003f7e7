# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's records on a host: the managed files, and the originals of files that it replaced."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from functools import partial
from typing import Any, BinaryIO, Dict, Optional, Set

from ..libcni.files import open_file, read_file
from .errors import HostError
from .files import Attributes, Directory, make_directory, stage, write

STATE_DIR = "/var/lib/podwire/state"
_FILE = "manifest.json"
_OBJECTS = "objects"
_VERSION = 1

# The shape of the entries of each section: keys with the types of their values, see _conforms.
_NONE = type(None)
_SCALAR = (str, int, bool, float, _NONE)
_NUMBERS = {"mode": int, "uid": int, "gid": int}
_ORIGINAL = {"sha256": str, **_NUMBERS, "path?": str}
_VERSIONS = (list, _NONE)
_RELEASE = {"release?": str, "installed_by?": str}
_LINK = {"origin": str, "link": str}
_KEPT = {"origin": str, "sha256": str, **_NUMBERS, "archive": (str, _NONE), "cni_versions": _VERSIONS, **_RELEASE}
_NETWORK = {"network": str, "sha256": str, "original?": (_NONE, _ORIGINAL), "yields?": str}
_BINARY = {
    "sha256": str,
    "archive": (str, _NONE),
    "cni_versions": _VERSIONS,
    "gone": bool,
    "history": [(_KEPT, _LINK)],
    **_RELEASE,
}
_SECTIONS: Dict[str, Any] = {
    "networks": _NETWORK,
    "binaries": _BINARY,
    "archives": {"sha512": str, "plugins": dict, "scripts?": list},
    "aside": {"path": str, "network": str, "managed?": _NETWORK},
    "versions": {"identity": str, "cni_versions": list, "sha256?": str, "release?": str, "modules?": dict},
}
SETTLING = 20 * 10**6
"""In nanoseconds. Once a file is unchanged for this long, every later change shows in its times."""
# Larger pieces would be other memory each time.
_CHUNK, _LARGEST = 1 << 16, 64 << 20


class Manifest:
    """``manifest.json`` in the state directory (root, 0700), and ``objects/`` with kept files by their sha256.

    - ``networks``: path of a conflist -> ``{network, sha256, original}``; ``original`` (None or
      ``{sha256, mode, uid, gid, path}``) is the unmanaged file that was adopted. ``yields`` exists while an unmanaged
      file is restored to the path. It is the sha256 of the managed file: a file with another one is unmanaged.
    - ``binaries``: path of a plugin -> ``{sha256, archive, cni_versions, gone, history}``. ``archive`` (sha256 or None)
      says what it was installed from, ``gone`` that it was removed on purpose. ``history`` are the kept files that were
      there before, at most one of each ``origin``, the last one at the end. Each is ``{origin, sha256, mode, uid, gid,
      archive, cni_versions}`` or ``{origin, link}`` (text of a symbolic link). The origin is ``original`` (unmanaged,
      from before the first managed one), ``managed`` (an older version), or ``displaced`` (unmanaged; it had replaced a
      managed one, and a repair removed it). ``release`` exists in both if it is known, and ``installed_by`` if the task
      said who installed it, such as upgrade.
    - ``archives``: sha256 of an archive -> ``{sha512, plugins, scripts}``: ``{plugin name: sha256}`` of all in it, and
      the names of those that are scripts (missing: none).
    - ``aside``: path of a file that was set aside -> ``{path, network}``: its original path, and the network that it
      holds ("": unknown). ``managed`` exists for a managed file: its entry of ``networks``.
    - ``versions``: real path of a plugin -> ``{identity, cni_versions, sha256, release, modules}``: its answer to
      VERSION, and the inode, size and times of the file that gave it, so that it need not run again. ``sha256`` exists
      if it was computed, ``release`` ("": unknown) and ``modules`` (Go module -> version) if they were needed.

    A manifest that cannot be read is empty, because readers can continue without it, and ``error`` says why.

    An entry is written before its file goes live, so that a managed file never counts as unmanaged after a crash. An
    entry therefore means "managed", not "exists".
    """

    def __init__(self, state_dir: str = STATE_DIR) -> None:
        self.state_dir = state_dir
        self.error: Optional[HostError] = None
        data: Dict[str, Dict[str, Any]] = {key: {} for key in _SECTIONS}
        try:
            data.update(self._read())
        except HostError as error:
            self.error = error
        self.networks: Dict[str, Dict[str, Any]] = data["networks"]
        self.binaries: Dict[str, Dict[str, Any]] = data["binaries"]
        self.archives: Dict[str, Dict[str, Any]] = data["archives"]
        self.aside: Dict[str, Dict[str, Any]] = data["aside"]
        self.versions: Dict[str, Dict[str, Any]] = data["versions"]

    def _read(self) -> Dict[str, Dict[str, Any]]:
        path = os.path.join(self.state_dir, _FILE)
        try:
            data = json.loads(read_file(path, _LARGEST).decode("utf-8"))
            if data["version"] != _VERSION:
                raise HostError(
                    f"{path} has format {data['version']!r}, but this release reads {_VERSION}; upgrade the collection "
                    "on the controller",
                    code="manifest_version",
                )
            return {key: _section(key, data[key], shape) for key, shape in _SECTIONS.items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise HostError(f"cannot read {path}: {error.strerror}", code="manifest_unreadable") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise HostError(
                f"{path} is damaged ({error}); move it away and run again: existing files are then unmanaged, and you "
                "must name each once with 'file' to adopt it",
                code="manifest_damaged",
            ) from error

    def network_file(self, path: str, text: Optional[bytes]) -> Optional[Dict[str, Any]]:
        """Return the entry of the conflist *path*, which holds *text*, if it is managed; None if it is not."""
        entry = self.networks.get(path)
        if entry is not None and "yields" in entry and text is not None:
            # A run that restored an unmanaged file to this path was interrupted.
            return entry if entry["yields"] == hashlib.sha256(text).hexdigest() else None
        return entry

    def save(self) -> None:
        """Write the manifest, durably."""
        data = {"version": _VERSION, **{section: getattr(self, section) for section in _SECTIONS}}
        text = json.dumps(data, indent=1, sort_keys=True) + "\n"
        _private_directory(self.state_dir)
        with Directory(self.state_dir) as directory:
            write(directory, _FILE, text.encode("utf-8"), Attributes(0o600))

    def keep(self, path: str) -> Dict[str, Any]:
        """Keep a copy of the regular file *path* and return ``{sha256, mode, uid, gid}`` to restore it by."""
        objects = os.path.join(self.state_dir, _OBJECTS)
        _private_directory(self.state_dir)
        _private_directory(objects)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise HostError(f"cannot read {path} to keep it: {error.strerror}", code="unreadable") from error
        with os.fdopen(fd, "rb") as source, Directory(objects) as directory:
            status = os.fstat(source.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise HostError(f"{path} is not a regular file, so it cannot be kept", code="not_regular")
            digest = digest_of(source)
            source.seek(0)
            stage(directory, digest, source, Attributes(0o600)).publish()
        return {"sha256": digest, "mode": stat.S_IMODE(status.st_mode), "uid": status.st_uid, "gid": status.st_gid}

    def kept(self, digest: str) -> BinaryIO:
        """Open a kept file, after checking that its content still has the digest that is its name."""
        path = os.path.join(self.state_dir, _OBJECTS, digest)
        try:
            stream = open_file(path)
        except OSError as error:
            raise HostError(f"the kept file {path} is gone: {error.strerror}", code="not_kept") from error
        if digest_of(stream) != digest:
            stream.close()
            raise HostError(f"the kept file {path} is damaged: its sha256 has changed", code="not_kept")
        stream.seek(0)
        return stream

    def remove_stale_temps(self) -> None:
        """Remove what an interrupted write left in the state directory. Only for the holder of the lock."""
        for path in (self.state_dir, os.path.join(self.state_dir, _OBJECTS)):
            if os.path.isdir(path):
                with Directory(path) as directory:
                    directory.remove_stale_temps()

    def has_kept(self, digest: str) -> bool:
        """Tell whether an intact file of this sha256 is kept."""
        try:
            self.kept(digest).close()
        except HostError:
            return False
        return True

    def prune(self) -> None:
        """Remove kept files and archive entries that no entry refers to."""
        wanted: Set[str] = set()
        managed = [record["managed"] for record in self.aside.values() if record.get("managed")]
        for entry in list(self.networks.values()) + managed + list(self.binaries.values()):
            for record in [entry.get("original") or {}, *entry.get("history", ())]:
                wanted.add(record.get("sha256", ""))
        used = {entry.get("archive") for entry in self.binaries.values()}
        for archive in [a for a in self.archives if a not in used]:
            del self.archives[archive]
        objects = os.path.join(self.state_dir, _OBJECTS)
        if os.path.isdir(objects):
            with Directory(objects) as directory:
                for name in os.listdir(directory.fd):
                    if name not in wanted:
                        directory.remove(name)


def _section(name: str, entries: Any, shape: Any) -> Dict[str, Any]:
    """Return a section of the manifest. Raises ValueError if this release has not written it."""
    for key, entry in dict(entries).items():
        if not (_conforms(key, str) and _conforms(entry, shape)):
            raise ValueError(f"the entry {key!r:.200} of {name} is not in the form that this release writes")
    return dict(entries)


def _conforms(value: Any, shape: Any) -> bool:
    """Tell whether *value* is of a type, one of several shapes, or an object that has these keys (``key?``: may have).

    A plain list or dict contains only strings, a list with a shape only what has it. Unknown keys, which a later
    release may have added, have scalar values.
    """
    if isinstance(shape, tuple):
        return any(_conforms(value, alternative) for alternative in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(_conforms(item, shape[0]) for item in value)
    if isinstance(shape, dict):
        plain = {key.rstrip("?"): member_shape for key, member_shape in shape.items()}
        return (
            isinstance(value, dict)
            and all(key in value for key in shape if not key.endswith("?"))
            and all(_conforms(key, str) and _conforms(member, plain.get(key, _SCALAR)) for key, member in value.items())
        )
    if shape is str:
        return isinstance(value, str) and _is_encodable(value)
    if shape in (list, dict):
        inner = list(value) + list(value.values()) if isinstance(value, dict) else value
        return isinstance(value, shape) and all(_conforms(item, str) for item in inner)
    return isinstance(value, shape) and isinstance(value, bool) == (shape is bool)


def _is_encodable(text: str) -> bool:
    """Tell whether a text can be a path: without NUL, and without surrogates except those that stand for a raw byte."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def is_settled(status: os.stat_result, now: int) -> bool:
    """Tell whether a change after *now* (ns) would show in the file's times: git's rule for "racily clean" entries.

    File systems stamp with a clock that advances in steps of up to 10 ms, some of them in whole seconds.
    """
    newest = max(status.st_ctime_ns, status.st_mtime_ns)
    return newest < now - (2 * 10**9 if status.st_ctime_ns % 10**9 == 0 else SETTLING)


def identity(status: os.stat_result) -> str:
    """Return a text that changes whenever a file is written or replaced; no program can set the ctime in it."""
    return f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"


def digest_of(stream: BinaryIO) -> str:
    """Return the sha256 (hex) of the rest of *stream*."""
    digest = hashlib.sha256()
    for chunk in iter(partial(stream.read, _CHUNK), b""):
        digest.update(chunk)
    return digest.hexdigest()


def _private_directory(path: str) -> None:
    make_directory(os.path.dirname(path), 0o700)
    make_directory(path, 0o700)
    status, remedy = os.lstat(path), f"set that with: chown root {path} && chmod 0700 {path}"
    if stat.S_ISLNK(status.st_mode):
        remedy = "it is a link; move the directory that it leads to here"
    elif not stat.S_ISDIR(status.st_mode):
        remedy = "it is a file; move it away"
    elif status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077:
        return
    raise HostError(f"{path} must be a directory of root with mode 0700; {remedy}", code="unsafe_permissions")
