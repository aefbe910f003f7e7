# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Drift of attachments by their footprints, and of what their networks share."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..firewall.chains import switched_backends
from ..footprints.note import Footprint, Notes
from ..footprints.object_kinds import Difference
from ..footprints.state import Compared, Look, compare, note_order, read_look, wanted_keys
from ..netns import Netns, same
from .outcome import Outcome
from .records import Attached
from .request import Key

SHARED_TARGET = "host"
"""The target of a step that repairs what all networks share."""


class Shared(NamedTuple):
    """What attachments share: ``network`` ("" for what all networks share), its footprint and its drift."""

    network: str
    footprint: Footprint
    compared: Compared

    @property
    def target(self) -> str:
        return self.network or SHARED_TARGET


class Rebuilt:
    """Footprints that rehearsals have found: of ``attachments``, ``shared`` by network ("" for all networks), and the
    ``order`` of rules in chains. ``obstacles``: why an attachment has none."""

    def __init__(self) -> None:
        self.attachments: Dict[Key, Footprint] = {}
        self.shared: Dict[str, Footprint] = {}
        self.order: Mapping[Tuple[Any, ...], List[str]] = {}
        self.obstacles: Dict[Key, str] = {}


Rebuild = Callable[[Sequence[Attached]], Rebuilt]
"""Finds the footprints of attachments whose notes are damaged, and what they share. Raises HostError."""


class Damage(NamedTuple):
    """A damaged note: its owner (see Notes.damaged), the footprint to write instead, or why there is none."""

    owner: Tuple[str, ...]
    footprint: Optional[Footprint]
    obstacle: str

    @property
    def target(self) -> str:
        return "/".join(self.owner) or SHARED_TARGET


class Lost(NamedTuple):
    """What an attachment has lost: its footprint, the path of its namespace, and the differences."""

    footprint: Footprint
    netns: str
    differences: List[Difference]


class LostParts:
    """What gets put back in place: of ``attachments``, and what they share, with the reason in words.

    ``order``: that of rules in chains.
    """

    def __init__(self) -> None:
        self.order: Mapping[Tuple[Any, ...], List[str]] = {}
        self.attachments: List[Tuple[Outcome, Lost]] = []
        self.shared: List[Tuple[Shared, str]] = []


class FootprintDrift:
    """Compares footprints with the host. ``footprints``: the attachments that have one, and it is theirs still.

    ``shared``: what their networks share, where something of it has drifted. ``order``: that of the rules in chains.
    ``problems``: sentences about what could not be read, so that drift of it goes undetected. ``damages``: notes that
    *rebuild* has found again, or not; they are no problems.
    """

    def __init__(self, cache_dir: str, rebuild: Optional[Rebuild] = None) -> None:
        self._notes = Notes(cache_dir)
        self._rebuild = rebuild
        self.order: Dict[Tuple[Any, ...], List[str]] = {}
        self.damages: List[Damage] = []
        self._compared: Dict[Key, Compared] = {}
        self.footprints: Dict[Key, Footprint] = {}
        self.shared: List[Shared] = []
        self.problems: List[str] = []

    def compare(self, entries: Iterable[Attached], identities: Mapping[str, Optional[Mapping[str, Any]]]) -> None:
        """Read the footprints of *entries*, and compare. *identities*: path of a namespace -> what it is now.

        Raises HostError if the host cannot be read.
        """
        present = {attached.key: attached for attached in entries}
        there: Dict[Key, Attached] = {}
        for attached in present.values():
            footprint = self._notes.attachment(attached.key)
            if footprint is not None and same(footprint.identity, identities.get(attached.netns)):
                self.footprints[attached.key] = footprint
                there[attached.key] = attached
        lost = [key for key in present if key in self._notes.damaged]
        shared = self._read_shared([*there, *lost])
        self.order = self._notes.order() if there or lost else {}
        if self._notes.damaged and self._rebuild is not None:
            shared.update(self._rebuild_damaged(self._rebuild, present, identities))
            there.update({key: present[key] for key in self.footprints})
        else:
            self.problems += [
                f"{text}; the next run of cni_attach or cni_host rebuilds it" for text in self._notes.problems
            ]
        if not there:
            return
        look = self._look(there, shared)
        note_order(look, self.order, [*self.footprints.values(), *shared.values()])
        look.switched = switched_backends(key for one in self.footprints.values() for key in one.host)
        for key, footprint in self.footprints.items():
            self._compared[key] = compare(look, footprint, there[key].netns)
        for network, footprint in shared.items():
            compared = compare(look, footprint, "")
            self.shared += [Shared(network, footprint, compared)] if compared.differences else []
            self.problems += compared.unread
        self.problems += [text for compared in self._compared.values() for text in compared.unread]
        self.problems = list(dict.fromkeys(self.problems))

    def _rebuild_damaged(
        self, rebuild: Rebuild, present: Mapping[Key, Attached], identities: Mapping[str, Optional[Mapping[str, Any]]]
    ) -> Dict[str, Footprint]:
        """Find the footprints of damaged notes again; return those that are shared."""
        damaged = list(dict.fromkeys(self._notes.damaged))
        networks = {owner[0] for owner in damaged if len(owner) == 1}
        if () in damaged:
            networks.update(key.network for key in present)
        first: Dict[str, Key] = {}
        for key in present:
            first.setdefault(key.network, key)
        wanted = {
            key: None for key in present if key in damaged or (key.network in networks and first[key.network] == key)
        }
        rebuilt = rebuild([present[key] for key in wanted if identities.get(present[key].netns)])
        self.order.update(rebuilt.order)
        shared: Dict[str, Footprint] = {}
        for owner in damaged:
            if len(owner) > 1:
                key = Key(*owner)
                footprint = rebuilt.attachments.get(key)
                if footprint is not None:
                    footprint.identity = identities.get(present[key].netns)
                    self.footprints[key] = footprint
                obstacle = rebuilt.obstacles.get(key, "")
            else:
                name = "".join(owner)
                # Without any obstacle, nothing is shared.
                obstacle = "; ".join(why for key, why in rebuilt.obstacles.items() if name in ("", key.network))
                footprint = None if obstacle else rebuilt.shared.get(name, Footprint())
                if footprint is not None:
                    shared[name] = footprint
            self.damages.append(Damage(owner, footprint, obstacle))
        return shared

    def rewrite(self, damage: Damage) -> None:
        """Set a damaged note aside, and write what was found again. Raises HostError ``record_unwritable``."""
        self._notes.rewrite(damage.owner, damage.footprint)
        self._notes.rewrite_order(self.order)

    def _read_shared(self, there: Sequence[Key]) -> Dict[str, Footprint]:
        found = {"": self._notes.host()} if there else {}
        found.update({network: self._notes.network(network) for network in sorted({key.network for key in there})})
        return {network: footprint for network, footprint in found.items() if footprint is not None}

    def _look(self, there: Mapping[Key, Attached], shared: Mapping[str, Footprint]) -> Look:
        wanted = wanted_keys("", shared.values())
        namespaces = {one.netns: Netns(one.netns, self.footprints[key].identity) for key, one in there.items()}
        for key, attached in there.items():
            for space, keys in wanted_keys(attached.netns, [self.footprints[key]]).items():
                wanted.setdefault(space, []).extend(keys)
        return read_look(wanted, namespaces.values())

    def of(self, key: Key) -> Compared:
        """Return what has drifted of an attachment; nothing for one without a footprint."""
        return self._compared.get(key, Compared([], []))
