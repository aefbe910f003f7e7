# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of attachments: libcni's cache entries, and the records of this collection beside them.

A record holds what libcni's format has no place for: the namespace of the ADD, whether the interface existed
afterwards, and a CHECK that has never worked. It also holds everything that the cache entry does, so that a lost entry
can be restored. It is in ``<cache_dir>/podwire``, outside of libcni's ``results``, which other tools list. Before an
ADD, a record is written with the state ``adding`` and all that a DEL needs, so that the next run can remove what an
interrupted ADD left. Records are not synced to disk: after a power loss, their namespaces are gone, too.

The shape of what is read here is never trusted.
"""

from __future__ import annotations

import base64
import json
import os
from functools import lru_cache
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ...libcni import cache, gojson
from ...libcni.conf import NetworkConfigList, network_conf_from_bytes
from ...libcni.errors import CacheError, CNIError, ConfigError
from ...libcni.files import read_file
from ..addresses import result_addresses
from ..errors import HostError
from ..paths import replace_unsynced, stage_unsynced
from ..trust import check_trusted
from .request import Key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .pod_part import PodMember

RECORDS = "podwire"
FOOTPRINTS = "podwire-footprints"
ADDING = "adding"
ATTACHED = "attached"
# Records of earlier versions lack it.
_SEEN_FROM = "processes"
# The members of an identity and their types; the cookie may be missing.
_IDENTITY: Dict[str, Any] = {"boot_id": str, "dev": int, "inode": int, "cookie": (int, type(None))}
# What reading a damaged record raises.
_DAMAGE = (CNIError, ValueError, KeyError, TypeError, AttributeError)


class Attached:
    """What was given to an ADD, enough for its DEL: from a cache entry, or from the record of an interrupted ADD.

    ``config`` is the loaded conflist, ``result`` the raw result (None if there is none), ``pod`` what is recorded of
    the pod that it belongs to (None: it belongs to none, or the cache does not tell).
    """

    __slots__ = ("args", "capability_args", "config", "key", "netns", "pod", "result")

    def __init__(
        self,
        key: Key,
        config: NetworkConfigList,
        netns: str,
        args: Sequence[Sequence[str]],
        capability_args: Mapping[str, Any],
        result: Optional[Dict[str, Any]],
        pod: Optional[PodMember] = None,
    ) -> None:
        self.key = key
        self.config = config
        self.netns = netns
        self.args = [(pair[0], pair[1]) for pair in args]
        self.capability_args = dict(capability_args)
        self.result = result
        self.pod = pod

    @property
    def ips(self) -> List[str]:
        """The addresses of the cached result, such as ``10.1.0.2/24``."""
        return result_addresses(self.result)

    @property
    def made_interface(self) -> bool:
        """Whether the result says that the ADD made the interface inside the namespace."""
        interfaces = (self.result or {}).get("interfaces")
        return isinstance(interfaces, list) and any(
            isinstance(entry, dict) and entry.get("name") == self.key.ifname and bool(entry.get("sandbox"))
            for entry in interfaces
        )


class Record:
    """The record of an attachment; ``state`` is ``adding`` or ``attached``.

    ``identity`` identifies the namespace at the ADD (see netns.Seen). ``interface`` tells whether the interface existed
    after the ADD (while ``adding``: before it, so that this ADD did not make it). ``check`` is the failure
    ``{plugin, code, message}`` of a CHECK that has never worked, else None. ``attached`` is what the ADD was given and
    returned; None if the record is truncated.
    """

    __slots__ = ("attached", "check", "identity", "interface", "state")

    def __init__(
        self,
        state: str,
        identity: Optional[Dict[str, Any]] = None,
        interface: bool = False,
        check: Optional[Dict[str, Any]] = None,
        attached: Optional[Attached] = None,
    ) -> None:
        self.state = state
        self.identity = identity
        self.interface = interface
        self.check = check
        self.attached = attached


def result_macs(result: Optional[Mapping[str, Any]]) -> Dict[str, str]:
    """Return the MACs of the container's interfaces in a result, by name, without the zero one of loopback."""
    interfaces = (result or {}).get("interfaces")
    inside = [one for one in interfaces if isinstance(one, dict)] if isinstance(interfaces, list) else []
    found = {str(one.get("name")): str(one.get("mac") or "").lower() for one in inside if one.get("sandbox")}
    return {name: mac for name, mac in found.items() if mac.strip("0:")}


