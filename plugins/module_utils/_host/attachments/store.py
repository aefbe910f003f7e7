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

A record that is damaged stays, and counts as missing. The shape, size and kind of a file are never trusted.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import stat
from functools import lru_cache
from typing import Any, Collection, Dict, Iterable, List, Mapping, NamedTuple, Optional, Set, Tuple

from ...libcni import cache, gojson
from ...libcni.conf import NetworkConfigList, network_conf_from_bytes
from ...libcni.errors import CacheError, CNIError, JSONError
from ...libcni.files import read_file
from ..addresses import result_addresses, result_interfaces, result_macs
from ..errors import HostError
from ..json_text import parse_json
from ..lock import LOCK_PATH
from ..netns import boot_id
from ..paths import directory_above, names_in, replace_unsynced, stage_unsynced
from ..struct import struct
from ..trust import check_trusted
from .request import Key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..footprints.footprint import Footprint, SharedFootprints
    from .pod_part import PodMember

RECORDS = "podwire"
EMPTY, DAMAGED, OTHER, LEFTOVER, STRAY, UNREADABLE = "empty", "damaged", "other", "leftover", "stray", "unreadable"
"""What is wrong with a file."""

# A footprint takes some KiB; a chain of thousands of rules, some hundred.
_LARGEST = 4 << 20
_REGULAR = "a regular file of at most 4 MiB that can be read"
ADDING, ATTACHED = "adding", "attached"
_DAMAGE = (CNIError, ValueError, KeyError, TypeError, AttributeError, IndexError)
"""What reading a damaged file raises."""
# The members of an identity and their types; the cookie may be missing.
_IDENTITY: Dict[str, Any] = {"boot_id": str, "dev": int, "inode": int, "cookie": (int, type(None))}
_SEEN_FROM = "processes"
_VERSION = 1


@struct
class Attached:
    """One attachment: what its ADD was given, enough for its DEL, and what came of it.

    ``config`` is the loaded conflist, ``result`` the raw result (None if there is none), ``pod`` what is recorded of
    the pod that it belongs to (None: it belongs to none, or that is not known).

    The rest is only in our record. ``state`` is ``adding`` or ``attached``, "" without a record. ``identity``
    identifies the namespace at the ADD (see netns.Seen). ``interface`` tells whether the interface existed after the
    ADD (while ``adding``: before it, so that this ADD did not make it). ``check`` is the failure
    ``{plugin, code, message}`` of a CHECK that has never worked, else None. ``damage`` is a sentence on a record or a
    footprint that cannot be used, "" for none.
    """

    key: Key
    config: NetworkConfigList
    netns: str
    args: List[Tuple[str, str]]
    capability_args: Dict[str, Any]
    result: Optional[Dict[str, Any]]
    pod: Optional[PodMember] = None
    state: str = ""
    identity: Optional[Dict[str, Any]] = None
    interface: bool = False
    check: Optional[Dict[str, Any]] = None
    damage: str = ""
    _footprint: Optional[Footprint] = None
    _unread: Optional[str] = None

    def changed(self, **members: Any) -> Attached:
        """Return a copy with other values of *members*."""
        copy = Attached.__new__(Attached)
        vars(copy).update(vars(self), **members)
        return copy

    @property
    def ips(self) -> List[str]:
        """The addresses of the result, such as ``10.1.0.2/24``."""
        return result_addresses(self.result)

    @property
    def made_interface(self) -> bool:
        """Whether the result says that the ADD made the interface inside the namespace."""
        return any(
            interface.get("name") == self.key.ifname and bool(interface.get("sandbox"))
            for interface in result_interfaces(self.result)
        )

    @property
    def footprint(self) -> Optional[Footprint]:
        """What the ADD changed; None if that was not recorded, or before this boot."""
        if self._unread is not None:
            # Imported late: most calls read more attachments than they compare.
            from ..footprints.footprint import Footprint

            self._footprint, self._unread = Footprint.from_data(parse_json(self._unread), self.identity), None
        return self._footprint

    @footprint.setter
    def footprint(self, footprint: Optional[Footprint]) -> None:
        self._footprint, self._unread = footprint, None

    @classmethod
    def from_record(cls, key: Key, record: Mapping[str, Any], path: str) -> Attached:
        """Return the attachment *key* of a sound record, the file *path*. Raises what _DAMAGE has."""
        result = record.get("result")
        attached = cls(
            key,
            load_config(base64.b64decode(record["config"], validate=True)),
            _text_in(record["netns"]),
            [(_text_in(name), _text_in(value)) for name, value in record["args"]],
            dict(record["capability_args"]),
            None if result is None else dict(result),
        )
        if "pod" in record:
            # Imported late: most attachments belong to no pod.
            from .pod_part import PodMember

            attached.pod = PodMember.from_data(record["pod"])
        attached.remember(record, path)
        return attached

    def remember(self, record: Mapping[str, Any], path: str) -> None:
        """Take from a sound record, the file *path*, what libcni's format has no place for, except for the pod."""
        self.state, self.interface = record["state"], bool(record["interface"])
        self.identity, self.check = record["identity"], record["check"]
        if "footprint" not in record:
            return
        try:
            text = _text_in(record["footprint"]["text"])
            is_sound = record["footprint"]["digest"] == _seal_of(text, self.key, self.identity)
        except _DAMAGE:
            is_sound, text = False, ""
        if not is_sound:
            self.damage = f"the footprint in {path} is damaged"
        elif self.identity is not None and self.identity["boot_id"] == boot_id():
            self._unread = text

    def to_record(self) -> Dict[str, Any]:
        """Return what our record holds."""
        record = {
            **dict(zip(("network", "container_id", "ifname"), self.key)),
            "state": self.state,
            "identity": self.identity,
            "interface": self.interface,
            "check": self.check,
            "config": base64.b64encode(self.config.expanded_bytes()).decode("ascii"),
            "netns": self.netns,
            "args": self.args,
            "capability_args": self.capability_args,
            "result": self.result,
        }
        if self.pod is not None:
            record["pod"] = self.pod.to_data()
        footprint = self.footprint
        if footprint is not None:
            text = json.dumps(footprint.to_data(), separators=(",", ":"))
            record["footprint"] = {"digest": _seal_of(text, self.key, self.identity), "text": text}
        return record


