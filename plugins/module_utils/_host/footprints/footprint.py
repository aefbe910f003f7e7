# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What an ADD changed, as objects, and the same as data for JSON."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ..kernel.objects import KernelObject, ObjectKey
from ..struct import field, struct

Objects = Dict[ObjectKey, KernelObject]
"""Objects as they were after an ADD; a value of None: the ADD removed the object."""
Owner = Tuple[str, ...]
SHARED: Owner = ()
"""The owner of what all networks share. That of a network's objects is its name, that of an attachment its key."""


@struct
class Footprint:
    """What an ADD changed: objects ``inside`` the container's namespace and on the ``host``.

    ``identity`` is that of the namespace (netns.Seen), which is kept with the attachment. The footprint of a network
    has no objects inside; its ``config`` is the digest of the conflist.
    """

    host: Objects = field(default_factory=dict)
    inside: Objects = field(default_factory=dict)
    identity: Optional[Mapping[str, Any]] = None
    config: str = ""

    def to_data(self) -> Dict[str, Any]:
        return {"config": self.config, "host": rows_of(self.host), "inside": rows_of(self.inside)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], identity: Optional[Mapping[str, Any]] = None) -> Footprint:
        """Return what ``to_data`` gave. Raises ValueError, KeyError, TypeError or IndexError for anything else."""
        return cls(objects_of(data["host"]), objects_of(data["inside"]), identity, str(data["config"]))


@struct
class SharedFootprints:
    """What attachments share: the ``footprints`` of networks and of all of them by owner, and the ``order`` of the
    rules in the chains that have recorded rules. What is not known is not in it.

    ``damage``: a sentence on the file, if it cannot be used.
    """

    footprints: Dict[Owner, Footprint] = field(default_factory=dict)
    order: Dict[ObjectKey, List[str]] = field(default_factory=dict)
    damage: str = ""

    def to_data(self) -> Dict[str, Any]:
        by_name = {"".join(owner): footprint.to_data() for owner, footprint in self.footprints.items()}
        return {
            "host": by_name.pop("", None),
            "networks": by_name,
            "order": [[list(key), rules] for key, rules in self.order.items()],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> SharedFootprints:
        """Return what ``to_data`` gave. Raises as Footprint.from_data."""
        parts = {**{(name,): part for name, part in data["networks"].items()}, SHARED: data["host"]}
        return cls(
            {owner: Footprint.from_data(part) for owner, part in parts.items() if part is not None},
            {key_of(key): [str(rule) for rule in rules] for key, rules in data["order"]},
        )


def rows_of(objects: Objects) -> List[List[Any]]:
    """Return objects as data for JSON."""
    return [
        [list(key), entry.value, base64.b64encode(entry.raw).decode("ascii"), entry.ifindex, list(entry.peer)]
        for key, entry in objects.items()
    ]


def objects_of(rows: Any) -> Objects:
    """Return the objects of :func:`rows_of`. Raises ValueError, TypeError or IndexError for anything else."""
    objects: Objects = {}
    for key, value, raw, index, peer in rows:
        try:
            message = base64.b64decode(raw, validate=True)
        except binascii.Error as error:
            raise ValueError(str(error)) from error
        if not isinstance(index, int):
            raise TypeError("no index")
        objects[key_of(key)] = KernelObject(value, message, index, (int(peer[0]), bool(peer[1])))
    return objects


def key_of(parts: Any) -> ObjectKey:
    """Return the key of an object from its parts. Raises TypeError."""
    if not parts or not all(isinstance(part, (str, int)) for part in parts):
        raise TypeError("no key")
    return tuple(parts)
