# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parallel work on several items, most of which wait for plugins."""

from __future__ import annotations

import os
import threading
from typing import Callable, Iterable, List, Optional, TypeVar

from .errors import HostError

T = TypeVar("T")


def workers_of(parallel: Optional[int] = None) -> int:
    """Return the number of workers that the option ``parallel`` sets, or a number for this host if it is not set.

    Raises HostError ``bad_parallel``.
    """
    if parallel is None:
        # One more than the processors, because plugins wait; more than four workers compete for the same locks.
        return min(4, len(os.sched_getaffinity(0)) + 1)
    if parallel < 1:
        raise HostError("parallel must be at least 1", code="bad_parallel")
    return parallel


def each_of(function: Callable[[T], None], things: Iterable[T], workers: int) -> None:
    """Call *function* with each thing, in up to *workers* threads. The first exception ends the work and is raised."""
    waiting = list(things)
    if workers <= 1 or len(waiting) <= 1:
        for thing in waiting:
            function(thing)
        return
    waiting.reverse()
    errors: List[BaseException] = []

    def work() -> None:
        while not errors:
            try:
                thing = waiting.pop()
            except IndexError:
                return
            try:
                function(thing)
            except BaseException as error:  # noqa: BLE001 - handed to the caller's thread below
                errors.append(error)

    threads = [threading.Thread(target=work) for dummy in range(min(workers, len(waiting)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
