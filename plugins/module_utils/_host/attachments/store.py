# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of attachments: two files for each, and one for what they share.

| file | what |
|---|---|
| <cache_dir>/results/NAME | libcni's cache entry: what an ADD was given and returned |
| <cache_dir>/podwire/NAME | our record: the same, for an entry that is lost, and what its format has no place for |
| /run/podwire-cni/footprints/DIGEST | the footprints of what the attachments in one cache directory share |

A record is written before an ADD with the state ``adding`` and all that a DEL needs, so that the next run can remove
what an interrupted ADD left; again after it; and at the end of the call with the footprint. Records are not synced to
disk: after a power loss, their namespaces are gone, too. A footprint has a digest: what is put back is what was
recorded. What is shared outlives the last attachment, because its bridge stays and the next ADD does not make it again.

A record that is damaged stays, and counts as missing. Caches other than ``cache_dir`` are read, too, but only as a
source of live containers. The shape, size and kind of a file are never trusted.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
from functools import cached_property, lru_cache
from typing import Any, Collection, Dict, Iterable, List, Mapping, NamedTuple, Optional, Set, Tuple

from ...libcni import cache, gojson
from ...libcni.conf import NetworkConfigList
from ...libcni.errors import CacheError, CNIError, JSONError
from ...libcni.files import read_file
from ..addresses import packed, result_addresses, result_interfaces, result_macs
from ..errors import HostError
from ..json_text import parse_json
from ..leases import read_leases
from ..lock import LOCK_PATH
from ..netns import boot_id
from ..paths import names_in, replace_unsynced, stage_unsynced
from ..struct import struct
from ..trust import check_trusted
from .attached import ADDING, ATTACHED, DAMAGE, Attached, load_config, seal_of, sound_record, text_in
from .request import Key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..footprints.footprint import SharedFootprints

RECORDS = "podwire"
EMPTY, DAMAGED, OTHER, LEFTOVER, STRAY, UNREADABLE = "empty", "damaged", "other", "leftover", "stray", "unreadable"
"""What is wrong with a file."""

# A footprint takes some KiB; a chain of thousands of rules, some hundred.
_LARGEST = 4 << 20
_REGULAR = "a regular file of at most 4 MiB that can be read"
# The default cache of this collection. Go's libcni, and so every runtime that does not set another directory, uses
# /var/lib/cni; Multus, the successors of dockershim and Firecracker use directories below it.
_MANAGED_DIR = "/var/lib/podwire/cni"


class CacheFile(NamedTuple):
    """One file as it was when it was read; ``data`` is None if it is not a small regular file that can be read."""

    path: str
    status: Optional[os.stat_result]
    data: Optional[bytes]


