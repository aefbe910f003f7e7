# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The cache: one file for each attachment, in Go's format (Go: libcni/api.go).

`<dir>/results/<network>-<containerID>-<ifname>`, directories 0700, files 0600.

Deviations from Go: names are validated before they become a path; a file is written beside `results/`, fsynced and
renamed, so that no reader sees a partial file; a file that belongs to another attachment (names may contain `-`, so two
attachments can have one file) is an error instead of being overwritten, read or deleted; anything but a regular file (a
link is not one), or a file larger than any entry, counts as unreadable; a directory in an entry's place is moved away.
"""

from __future__ import annotations

import binascii
import os
import re

from . import gojson
from .errors import CacheError, JSONError, os_error_text, quote
from .files import read_file
from .validate import validate_container_id, validate_if_name, validate_network_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

DEFAULT_DIR = "/var/lib/cni"
KIND = "cniCacheV1"

# An entry has some kilobytes. Larger files are not read, to protect the host's memory.
LARGEST = 64 * 1024 * 1024

_LONGEST_NAME = 255
# The name of a file that is being written ends with random digits and this.
_DIGITS, _SUFFIX = 16, ".tmp"
# With the rest it fits into the bytes of a name. Longer names that begin alike count as one.
_LONGEST_PREFIX = 220
_STRINGS = {
    "kind": "kind",
    "containerId": "container_id",
    "ifName": "if_name",
    "networkName": "network_name",
    "netns": "net_ns",
}
_FIELDS = (*_STRINGS, "config", "cniArgs", "capabilityArgs", "result")


class Entry:
    """One cached attachment (Go: cachedInfo).

    `config` is the network list's JSON, `result` the result's. `cni_args`, `capability_args` and `result` are None if
    the file does not have them.
    """

    def __init__(
        self,
        container_id: str = "",
        config: bytes = b"",
        if_name: str = "",
        network_name: str = "",
        net_ns: str = "",
        cni_args: list[list[str]] | None = None,
        capability_args: dict[str, t.Any] | None = None,
        result: dict[str, t.Any] | None = None,
        kind: str = KIND,
    ) -> None:
        self.kind = kind
        self.container_id = container_id
        self.config = config
        self.if_name = if_name
        self.network_name = network_name
        self.net_ns = net_ns
        self.cni_args = cni_args
        self.capability_args = capability_args
        self.result = result

    @classmethod
    def from_bytes(cls, data: bytes) -> Entry:
        """Parse a cache file of any kind. Raises `JSONError`."""
        entry = cls(kind="")
        for name, value in gojson.struct_items(gojson.loads(data), _FIELDS):
            if name == "config":
                entry.config = _decode_bytes(value)
            elif name == "cniArgs":
                entry.cni_args = None if value is None else _decode_args(value)
            elif name == "capabilityArgs":
                entry.capability_args = None if value is None else gojson.as_object(value, name)
            elif name == "result":
                entry.result = None if value is None else gojson.as_object(value, name)
            else:
                attribute = _STRINGS[name]
                setattr(entry, attribute, gojson.string_over(getattr(entry, attribute), value, name))
        return entry

    def to_bytes(self) -> bytes:
        """Return the file's content. Raises `JSONError` if JSON cannot express an argument."""
        out = gojson.Struct(
            kind=self.kind,
            containerId=self.container_id,
            config=binascii.b2a_base64(self.config, newline=False).decode("ascii"),
            ifName=self.if_name,
            networkName=self.network_name,
        )
        optional = (
            ("netns", self.net_ns),
            ("cniArgs", self.cni_args),
            ("capabilityArgs", self.capability_args),
            ("result", self.result),
        )
        for name, value in optional:
            if value:
                out[name] = value
        return gojson.dumps(out)

    def is_of(self, network_name: str, container_id: str, if_name: str) -> bool:
        """Tell whether the entry is that attachment's; a name that is missing in the file fits any attachment."""
        return (
            self.network_name in ("", network_name)
            and self.container_id in ("", container_id)
            and self.if_name in ("", if_name)
        )


