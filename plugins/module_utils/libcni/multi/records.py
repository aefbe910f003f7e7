# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The record of a pod's networks: all that a DEL needs, written before the first ADD (Multus: the scratch file).

`<cniDir>/pods/<container ID>:<interface>`, directories 0700, files 0600. A record is written beside its place, synced
and linked, so that a crash leaves a whole one or none. It is locked as long as its writer, or a plugin that its writer
has started, runs: the DEL after a killed ADD waits for the plugins that outlive it.
"""

from __future__ import annotations

import fcntl
import os
import time

from .. import gojson
from ..errors import CacheError, JSONError, os_error_text
from ..files import open_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

FOLDER = "pods"
_VERSION = 1
_LARGEST = 64 * 1024 * 1024
_PAUSE = 0.02
_TEXTS = ("network", "containerID", "ifname", "netns", "pod")


class NetworkRecord:
    """One network of a pod as it was added.

    `config`: the JSON of a conflist (`is_list`) or of a single plugin. `network`: the name in it. `name`: that of a
    NetworkAttachmentDefinition, NAMESPACE/NAME, else `network`. `args`: pairs for CNI_ARGS. `capability_args`: by
    capability. `families`: "4", "6": its default routes of these go; `gateways`: default routes that it gets.
    """

    __slots__ = ("args", "capability_args", "config", "families", "gateways", "ifname", "is_list", "name", "network")

    def __init__(self, network: str, ifname: str, config: bytes, is_list: bool, name: str = "") -> None:
        self.network = network
        self.ifname = ifname
        self.config = config
        self.is_list = is_list
        self.name = name or network
        self.args: list[tuple[str, str]] = []
        self.capability_args: dict[str, t.Any] = {}
        self.families: list[str] = []
        self.gateways: list[str] = []

    def to_dict(self) -> gojson.Struct:
        """Return the network as JSON data."""
        return gojson.Struct(
            network=self.network,
            name=self.name,
            ifname=self.ifname,
            isList=self.is_list,
            config=self.config.decode("utf-8", "surrogateescape"),
            args=[list(pair) for pair in self.args],
            capabilityArgs=self.capability_args,
            families=self.families,
            gateways=self.gateways,
        )

    @classmethod
    def from_dict(cls, data: t.Any, where: str) -> NetworkRecord:
        """Return the network in JSON data. Raises `JSONError`."""
        network, name, ifname, config = (_text(data, key, where) for key in ("network", "name", "ifname", "config"))
        is_list = gojson.as_bool(data.get("isList"), f"{where}/isList")
        record = cls(network, ifname, config.encode("utf-8", "surrogateescape"), is_list, name)
        for pair in gojson.as_list(data.get("args"), f"{where}/args"):
            key, value = [*map(str, gojson.as_list(pair, f"{where}/args")), "", ""][:2]
            record.args.append((key, value))
        record.capability_args = gojson.as_object(data.get("capabilityArgs"), f"{where}/capabilityArgs")
        for key, texts in (("families", record.families), ("gateways", record.gateways)):
            texts += [
                gojson.as_string(item, f"{where}/{key}") for item in gojson.as_list(data.get(key), f"{where}/{key}")
            ]
        return record


def _text(data: t.Any, key: str, where: str) -> str:
    return gojson.as_string(_member(data, key, where), f"{where}/{key}" if where else key)


def _member(data: t.Any, key: str, where: str) -> t.Any:
    if not isinstance(data, dict) or key not in data:
        raise JSONError(f"{where or 'the record'} has no {key}")
    return data[key]


class PodRecord:
    """The networks of a pod in the order of ADD, and the call that added them.

    `network`: the name of the plugin's own network. `container_id`, `ifname`, `netns`: as in that call. `pod`:
    NAMESPACE/NAME, "" if unknown.
    """

    __slots__ = ("container_id", "ifname", "netns", "network", "networks", "pod")

    def __init__(
        self,
        network: str,
        container_id: str,
        ifname: str,
        netns: str = "",
        pod: str = "",
        networks: t.Sequence[NetworkRecord] = (),
    ) -> None:
        self.network = network
        self.container_id = container_id
        self.ifname = ifname
        self.netns = netns
        self.pod = pod
        self.networks = list(networks)

    def to_bytes(self) -> bytes:
        """Return the file's content. Raises `JSONError` if JSON cannot express an argument."""
        return gojson.dumps(
            gojson.Struct(
                version=_VERSION,
                network=self.network,
                containerID=self.container_id,
                ifname=self.ifname,
                netns=self.netns,
                pod=self.pod,
                networks=[network.to_dict() for network in self.networks],
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> PodRecord:
        """Parse a record. Raises `JSONError`."""
        parsed = gojson.as_object(gojson.loads(data), "")
        if _member(parsed, "version", "") != _VERSION:
            raise JSONError(f"the record has version {parsed['version']!r} instead of {_VERSION}")
        network, container_id, ifname, netns, pod = (_text(parsed, key, "") for key in _TEXTS)
        networks = gojson.as_list(_member(parsed, "networks", ""), "networks")
        if not networks:
            raise JSONError("the record has no networks")
        record = cls(network, container_id, ifname, netns, pod)
        record.networks = [NetworkRecord.from_dict(item, f"networks/{at}") for at, item in enumerate(networks)]
        return record


class RecordFile:
    """The file of a record, locked as long as the object is open: `record` is None if it is not a sound one.

    `lock`: the descriptor that holds the lock; whoever inherits it holds the lock, too.
    """

    __slots__ = ("lock", "path", "reason", "record")

    def __init__(self, path: str, lock: int, record: PodRecord | None, reason: str = "") -> None:
        self.path = path
        self.lock = lock
        self.record = record
        self.reason = reason

    def remove(self) -> None:
        """Remove the file, durably. Raises `CacheError`."""
        try:
            os.unlink(self.path)
            _sync(os.path.dirname(self.path))
        except FileNotFoundError:
            return
        except OSError as exc:
            raise CacheError(os_error_text("unlink", self.path, exc), self.path) from exc

    def close(self) -> None:
        """Give the lock away."""
        os.close(self.lock)

    def __enter__(self) -> RecordFile:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def record_path(directory: str, container_id: str, ifname: str) -> str:
    """Return the path of a record. Neither of the names may contain a colon, so it belongs to one attachment only."""
    return os.path.join(directory, FOLDER, f"{container_id}:{ifname}")


def create_record(directory: str, record: PodRecord) -> RecordFile:
    """Write a record and return its locked file. Raises `CacheError`, FileExistsError if there is one."""
    from ..cache import make_dirs, unfinished_path

    path = record_path(directory, record.container_id, record.ifname)
    folder = os.path.dirname(path)
    make_dirs(folder)
    temporary = unfinished_path(path)
    try:
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            data = memoryview(record.to_bytes())
            while data:
                data = data[os.write(fd, data) :]
            os.fsync(fd)
            # Unlike a rename, a link never replaces the record of another call.
            os.link(temporary, path)
        except BaseException:
            os.close(fd)
            raise
        finally:
            os.unlink(temporary)
        _sync(folder)
    except FileExistsError:
        raise
    except OSError as exc:
        raise CacheError(os_error_text("open", path, exc), path) from exc
    return RecordFile(path, fd, record)


def open_record(path: str, patience: float) -> RecordFile | None:
    """Return the locked file of a record, None if there is none.

    `patience`: seconds to wait for others that hold it. Raises BlockingIOError then, `CacheError` if it cannot be read.
    """
    end = time.monotonic() + patience
    while True:
        try:
            with open_file(path, _LARGEST, follow=False) as file:
                fd = os.dup(file.fileno())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as exc:
            reason = os_error_text("open", path, exc) if isinstance(exc, OSError) else "invalid path"
            raise CacheError(reason, path) from exc
        try:
            _lock(fd, end)
            if _is_at(fd, path):
                return _parsed(path, fd)
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _lock(fd: int, end: float) -> None:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= end:
                raise
        time.sleep(_PAUSE)


def _is_at(fd: int, path: str) -> bool:
    """Tell whether the file is still the one at its path: who held the lock may have removed it."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _parsed(path: str, fd: int) -> RecordFile:
    size = os.fstat(fd).st_size
    try:
        record = PodRecord.from_bytes(os.pread(fd, size, 0))
    except JSONError as exc:
        return RecordFile(path, fd, None, str(exc))
    if record_path("", record.container_id, record.ifname) != os.path.join(FOLDER, os.path.basename(path)):
        return RecordFile(path, fd, None, "the record is that of another attachment")
    return RecordFile(path, fd, record)


def record_paths(directory: str) -> list[str]:
    """Return the paths of all records, sorted. Raises `CacheError` if they cannot be listed."""
    folder = os.path.join(directory, FOLDER)
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise CacheError(os_error_text("open", folder, exc), folder) from exc
    return [os.path.join(folder, name) for name in sorted(names) if not name.startswith(".")]


def _sync(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
