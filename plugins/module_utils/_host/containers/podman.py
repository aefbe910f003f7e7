# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The containers of podman.

What CNI sees is podman's ID of the container; for the containers of a pod, that of its infra container. Every container
that podman knows counts as alive, whether it runs or not, and so does every one that other tools keep in the same
storage.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Optional

from .client import find_client, ids, run_client
from .live import Answer, RuntimeSource

SOURCE = "podman"

# The directory exists from podman's first command after a boot, so while any container runs. The two files are the
# databases of podman 4 and 5. Asking a podman that was never used would create all of them.
TRACES = (
    "/run/libpod",
    "/var/lib/containers/storage/libpod/bolt_state.db",
    "/var/lib/containers/storage/db.sql",
)

_REMEDY = "make sure that 'podman ps --all' works"


def find_podman() -> Optional[RuntimeSource]:
    """Return podman as a source, None if it has never been used on this host."""
    path = next(filter(os.path.exists, TRACES), None)
    evidence = f"podman's state {path}"
    return RuntimeSource(evidence, partial(_ask, evidence)) if path else None


def _ask(evidence: str) -> Answer:
    podman = find_client(SOURCE, "podman", evidence)
    argv = [podman, "--remote=false", "ps", "--all", "--external", "--no-trunc", "--format", "{{.ID}}"]
    containers = ids(SOURCE, run_client(SOURCE, argv, _REMEDY), argv, _REMEDY)
    asked = f"podman ps --all --external: {len(containers)} containers"
    return Answer(SOURCE, dict.fromkeys(containers), asked=asked)
