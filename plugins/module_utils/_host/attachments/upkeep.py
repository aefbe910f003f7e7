# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""One repair in place of everything that has a footprint, without a controller: no plugin runs, never DEL or ADD."""

from __future__ import annotations

import sys
from typing import List

from ..errors import HostError
from ..footprints.object_kinds import summarize
from ..footprints.repair import InPlaceRepair, why_not
from ..footprints.state import Drift
from ..lock import Lock, read_state
from ..netns import look
from ..secrets import one_line
from .drift import ADDED, Drifts, find_drift, present_in
from .store import AttachmentStore, check_cache_dir, read_cache

_LOCK_TIMEOUT = 60.0
DONE, LEFT, FAILED = 0, 1, 2
"""Statuses: all is as recorded, something was not put back, the host could not be read."""


class Upkeep:
    """One repair of everything that has a footprint. ``done`` and ``left`` are sentences."""

    def __init__(self, cache_dir: str) -> None:
        self._cache_dir = cache_dir
        self._wanted: List[Drift] = []
        self._reasons: List[str] = []
        self.done: List[str] = []
        self.left: List[str] = []

    def run(self) -> None:
        """Put everything back. Raises HostError if the host cannot be read, or another module holds the lock."""
        check_cache_dir(self._cache_dir)
        with Lock("podwire-cni-repair", _LOCK_TIMEOUT, read_state()):
            drifts = self._find()
            if not self._wanted:
                return
            repair = InPlaceRepair(self._wanted, drifts.order)
            repair.run()
        for wanted, reason in zip(self._wanted, self._reasons):
            error = repair.errors.get(wanted.owner)
            if error is None:
                self.done.append(f"{wanted.target}: {reason}; put back")
            else:
                self.left.append(error.msg)

    def _find(self) -> Drifts:
        cached = [entry.attached for entry in read_cache(self._cache_dir).entries if not entry.interrupted]
        entries = [attached for attached in cached if attached is not None and attached.netns]
        seen = look({attached.netns: () for attached in entries})
        identities = {path: there.identity for path, there in seen.items()}
        drifts = find_drift(
            present_in(self._cache_dir, entries, identities), AttachmentStore(self._cache_dir).read_shared()
        )
        self.left += [f"{problem}; drift of what could not be read goes undetected" for problem in drifts.problems]
        self.left += drifts.damages
        for drift in [*drifts.shared, *drifts.attachments]:
            self._add(drift)
        return drifts

    def _add(self, drift: Drift) -> None:
        if drift.additions:
            self.left.append(f"{drift.target}: {summarize(drift.additions, drift.own)}; left, {ADDED}")
        obstacle = why_not(drift)
        if obstacle:
            self.left.append(f"{drift.target}: {drift.reason}; not put back, because {obstacle}")
        elif drift.lost:
            self._wanted.append(drift)
            self._reasons.append(drift.reason)


def put_back_all(cache_dir: str) -> int:
    """Put everything back, print a line for each thing that was lost, and return the status."""
    upkeep = Upkeep(cache_dir)
    try:
        upkeep.run()
    except HostError as error:
        upkeep.left.append(error.msg)
        return FAILED
    finally:
        for text in [*upkeep.done, *upkeep.left]:
            # Names and aliases of interfaces are a tenant's.
            sys.stdout.write(f"{one_line(text)}\n")
            sys.stdout.flush()
    return LEFT if upkeep.left else DONE