def _decode_bytes(value: t.Any) -> bytes:
    """Decode the forms that Go reads into bytes: base64, or an array of numbers."""
    if isinstance(value, list):
        return bytes(gojson.as_int(item, "config", 0, 255) for item in value)
    text = gojson.as_string(value, "config")
    # a2b_base64 skips characters outside of base64, which Go refuses. Line breaks are skipped by Go as well.
    text = text.replace("\r", "").replace("\n", "")
    if len(text) % 4 or not re.fullmatch("[A-Za-z0-9+/]*={0,2}", text):
        raise JSONError("json: cannot unmarshal string into field config: it is not base64")
    return binascii.a2b_base64(text)


def _decode_args(value: t.Any) -> list[list[str]]:
    args = []
    for pair in gojson.as_list(value, "cniArgs"):
        # Go decodes into [2]string: missing elements are empty, extra ones are ignored.
        texts = [gojson.as_string(item, "cniArgs") for item in gojson.as_list(pair, "cniArgs")]
        args.append([*texts, "", ""][:2])
    return args


def cache_path(directory: str, network: str, container_id: str, if_name: str) -> str:
    """Return the path of an attachment's cache file.

    Raises `CacheError` if a name is missing, `ValidationError` if one is invalid.
    """
    if not (network and container_id and if_name):
        raise CacheError(
            f"cache file path requires network name ({quote(network)}), container ID ({quote(container_id)}), "
            f"and interface name ({quote(if_name)})"
        )
    validate_container_id(container_id)
    validate_network_name(network)
    validate_if_name(if_name)
    return os.path.normpath(os.path.join(directory, "results", f"{network}-{container_id}-{if_name}"))


def read_bytes(path: str) -> bytes | None:
    """Return a cache file's content, None if it cannot be read (Go: read errors count as no entry)."""
    try:
        return read_file(path, LARGEST, follow=False)
    except (OSError, ValueError):
        return None


def read_entry(path: str) -> Entry | None:
    """Return the entry in a file, None if the file has no entry of this package's kind."""
    data = read_bytes(path)
    if data is None:
        return None
    try:
        entry = Entry.from_bytes(data)
    except JSONError:
        return None
    return entry if entry.kind == KIND else None


def check_owner(entry: Entry, path: str, network: str, container_id: str, if_name: str) -> None:
    """Raise `CacheError` if the entry at `path` is another attachment's."""
    if not entry.is_of(network, container_id, if_name):
        raise CacheError(
            f"cache file {path} belongs to another attachment: network {quote(entry.network_name)}, "
            f"container ID {quote(entry.container_id)}, interface {quote(entry.if_name)}",
            path,
        )


def prepare(directory: str, network: str, container_id: str, if_name: str) -> str:
    """Check that an entry can be written, and return its path. This is for before an ADD; Go fails after it.

    Raises `CacheError` and `ValidationError`.
    """
    path = cache_path(directory, network, container_id, if_name)
    name = os.path.basename(path)
    if len(name.encode("utf-8", "surrogatepass")) > _LONGEST_NAME:
        raise CacheError(f"cache file name {quote(name)} is longer than {_LONGEST_NAME} bytes", path)
    make_dirs(os.path.dirname(path))
    _make_room(path)
    entry = read_entry(path)
    if entry is not None:
        check_owner(entry, path, network, container_id, if_name)
    return path


def _make_room(path: str) -> None:
    """Move a directory in the place of an entry out of results/, with its content."""
    if not os.path.isdir(path) or os.path.islink(path):
        return
    parent = os.path.dirname(os.path.dirname(path))
    try:
        os.rename(path, os.path.join(parent, f".{KIND}-{os.urandom(8).hex()}.aside"))
    except OSError as exc:
        raise CacheError(os_error_text("rename", path, exc), path) from exc


