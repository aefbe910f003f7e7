# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a rehearsal of an ADD has shown, and what it means for the present state of a host."""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, Sequence, Tuple

from ...libcni.kernel import attributes_in
from ..kernel.objects import BY_KERNEL, LINK, KernelObject, ObjectKey
from ..struct import struct
from .footprint import Objects, Owner
from .object_kinds import HOST
from .state import Look

# What a private host cannot tell of an interface. udev and the host's defaults set them.
_OF_THE_HOST = ("alias", "genmode")
# A veth stands for the device that host-device takes.
_OF_THE_DEVICE = ("kind", "lower", "data", "txqlen", "mtu", "group", "port", "master")


@struct
class Rehearsed:
    """What an ADD changes: objects of the host by ``owned`` (owner -> objects), ``inside`` the container, and the
    ``order`` of rules. ``device``: the interface inside is one that host-device took. ``partly``: what is left out."""

    owned: Dict[Owner, Objects]
    inside: Objects
    order: Dict[ObjectKey, List[str]]
    macs: Sequence[str] = ()
    device: str = ""
    partly: str = ""

    def settled(self, objects: Objects, look: Look, space: str) -> Objects:
        """Return *objects* with the present indexes, and with present settings where a rehearsal cannot know them."""
        found: Objects = {}
        for key, one in objects.items():
            if key[0] == "link" and one.value is not None:
                present = look.found(space, key)
                value = dict(one.value)
                if present is not None:
                    names = list(_OF_THE_HOST)
                    if space == HOST or value.get("mac") not in self.macs:
                        names.append("mac")
                    if space != HOST and key[1] == self.device:
                        names += _OF_THE_DEVICE
                    value.update({name: present.value[name] for name in names if name in value})
                    one = KernelObject(value, one.raw, present.ifindex, present.peer)
                else:
                    renamed = _renamed(look, space, value["kind"], attributes_in(one.raw, LINK.size).get(1, b""))
                    one = KernelObject(value, one.raw, *renamed)
            elif (
                space == HOST
                and one.value is not None
                and (key[0] == "addr" or (key[0] == "route" and one.value["proto"] == BY_KERNEL))
            ):
                # Who put the address there has chosen its settings, and the metric of the kernel's routes for it.
                known, present = next(_like(look, key), (key, None))
                key, one = known, one if present is None else KernelObject(present.value, present.raw, present.ifindex)
            found[key] = one
        return found


def _like(look: Look, key: ObjectKey) -> Iterator[Tuple[ObjectKey, KernelObject]]:
    """Yield the host's address or route that serves as well as *key*: a route may have another metric."""
    for other, there in look.spaces[HOST].items():
        if other == key or (key[0] == other[0] == "route" and (other[1:4], other[6:]) == (key[1:4], key[6:])):
            yield other, there


def _renamed(look: Look, space: str, kind: str, mac: bytes) -> Tuple[int, Tuple[int, bool]]:
    """Return index and peer of an interface that has lost its name, which its MAC tells; zeros if there is none."""
    for key, there in look.spaces.get(space, {}).items():
        if key[0] == "link" and mac and (there.value["kind"], there.value["mac"]) == (kind, mac.hex()):
            return there.ifindex, there.peer
    return 0, (0, False)


def order_rules(present: Look, orders: Sequence[Mapping[ObjectKey, List[str]]]) -> Dict[ObjectKey, List[str]]:
    """Return the order of the rules in each chain: as they stand now, and each missing one behind those before it.

    A missing rule without a known one before it comes first in the table filter, where plugins insert, else last.
    """
    found: Dict[ObjectKey, List[str]] = {}
    for order in orders:
        for place, rules in order.items():
            if place not in found:
                there = present.chains.chains.get(place) if present.chains is not None else None
                found[place] = list(there.rules) if there is not None else []
            known = found[place]
            position = 0 if place[3] == "filter" else len(known)
            for rule in rules:
                if rule in known:
                    position = known.index(rule) + 1
                else:
                    known.insert(position, rule)
                    position += 1
    return found


def shared_by(rehearsals: Sequence[Rehearsed], look: Look) -> Dict[Owner, Objects]:
    """Return what attachments share, by its owner. The first of the *rehearsals* that has an object counts."""
    found: Dict[Owner, Objects] = {}
    for one in rehearsals:
        for owner, objects in one.owned.items():
            if len(owner) < 2:
                known = found.setdefault(owner, {})
                settled = one.settled(objects, look, HOST)
                known.update((key, there) for key, there in settled.items() if key not in known)
    return found
