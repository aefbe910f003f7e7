# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""All that the caches of a host have. Others than ``cache_dir`` are only a source of live containers."""

from __future__ import annotations

import os
import stat
from functools import cached_property, lru_cache
from typing import Any, Iterable, List, Mapping, Set, Tuple

from ...libcni import cache
from ...libcni.conf import NetworkConfigList
from ..addresses import packed
from ..errors import HostError
from ..leases import read_leases
from ..paths import names_in
from .request import Key
from .store import LEFTOVER, RECORDS, CachedAttachment, CacheFile, check_directories, read_cache_file

# The default cache of this collection. Go's libcni, and so every runtime that does not set another directory, uses
# /var/lib/cni; Multus, the successors of dockershim and Firecracker use directories below it.
_MANAGED_DIR = "/var/lib/podwire/cni"
_VERSION = ("st_ino", "st_mtime_ns", "st_size")


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
        return [(name, plugin.network) for name, config in self._loaded for plugin in config.plugins]

    @property
    def configs(self) -> List[NetworkConfigList]:
        return [config for _name, config in self._loaded]

    @property
    def _loaded(self) -> Iterable[Tuple[str, NetworkConfigList]]:
        """Each configuration with its network. Attachments share what was loaded once."""
        attachments = [entry.attached for entry in self.entries if entry.attached is not None]
        return {id(attached.config): (attached.key.network, attached.config) for attached in attachments}.values()


class HostStores:
    """The stores of a host, each read once, when it is first asked for, for all parts of a run.

    ``contents``: of the cache *cache_dir*, ``others``: of the other known caches. ``live``: the LiveSet, once who
    lives has been read, after all that may be left of the dead. Raises HostError like :func:`read_cache` and
    :func:`check_directories`.
    """

    def __init__(self, cache_dir: str) -> None:
        self.cache_dir = cache_dir
        self.live: Any = None
        self.read_leases = lru_cache(maxsize=None)(read_leases)

    @cached_property
    def contents(self) -> CacheContents:
        check_directories(self.cache_dir)
        return read_cache(self.cache_dir)

    @cached_property
    def others(self) -> List[CacheContents]:
        known = [_MANAGED_DIR, cache.DEFAULT_DIR]
        known += [os.path.join(cache.DEFAULT_DIR, name) for name in names_in(cache.DEFAULT_DIR)]
        this = os.path.realpath(self.cache_dir)
        return [
            read_cache(folder, is_other=True)
            for folder in known
            if os.path.realpath(folder) != this
            and any(os.path.exists(os.path.join(folder, name)) for name in ("results", RECORDS))
        ]


def read_cache(cache_dir: str, is_other: bool = False) -> CacheContents:
    """Return the contents of a cache directory, sorted by network, container and interface.

    *is_other*: it is not that of the settings, so what has no record is not managed.

    Raises HostError ``source_unusable`` if it cannot be listed.
    """
    folder = os.path.join(cache_dir, RECORDS)
    private = cache_dir == _MANAGED_DIR if is_other else cache_dir != cache.DEFAULT_DIR
    records = {os.path.basename(file.path): file for file in _files(folder)}
    results = {os.path.basename(file.path): file for file in _files(os.path.join(cache_dir, "results"))}
    entries = []
    for name in sorted({*results, *records}):
        result, record = results.get(name), records.get(name)
        files = [file for file in (result, record) if file]
        entry = CachedAttachment(name, files, private or record is not None)
        entries.append(entry)
        if not name.startswith("."):
            # Something else may have the record's name.
            entry.load(result, record or read_cache_file(os.path.join(folder, name)))
    unfinished = _files(cache_dir, f".{cache.KIND}-", ".tmp")
    entries += [CachedAttachment(os.path.basename(file.path), [file]) for file in unfinished]
    for entry in entries:
        if entry.name.startswith("."):
            entry.problem, entry.message = LEFTOVER, "it was being written when its writer died"
    entries.sort(key=lambda entry: (entry.key or Key("", "", ""), entry.name))
    return CacheContents(entries, cache_dir, f"cache {cache_dir}" if is_other else "cache")


def _files(folder: str, start: str = "", end: str = "") -> List[CacheFile]:
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        remedy = "Make it a directory that root can read, or move it away if nothing uses it, and run again"
        text = f"cannot list {folder}: {error.strerror}; its attachments may be alive. {remedy}"
        raise HostError(text, code="source_unusable") from error
    paths = [os.path.join(folder, name) for name in names if name.startswith(start) and name.endswith(end)]
    files = [file for file in map(read_cache_file, paths) if file is not None]
    return [file for file in files if file.status is None or not stat.S_ISDIR(file.status.st_mode)]


def remove_files(files: List[CacheFile]) -> None:
    """Remove those files that have not changed since they were read. Raises HostError ``cache_not_removed``."""
    for file in files:
        try:
            now, then = os.lstat(file.path), file.status
            if then is None or all(getattr(now, name) == getattr(then, name) for name in _VERSION):
                os.unlink(file.path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise HostError(f"cannot remove {file.path}: {error.strerror}", code="cache_not_removed") from error
