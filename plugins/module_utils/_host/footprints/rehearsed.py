# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a rehearsal of an ADD has shown, and what it means for the present state of a host."""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, Sequence, Tuple

from ...libcni.kernel import attributes_in
from ..kernel.objects import BY_KERNEL, LINK, KernelObject, ObjectKey
from ..struct import struct
from .footprint import Objects, Owner
from .object_kinds import HOST
from .state import Reading

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

    def settled(self, objects: Objects, reading: Reading, space: str) -> Objects:
        """Return *objects* with the present indexes, and with present settings where a rehearsal cannot know them."""
        settled: Objects = {}
        for key, entry in objects.items():
            if key[0] == "link" and entry.value is not None:
                present = reading.kernel_object(space, key)
                value = dict(entry.value)
                if present is not None:
                    names = list(_OF_THE_HOST)
                    if space == HOST or value.get("mac") not in self.macs:
                        names.append("mac")
                    if space != HOST and key[1] == self.device:
                        names += _OF_THE_DEVICE
                    value.update({name: present.value[name] for name in names if name in value})
                    entry = KernelObject(value, entry.raw, present.ifindex, present.peer)
                else:
                    renamed = _renamed(reading, space, value["kind"], attributes_in(entry.raw, LINK.size).get(1, b""))
                    entry = KernelObject(value, entry.raw, *renamed)
            elif (
                space == HOST
                and entry.value is not None
                and (key[0] == "addr" or (key[0] == "route" and entry.value["proto"] == BY_KERNEL))
            ):
                # Who put the address there has chosen its settings, and the metric of the kernel's routes for it.
                key, present = next(_like(reading, key), (key, None))
                if present is not None:
                    entry = KernelObject(present.value, present.raw, present.ifindex)
            settled[key] = entry
        return settled


def _like(reading: Reading, key: ObjectKey) -> Iterator[Tuple[ObjectKey, KernelObject]]:
    """Yield the host's address or route that serves as well as *key*: a route may have another metric."""
    for other, entry in reading.spaces[HOST].items():
        if other == key or (key[0] == other[0] == "route" and (other[1:4], other[6:]) == (key[1:4], key[6:])):
            yield other, entry


def _renamed(reading: Reading, space: str, kind: str, mac: bytes) -> Tuple[int, Tuple[int, bool]]:
    """Return index and peer of an interface that has lost its name, which its MAC tells; zeros if there is none."""
    for key, link in reading.spaces.get(space, {}).items():
        if key[0] == "link" and mac and (link.value["kind"], link.value["mac"]) == (kind, mac.hex()):
            return link.ifindex, link.peer
    return 0, (0, False)


def order_rules(present: Reading, orders: Sequence[Mapping[ObjectKey, List[str]]]) -> Dict[ObjectKey, List[str]]:
    """Return the order of the rules in each chain: as they stand now, and each missing one behind those before it.

    Without a known one before it, it comes first in the table filter, where plugins insert, else before the first known
    one behind it (what drops the rest comes after what passes), else last.
    """
    chains = present.chains.chains
    chain_rules: Dict[ObjectKey, List[str]] = {}
    for order in orders:
        for place, rules in order.items():
            known = chain_rules.setdefault(place, list(chains[place].rules) if place in chains else [])
            first = next((known.index(rule) for rule in rules if rule in known), len(known))
            position = 0 if place[3] == "filter" else first
            for rule in rules:
                if rule in known:
                    position = known.index(rule) + 1
                else:
                    known.insert(position, rule)
                    position += 1
    return chain_rules


def shared_by(rehearsals: Sequence[Rehearsed], reading: Reading) -> Dict[Owner, Objects]:
    """Return what attachments share, by its owner. The first of the *rehearsals* that has an object counts."""
    shared: Dict[Owner, Objects] = {}
    for rehearsed in rehearsals:
        for owner, objects in rehearsed.owned.items():
            if len(owner) < 2:
                known = shared.setdefault(owner, {})
                settled = rehearsed.settled(objects, reading, HOST)
                known.update((key, entry) for key, entry in settled.items() if key not in known)
    return shared
