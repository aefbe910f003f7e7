# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the runtimes' sources of live containers share: their processes, lists of ids, and how they fail."""

from __future__ import annotations

import os
import re
from typing import List, NamedTuple, NoReturn, Sequence

from . import commands
from .errors import HostError

# Longer than what a runtime takes to answer on a host that is very busy.
TIMEOUT = 60.0

# What containerd, podman and CNI accept in an id; a name like this cannot be taken for an option.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")
_COMMAND_LINE_LIMIT = 64 * 1024


class Process(NamedTuple):
    """A process of root."""

    pid: int
    argv: List[str]


def processes(name: str) -> List[Process]:
    """Return root's processes whose name, which the kernel cuts to 15 characters, is *name*, sorted by number.

    Only those that see this process' files: what is in another mount namespace (a cluster in a container, a user's own
    runtime) keeps its containers' state elsewhere, and its paths mean nothing here.
    """
    found = []
    own = os.stat("/proc/self/ns/mnt")
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/comm", "rb") as stream:
                if stream.read().rstrip(b"\n") != name.encode("ascii"):
                    continue
            mounts = os.stat(f"/proc/{entry}/ns/mnt")
            if os.stat(f"/proc/{entry}").st_uid != 0 or (mounts.st_dev, mounts.st_ino) != (own.st_dev, own.st_ino):
                continue
            with open(f"/proc/{entry}/cmdline", "rb") as stream:
                line = stream.read(_COMMAND_LINE_LIMIT)
        except OSError:
            # It has ended.
            continue
        found.append(Process(int(entry), [os.fsdecode(word) for word in line.rstrip(b"\0").split(b"\0")]))
    return sorted(found)


def unusable(source: str, why: str, remedy: str) -> NoReturn:
    """Raise HostError ``source_unusable``."""
    raise HostError(
        f"the source {source} is on this host and cannot be asked which containers live: {why}; {remedy}, or list in "
        "keep_from the sources to ask, which narrows the work to what cache_dir says was made by this collection",
        code="source_unusable",
        source=source,
    )


def find(source: str, command: str, evidence: str, remedy: str) -> str:
    """Return the path of a runtime's *command*. Raises HostError ``source_unusable``."""
    try:
        path = commands.find(command)
    except HostError as error:
        unusable(source, error.msg, "mend that")
    if path is None:
        unusable(source, f"there is {evidence}, but no {command} in {', '.join(commands.DIRECTORIES)}", remedy)
    return path


def run(source: str, argv: Sequence[str], remedy: str) -> bytes:
    """Run a runtime's command, return what it printed. Raises HostError ``source_unusable``."""
    try:
        done = commands.run(argv, TIMEOUT)
        if done.rc != 0:
            raise commands.failure(argv, f"exit status {done.rc}", done.stderr)
    except HostError as error:
        unusable(source, error.msg, remedy)
    return done.stdout


def ids(source: str, output: bytes, argv: Sequence[str], remedy: str) -> List[str]:
    """Return the ids that a command printed, one a line.

    Raises HostError ``source_unusable`` for a line that is no id: it may be one that is not understood here, so it is
    not left out in silence.
    """
    found = output.decode("utf-8", "replace").split("\n")
    if found and not found[-1]:
        del found[-1]
    for line in found:
        if not is_id(line):
            unusable(source, f"{' '.join(argv)} printed {line[:100]!r}, which is no id", remedy)
    return found


def is_id(text: str) -> bool:
    """Tell whether a text can be the id of a container, or the name of a containerd namespace."""
    return _ID.fullmatch(text) is not None
