# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a cache: attachments, damaged files, and files that are half written.

Caches other than ``cache_dir`` are read, too, but only as a source of live containers. The shape, size and kind of a
file are never trusted.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Set, Tuple

from ...libcni import cache
from ...libcni.conf import NetworkConfigList
from ...libcni.errors import CNIError, JSONError
from ..addresses import packed, result_addresses
from ..errors import HostError
from .records import (
    ADDING,
    ATTACHED,
    RECORDS,
    Attached,
    Record,
    load_config,
    record_from_bytes,
    result_macs,
)
from .request import Key

_MAX_SIZE = 1 << 20

# The default cache of this collection. Go's libcni, and so every runtime that does not set another directory, uses
# /var/lib/cni; Multus, the successors of dockershim and Firecracker use directories below it.
_MANAGED_DIR = "/var/lib/podwire/cni"

# What is wrong with a file.
EMPTY, DAMAGED, OTHER, LEFTOVER, STRAY, UNREADABLE = "empty", "damaged", "other", "leftover", "stray", "unreadable"


class CacheFile(NamedTuple):
    """One file as it was when it was read; ``data`` is None if it is not a small regular file that can be read."""

    path: str
    status: Optional[os.stat_result]
    data: Optional[bytes]


class CachedAttachment:
    """The files of one attachment in cache_dir, or one file that belongs to no attachment.

    ``attached``: what an ADD was given (None: not known). ``problem``: one of the constants above, "" if the attachment
    is intact; ``message`` says it in words. ``interrupted``: its ADD did not finish. ``files``: all its files.
    ``key``, ``netns`` and ``result`` may be known even if it is not intact.
    """

    __slots__ = (
        "attached",
        "files",
        "interrupted",
        "key",
        "managed",
        "message",
        "name",
        "netns",
        "problem",
        "record",
        "result",
    )

    def __init__(self, name: str, files: List[CacheFile], managed: bool) -> None:
        self.name = name
        self.files = files
        self.managed = managed
        self.key: Optional[Key] = None
        self.attached: Optional[Attached] = None
        self.record: Optional[Record] = None
        self.problem = ""
        self.message = ""
        self.interrupted = False
        self.netns = ""
        self.result: Optional[Dict[str, Any]] = None

    @property
    def written(self) -> float:
        """When the newest of the files was written."""
        return max((file.status.st_mtime for file in self.files if file.status), default=0.0)

    @property
    def ips(self) -> List[str]:
        return result_addresses(self.result)

    @property
    def paths(self) -> List[str]:
        """The paths of the namespace. An entry of libcni before 1.0 has it only in the result."""
        found = [self.netns, *(str(interface.get("sandbox") or "") for interface in self._interfaces())]
        return list(dict.fromkeys(path for path in found if path))

    @property
    def macs(self) -> Dict[str, str]:
        """See ``records.result_macs``."""
        return result_macs(self.result)

    @property
    def host_ends(self) -> List[str]:
        """The names of the host's interfaces in the result."""
        return [str(interface.get("name")) for interface in self._interfaces() if not interface.get("sandbox")]

    def _interfaces(self) -> List[Dict[str, Any]]:
        interfaces = (self.result or {}).get("interfaces")
        return [one for one in interfaces if isinstance(one, dict)] if isinstance(interfaces, list) else []


class CacheContents:
    """The contents of a cache directory. ``made``: (network, container ID) of all that this collection attached.

    ``source``: its name as a source of live containers.
    """

    def __init__(self, entries: List[CachedAttachment], cache_dir: str = "", source: str = "cache") -> None:
        self.entries = entries
        self.cache_dir = cache_dir
        self.source = source
        self.made: Set[Tuple[str, str]] = set()
        self.made_addresses: Set[Tuple[str, bytes]] = set()
        for entry in entries:
            if entry.managed and entry.key is not None:
                self.made.add((entry.key.network, entry.key.container_id))
                self.made_addresses.update((entry.key.network, packed(ip.partition("/")[0])) for ip in entry.ips)

    @property
    def networks(self) -> List[Tuple[str, Mapping[str, Any]]]:
        """A pair (network, plugin object) for each plugin of every attachment."""
        found: List[Tuple[str, Mapping[str, Any]]] = []
        known: Set[int] = set()
        for entry in self.entries:
            # Attachments share what was loaded once.
            if entry.attached is not None and id(entry.attached.config) not in known:
                known.add(id(entry.attached.config))
                found += [(entry.attached.key.network, plugin.network) for plugin in entry.attached.config.plugins]
        return found

    @property
    def configs(self) -> List[NetworkConfigList]:
        return list({id(e.attached.config): e.attached.config for e in self.entries if e.attached}.values())


def read_other_caches(cache_dir: str) -> List[CacheContents]:
    """Return the known caches other than *cache_dir*. Raises HostError like :func:`read_cache`."""
    known = [_MANAGED_DIR, cache.DEFAULT_DIR]
    with contextlib.suppress(OSError):
        known += [os.path.join(cache.DEFAULT_DIR, name) for name in sorted(os.listdir(cache.DEFAULT_DIR))]
    this = os.path.realpath(cache_dir)
    return [
        read_cache(folder, f"cache {folder}")
        for folder in known
        if os.path.realpath(folder) != this
        and any(os.path.exists(os.path.join(folder, name)) for name in ("results", RECORDS))
    ]