@struct
class CachedAttachment:
    """The files of one attachment in a cache directory, or one file that belongs to no attachment.

    ``attached``: what is known of it (None: not enough for a DEL), from libcni's entry, or without one from our record.
    ``recorded``: what our record alone tells, and its ``state`` ("": there is none; ``adding`` if it is damaged).
    ``problem``: one of the constants above, "" if the attachment is intact; ``message`` says it in words.
    ``interrupted``: its ADD did not finish. ``damage``: a sentence on a record that cannot be used. ``error``: why
    libcni's entry cannot be used, for one that was asked for. ``key``, ``netns``, ``identity`` and ``result`` may be
    known even if it is not intact.
    """

    name: str
    files: List[CacheFile]
    managed: bool = True
    key: Optional[Key] = None
    attached: Optional[Attached] = None
    recorded: Optional[Attached] = None
    state: str = ""
    identity: Optional[Dict[str, Any]] = None
    problem: str = ""
    message: str = ""
    damage: str = ""
    error: Optional[HostError] = None
    interrupted: bool = False
    netns: str = ""
    result: Optional[Dict[str, Any]] = None

    @property
    def has_entry(self) -> bool:
        """Whether libcni's entry is intact."""
        return self.attached is not None and self.attached is not self.recorded

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
        inside = [str(interface.get("sandbox") or "") for interface in result_interfaces(self.result)]
        return list(dict.fromkeys(path for path in [self.netns, *inside] if path))

    @property
    def macs(self) -> Dict[str, str]:
        """See ``result_macs``."""
        return result_macs(self.result)

    @property
    def host_ends(self) -> List[str]:
        """The names of the host's interfaces in the result."""
        interfaces = result_interfaces(self.result)
        return [str(interface.get("name")) for interface in interfaces if not interface.get("sandbox")]

    def load(self, entry: Optional[CacheFile], record: Optional[CacheFile], key: Optional[Key] = None) -> None:
        """Parse the files. *key*: which attachment it must be; None: that whose names form the name of the files.

        Raises CacheError if libcni's entry is that of another attachment than *key*.
        """
        data = self._load_record(record, key) if record is not None else None
        if entry is not None:
            self._load_entry(entry, key)
            if self.attached is not None:
                self._join(self.attached, data if self.state else None, record)
        elif self.recorded is not None:
            self.attached, self.interrupted = self.recorded, self.state == ADDING
        elif self.state == ATTACHED:
            self.problem, self.message = STRAY, "it is the record of an attachment that the cache does not have"
        elif self.state:
            self.problem, self.message = DAMAGED, "it is not a valid record of an attachment"
            self.interrupted = True

    def _join(self, attached: Attached, data: Optional[Dict[str, Any]], record: Optional[CacheFile]) -> None:
        """Add what the record tells to what libcni's entry does."""
        if self.recorded is not None:
            names = ("config", "netns", "args", "capability_args", "result")
            self.attached = self.recorded.changed(**{name: getattr(attached, name) for name in names})
        elif data is not None and record is not None:
            attached.remember(data, record.path)
        else:
            attached.damage = self.damage

    def _load_record(self, record: CacheFile, key: Optional[Key]) -> Optional[Dict[str, Any]]:
        """Parse our record; return it as data if it is sound. That of another attachment than *key* is left out."""
        self.state = ADDING
        try:
            if record.data is None:
                raise ValueError("unreadable")
            data = gojson.loads(record.data)
            named = Key(*(text_in(data[name]) for name in ("network", "container_id", "ifname")))
            if key is not None and named != key:
                self.state = ""
                return None
            data = sound_record(data)
            try:
                self.recorded = Attached.from_record(named, data, record.path)
                self.netns, self.result = self.recorded.netns, self.recorded.result
            except DAMAGE:
                # The record lacks it; the cache entry has it.
                if data["state"] == ADDING:
                    raise
        except DAMAGE:
            what = "is damaged" if record.data is not None else f"is not {_REGULAR}"
            self.damage = f"the record {record.path} {what}"
            return None
        self.key, self.state, self.identity = named, data["state"], data["identity"]
        return data

    def _load_entry(self, entry: CacheFile, key: Optional[Key]) -> None:
        if entry.data is None:
            self.problem, self.message = UNREADABLE, f"it is not {_REGULAR}"
            return
        if not entry.data.strip(b"\0 \r\n\t"):
            self.problem, self.message = EMPTY, "it is empty, as after a crash"
            return
        self.problem = DAMAGED
        try:
            cache_entry = cache.Entry.from_bytes(entry.data)
        except (CNIError, JSONError) as error:
            self.message = f"it is not a valid cache entry of libcni: {error}"
            return
        named = Key(cache_entry.network_name, cache_entry.container_id, cache_entry.if_name)
        fits, self.netns, self.result = self.name == "-".join(named), cache_entry.net_ns, cache_entry.result
        if key is not None:
            # Old entries lack names.
            cache.check_owner(cache_entry, entry.path, *key)
            named, fits = key, True
        elif self.key is not None and self.key != named and fits:
            # The names of two attachments form the same file name: the record is the other one's.
            self.key, self.recorded, self.identity, self.state = None, None, None, ""
        if self.key is None and _is_valid(named):
            self.key = named
        if cache_entry.kind != cache.KIND:
            self.problem, self.message = OTHER, f"its kind is {cache_entry.kind!r} instead of {cache.KIND!r}"
        elif not fits:
            self.message = "its content does not match its file name"
        elif self.key is None:
            self.message = f"no plugin accepts its names: {'/'.join(named)!r}"
        else:
            self._load_attached(named, cache_entry)

    def _load_attached(self, key: Key, entry: cache.Entry) -> None:
        try:
            config = load_config(entry.config)
        except CNIError as error:
            self.message = f"it is not a valid cache entry of libcni: {error}"
            return
        if config.name != key.network or not config.plugins:
            self.message = f"its configuration is not a conflist named {key.network!r}"
            return
        args = [(pair[0], pair[1]) for pair in entry.cni_args or ()]
        self.problem = ""
        self.attached = Attached(key, config, entry.net_ns, args, entry.capability_args or {}, entry.result)


def _is_valid(key: Key) -> bool:
    try:
        cache.cache_path("", *key)
    except CNIError:
        return False
    return True


