# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Notes of processes that have to end, or to be told, before the next write takes effect."""

from __future__ import annotations

import os

from ..errors import HostError
from ..files import Attributes, Directory, make_directory, write
from ..processes import started

_DIRECTORY = "/run/podwire-cni/restarts"


def note_restart(service: str, pid: int) -> None:
    """Record that the process *pid* must end before the next write takes effect."""
    start = started(pid)
    if start is not None:
        make_directory(_DIRECTORY, 0o700)
        with Directory(_DIRECTORY) as directory:
            write(directory, service, f"{pid} {start}\n".encode("ascii"), Attributes(0o600))


def forget_restart(service: str) -> None:
    """Remove the record."""
    if os.path.isdir(_DIRECTORY):
        with Directory(_DIRECTORY) as directory:
            directory.remove(service)


def restart_pending(service: str, pid: int) -> bool:
    """Tell whether the process *pid* was recorded."""
    try:
        with open(os.path.join(_DIRECTORY, service), encoding="ascii") as stream:
            noted = stream.read().split()
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise HostError(f"cannot read {_DIRECTORY}/{service}: {error}", code="unreadable") from error
    return noted == [str(pid), started(pid)]
