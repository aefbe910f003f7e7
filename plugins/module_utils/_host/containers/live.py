# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is alive on a host: the containers that sources name, and the network namespaces that exist.

Namespaces need no source: an address that is in use in any of them is left alone, whoever owns it.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..attachments.store import CacheContents, CachedAttachment
from .homes import Homes
from .namespaces import Namespaces, read_namespaces


def seen_from_here(entry: CachedAttachment, namespaces: Namespaces) -> bool:
    """Tell whether the paths of the ADD mean the same here; all of them end with the boot."""
    then = entry.identity
    here = namespaces.host.identity if namespaces.host else {}
    return then is not None and (
        then["boot_id"] != here.get("boot_id") or then.get("processes") == here.get("processes", 0)
    )


def find_homes(entries: Sequence[CachedAttachment]) -> Homes:
    """Return where *entries* live. Raises HostError ``netns_unusable``, ``kernel_unreadable``, ``source_unusable``."""
    return Homes(entries, read_namespaces(path for entry in entries for path in entry.paths))


def answer_of(contents: CacheContents, homes: Homes) -> Answer:
    """Return the attachments that still have a namespace, as a source."""
    found: Dict[str, Set[str]] = {}
    for entry in contents.entries:
        if entry.key is not None and entry.key.container_id and homes.of(entry):
            found.setdefault(entry.key.container_id, set()).add(entry.key.ifname)
    containers: Dict[str, Optional[FrozenSet[str]]] = {name: frozenset(names) for name, names in found.items()}
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


class LiveSet:
    """Everything that is known to be alive.

    ``answers``: of the sources that were asked; ``found``: evidence for each source that is on the host;
    ``namespaces``, and the ``homes`` of attachments in them; ``complete``: whether every source that was found was
    asked; ``why``: if not, why not.
    """

    def __init__(
        self,
        answers: Sequence[Answer],
        found: Mapping[str, str],
        namespaces: Namespaces,
        why: str = "",
        homes: Optional[Homes] = None,
    ) -> None:
        self.answers = list(answers)
        self.found = dict(found)
        self.namespaces = namespaces
        self.homes = homes or Homes([], namespaces)
        self.why = why
        self._owners: Dict[str, Answer] = {}
        for answer in answers:
            for container_id in answer.containers:
                self._owners.setdefault(container_id, answer)

    @property
    def complete(self) -> bool:
        return not self.why

    @property
    def empty(self) -> bool:
        """Whether no source names any container."""
        return not self._owners

    def owner(self, container_id: str) -> str:
        """Return the name of a source that has the container, "" if none has."""
        answer = self._owners.get(container_id)
        return answer.source if answer else ""

    def has(self, container_id: str, ifname: str) -> bool:
        """Tell whether a source has the container with this interface."""
        for answer in self.answers:
            if container_id in answer.containers:
                names = answer.containers[container_id]
                if names is None or ifname in names:
                    return True
        return False

    def pairs(self) -> Iterator[Tuple[str, str]]:
        """Yield (container ID, interface) of all containers whose interfaces are known."""
        for answer in self.answers:
            for container_id, names in answer.containers.items():
                for ifname in names or ():
                    yield container_id, ifname

    def ids(self) -> Iterator[str]:
        """Yield the IDs of all containers."""
        return iter(self._owners)

    def rows(self) -> List[Dict[str, Any]]:
        """Return ``[{source, found, asked, containers}]``: what is on the host, and what was asked."""
        asked = {answer.source: answer for answer in self.answers}
        rows = []
        for source in sorted(set(asked) | set(self.found)):
            answer = asked.get(source)
            rows.append(
                {
                    "source": source,
                    "found": self.found.get(source, ""),
                    "asked": answer.asked if answer else "",
                    "containers": answer.size if answer else None,
                }
            )
        return rows