def result_gateways(result: Optional[Mapping[str, Any]]) -> List[str]:
    """Return the gateways of a result of any version."""
    entries = (result or {}).get("ips")
    entries = [*(entries if isinstance(entries, list) else []), *((result or {}).get(name) for name in ("ip4", "ip6"))]
    return [str(entry["gateway"]) for entry in entries if isinstance(entry, dict) and entry.get("gateway")]


def cache_dirs(cache_dir: str) -> List[str]:
    """Return the directories of a cache. Only root may be able to write to them."""
    return [cache_dir, *(os.path.join(cache_dir, name) for name in ("results", RECORDS, FOOTPRINTS))]


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


def read_cached(cache_dir: str, key: Key) -> Optional[Attached]:
    """Return an attachment from libcni's cache, None if it has no entry.

    Raises HostError ``cache_damaged``; ``unsafe_permissions`` if users other than root can change the file or it is a
    link; ``cache_collision`` if it is another attachment's: names may contain dashes, so two can share a file name.
    """
    path = cache.cache_path(cache_dir, *key)
    check_trusted(path)
    refuse_link(path)
    data = cache.read_bytes(path)
    if data is None:
        return None
    try:
        return attached_from_entry(cache.Entry.from_bytes(data), key, path)
    except CacheError as error:
        raise HostError(
            f"{error}; the names of both attachments form the same file name, so rename one of them",
            code="cache_collision",
        ) from error
    except CNIError as error:
        raise HostError(
            f"the cache entry {path} is damaged ({error}), and no record tells what was attached; set force: true "
            "to run DEL with the network's current configuration, which replaces the entry",
            code="cache_damaged",
        ) from error


def attached_from_entry(entry: cache.Entry, key: Key, path: str = "") -> Attached:
    """Return the attachment *key* of a cache entry. Raises CacheError if it has another one, CNIError if damaged."""
    if entry.kind != cache.KIND:
        raise ConfigError(f"its kind is {entry.kind!r} instead of {cache.KIND!r}")
    cache.check_owner(entry, path, *key)
    config = load_config(entry.config)
    if config.name != key.network or not config.plugins:
        raise ConfigError(f"its configuration is not a conflist named {key.network!r}")
    return Attached(key, config, entry.net_ns, entry.cni_args or (), entry.capability_args or {}, entry.result)


@lru_cache(maxsize=256)
def load_config(data: bytes) -> NetworkConfigList:
    """Parse a cached configuration, once for all attachments of a network. Raises ConfigError."""
    return network_conf_from_bytes(data)


