# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lives on a host: the containers that somebody answers for, beside the network namespaces that there are.

A source names containers. Namespaces need no source: whatever an address is in use in is left alone, whoever owns it.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from .namespaces import Namespaces


class Answer:
    """What one source says.

    ``containers``: container id as CNI saw it -> names of its interfaces (None: all of them). ``namespaces``: paths of
    network namespaces that are in use. ``count``: how many containers it knows. ``asked``: what was asked, in words.
    """

    __slots__ = ("asked", "containers", "count", "namespaces", "source")

    def __init__(
        self,
        source: str,
        containers: Mapping[str, Optional[FrozenSet[str]]],
        namespaces: Iterable[str] = (),
        count: Optional[int] = None,
        asked: str = "",
    ) -> None:
        self.source = source
        self.containers: Dict[str, Optional[FrozenSet[str]]] = dict(containers)
        self.namespaces = list(namespaces)
        self.count = len(self.containers) if count is None else count
        self.asked = asked


class LiveSet:
    """All that is known to live.

    ``answers`` of the sources that were asked, ``found``: evidence for each source that is on the host, ``namespaces``,
    ``complete``: whether every source that was found was asked, ``why``: if not, why not.
    """

    def __init__(
        self,
        answers: Sequence[Answer],
        found: Mapping[str, str],
        namespaces: Namespaces,
        why: str = "",
    ) -> None:
        self.answers = list(answers)
        self.found = dict(found)
        self.namespaces = namespaces
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
        """Tell whether a source has the container with that very interface."""
        for answer in self.answers:
            if container_id in answer.containers:
                names = answer.containers[container_id]
                if names is None or ifname in names:
                    return True
        return False

    def pairs(self) -> Iterator[Tuple[str, str]]:
        """Yield (container id, interface) of all whose interfaces are known."""
        for answer in self.answers:
            for container_id, names in answer.containers.items():
                for ifname in names or ():
                    yield container_id, ifname

    def ids(self) -> Iterator[str]:
        """Yield the ids of all containers."""
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
                    "containers": answer.count if answer else None,
                }
            )
        return rows