def make_dirs(directory: str) -> None:
    """Create a directory and its parents, all 0700 (os.makedirs gives the parents another mode)."""
    if os.path.isdir(directory):
        return
    parent = os.path.dirname(directory)
    if parent != directory:
        make_dirs(parent)
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        if not os.path.isdir(directory):
            raise CacheError(f"mkdir {directory}: not a directory", directory) from None
    except OSError as exc:
        raise CacheError(os_error_text("mkdir", directory, exc), directory) from exc


def write_entry(directory: str, entry: Entry) -> str:
    """Write an entry, or replace it, and return its path.

    Raises `CacheError`, `ValidationError`, and `JSONError` as `Entry.to_bytes`.
    """
    data = entry.to_bytes()
    if len(data) > LARGEST:
        raise CacheError(f"a cache entry of {len(data)} bytes is too large")
    path = prepare(directory, entry.network_name, entry.container_id, entry.if_name)
    temporary = unfinished_path(path)
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            _remove(temporary)
            raise
    except OSError as exc:
        raise CacheError(os_error_text("open", path, exc), path) from exc
    return path


def remove_entry(directory: str, network: str, container_id: str, if_name: str) -> None:
    """Remove an attachment's file, unless it belongs to another, and what killed writers of it have left.

    As in Go, a file that cannot be removed stays.

    Raises `CacheError` and `ValidationError` as `cache_path`.
    """
    path = cache_path(directory, network, container_id, if_name)
    entry = read_entry(path)
    if entry is None or entry.is_of(network, container_id, if_name):
        _remove(path)
        remove_unfinished(path)


def unfinished_path(path: str) -> str:
    """Return a new path on which to write what is to become the file `path`, in the directory above that of `path`.

    There it counts as no entry, and what killed writers have left is found without reading the names of all entries.
    """
    folder, prefix = _unfinished(path)
    return os.path.join(folder, f"{prefix}{os.urandom(_DIGITS // 2).hex()}{_SUFFIX}")


def remove_unfinished(path: str) -> None:
    """Remove what writers of `path` that were killed have left, as far as it can be removed.

    A writer that still runs fails when it renames or links its file.
    """
    folder, prefix = _unfinished(path)
    try:
        for name in os.listdir(folder):
            # The place of the suffix tells it from those of a file whose name begins with this one.
            if name.startswith(prefix) and name[len(prefix) + _DIGITS :] == _SUFFIX:
                os.unlink(os.path.join(folder, name))
    except OSError:
        return


def _unfinished(path: str) -> tuple[str, str]:
    return os.path.dirname(os.path.dirname(path)), f".{f'{KIND}-{os.path.basename(path)}'[:_LONGEST_PREFIX]}-"


def _remove(path: str) -> None:
    try:
        # Go's os.Remove also removes an empty directory.
        (os.rmdir if os.path.isdir(path) and not os.path.islink(path) else os.unlink)(path)
    except OSError:
        # It is gone already, or it stays, as in Go.
        return


def list_entries(directory: str, container_id: str = "") -> list[Entry]:
    """Return the entries of all attachments, or of one container's, in the order of their file names.

    Files that are not entries, such as bare results of old versions, are left out. A missing directory is no error.
    Raises `CacheError` if it cannot be read.
    """
    folder = os.path.join(directory, "results")
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise CacheError(os_error_text("open", folder, exc), folder) from exc
    if container_id:
        part = f"-{container_id}-"
        names = [name for name in names if 0 < name.find(part) < len(name) - len(part)]
    entries = []
    for name in sorted(names, key=os.fsencode):
        entry = read_entry(os.path.join(folder, name))
        if entry is None or not entry.if_name or not entry.network_name:
            continue
        if container_id and entry.container_id != container_id:
            continue
        entries.append(entry)
    return entries