def read_cache(cache_dir: str, source: str = "cache") -> CacheContents:
    """Return the contents of a cache directory, sorted by network, container and interface.

    Raises HostError ``source_unusable`` if it cannot be listed.
    """
    records = {file.path.rpartition("/")[2]: file for file in _files(os.path.join(cache_dir, RECORDS))}
    results = {file.path.rpartition("/")[2]: file for file in _files(os.path.join(cache_dir, "results"))}
    loader = _Loader(cache_dir != cache.DEFAULT_DIR)
    entries = [loader.entry(name, results.get(name), records.get(name)) for name in sorted({*results, *records})]
    entries += read_leftovers(cache_dir, f".{cache.KIND}-")
    entries.sort(key=lambda entry: (entry.key or Key("", "", ""), entry.name))
    return CacheContents(entries, cache_dir, source)


def read_leftovers(folder: str, start: str) -> List[CachedAttachment]:
    """Return the files in a folder, by the start of their names, that were being written when their writers died.

    Raises HostError like :func:`read_cache`.
    """
    return [_leftover(os.path.basename(file.path), [file], True) for file in _files(folder, start, ".tmp")]


def _leftover(name: str, files: List[CacheFile], managed: bool) -> CachedAttachment:
    entry = CachedAttachment(name, files, managed)
    entry.problem, entry.message = LEFTOVER, "it was being written when its writer died"
    return entry


def _files(folder: str, start: str = "", end: str = "") -> List[CacheFile]:
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise HostError(
            f"cannot list {folder}: {error.strerror}; its attachments may be alive. Make it a directory that root can "
            "read, or move it away if nothing uses it, and run again",
            code="source_unusable",
        ) from error
    paths = [os.path.join(folder, name) for name in names if name.startswith(start) and name.endswith(end)]
    return [_read(path) for path in paths if not os.path.isdir(path) or os.path.islink(path)]


def _read(path: str) -> CacheFile:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return CacheFile(path, None, None)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_SIZE:
            return CacheFile(path, status, None)
        with os.fdopen(os.dup(fd), "rb") as stream:
            return CacheFile(path, status, stream.read(_MAX_SIZE + 1))
    except OSError:
        return CacheFile(path, None, None)
    finally:
        os.close(fd)


class _Loader:
    """Parses files."""

    def __init__(self, private: bool) -> None:
        self._private = private

    def entry(self, name: str, result: Optional[CacheFile], record: Optional[CacheFile]) -> CachedAttachment:
        files, managed = [file for file in (result, record) if file], self._private or record is not None
        if name.startswith("."):
            return _leftover(name, files, managed)
        entry = CachedAttachment(name, files, managed)
        # The record tells to which attachment a damaged cache file belongs.
        if record is not None and record.data is not None:
            entry.key, entry.record = record_from_bytes(record.data)
        noted = entry.record.attached if entry.record else None
        if noted is not None:
            entry.netns, entry.result = noted.netns, noted.result
        if result is not None:
            self._load_result(entry, name, result)
        elif noted is not None and entry.record is not None:
            entry.attached, entry.interrupted = noted, entry.record.state == ADDING
        elif entry.record is not None and entry.record.state == ATTACHED:
            entry.problem, entry.message = STRAY, "it is the record of an attachment that the cache does not have"
        else:
            entry.problem, entry.message = DAMAGED, "it is not a valid record of an attachment"
            entry.interrupted = True
        return entry

    def _load_result(self, entry: CachedAttachment, name: str, result: CacheFile) -> None:
        if result.data is None:
            entry.problem, entry.message = UNREADABLE, "it is not a regular file of at most 1 MiB that can be read"
        elif not result.data.strip(b"\0 \r\n\t"):
            entry.problem, entry.message = EMPTY, "it is empty, as after a crash"
        else:
            try:
                found = cache.Entry.from_bytes(result.data)
                key = Key(found.network_name, found.container_id, found.if_name)
                fits, entry.netns, entry.result = name == "-".join(key), found.net_ns, found.result
                if entry.key is not None and entry.key != key and fits:
                    # The names of two attachments form the same file name: the record is the other one's.
                    entry.key = entry.record = None
                if entry.key is None and _is_valid(key):
                    entry.key = key
                if found.kind != cache.KIND:
                    entry.problem, entry.message = OTHER, f"its kind is {found.kind!r} instead of {cache.KIND!r}"
                elif not fits:
                    entry.problem, entry.message = DAMAGED, "its content does not match its file name"
                elif entry.key is None:
                    entry.problem, entry.message = DAMAGED, f"no plugin accepts its names: {'/'.join(key)!r}"
                else:
                    self._load_attachment(entry, key, found)
            except (CNIError, JSONError) as error:
                entry.problem, entry.message = DAMAGED, f"it is not a valid cache entry of libcni: {error}"

    def _load_attachment(self, entry: CachedAttachment, key: Key, found: cache.Entry) -> None:
        config = load_config(found.config)
        if config.name != key.network or not config.plugins:
            entry.problem, entry.message = DAMAGED, f"its configuration is not a conflist named {key.network!r}"
            return
        entry.attached = Attached(
            key, config, found.net_ns, found.cni_args or (), found.capability_args or {}, found.result
        )


def _is_valid(key: Key) -> bool:
    try:
        cache.cache_path("", *key)
    except CNIError:
        return False
    return True


def remove_files(files: List[CacheFile]) -> None:
    """Remove those files that have not changed since they were read. Raises HostError ``cache_not_removed``."""
    for file in files:
        try:
            now = os.lstat(file.path)
            then = file.status
            if then is None or (now.st_ino, now.st_mtime_ns, now.st_size) == (
                then.st_ino,
                then.st_mtime_ns,
                then.st_size,
            ):
                os.unlink(file.path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise HostError(f"cannot remove {file.path}: {error.strerror}", code="cache_not_removed") from error