def _read(path: str) -> Optional[CacheFile]:
    """Read a file; None if there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        return CacheFile(path, None, None)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            return CacheFile(path, status, None)
        return CacheFile(path, status, os.read(fd, status.st_size + 1))
    except OSError:
        return CacheFile(path, None, None)
    finally:
        os.close(fd)


def remove_files(files: List[CacheFile]) -> None:
    """Remove those files that have not changed since they were read. Raises HostError ``cache_not_removed``."""
    for file in files:
        try:
            now, then = os.lstat(file.path), file.status
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


# ---- the store


def cache_dirs(cache_dir: str) -> List[str]:
    """Return the directories of a cache. Only root may be able to write to them."""
    return [cache_dir, *(os.path.join(cache_dir, name) for name in ("results", RECORDS))]


def check_cache_dir(cache_dir: str) -> None:
    """Raise HostError ``unsafe_permissions`` if users other than root can make entries, which tell what a DEL runs."""
    for path in cache_dirs(cache_dir):
        check_trusted(path)


def refuse_link(path: str) -> None:
    """Raise HostError ``unsafe_permissions`` if a cache entry is a symbolic link."""
    if os.path.islink(path):
        raise HostError(
            f"the cache entry {path} is a symbolic link, which is not followed; replace it with a regular file, or "
            "remove it",
            code="unsafe_permissions",
        )


class AttachmentStore:
    """What is kept of attachments in one cache directory. Threads may share it."""

    def __init__(self, cache_dir: str) -> None:
        self.cache_dir = cache_dir
        self._folder = os.path.join(cache_dir, RECORDS)
        name = hashlib.sha256(os.fsencode(cache_dir)).hexdigest()
        self.shared_path = os.path.join(os.path.dirname(LOCK_PATH), "footprints", name)

    def read(self, key: Key) -> CachedAttachment:
        """Read the files of one attachment.

        Raises HostError ``unsafe_permissions`` if users other than root can change libcni's entry or it is a link;
        ``cache_collision`` if it is another attachment's: names may contain dashes, so two can share a file name.
        """
        path = cache.cache_path(self.cache_dir, *key)
        check_trusted(path)
        refuse_link(path)
        entry, record = _read(path), _read(self._path(key))
        if entry is not None and entry.data is None:
            # As with Go's libcni, what cannot be read counts as no entry.
            entry = None
        cached = CachedAttachment("-".join(key), [file for file in (entry, record) if file])
        try:
            cached.load(entry, record, key)
        except CacheError as error:
            raise HostError(
                f"{error}; the names of both attachments form the same file name, so rename one of them",
                code="cache_collision",
            ) from error
        if entry is not None and cached.attached is None:
            text = f"the cache entry {path} is damaged ({cached.message}), and no record tells what was attached"
            way_out = "set force: true to run DEL with the network's current configuration, which replaces the entry"
            cached.error = HostError(f"{text}; {way_out}", code="cache_damaged")
        return cached

    def of_pods(self, container_ids: Collection[str], known: Iterable[Key]) -> Dict[str, Dict[Key, Attached]]:
        """Return the attachments of containers that belong to pods, in their order, but not those that are *known*."""
        pods: Dict[str, Dict[Key, Attached]] = {}
        names = sorted(set(self._names()).difference("-".join(key) for key in known))
        records = [self._record(name).recorded for name in names if _may_be_of(name, container_ids)]
        for attached in sorted(filter(None, records), key=lambda attached: attached.pod.place if attached.pod else 0):
            if attached.pod is not None and attached.key.container_id in container_ids:
                pods.setdefault(attached.key.container_id, {})[attached.key] = attached
        return pods

    def in_use(self, networks: Iterable[str]) -> Set[Tuple[str, ...]]:
        """Return those of *networks*, each in a tuple, that attachments are recorded of, and () if any are."""
        names = self._names()
        used: Set[Tuple[str, ...]] = {
            (network,)
            for network in networks
            if any(name.startswith(f"{network}-") and self._is_of(name, network) for name in names)
        }
        return used | {()} if names else used

    def _is_of(self, name: str, network: str) -> bool:
        key = self._record(name).key
        return key is None or key.network == network

    def _names(self) -> List[str]:
        return [name for name in names_in(self._folder) if not name.startswith(".")]

    def _record(self, name: str) -> CachedAttachment:
        file = _read(os.path.join(self._folder, name))
        cached = CachedAttachment(name, [file] if file else [])
        cached.load(None, file)
        return cached

    def write(self, attached: Attached) -> None:
        """Write the record of an attachment. Raises HostError ``record_unwritable``."""
        path = self._path(attached.key)
        try:
            replace_unsynced(path, self._packed(path, attached.to_record()))
        except OSError as error:
            raise _unwritable(path, error) from error

    def check_writable(self, key: Key) -> None:
        """Raise HostError ``record_unwritable`` unless a record of *key* can be written now."""
        path = self._path(key)
        try:
            os.unlink(stage_unsynced(path, self._packed(path, {})))
        except OSError as error:
            raise _unwritable(path, error) from error

    def remove(self, key: Key) -> None:
        """Remove the record. Raises HostError ``record_unwritable``."""
        try:
            os.unlink(self._path(key))
        except OSError as error:
            # Something else may have its name.
            if error.errno not in (errno.ENOENT, errno.EISDIR):
                text = f"cannot remove {self._path(key)}: {error.strerror}"
                raise HostError(text, code="record_unwritable") from error

    def _path(self, key: Key) -> str:
        return os.path.join(self._folder, "-".join(key))

    def _packed(self, path: str, data: Mapping[str, Any]) -> bytes:
        """Return what the file at *path* will hold, and create its directory."""
        # No record's name starts with a dot, as temporary ones do: network names start with a letter or a digit.
        try:
            cache.make_dirs(self._folder)
        except CacheError as error:
            raise HostError(f"cannot write {path}: {error}", code="record_unwritable") from error
        return json.dumps(data, sort_keys=True).encode("utf-8")

    def read_shared(self) -> SharedFootprints:
        """Return what the attachments share; empty if nothing was recorded since the host booted."""
        # Imported late: most calls change nothing, or compare nothing.
        from ..footprints.footprint import SharedFootprints

        shared = SharedFootprints()
        try:
            data = parse_json(read_file(self.shared_path, cache.LARGEST, follow=False))
            text = str(data["text"])
            if data["digest"] != seal_of(text, data["boot_id"]):
                raise ValueError("changed")
            if data["boot_id"] == boot_id():
                shared = SharedFootprints.from_data(parse_json(text))
        except FileNotFoundError:
            pass
        except OSError as error:
            shared.damage = f"cannot read the footprints in {self.shared_path}: {error.strerror}"
        except DAMAGE:
            shared.damage = f"the footprints in {self.shared_path} are damaged"
        return shared

    def write_shared(self, shared: SharedFootprints) -> None:
        """Write what the attachments share. Raises HostError ``record_unwritable``."""
        text, boot = json.dumps(shared.to_data(), separators=(",", ":")), boot_id()
        data = {"boot_id": boot, "digest": seal_of(text, boot), "text": text}
        try:
            os.makedirs(os.path.dirname(self.shared_path), 0o700, exist_ok=True)
            replace_unsynced(self.shared_path, json.dumps(data).encode())
        except OSError as error:
            raise _unwritable(self.shared_path, error) from error


def _may_be_of(name: str, container_ids: Collection[str]) -> bool:
    """Tell whether a record's name has one of the IDs between those of a network and an interface."""
    parts = name.split("-")
    places = range(1, len(parts))
    return any("-".join(parts[first:end]) in container_ids for first in places for end in range(first + 1, len(parts)))


