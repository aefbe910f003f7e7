# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is alive on a host: the containers that sources name, and the namespaces that cached attachments live in.

Namespaces need no source: an address that is in use in any of them is left alone, whoever owns it. The path of one
proves little: it may lead to a namespace only in a mount namespace of its own, and all containers of Apptainer have the
same one. What the ADD made shows better where an attachment lives: its interface inside, with its name and MAC, and the
host's end of its veth.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..addresses import packed
from ..attachments.caches import CacheContents
from ..attachments.request import Key
from ..attachments.store import CachedAttachment
from ..netlink import Link
from ..struct import grouped, struct
from .namespaces import Namespace, Namespaces, read_namespaces

# An interface of a namespace: the inode of the namespace, and the name.
_Place = Tuple[int, str]


class Homes:
    """The namespaces that *entries*, those of all caches, live in.

    Every doubt counts as life. An interface counts as another attachment's only if that one has recorded its name and
    MAC, and either the MAC is not the one that this attachment has recorded, or the other is proven to own it.
    """

    def __init__(self, entries: Sequence[CachedAttachment], namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        # The interfaces of containers, by MAC, and their namespaces by the name of an interface.
        inside = [(ns, link) for ns in namespaces.all if not ns.own for link in ns.links.values()]
        self._links = grouped((link.mac, (ns, link)) for ns, link in inside if link.mac.strip("0:"))
        self._named = grouped((link.name, ns) for ns, link in inside)
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
                    proven = ns is self._namespaces.alive(entry.identity)
                else:
                    addresses = (ns.addresses.get(packed(ip.partition("/")[0]), (0, 0)) for ip in entry.ips)
                    proven = ns in self._at(entry) and any(address[0] == link.index for address in addresses)
                if proven:
                    self._proven.setdefault(place, set()).add(key)

    def of(self, entry: CachedAttachment) -> str:
        """Return where the attachment lives, in words; "" if it is gone."""
        home = next(self._candidates(entry), None)
        if home is not None:
            return home[1]
        # Both ends of a veth go with the namespace of either.
        end = next((name for name in entry.host_ends if name in self._namespaces.away), "")
        return f"the namespace that {end} leads to" if end else ""

    def namespace_of(self, entry: CachedAttachment) -> Optional[Namespace]:
        """Return the namespace that the attachment lives in, None if it is gone or nothing leads there."""
        return next((ns for ns, _words in self._candidates(entry)), None)

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

    def _at(self, entry: CachedAttachment) -> List[Namespace]:
        return [ns for path in entry.paths for ns in self._namespaces.at(path)]

    def _candidates(self, entry: CachedAttachment) -> Iterator[Tuple[Namespace, str]]:
        """Yield the namespaces that the attachment may live in, and what shows it, in words."""
        known = self._namespaces.alive(entry.identity)
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
            for ns in self._named.get(entry.key.ifname, ()):
                if (ns.identity["inode"], entry.key.ifname) not in self._matching:
                    yield ns, f"an interface {entry.key.ifname} that may be its in {ns.name}"

    def _is_unknown(self, entry: CachedAttachment) -> bool:
        """Tell whether nothing tells its interface from others, as in results before version 0.3.0.

        There is one of the name lo in every namespace, and nothing is lost with it.
        """
        kinds = {link.name: link.kind for link in self._namespaces.host.links.values()}
        others = all(kinds.get(name, "veth") != "veth" for name in entry.host_ends)
        return not entry.macs and others and entry.key is not None and entry.key.ifname != "lo"

    def _is_others(self, entry: CachedAttachment, ns: Namespace) -> bool:
        """Tell whether the interface of that name in *ns* is another's, so that *ns* is another container."""
        name = entry.key.ifname if entry.key else ""
        link = ns.link_named(name) if name in entry.macs else None
        if link is None:
            return False
        if link.mac != entry.macs[name]:
            return bool(self._matching.get((ns.identity["inode"], name), set()) - {entry.key})
        return self._is_anothers(entry, ns, link)

    def _is_anothers(self, entry: CachedAttachment, ns: Namespace, link: Link) -> bool:
        """Tell whether an interface with a recorded MAC is another's for certain: ipvlan gives all of them one."""
        place = (ns.identity["inode"], link.name)
        if entry.identity:
            # The namespace of its ADD is gone, so another that may have the interface is enough.
            return bool(self._matching.get(place, set()) - {entry.key})
        proven = self._proven.get(place)
        return bool(proven) and entry.key not in (proven or ())


def seen_from_here(entry: CachedAttachment, namespaces: Namespaces) -> bool:
    """Tell whether the paths of the ADD mean the same here; all of them end with the boot."""
    then, now = entry.identity, namespaces.host.identity
    return then is not None and (then["boot_id"] != now["boot_id"] or then.get("processes") == now["processes"])


def find_homes(entries: Sequence[CachedAttachment]) -> Homes:
    """Return where *entries* live. Raises HostError ``netns_unusable``, ``kernel_unreadable``, ``source_unusable``."""
    return Homes(entries, read_namespaces(path for entry in entries for path in entry.paths))


def answer_of(contents: CacheContents, homes: Homes) -> Answer:
    """Return the attachments that still have a namespace, as a source."""
    interfaces: Dict[str, Set[str]] = {}
    for entry in contents.entries:
        if entry.key is not None and entry.key.container_id and homes.of(entry):
            interfaces.setdefault(entry.key.container_id, set()).add(entry.key.ifname)
    containers: Dict[str, Optional[FrozenSet[str]]] = {name: frozenset(names) for name, names in interfaces.items()}
    asked = f"the attachments in {contents.cache_dir} that still have a namespace"
    return Answer(contents.source, containers, asked=asked)


class Answer(NamedTuple):
    """The answer of one source.

    ``containers``: container ID as CNI saw it -> names of its interfaces (None: all of them). ``namespaces``: paths of
    network namespaces that are in use. ``number``: of the containers that it knows, None for that of ``containers``.
    ``asked``: what was asked, in words.
    """

    source: str
    containers: Mapping[str, Optional[FrozenSet[str]]]
    namespaces: Sequence[str] = ()
    number: Optional[int] = None
    asked: str = ""

    @property
    def size(self) -> int:
        """How many containers the source knows."""
        return len(self.containers) if self.number is None else self.number


class RuntimeSource(NamedTuple):
    """A runtime that is on this host: the ``evidence`` of it, and how to ``ask`` it; raises ``source_unusable``."""

    evidence: str
    ask: Callable[[], Answer]


@struct
class LiveSet:
    """Everything that is known to be alive.

    ``answers``: of the sources that were asked; ``evidence`` for each source that is on the host;
    ``namespaces``, and the ``homes`` of attachments in them; ``why``: why not every source that was found was asked.
    """

    answers: Sequence[Answer]
    evidence: Mapping[str, str]
    namespaces: Namespaces
    homes: Homes
    why: str = ""

    @property
    def complete(self) -> bool:
        return not self.why

    @property
    def empty(self) -> bool:
        """Whether no source names any container."""
        return not any(answer.containers for answer in self.answers)

    def owner(self, container_id: str) -> str:
        """Return the name of a source that has the container, "" if none has."""
        return next((answer.source for answer in self.answers if container_id in answer.containers), "")

    def has(self, container_id: str, ifname: str) -> bool:
        """Tell whether a source has the container with this interface."""
        known = [answer.containers[container_id] for answer in self.answers if container_id in answer.containers]
        return any(names is None or ifname in names for names in known)

    def pairs(self) -> Iterator[Tuple[str, str]]:
        """Yield (container ID, interface) of all containers whose interfaces are known."""
        for answer in self.answers:
            for container_id, names in answer.containers.items():
                for ifname in names or ():
                    yield container_id, ifname

    def ids(self) -> Iterator[str]:
        """Yield the IDs of all containers."""
        return (container_id for answer in self.answers for container_id in answer.containers)

    def rows(self) -> List[Dict[str, Any]]:
        """Return ``[{source, found, asked, containers}]``: what is on the host, and what was asked."""
        asked = {answer.source: answer for answer in self.answers}
        return [
            {
                "source": source,
                "found": self.evidence.get(source, ""),
                "asked": asked[source].asked if source in asked else "",
                "containers": asked[source].size if source in asked else None,
            }
            for source in sorted({*asked, *self.evidence})
        ]