class Records:
    """The records of one cache directory."""

    def __init__(self, cache_dir: str) -> None:
        self._folder = os.path.join(cache_dir, RECORDS)

    def read(self, key: Key) -> Optional[Record]:
        """Return the record, None if there is none; a truncated one counts as that of an interrupted ADD."""
        try:
            raw = read_file(self._path(key), cache.LARGEST, follow=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise HostError(f"cannot read {self._path(key)}: {error.strerror}", code="record_unreadable") from error
        try:
            data = gojson.loads(raw)
            if [data["network"], data["container_id"], data["ifname"]] != list(key):
                # Another attachment whose names, joined by dashes, give the same file name.
                return None
            return _record(key, data)
        except _DAMAGE:
            return Record(ADDING)

    def of_pod(self, container_id: str, known: Iterable[Key]) -> Dict[Key, Attached]:
        """Return the attachments of a container that belong to a pod, in its order, but not those that are *known*."""
        try:
            names = set(os.listdir(self._folder)).difference("-".join(key) for key in known)
        except OSError:
            return {}
        found = []
        for name in sorted(names):
            if f"-{container_id}-" in name:
                try:
                    key, record = record_from_bytes(read_file(os.path.join(self._folder, name), cache.LARGEST, False))
                except (OSError, ValueError):
                    continue
                attached = record.attached if record else None
                if key and attached and attached.pod and key.container_id == container_id:
                    found.append(attached)
        found.sort(key=lambda one: one.pod.place if one.pod else 0)
        return {attached.key: attached for attached in found}

    def adding(self, given: Attached, identity: Optional[Mapping[str, Any]], existed: bool = False) -> None:
        """Record that an ADD with *given* is about to begin; *existed*: there is an interface of that name already."""
        data = {"state": ADDING, "identity": identity, "interface": existed}
        self._write(given.key, dict(data, **_content(given)))

    def attached(self, key: Key, record: Record) -> None:
        """Record a successful ADD."""
        self._write(
            key,
            dict(
                {
                    "state": ATTACHED,
                    "identity": record.identity,
                    "interface": record.interface,
                    "check": record.check,
                },
                **(_content(record.attached) if record.attached else {}),
            ),
        )

    def remove(self, key: Key) -> None:
        """Remove the record and the footprint. Raises HostError ``record_unwritable``."""
        # Imported late, as most calls detach nothing.
        from ..footprints.note import forget

        forget(os.path.dirname(self._folder), key)
        try:
            os.unlink(self._path(key))
        except FileNotFoundError:
            return
        except OSError as error:
            raise HostError(f"cannot remove {self._path(key)}: {error.strerror}", code="record_unwritable") from error

    def _path(self, key: Key) -> str:
        return os.path.join(self._folder, "-".join(key))

    def check_writable(self, key: Key) -> None:
        """Raise HostError ``record_unwritable`` unless a record of *key* can be written now."""
        path = self._path(key)
        try:
            os.unlink(stage_unsynced(path, self._packed(path, {})))
        except OSError as error:
            raise _unwritable(path, error) from error

    def _write(self, key: Key, data: Dict[str, Any]) -> None:
        path = self._path(key)
        data = dict(data, network=key.network, container_id=key.container_id, ifname=key.ifname)
        try:
            replace_unsynced(path, self._packed(path, data))
        except OSError as error:
            raise _unwritable(path, error) from error

    def _packed(self, path: str, data: Mapping[str, Any]) -> bytes:
        """Return what the file at *path* will hold, and create its directory."""
        # No record's name starts with a dot, as temporary ones do: network names start with a letter or a digit.
        try:
            cache.make_dirs(self._folder)
        except CacheError as error:
            raise HostError(f"cannot write {path}: {error}", code="record_unwritable") from error
        return json.dumps(data, sort_keys=True).encode("utf-8")


def _unwritable(path: str, error: OSError) -> HostError:
    return HostError(f"cannot write {path}: {error.strerror}", code="record_unwritable")


def record_from_bytes(data: bytes) -> Tuple[Optional[Key], Optional[Record]]:
    """Parse a record of an attachment that is not known in advance. What cannot be read is None."""
    try:
        parsed = gojson.loads(data)
        key = Key(*(_text(parsed[name]) for name in ("network", "container_id", "ifname")))
        return key, _record(key, parsed)
    except _DAMAGE:
        return None, None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _record(key: Key, data: Mapping[str, Any]) -> Record:
    identity = data["identity"]
    if identity is not None:
        identity = dict({name: identity[name] for name in _IDENTITY}, **{_SEEN_FROM: identity.get(_SEEN_FROM)})
        if not all(isinstance(identity[name], kind) for name, kind in _IDENTITY.items()):
            raise TypeError("no identity of a namespace")
    if data["state"] == ATTACHED:
        check = data["check"]
        if check is not None:
            check = {name: check[name] for name in ("plugin", "code", "message")}
        try:
            attached: Optional[Attached] = _given(key, data)
        except _DAMAGE:
            # The record lacks it; the cache entry has it.
            attached = None
        return Record(ATTACHED, identity, bool(data["interface"]), check, attached)
    return Record(ADDING, identity, bool(data.get("interface")), attached=_given(key, data))


def _content(attached: Attached) -> Dict[str, Any]:
    content = {
        "config": base64.b64encode(attached.config.expanded_bytes()).decode("ascii"),
        "netns": attached.netns,
        "args": attached.args,
        "capability_args": attached.capability_args,
        "result": attached.result,
    }
    if attached.pod is not None:
        content["pod"] = attached.pod.to_data()
    return content


def _given(key: Key, data: Mapping[str, Any]) -> Attached:
    result = data.get("result")
    return Attached(
        key,
        load_config(base64.b64decode(data["config"], validate=True)),
        _text(data["netns"]),
        [(_text(name), _text(value)) for name, value in data["args"]],
        dict(data["capability_args"]),
        None if result is None else dict(result),
        _member(data["pod"]) if "pod" in data else None,
    )


def _member(data: Any) -> PodMember:
    # Imported late: most attachments belong to no pod.
    from .pod_part import PodMember

    return PodMember.from_data(data)
