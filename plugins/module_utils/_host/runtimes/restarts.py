# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Daemons that still run with the configuration that they had before a change of ours.

Noted before the change, so that a restart that failed or was left out is not forgotten. A note is of one process; it is
in /run, because after a boot no such process is left.
"""

from __future__ import annotations

import os
from typing import Optional

from ..errors import HostError
from ..files import Attributes, Directory, make_directory, write

_DIRECTORY = "/run/podwire-cni/restarts"


def note_restart(service: str, pid: int) -> None:
    """Note that the process *pid* has to end before what is written next counts."""
    started = _started(pid)
    if started is not None:
        make_directory(_DIRECTORY, 0o700)
        with Directory(_DIRECTORY) as directory:
            write(directory, service, f"{pid} {started}\n".encode("ascii"), Attributes(0o600))


def forget_restart(service: str) -> None:
    """Take a note back."""
    if os.path.isdir(_DIRECTORY):
        with Directory(_DIRECTORY) as directory:
            directory.remove(service)


def restart_pending(service: str, pid: int) -> bool:
    """Tell whether the process *pid* is one that was noted."""
    try:
        with open(os.path.join(_DIRECTORY, service), encoding="ascii") as stream:
            noted = stream.read().split()
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise HostError(f"cannot read {_DIRECTORY}/{service}: {error}", code="unreadable") from error
    return noted == [str(pid), _started(pid)]


def _started(pid: int) -> Optional[str]:
    """Return when a process was started, in the kernel's own unit; None if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # The name, in parentheses, may hold anything.
            return stream.read().rpartition(b")")[2].split()[19].decode("ascii")
    except (OSError, IndexError):
        return None
