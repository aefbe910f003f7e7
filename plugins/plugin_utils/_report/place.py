# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a folder outlives the job that writes to it: a container takes its files with it, except those in volumes.

Only execution environments count. Somebody may work for years in another container.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

_MARKS = ("/run/.containerenv", "/.dockerenv")
_OF_JOBS = "/runner"
"""The directory of a job in an execution environment. AWX mounts something temporary there."""


def goes_with_the_container(
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
