# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Since when garbage without a date has been seen: firewall rules and interfaces do not tell how old they are.

Each run of ``cni_gc`` notes what it left for being too young. The memory is in /run: what it speaks of does not
survive a reboot either. Times are those of the clock that counts from boot: setting the date makes nothing old.
"""

from __future__ import annotations

import json
import os
import time
from typing import Dict, Iterable

from ..errors import HostError

PATH = "/run/podwire-cni/gc-seen"
_MAX_SIZE = 4 << 20


class FirstSeen:
    """When each key was first seen, in seconds since boot."""

    def __init__(self, path: str = PATH) -> None:
        self._path = path
        self.now = time.clock_gettime(time.CLOCK_BOOTTIME)
        self._known = _read(path, self.now)

    def age(self, key: str) -> float:
        """Return for how many seconds *key* is known to be there, 0 if it was not seen before."""
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
            found = json.loads(stream.read(_MAX_SIZE).decode("utf-8"))
        # What seems to come from the future was not written in this boot.
        return {str(key): float(moment) for key, moment in found.items() if 0 <= float(moment) <= now}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        # Nothing is lost but time: everything counts as seen for the first time.
        return {}
