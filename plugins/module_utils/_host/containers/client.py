# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What the sources of live containers share: running a runtime's client, reading IDs, and reporting failures."""

from __future__ import annotations

import re
from typing import List, NoReturn, Sequence

from .. import commands
from ..errors import HostError

# Longer than a runtime takes to answer on a very busy host.
TIMEOUT = 60.0

# What containerd, podman and CNI accept as an ID; such a name cannot be taken for an option.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")


def unusable(source: str, why: str, remedy: str) -> NoReturn:
    """Raise HostError ``source_unusable``."""
    raise HostError(
        f"the source {source} is on this host, but cannot be asked which containers are alive: {why}; {remedy}, or "
        "leave it out of keep_from (keep_from: [cache, netns]), which limits cni_gc to what this collection made",
        code="source_unusable",
        source=source,
    )


def find_client(source: str, command: str, evidence: str) -> str:
    """Return the path of a runtime's *command*. Raises HostError ``source_unusable``."""
    try:
        path = commands.find_command(command)
    except HostError as error:
        unusable(source, error.msg, "fix that")
    if path is None:
        unusable(source, f"found {evidence}, but no {command} in {', '.join(commands.DIRECTORIES)}", "install it")
    return path


def run_client(source: str, argv: Sequence[str], remedy: str) -> bytes:
    """Run a runtime's command, return what it printed. Raises HostError ``source_unusable``."""
    try:
        done = commands.run_command(argv, TIMEOUT)
        if done.rc != 0:
            raise commands.failure(argv, f"exit status {done.rc}", done.stderr)
    except HostError as error:
        unusable(source, error.msg, remedy)
    return done.stdout


def ids(source: str, output: bytes, argv: Sequence[str], remedy: str) -> List[str]:
    """Return the IDs that a command printed, one per line.

    Raises HostError ``source_unusable`` for a line that is not an ID: it may stand for a container, so it is not
    silently skipped.
    """
    lines = output.decode("utf-8", "replace").split("\n")
    if lines and not lines[-1]:
        del lines[-1]
    for line in lines:
        if not is_source_id(line):
            unusable(source, f"{' '.join(argv)} printed {line[:100]!r}, which is not an ID", remedy)
    return lines


def is_source_id(text: str) -> bool:
    """Tell whether a text can be the ID of a container, or the name of a containerd namespace."""
    return _ID.fullmatch(text) is not None
