# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a rehearsal's objects are called on the host: names, MACs and stores."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from ...libcni.kernel import attributes_in
from ..errors import HostError
from ..footprints.footprint import Objects
from ..footprints.object_kinds import LEASE
from ..kernel.links import pack_kept
from ..kernel.objects import ADDRESS, LINK, NEIGHBOUR, ON_INTERFACES, KernelObject, ObjectKey, device_of
from .private_host import private_store
from .surroundings import FAKE_PEER

_HEADS = {"link": LINK.size, "addr": ADDRESS.size, "neigh": NEIGHBOUR.size}
_NO_MAC = "0" * 12
# IFLA_ADDRESS
_ADDRESS = 1


class RealNames:
    """Translates names, MACs and stores of a rehearsal to those of the host."""

    def __init__(
        self,
        rehearsed: Mapping[str, Any],
        cached: Mapping[str, Any],
        stores: Sequence[Tuple[str, str]],
        parents: Mapping[str, int],
    ) -> None:
        self.macs: Dict[str, str] = {}
        self._parents = parents
        self._folders = {private_store(number): real for number, (real, _network) in enumerate(stores)}
        self._texts: Dict[str, str] = {}
        self._raws: Dict[bytes, bytes] = {}
        self._macs_of: Dict[str, bytes] = {}
        ours, theirs = rehearsed.get("interfaces") or [], cached.get("interfaces") or []
        if [bool(one.get("sandbox")) for one in ours] != [bool(one.get("sandbox")) for one in theirs]:
            raise HostError("in a rehearsal, its ADD makes other interfaces", code="not_rehearsed")
        for one, other in zip(ours, theirs):
            self._pair(one, other)
        names = sorted((re.escape(name) for name in self._texts), key=len, reverse=True)
        self._pattern = re.compile("|".join(names) or "(?!)")

    def _pair(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
        name, real = str(one.get("name")), str(other.get("name"))
        if name != real:
            self._texts[name] = real
            self._raws[os.fsencode(name) + b"\0"] = os.fsencode(real) + b"\0"
        mac, now = (str(entry.get("mac") or "").lower() for entry in (one, other))
        plain, plain_now = mac.replace(":", ""), now.replace(":", "")
        if len(plain) == len(plain_now) == 12 and _NO_MAC not in (plain, plain_now):
            self.macs[plain_now] = now
            self._texts[plain], self._texts[mac] = plain_now, now
            try:
                self._macs_of[real] = self._raws[bytes.fromhex(plain)] = bytes.fromhex(plain_now)
            except ValueError as error:
                raise HostError(f"its result has the MAC {now!r}", code="not_rehearsed") from error

    def text(self, value: str) -> str:
        return self._pattern.sub(lambda hit: self._texts[hit.group()], value)

    def key(self, key: ObjectKey) -> ObjectKey:
        if key[0] == LEASE:
            return (LEASE, self._folders.get(str(key[1]), key[1]), *key[2:])
        return (key[0], *(self.text(part) if isinstance(part, str) else part for part in key[1:]))

    def objects(self, objects: Objects) -> Objects:
        found: Objects = {}
        for key, one in objects.items():
            if not self._is_fake(key, one):
                real = self.key(key)
                # A bridge whose MAC has followed its ports since comes back with the one that containers know.
                mac = self._macs_of.get(str(real[1])) if real[0] == "link" else None
                found[real] = KernelObject(self._value(one.value), self._raw(str(key[0]), one.raw, mac))
        return found

    def _is_fake(self, key: ObjectKey, one: KernelObject) -> bool:
        """Tell whether an object is one that only a private host has."""
        device = device_of(key)
        if key[0] == "fdb" or device.startswith(FAKE_PEER):
            return True
        return device in self._parents and key[0] in ON_INTERFACES and one.value is not None

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(entry) for entry in value]
        return {name: self._value(entry) for name, entry in value.items()} if isinstance(value, dict) else value

    def _raw(self, kind: str, raw: bytes, mac: Optional[bytes]) -> bytes:
        size = _HEADS.get(kind)
        if size is None or not raw:
            return raw
        replaced = {number: self._raws[text] for number, text in attributes_in(raw, size).items() if text in self._raws}
        replaced.update({_ADDRESS: mac} if mac is not None else {})
        return raw[:size] + pack_kept(raw, size, (), replaced) if replaced else raw
