# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's processes, by name."""

from __future__ import annotations

import os
from typing import List, NamedTuple

_COMMAND_LINE_LIMIT = 64 * 1024


class Process(NamedTuple):
    """A process of root."""

    pid: int
    argv: List[str]
    name: str = ""


def processes(*names: str) -> List[Process]:
    """Return root's processes whose name, which the kernel cuts to 15 characters, is one of *names*, sorted by PID.

    Only processes in this mount namespace count: those in another one (a cluster in a container, a user's own runtime)
    keep the state of their containers elsewhere, and their paths mean nothing here.
    """
    wanted = {name.encode("ascii"): name for name in names}
    found = []
    own = os.stat("/proc/self/ns/mnt")
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/comm", "rb") as stream:
                name = wanted.get(stream.read().rstrip(b"\n"))
            if name is None:
                continue
            mounts = os.stat(f"/proc/{entry}/ns/mnt")
            if os.stat(f"/proc/{entry}").st_uid != 0 or (mounts.st_dev, mounts.st_ino) != (own.st_dev, own.st_ino):
                continue
            with open(f"/proc/{entry}/cmdline", "rb") as stream:
                line = stream.read(_COMMAND_LINE_LIMIT)
        except OSError:
            # It has ended.
            continue
        argv = [os.fsdecode(word) for word in line.rstrip(b"\0").split(b"\0")]
        found.append(Process(int(entry), argv, name))
    return sorted(found)


def option(argv: List[str], *names: str) -> str:
    """Return the value of the last of a command's options *names*, as ``NAME VALUE`` or ``NAME=VALUE``; "" if none."""
    values = options(argv, *names)
    return values[-1] if values else ""


def options(argv: List[str], *names: str) -> List[str]:
    """Return all values of a command's options *names*, in order."""
    found = []
    for index, word in enumerate(argv[1:], 1):
        name, equals, value = word.partition("=")
        if name not in names:
            continue
        if equals:
            found.append(value)
        elif index + 1 < len(argv):
            found.append(argv[index + 1])
    return found
