# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions on what is garbage. Every test must show that the owner is dead; otherwise the candidate is left."""

from __future__ import annotations

import json
import os
import time
from typing import Dict, Iterable, List

from ..errors import HostError
from ..json_text import parse_json
from .candidate import Candidate, when
from .inventory import Inventory

PATH = "/run/podwire-cni/gc-seen"
_MAX_SIZE = 4 << 20


class FirstSeen:
    """When each key was first seen, in seconds since boot."""

    def __init__(self, path: str = PATH) -> None:
        self._path = path
        self.now = time.clock_gettime(time.CLOCK_BOOTTIME)
        self._known = _read(path, self.now)

    def age(self, key: str) -> float:
        """Return for how many seconds *key* has been known, 0 if it was not seen before."""
        return self.now - self._known.get(key, self.now)

    def note(self, keys: Iterable[str]) -> None:
        """Remember *keys*, and forget all others. Raises HostError ``seen_not_written``."""
        known = {key: self._known.get(key, self.now) for key in keys}
        if known == self._known:
            return
        temp = f"{self._path}.{os.getpid()}"
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8") as stream:
                json.dump(known, stream)
            os.rename(temp, self._path)
        except OSError as error:
            raise HostError(f"cannot write {self._path}: {error.strerror}", code="seen_not_written") from error
        self._known = known


def _read(path: str, now: float) -> Dict[str, float]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as stream:
            found = parse_json(stream.read(_MAX_SIZE))
        # A time in the future was not written since this boot.
        return {str(key): float(moment) for key, moment in found.items() if 0 <= float(moment) <= now}
    except (OSError, ValueError, TypeError, AttributeError):
        # Only time is lost: everything counts as seen for the first time.
        return {}


class Judge:
    """Decides on candidates. *seen*: when objects without a date were first seen."""

    def __init__(self, inventory: Inventory, seen: FirstSeen) -> None:
        self._settings, self._live, self._dates = inventory.settings, inventory.live, inventory.dates
        self._disabled = inventory.disabled
        self._seen = seen
        self._now = time.time()
        self.undated: List[str] = []
        self._asked = self._describe()

    def _describe(self) -> str:
        """Return the sources of the live set and their counts, as evidence that a container is not in it."""
        parts = [f"{answer.source} ({answer.size})" for answer in self._live.answers if answer.source != "netns"]
        return ", ".join(parts) or "nothing"

    def decide(self, candidate: Candidate) -> None:
        """Set ``action`` and ``reason``, and complete the evidence."""
        live, settings = self._live, self._settings
        if candidate.network in self._disabled:
            candidate.leave("disable_gc", f"the network {candidate.network} sets disableGC")
            return
        owner = live.owner(candidate.container_id) if candidate.container_id and not candidate.reused else ""
        if owner:
            candidate.leave("live", f"container {candidate.container_id} is alive according to {owner}")
            return
        for address in candidate.addresses:
            holder = live.namespaces.holder(address)
            if holder is not None:
                candidate.leave("address_live", f"{address.partition('/')[0]} is in use in {holder.name}")
                return
            assigned = live.homes.assigned(address)
            if assigned is not None:
                text = f"{address.partition('/')[0]} is assigned to the attachment {assigned}, which is alive"
                candidate.leave("address_live", text)
                return
        if candidate.container_id and not candidate.reused:
            candidate.evidence.append(f"no source names container {candidate.container_id}; asked: {self._asked}")
        if candidate.addresses:
            texts = ", ".join(address.partition("/")[0] for address in candidate.addresses)
            candidate.evidence.append(f"{texts} is in none of the {len(live.namespaces.all)} network namespaces")
        if not live.complete and not candidate.managed:
            candidate.leave("not_ours", f"{live.why}, and nothing in {settings.cache_dir} shows that it is managed")
            return
        if self._is_young(candidate):
            return
        candidate.collect(candidate.cause or "owner_dead")

    def _is_young(self, candidate: Candidate) -> bool:
        since = candidate.since
        if since is None:
            # The ADD that made it also made something that has a date.
            since = self._dates.get((candidate.network, candidate.container_id))
        if since is not None:
            candidate.evidence.append(f"made {when(since)}")
            if self._now - since < self._settings.min_age:
                candidate.leave("young", f"that is less than min_age ({self._settings.min_age:g} s) ago")
                return True
            return False
        key = "/".join(candidate.key)
        self.undated.append(key)
        age = self._seen.age(key)
        if age < self._settings.min_age:
            candidate.leave(
                "young",
                "its age is not known, and no run of cni_gc saw it more than min_age "
                f"({self._settings.min_age:g} s) ago; each run records what it sees",
            )
            return True
        if self._settings.min_age:
            candidate.evidence.append("it has no date, but earlier runs of cni_gc saw it without an owner")
        return False