def _unwritable(path: str, error: OSError) -> HostError:
    return HostError(f"cannot write {path}: {error.strerror}", code="record_unwritable")


# ---- all of a cache


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
        plugins: List[Tuple[str, Mapping[str, Any]]] = []
        known: Set[int] = set()
        for entry in self.entries:
            # Attachments share what was loaded once.
            if entry.attached is not None and id(entry.attached.config) not in known:
                known.add(id(entry.attached.config))
                plugins += [(entry.attached.key.network, plugin.network) for plugin in entry.attached.config.plugins]
        return plugins

    @property
    def configs(self) -> List[NetworkConfigList]:
        return list({id(e.attached.config): e.attached.config for e in self.entries if e.attached}.values())


class HostStores:
    """The stores of a host, each read once, when it is first asked for, for all parts of a run.

    ``contents``: of the cache *cache_dir*, ``others``: of the known caches. Raises HostError like :func:`read_cache`.
    ``live``: the LiveSet, once who lives has been read, after all that may be left of the dead.
    """

    def __init__(self, cache_dir: str) -> None:
        self.cache_dir = cache_dir
        self.live: Any = None
        self.read_leases = lru_cache(maxsize=None)(read_leases)

    @cached_property
    def contents(self) -> CacheContents:
        return read_cache(self.cache_dir)

    @cached_property
    def others(self) -> List[CacheContents]:
        return read_other_caches(self.cache_dir)


def read_other_caches(cache_dir: str) -> List[CacheContents]:
    """Return the known caches other than *cache_dir*. Raises HostError like :func:`read_cache`."""
    known = [_MANAGED_DIR, cache.DEFAULT_DIR]
    with contextlib.suppress(OSError):
        known += [os.path.join(cache.DEFAULT_DIR, name) for name in sorted(os.listdir(cache.DEFAULT_DIR))]
    this = os.path.realpath(cache_dir)
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
            entry.load(result, record or _read(os.path.join(folder, name)))
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
        raise HostError(
            f"cannot list {folder}: {error.strerror}; its attachments may be alive. Make it a directory that root can "
            "read, or move it away if nothing uses it, and run again",
            code="source_unusable",
        ) from error
    paths = [os.path.join(folder, name) for name in names if name.startswith(start) and name.endswith(end)]
    files = [file for file in map(_read, paths) if file is not None]
    return [file for file in files if file.status is None or not stat.S_ISDIR(file.status.st_mode)]
