# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of ``cache_dir``: attachments, what is damaged, what was left half written, and the live ones as a source.

Nothing that is read is trusted in shape, size or kind of file.
"""

from __future__ import annotations

import os
import stat
from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Set, Tuple

from ..libcni import cache
from ..libcni.conf import NetworkConfigList
from ..libcni.errors import CNIError, JSONError
from .addresses import packed
from .all_netns import Namespace, Namespaces
from .attach_request import Key
from .attachments import ADDING, ATTACHED, RECORDS, Attached, Record, load_config, record_from_bytes
from .errors import HostError
from .live import Answer

_MAX_SIZE = 1 << 20

# What is wrong with a file.
EMPTY, DAMAGED, OTHER, LEFTOVER, STRAY, UNREADABLE = "empty", "damaged", "other", "leftover", "stray", "unreadable"


class File(NamedTuple):
    """One file as it was when it was read; ``data`` None: it cannot be read as a small regular file."""

    path: str
    status: Optional[os.stat_result]
    data: Optional[bytes]


class Entry:
    """What cache_dir has of one attachment, or one file of it that is of none.

    ``attached``: what an ADD was given (None: not known). ``problem``: one of the constants above, "" if the attachment
    is whole; ``message`` says it in words. ``interrupted``: its ADD did not come to its end. ``files``: all there are.
    """

    __slots__ = ("attached", "files", "interrupted", "key", "message", "name", "ours", "problem", "record")

    def __init__(self, name: str, files: List[File], ours: bool) -> None:
        self.name = name
        self.files = files
        self.ours = ours
        self.key: Optional[Key] = None
        self.attached: Optional[Attached] = None
        self.record: Optional[Record] = None
        self.problem = ""
        self.message = ""
        self.interrupted = False

    @property
    def written(self) -> float:
        """When the youngest of the files was written."""
        return max((file.status.st_mtime for file in self.files if file.status), default=0.0)

    @property
    def netns(self) -> str:
        return self.attached.netns if self.attached else ""

    @property
    def ips(self) -> List[str]:
        return self.attached.ips if self.attached else []

    def namespace(self, namespaces: Namespaces) -> Optional[Namespace]:
        """Return the namespace of the ADD if it is still there; one that nobody noted the identity of counts."""
        if self.record is not None and self.record.identity is not None:
            return namespaces.alive(self.record.identity)
        return namespaces.at(self.netns) if self.netns else None

    def death(self) -> str:
        """Say what became of the namespace, for an entry that has none any more."""
        if self.record is not None and self.record.identity is not None:
            if os.path.exists(self.netns):
                return f"{self.netns} is not the namespace of its ADD any more"
            return f"the namespace of its ADD, {self.netns}, is gone"
        return f"there is no namespace {self.netns}" if self.netns else "nothing says which namespace it was in"


class Contents:
    """All of a cache directory. ``made``: (network, container id) of all that this collection attached."""

    def __init__(self, entries: List[Entry]) -> None:
        self.entries = entries
        self.made: Set[Tuple[str, str]] = set()
        self.made_addresses: Set[Tuple[str, bytes]] = set()
        for entry in entries:
            if entry.ours and entry.key is not None:
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

    def answer(self, cache_dir: str, namespaces: Namespaces) -> Answer:
        """Return the source ``cache``: the attachments whose namespace is still the one of the ADD."""
        found: Dict[str, Set[str]] = {}
        for entry in self.entries:
            if entry.key is not None and entry.namespace(namespaces) is not None:
                found.setdefault(entry.key.container_id, set()).add(entry.key.ifname)
        containers: Dict[str, Optional[FrozenSet[str]]] = {name: frozenset(names) for name, names in found.items()}
        return Answer("cache", containers, asked=f"the attachments in {cache_dir} whose namespace is that of their ADD")


def read(cache_dir: str) -> Contents:
    """Return what is in a cache directory, by network, container and interface.

    Raises HostError ``source_unusable`` if it cannot be listed.
    """
    records = {file.path.rpartition("/")[2]: file for file in _files(os.path.join(cache_dir, RECORDS))}
    results = {file.path.rpartition("/")[2]: file for file in _files(os.path.join(cache_dir, "results"))}
    loader = _Loader(cache_dir != cache.DEFAULT_DIR)
    entries = [loader.entry(name, results.get(name), records.get(name)) for name in sorted({*results, *records})]
    entries += [_leftover(file) for file in _files(cache_dir) if _is_temporary(file.path)]
    entries.sort(key=lambda entry: (entry.key or Key("", "", ""), entry.name))
    return Contents(entries)


def _is_temporary(path: str) -> bool:
    name = os.path.basename(path)
    return name.startswith(f".{cache.KIND}-") and name.endswith(".tmp")


def _leftover(file: File) -> Entry:
    entry = Entry(os.path.basename(file.path), [file], True)
    entry.problem, entry.message = LEFTOVER, "it was being written when its writer died"
    return entry


def _files(folder: str) -> List[File]:
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise HostError(
            f"cannot list {folder}: {error.strerror}; without it nobody knows what this collection attached. Mend that "
            "and run again",
            code="source_unusable",
        ) from error
    paths = [os.path.join(folder, name) for name in names]
    return [_read(path) for path in paths if not os.path.isdir(path) or os.path.islink(path)]


def _read(path: str) -> File:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return File(path, None, None)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_SIZE:
            return File(path, status, None)
        with os.fdopen(os.dup(fd), "rb") as stream:
            return File(path, status, stream.read(_MAX_SIZE + 1))
    except OSError:
        return File(path, None, None)
    finally:
        os.close(fd)


class _Loader:
    """Parses files."""

    def __init__(self, private: bool) -> None:
        self._private = private

    def entry(self, name: str, result: Optional[File], record: Optional[File]) -> Entry:
        entry = Entry(name, [file for file in (result, record) if file], self._private or record is not None)
        if name.startswith("."):
            entry.problem, entry.message = LEFTOVER, "it was being written when its writer died"
            return entry
        # The record says which attachment a damaged cache file was of.
        if record is not None and record.data is not None:
            entry.key, entry.record = record_from_bytes(record.data)
        if result is not None:
            self._load_result(entry, name, result)
        elif entry.record is not None and entry.record.attached is not None:
            entry.attached, entry.interrupted = entry.record.attached, entry.record.state == ADDING
        elif entry.record is not None and entry.record.state == ATTACHED:
            entry.problem, entry.message = STRAY, "it is a note on an attachment that the cache does not have"
        else:
            entry.problem, entry.message = DAMAGED, "it is no note of an attachment"
            entry.interrupted = True
        return entry

    def _load_result(self, entry: Entry, name: str, result: File) -> None:
        if result.data is None:
            entry.problem, entry.message = UNREADABLE, "it is no small regular file that can be read"
        elif not result.data.strip(b"\0 \r\n\t"):
            entry.problem, entry.message = EMPTY, "it is empty, as a crash leaves it"
        else:
            try:
                found = cache.Entry.from_bytes(result.data)
                key = Key(found.network_name, found.container_id, found.if_name)
                if found.kind != cache.KIND:
                    entry.problem, entry.message = OTHER, f"its kind is {found.kind!r} and not {cache.KIND!r}"
                elif name != "-".join(key):
                    entry.problem, entry.message = DAMAGED, "its content does not fit its name"
                else:
                    self._load_attachment(entry, key, found)
            except (CNIError, JSONError) as error:
                entry.problem, entry.message = DAMAGED, f"it cannot be read as JSON of libcni: {error}"

    def _load_attachment(self, entry: Entry, key: Key, found: cache.Entry) -> None:
        config = load_config(found.config)
        if config.name != key.network or not config.plugins:
            entry.problem, entry.message = DAMAGED, f"its configuration is no network list named {key.network!r}"
            return
        if entry.key is not None and entry.key != key:
            # Names that join to the same text: the note is on another attachment.
            entry.record = None
        entry.key = key
        entry.attached = Attached(
            key, config, found.net_ns, found.cni_args or (), found.capability_args or {}, found.result
        )


def remove_files(files: List[File]) -> None:
    """Remove files that are still what they were when they were read. Raises HostError ``cache_not_removed``."""
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
