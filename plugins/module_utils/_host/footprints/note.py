# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Footprints on disk: ``<cache_dir>/podwire-footprints``, apart from libcni's ``results`` and the records.

| file | what |
|---|---|
| attachments/NETWORK/CONTAINER-IFNAME | what the ADD changed in the container's namespace and on the host |
| networks/NETWORK | what the attachments of a network share, such as its bridge |
| host | what all share, such as ip_forward and the common chains of plugins |
| order | the order of the rules in the chains that have recorded rules |

Each is JSON, compressed. They are not synced: after a power loss, the kernel has lost what they describe, too, so each
holds the ID of the boot, and a digest of itself: what is put back is what was recorded, or the file is damaged.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import errno
import hashlib
import json
import os
import zlib
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, TypeVar, Union

from ...libcni.errors import CNIError
from ...libcni.files import read_file
from ..errors import HostError
from ..lock import LOCK_PATH
from ..netns import boot_id
from ..paths import replace_unsynced

FOLDER = "podwire-footprints"
_ATTACHMENTS, _NETWORKS, _HOST, _ORDER = "attachments", "networks", "host", "order"
_VERSION = 1
# An attachment takes a few KiB; a chain of thousands of rules, some hundred.
_LARGEST_FILE = 4 * 1024 * 1024
_LARGEST = 32 * 1024 * 1024

Content = TypeVar("Content")
# A kernel.objects.ObjectKey, which is not imported: detaching needs nothing else of that room.
_Key = Tuple[Union[str, int], ...]


class Recorded(NamedTuple):
    """One object of a footprint: its value after the ADD (None: the ADD removed it), and the kernel's message.

    ``raw``, ``ifindex`` and ``peer``: see kernel.objects.KernelObject.
    """

    value: Any
    raw: bytes = b""
    ifindex: int = 0
    peer: Tuple[int, bool] = (0, False)


Objects = Dict[_Key, Recorded]


class Footprint:
    """What an ADD changed: objects ``inside`` the container's namespace and on the ``host``.

    ``identity`` is that of the namespace (netns.Seen). The footprint of a network has no objects inside; its
    ``config`` is the digest of the conflist.
    """

    __slots__ = ("config", "host", "identity", "inside")

    def __init__(
        self,
        host: Optional[Objects] = None,
        inside: Optional[Objects] = None,
        identity: Optional[Mapping[str, Any]] = None,
        config: str = "",
    ) -> None:
        self.host: Objects = host or {}
        self.inside: Objects = inside or {}
        self.identity = identity
        self.config = config


class Notes:
    """The footprints beside one cache directory. *past*: also of what was shared before the last attachment went.

    ``damaged``: the owners of files that could not be used, the key of an attachment, the name of a network in a tuple
    or () for what all networks share, and a sentence on each.
    """

    def __init__(self, cache_dir: str, past: bool = False) -> None:
        self._root = os.path.join(cache_dir, FOLDER)
        self._past = _past(cache_dir) if past else ""
        self._boot = boot_id()
        self.damaged: Dict[Tuple[str, ...], str] = {}

    def attachment(self, key: Sequence[str]) -> Optional[Footprint]:
        """Return the footprint of an attachment (network, container ID, ifname) of this boot, None if there is none."""
        return self._read(_attachment_path(key), _footprint, tuple(key))

    def network(self, name: str) -> Optional[Footprint]:
        return self._read(_network_path(name), _footprint, (name,))

    def networks(self) -> Set[str]:
        """Return the networks that have footprints of attachments."""
        try:
            return set(os.listdir(os.path.join(self._root, _ATTACHMENTS)))
        except OSError:
            return set()

    def host(self) -> Optional[Footprint]:
        return self._read(_HOST, _footprint, ())

    def order(self) -> Dict[_Key, List[str]]:
        """Return the rules of each chain in their order. If it is damaged, so is what all networks share."""
        return self._read(_ORDER, _order, ()) or {}

    def write_attachment(self, key: Sequence[str], footprint: Footprint) -> None:
        """Write a footprint. Raises HostError ``record_unwritable``."""
        self._write(_attachment_path(key), _content(footprint))

    def write_network(self, name: str, footprint: Footprint) -> None:
        self._write(_network_path(name), _content(footprint))

    def write_host(self, footprint: Footprint) -> None:
        self._write(_HOST, _content(footprint))

    def write_order(self, order: Mapping[_Key, List[str]]) -> None:
        self._write(_ORDER, {"chains": [[list(key), rules] for key, rules in order.items()]})

    def _read(
        self, path: str, parse: Callable[[Mapping[str, Any]], Content], owner: Tuple[str, ...]
    ) -> Optional[Content]:
        full = os.path.join(self._root, path)
        if self._past and not os.path.lexists(full):
            full = os.path.join(self._past, path)
        try:
            raw = read_file(full, _LARGEST_FILE, follow=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.damaged[owner] = f"cannot read the footprint {full}: {error.strerror}"
            return None
        try:
            unpacking = zlib.decompressobj()
            text = unpacking.decompress(raw, _LARGEST)
            if not unpacking.eof:
                raise ValueError("truncated or too large")
            data = json.loads(text)
            if data["version"] != _VERSION or data["path"] != path:
                raise ValueError("of another version or object")
            if data["boot_id"] != self._boot:
                return None
            if data.pop("digest") != _digest(data):
                raise ValueError("changed")
            return parse(data)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, zlib.error, RecursionError, CNIError):
            self.damaged[owner] = f"the footprint {full} is damaged"
            return None

    def _write(self, path: str, content: Mapping[str, Any]) -> None:
        full = os.path.join(self._root, path)
        data = {"version": _VERSION, "path": path, "boot_id": self._boot, **content}
        packed = zlib.compress(_text({**data, "digest": _digest(data)}), 1)
        try:
            for folder in (self._root, os.path.dirname(os.path.dirname(full)), os.path.dirname(full)):
                os.makedirs(folder, 0o700, exist_ok=True)
            replace_unsynced(full, packed)
        except OSError as error:
            raise HostError(f"cannot write {full}: {error.strerror}", code="record_unwritable") from error


