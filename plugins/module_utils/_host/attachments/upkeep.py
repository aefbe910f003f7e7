# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""One repair in place of everything that has a footprint, without a controller: no plugin runs, never DEL or ADD."""

from __future__ import annotations

import sys
from typing import List, Tuple

from ..errors import HostError
from ..lock import Lock, read_state
from ..plan import FOREIGN, SAFE, Plan
from ..secrets import one_line
from .caches import read_cache
from .drift import ADDED, InPlaceSteps, find_recorded_drift
from .store import check_cache_dir

_LOCK_TIMEOUT = 60.0
DONE, LEFT, FAILED = 0, 1, 2
"""Statuses: all is as recorded, something was not put back, the host could not be read."""


def repair_all(cache_dir: str) -> Tuple[List[str], List[str]]:
    """Put everything back. Returns sentences about what was done, and about what is left.

    Raises HostError if the host cannot be read, or another module holds the lock.
    """
    check_cache_dir(cache_dir)
    plan = Plan()
    with Lock("podwire-cni-repair", _LOCK_TIMEOUT, read_state()):
        entries = read_cache(cache_dir).entries
        attached = [entry.attached for entry in entries if entry.attached is not None and not entry.interrupted]
        drifts = find_recorded_drift(cache_dir, attached)
        steps = InPlaceSteps(plan, drifts.order)
        steps.add_all([*drifts.shared, *drifts.attachments])
        plan.restrict((SAFE,))
        steps.put_back()
    done: List[str] = []
    left = [f"{problem}; drift of what could not be read goes undetected" for problem in drifts.problems]
    left += drifts.damages
    advice = "not put back, because that is disruptive; run remediate"
    left += [f"{step.target}: {step.reason}; {advice}" for step in plan.left]
    for step in plan.steps:
        if step.step_class == FOREIGN:
            drift, why = step.after["drift"], step.after["left"]
            left.append(f"{step.target}: {drift}; {why if why == ADDED else f'not put back, because {why}'}")
            continue
        try:
            step.action()
        except HostError as error:
            left.append(error.msg)
        else:
            done.append(f"{step.target}: {step.reason}; put back")
    return done, left


def put_back_all(cache_dir: str) -> int:
    """Put everything back, print a line for each thing that was lost, and return the status."""
    try:
        done, left = repair_all(cache_dir)
        status = LEFT if left else DONE
    except HostError as error:
        done, left, status = [], [error.msg], FAILED
    for text in [*done, *left]:
        # Names and aliases of interfaces are a tenant's.
        sys.stdout.write(f"{one_line(text)}\n")
        sys.stdout.flush()
    return status
