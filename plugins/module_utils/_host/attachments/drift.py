# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drift of attachments by their footprints, and of what their networks share."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from ..footprints import comparison
from ..footprints.comparison import Compared, Difference
from ..footprints.note import Footprint, Notes
from ..footprints.state import Look, read_look
from ..netns import same
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


class Lost(NamedTuple):
    """What an attachment has lost: its footprint, the path of its namespace, and the differences."""

    footprint: Footprint
    netns: str
    differences: List[Difference]


class LostParts:
    """What gets put back in place: of ``attachments``, and what they share, with the reason in words."""

    def __init__(self) -> None:
        self.attachments: List[Tuple[Outcome, Lost]] = []
        self.shared: List[Tuple[Shared, str]] = []


class FootprintDrift:
    """Compares footprints with the host. ``footprints``: the attachments that have one, and it is theirs still.

    ``shared``: what their networks share, where something of it has drifted. ``problems``: sentences about what could
    not be read, so that drift of it goes undetected.
    """

    def __init__(self, cache_dir: str) -> None:
        self._notes = Notes(cache_dir)
        self._compared: Dict[Key, Compared] = {}
        self.footprints: Dict[Key, Footprint] = {}
        self.shared: List[Shared] = []
        self.problems: List[str] = []

    def compare(self, entries: Iterable[Attached], identities: Mapping[str, Optional[Mapping[str, Any]]]) -> None:
        """Read the footprints of *entries*, and compare. *identities*: path of a namespace -> what it is now.

        Raises HostError if the host cannot be read.
        """
        there: Dict[Key, Attached] = {}
        for attached in entries:
            footprint = self._notes.attachment(attached.key)
            if footprint is not None and same(footprint.identity, identities.get(attached.netns)):
                self.footprints[attached.key] = footprint
                there[attached.key] = attached
        shared = self._read_shared(there)
        self.problems += self._notes.problems
        if not there:
            return
        look = self._look(there, shared)
        for key, footprint in self.footprints.items():
            self._compared[key] = comparison.compare(look, footprint, there[key].netns)
        for network, footprint in shared.items():
            compared = comparison.compare(look, footprint, "")
            self.shared += [Shared(network, footprint, compared)] if compared.differences else []
            self.problems += compared.unread
        self.problems += [text for compared in self._compared.values() for text in compared.unread]
        self.problems = list(dict.fromkeys(self.problems))

    def _read_shared(self, there: Mapping[Key, Attached]) -> Dict[str, Footprint]:
        found = {"": self._notes.host()} if there else {}
        found.update({network: self._notes.network(network) for network in sorted({key.network for key in there})})
        return {network: footprint for network, footprint in found.items() if footprint is not None}

    def _look(self, there: Mapping[Key, Attached], shared: Mapping[str, Footprint]) -> Look:
        wanted = comparison.wanted_keys("", shared.values())
        for key, attached in there.items():
            for space, keys in comparison.wanted_keys(attached.netns, [self.footprints[key]]).items():
                wanted.setdefault(space, []).extend(keys)
        return read_look(wanted)

    def of(self, key: Key) -> Compared:
        """Return what has drifted of an attachment; nothing for one without a footprint."""
        return self._compared.get(key, Compared([], []))