def _text(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


def _digest(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(_text(data)).hexdigest()


def _attachment_path(key: Sequence[str]) -> str:
    return os.path.join(_ATTACHMENTS, _file_name(key[:1]), _file_name(key[1:]))


def _network_path(name: str) -> str:
    return os.path.join(_NETWORKS, _file_name([name]))


def _file_name(parts: Sequence[str]) -> str:
    # libcni allows no slash in them, but what a cache entry says was not checked by libcni.
    name = "-".join(parts).replace("/", "_").replace("\0", "_")
    return f"_{name}" if name.startswith(".") else name


def forget(cache_dir: str, key: Sequence[str]) -> None:
    """Remove the footprint of the attachment *key*, and with the last one of a network or host what they shared.

    What was shared is kept until the next boot where only Notes with *past* find it, because the next ADD does not make
    it again. Raises HostError ``record_unwritable``.
    """
    root = os.path.join(cache_dir, FOLDER)
    path = _attachment_path(key)
    gone = (path, _network_path(key[0]), _HOST, _ORDER)
    try:
        for place, shared in ((path, gone[:1]), (os.path.dirname(path), gone[1:2]), (_ATTACHMENTS, gone[2:])):
            if place != path:
                os.rmdir(os.path.join(root, place))
            for name in shared:
                if place != path:
                    _keep(os.path.join(root, name), os.path.join(_past(cache_dir), name))
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(root, name))
    except OSError as error:
        # Others are there, or none ever was, or something else has its name.
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.EISDIR):
            raise HostError(f"cannot remove {error.filename}: {error.strerror}", code="record_unwritable") from error


def _past(cache_dir: str) -> str:
    """Return the directory for what the attachments of a cache shared before the last one went."""
    return os.path.join(os.path.dirname(LOCK_PATH), "footprints", hashlib.sha256(os.fsencode(cache_dir)).hexdigest())


def _keep(path: str, target: str) -> None:
    """Copy a file. Without the copy, less is known later."""
    with contextlib.suppress(OSError):
        content = read_file(path, _LARGEST_FILE, follow=False)
        os.makedirs(os.path.dirname(target), 0o700, exist_ok=True)
        replace_unsynced(target, content)


def _content(footprint: Footprint) -> Dict[str, Any]:
    return {
        "identity": footprint.identity,
        "config": footprint.config,
        "host": rows_of(footprint.host),
        "inside": rows_of(footprint.inside),
    }


def rows_of(objects: Objects) -> List[List[Any]]:
    """Return objects as data for JSON."""
    return [
        [list(key), one.value, base64.b64encode(one.raw).decode("ascii"), one.ifindex, list(one.peer)]
        for key, one in objects.items()
    ]


def _footprint(data: Mapping[str, Any]) -> Footprint:
    identity = data["identity"]
    if not isinstance(identity, (dict, type(None))) or not isinstance(data["config"], str):
        raise TypeError("no footprint")
    return Footprint(objects_of(data["host"]), objects_of(data["inside"]), identity, data["config"])


def objects_of(rows: Any) -> Objects:
    """Return the objects of :func:`rows_of`. Raises ValueError, TypeError or IndexError for anything else."""
    found: Objects = {}
    for key, value, raw, index, peer in rows:
        try:
            message = base64.b64decode(raw, validate=True)
        except binascii.Error as error:
            raise ValueError(str(error)) from error
        if not isinstance(index, int):
            raise TypeError("no index")
        found[key_of(key)] = Recorded(value, message, index, (int(peer[0]), bool(peer[1])))
    return found


def key_of(parts: Any) -> _Key:
    """Return the key of an object from its parts. Raises TypeError."""
    if not parts or not all(isinstance(part, (str, int)) for part in parts):
        raise TypeError("no key")
    return tuple(parts)


def _order(data: Mapping[str, Any]) -> Dict[_Key, List[str]]:
    return {key_of(key): [str(rule) for rule in rules] for key, rules in data["chains"]}