def _seal_of(text: str, *about: Any) -> str:
    """Return a digest of the footprint *text*, of what it is about, and of the form in which footprints are written."""
    head = json.dumps([_VERSION, *about], sort_keys=True)
    return hashlib.sha256(head.encode() + text.encode("utf-8", "surrogatepass")).hexdigest()


def _text_in(value: Any) -> str:
    """Return a text of a record. Raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _sound_record(record: Mapping[str, Any]) -> Dict[str, Any]:
    """Return a record whose members have the right types, as far as libcni's entry cannot tell them.

    Raises what _DAMAGE has.
    """
    identity, check = record["identity"], record.get("check")
    if identity is not None:
        identity = {**{name: identity[name] for name in _IDENTITY}, _SEEN_FROM: identity.get(_SEEN_FROM)}
        if not all(isinstance(identity[name], kind) for name, kind in _IDENTITY.items()):
            raise TypeError("no identity of a namespace")
    if check is not None:
        check = {name: check[name] for name in ("plugin", "code", "message")}
    state = ATTACHED if record["state"] == ATTACHED else ADDING
    return {**record, "state": state, "identity": identity, "check": check, "interface": record.get("interface")}


@lru_cache(maxsize=256)
def load_config(data: bytes) -> NetworkConfigList:
    """Parse a cached configuration, once for all attachments of a network. Raises ConfigError."""
    return network_conf_from_bytes(data)


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
            named = Key(*(_text_in(data[name]) for name in ("network", "container_id", "ifname")))
            if key is not None and named != key:
                self.state = ""
                return None
            data = _sound_record(data)
            try:
                self.recorded = Attached.from_record(named, data, record.path)
                self.netns, self.result = self.recorded.netns, self.recorded.result
            except _DAMAGE:
                # The record lacks it; the cache entry has it.
                if data["state"] == ADDING:
                    raise
        except _DAMAGE:
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


def read_cache_file(path: str) -> Optional[CacheFile]:
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


# ---- the store


def cache_dirs(cache_dir: str) -> List[str]:
    """Return the directories of a cache. Only root may be able to write to them."""
    return [cache_dir, *(os.path.join(cache_dir, name) for name in ("results", RECORDS))]


def check_cache_dir(cache_dir: str) -> None:
    """Raise HostError ``unsafe_permissions`` if others than root can make entries, or as :func:`check_directories`."""
    check_directories(cache_dir)
    for path in cache_dirs(cache_dir):
        check_trusted(path)


def check_directories(cache_dir: str) -> None:
    """Raise HostError ``cache_unreadable`` if anything else is in the place of a directory of the cache."""
    for why in (directory_above(path)[1] for path in cache_dirs(cache_dir)):
        if why:
            text = f"{why}; look what it is, move it away, or set another cache_dir"
            raise HostError(f"nobody can tell what is attached: {text}", code="cache_unreadable")


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
        if os.path.islink(path):
            what = f"the cache entry {path} is a symbolic link, which is not followed"
            raise HostError(f"{what}; replace it with a regular file, or remove it", code="unsafe_permissions")
        entry, record = read_cache_file(path), read_cache_file(self._path(key))
        if entry is not None and entry.data is None:
            # As with Go's libcni, what cannot be read counts as no entry.
            entry = None
        cached = CachedAttachment("-".join(key), [file for file in (entry, record) if file])
        try:
            cached.load(entry, record, key)
        except CacheError as error:
            text = f"{error}; the names of both attachments form the same file name, so rename one of them"
            raise HostError(text, code="cache_collision") from error
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
        file = read_cache_file(os.path.join(self._folder, name))
        cached = CachedAttachment(name, [file] if file else [])
        cached.load(None, file)
        return cached

    def write_entry(self, attached: Attached) -> None:
        """Write libcni's entry of an attachment, as an ADD does. Raises CNIError."""
        network, container_id, ifname = attached.key
        given = attached.netns, [list(pair) for pair in attached.args], attached.capability_args
        config = attached.config.expanded_bytes()
        cache.write_entry(self.cache_dir, cache.Entry(container_id, config, ifname, network, *given, attached.result))

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
            if data["digest"] != _seal_of(text, data["boot_id"]):
                raise ValueError("changed")
            if data["boot_id"] == boot_id():
                shared = SharedFootprints.from_data(parse_json(text))
        except FileNotFoundError:
            pass
        except OSError as error:
            shared.damage = f"cannot read the footprints in {self.shared_path}: {error.strerror}"
        except _DAMAGE:
            shared.damage = f"the footprints in {self.shared_path} are damaged"
        return shared

    def write_shared(self, shared: SharedFootprints) -> None:
        """Write what the attachments share. Raises HostError ``record_unwritable``."""
        text, boot = json.dumps(shared.to_data(), separators=(",", ":")), boot_id()
        data = {"boot_id": boot, "digest": _seal_of(text, boot), "text": text}
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
