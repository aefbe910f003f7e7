# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a job has found, small enough for the artifacts of AWX: the totals, and the hosts by name.

Its folder may go with the container in which the job ran.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from typing import Any, Mapping

from ...module_utils._host.plan import DISRUPTIVE, SAFE
from .fleet import ATTENTION, summary_of_fleet, tags_of
from .record import CLASSES, DRIFT, ERROR, classes_of

MOST_BYTES = 60_000
"""The most bytes of the names, as JSON. The totals and the rest of an artifact need less than 2,000."""

LISTS = (ERROR, DRIFT, ATTENTION, DISRUPTIVE, SAFE)
"""The lists of hosts: by their level, and by the classes of their steps. Names are left out of the last ones first."""

_MARKS = ("/run/.containerenv", "/.dockerenv")
_OF_JOBS = "/runner"
"""The directory of a job in an execution environment. AWX mounts something temporary there."""


def artifact(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the artifact of a report: ``status``, ``summary``, ``counts``, ``classes``, ``hosts`` and ``left_out``.

    ``classes`` counts steps. ``hosts`` has lists of names; ``left_out`` says how many names each list lacks.
    """
    by_list: dict[str, list[str]] = {name: [] for name in LISTS}
    classes = dict.fromkeys(CLASSES, 0)
    for host in report["hosts"]:
        for name, count in classes_of(host).items():
            classes[name] += count
        for name in set(LISTS).intersection(tags_of(host)):
            by_list[name].append(host["host"])
    room = MOST_BYTES
    hosts, left_out = {}, {}
    for name, names in by_list.items():
        ends = list(itertools.accumulate(len(json.dumps(host)) + len(", ") for host in names))
        fitting = sum(end <= room for end in ends)
        hosts[name] = names[:fitting]
        if fitting < len(names):
            left_out[name] = len(names) - fitting
        # Nothing goes into what is left: a list of the less important hosts must not be longer than this one.
        room = 0 if name in left_out else room - max(ends, default=0)
    return {
        "status": report["status"],
        "summary": summary_of_fleet(report),
        "counts": report["counts"],
        "classes": classes,
        "hosts": hosts,
        "left_out": left_out,
    }


def goes_with_the_container(  # pylint: disable=dangerous-default-value
    path: str,
    environment: Mapping[str, str] = os.environ,
    exists: Callable[[str], bool] = os.path.exists,
    is_mount: Callable[[str], bool] = os.path.ismount,
) -> bool:
    """Return whether *path*, which is absolute, is in an execution environment and in none of its volumes."""
    marks = [*map(exists, _MARKS), environment.get("KUBERNETES_SERVICE_HOST"), environment.get("container")]
    if not exists(_OF_JOBS) or not any(marks):
        return False
    at = path
    while at != "/" and not is_mount(at):
        at = os.path.dirname(at)
    # What a user of ansible-runner has at /runner outlives the container. AWX says in the environment that it is one.
    return at == "/" or (at == _OF_JOBS and bool(environment.get("AWX_HOST")))
