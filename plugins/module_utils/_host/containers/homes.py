# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which namespaces cached attachments live in, whether or not their paths can be seen.

A path proves little: it may lead to a namespace only in a mount namespace of its own, and all containers of Apptainer
have the same one. What the ADD made shows better where an attachment lives: its interface inside, with its name and
MAC, and the host's end of its veth.
"""

from __future__ import annotations

import os
from typing import Dict, Iterator, List, Optional, Sequence, Set, Tuple

from ..addresses import packed
from ..attachments.request import Key
from ..attachments.store import CachedAttachment
from ..netlink import Link
from .namespaces import Namespace, Namespaces

# An interface of a namespace: the inode of the namespace, and the name.
_Place = Tuple[int, str]


class Homes:
    """The namespaces that *entries*, those of all caches, live in.

    Every doubt counts as life. An interface counts as another attachment's only if that one has recorded its name and
    MAC, and either the MAC is not the one that this attachment has recorded, or the other is proven to own it.
    """

    def __init__(self, entries: Sequence[CachedAttachment], namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        # The interfaces of containers, by MAC.
        self._links: Dict[str, List[Tuple[Namespace, Link]]] = {}
        for ns in namespaces.all:
            for link in ns.links.values():
                if not ns.own and link.mac.strip("0:"):
                    self._links.setdefault(link.mac, []).append((ns, link))
        # The attachments that an interface can be of, by its name and MAC, and those that it is of for certain.
        self._matching: Dict[_Place, Set[Key]] = {}
        self._proven: Dict[_Place, Set[Key]] = {}
        # An address may have been removed from its interface.
        self._assigned: Dict[bytes, Key] = {}
        for entry in entries:
            if entry.key is not None:
                self._read(entry, entry.key)
        for entry in entries:
            if entry.key is not None and entry.ips and self.of(entry):
                self._assigned.update((packed(ip.partition("/")[0]), entry.key) for ip in entry.ips)

    def _read(self, entry: CachedAttachment, key: Key) -> None:
        for ns, link in self._links.get(entry.macs.get(key.ifname, ""), ()):
            if link.name == key.ifname:
                place = (ns.identity["inode"], link.name)
                self._matching.setdefault(place, set()).add(key)
                if entry.identity:
                    proven = ns is self._known(entry)
                else:
                    proven = ns in self._at(entry) and _has_address(entry, ns, link)
                if proven:
                    self._proven.setdefault(place, set()).add(key)

    def of(self, entry: CachedAttachment) -> str:
        """Return where the attachment lives, in words; "" if it is gone."""
        found = next(self._candidates(entry), None)
        if found is not None:
            return found[1]
        # Both ends of a veth go with the namespace of either.
        end = next((name for name in entry.host_ends if name in self._namespaces.away), "")
        return f"the namespace that {end} leads to" if end else ""

    def namespace_of(self, entry: CachedAttachment) -> Optional[Namespace]:
        """Return the namespace that the attachment lives in, None if it is gone or nothing leads there."""
        found = next(self._candidates(entry), None)
        return found[0] if found else None

    def assigned(self, address: str) -> Optional[Key]:
        """Return the living attachment that *address* (such as 10.1.0.2/24) was assigned to, None if there is none."""
        return self._assigned.get(packed(address.partition("/")[0]))

    def replaced(self, entry: CachedAttachment) -> str:
        """Return which namespace at the path of the ADD has another attachment's interface, in words; "" if none."""
        if entry.key is None or entry.identity:
            return ""
        for path in entry.paths:
            for ns in self._namespaces.at(path):
                if self._is_others(entry, ns):
                    others = self._matching[(ns.identity["inode"], entry.key.ifname)] - {entry.key}
                    return f"{path} leads to {ns.name}, whose {entry.key.ifname} is that of {min(others)}"
        return ""

    def death_of(self, entry: CachedAttachment) -> str:
        """Return what became of the namespace of an entry, in words, if it is gone."""
        if entry.identity:
            if os.path.exists(entry.netns):
                return f"{entry.netns} is no longer the namespace of its ADD"
            return f"the namespace of its ADD, {entry.netns}, is gone"
        text = self.replaced(entry)
        if not text:
            text = f"there is no namespace {entry.paths[0]}" if entry.paths else "its namespace is not known"
        if entry.macs:
            macs = ", ".join(f"{mac} of {name}" for name, mac in entry.macs.items())
            return f"{text}, and none has an interface of it with the MAC {macs}"
        if self._is_unknown(entry) and entry.key is not None:
            return f"{text}, and none has an interface {entry.key.ifname} that may be its"
        return f"{text}, and its interface on the host is gone"

    def _known(self, entry: CachedAttachment) -> Optional[Namespace]:
        return self._namespaces.alive(entry.identity)

    def _at(self, entry: CachedAttachment) -> List[Namespace]:
        return [ns for path in entry.paths for ns in self._namespaces.at(path)]

    def _candidates(self, entry: CachedAttachment) -> Iterator[Tuple[Namespace, str]]:
        """Yield the namespaces that the attachment may live in, and what shows it, in words."""
        known = self._known(entry)
        if known is not None:
            yield known, known.name
        if not entry.identity:
            for ns in self._at(entry):
                if not self._is_others(entry, ns):
                    yield ns, ns.name
        for mac in entry.macs.values():
            for ns, link in self._links.get(mac, ()):
                if not self._is_anothers(entry, ns, link):
                    yield ns, f"its interface with the MAC {mac} in {ns.name}"
        if entry.key is not None and not entry.identity and self._is_unknown(entry):
            for ns in self._namespaces.all:
                here = None if ns.own else ns.link_named(entry.key.ifname)
                if here and (ns.identity["inode"], here.name) not in self._matching:
                    yield ns, f"an interface {here.name} that may be its in {ns.name}"

    def _is_unknown(self, entry: CachedAttachment) -> bool:
        """Tell whether nothing tells its interface from others, as in results before version 0.3.0.

        There is one of the name lo in every namespace, and nothing is lost with it.
        """
        host = self._namespaces.host
        kinds = {link.name: link.kind for link in host.links.values()} if host else {}
        others = all(kinds.get(name, "veth") != "veth" for name in entry.host_ends)
        return not entry.macs and others and entry.key is not None and entry.key.ifname != "lo"

    def _is_others(self, entry: CachedAttachment, ns: Namespace) -> bool:
        """Tell whether the interface of that name in *ns* is another's, so that *ns* is another container."""
        name = entry.key.ifname if entry.key else ""
        here = ns.link_named(name) if name in entry.macs else None
        if here is None:
            return False
        if here.mac != entry.macs[name]:
            return bool(self._matching.get((ns.identity["inode"], name), set()) - {entry.key})
        return self._is_anothers(entry, ns, here)

    def _is_anothers(self, entry: CachedAttachment, ns: Namespace, link: Link) -> bool:
        """Tell whether an interface with a recorded MAC is another's for certain: ipvlan gives all of them one."""
        place = (ns.identity["inode"], link.name)
        if entry.identity:
            # The namespace of its ADD is gone, so another that may have the interface is enough.
            return bool(self._matching.get(place, set()) - {entry.key})
        proven = self._proven.get(place)
        return bool(proven) and entry.key not in (proven or ())


def _has_address(entry: CachedAttachment, ns: Namespace, link: Link) -> bool:
    raw = [packed(ip.partition("/")[0]) for ip in entry.ips]
    return any(ns.addresses.get(one, (0, 0))[0] == link.index for one in raw)
