# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""One attachment: what its ADD was given and returned, and what was recorded of it."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import lru_cache
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ...libcni.conf import NetworkConfigList, network_conf_from_bytes
from ...libcni.errors import CNIError
from ..addresses import result_addresses, result_interfaces
from ..json_text import parse_json
from ..netns import boot_id
from ..struct import struct
from .request import Key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..footprints.footprint import Footprint
    from .pod_part import PodMember

ADDING, ATTACHED = "adding", "attached"
DAMAGE = (CNIError, ValueError, KeyError, TypeError, AttributeError, IndexError)
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
        """Return the attachment *key* of a sound record, the file *path*. Raises what DAMAGE has."""
        result = record.get("result")
        attached = cls(
            key,
            load_config(base64.b64decode(record["config"], validate=True)),
            text_in(record["netns"]),
            [(text_in(name), text_in(value)) for name, value in record["args"]],
            dict(record["capability_args"]),
            None if result is None else dict(result),
            _member(record["pod"]) if "pod" in record else None,
        )
        attached.remember(record, path)
        return attached

    def remember(self, record: Mapping[str, Any], path: str) -> None:
        """Take from a sound record, the file *path*, what libcni's format has no place for, except for the pod."""
        self.state, self.interface = record["state"], bool(record["interface"])
        self.identity, self.check = record["identity"], record["check"]
        if "footprint" not in record:
            return
        try:
            text = text_in(record["footprint"]["text"])
            is_sound = record["footprint"]["digest"] == seal_of(text, self.key, self.identity)
        except DAMAGE:
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
            record["footprint"] = {"digest": seal_of(text, self.key, self.identity), "text": text}
        return record


def seal_of(text: str, *about: Any) -> str:
    """Return a digest of the footprint *text*, of what it is about, and of the form in which footprints are written."""
    head = json.dumps([_VERSION, *about], sort_keys=True)
    return hashlib.sha256(head.encode() + text.encode("utf-8", "surrogatepass")).hexdigest()


def text_in(value: Any) -> str:
    """Return a text of a record. Raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def sound_record(record: Mapping[str, Any]) -> Dict[str, Any]:
    """Return a record whose members have the right types, as far as libcni's entry cannot tell them.

    Raises what DAMAGE has.
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


def _member(data: Any) -> PodMember:
    # Imported late: most attachments belong to no pod.
    from .pod_part import PodMember

    return PodMember.from_data(data)


@lru_cache(maxsize=256)
def load_config(data: bytes) -> NetworkConfigList:
    """Parse a cached configuration, once for all attachments of a network. Raises ConfigError."""
    return network_conf_from_bytes(data)
