# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The desired settings of runtimes, the files that have them (most read drop-ins), and restarts that are due."""

from __future__ import annotations

import os
import stat
from typing import List, Mapping, NamedTuple, Optional, Sequence

from ..errors import HostError
from ..files import Attributes, Directory, make_directory, write
from ..processes import started
from ..trust import check_trusted, open_trusted
from . import reading

_DIRECTORY = "/run/podwire-cni/restarts"

HEADER = "# Written by podwire.cni; changes are overwritten.\n"


class RuntimeSettings(NamedTuple):
    """The desired settings of runtimes; None keeps the current value. ``present`` False removes all managed settings.

    ``wait``: for how many seconds to ask the runtimes until they have loaded the network of ensure_effective.
    ``allow``: who may use which networks with Apptainer, see Runtime.allowed; what it lacks stays.
    """

    conf_dir: str
    bin_dirs: Sequence[str]
    max_conf_num: Optional[int] = None
    setup_serially: Optional[bool] = None
    present: bool = True
    wait: float = 0.0
    allow: Optional[Mapping[str, Sequence[str]]] = None


class FileChange:
    """A configuration file of a runtime: its current and its desired text; None means that there is no file.

    Changes the target of a symbolic link and keeps the link. Only files in directories that only root can change are
    written. ``undo`` writes to the directory that ``make`` opened, wherever its path leads by then.
    """

    def __init__(self, path: str, before: Optional[str], after: Optional[str]) -> None:
        if after and "\ufffd" in (before or ""):
            raise HostError(f"{path} is not UTF-8; convert it, or edit it by hand", code="not_understood")
        self.path = path
        self.before = before
        self.after = after
        self._directory: Optional[Directory] = None
        self._name = ""

    def make(self) -> None:
        """Raises HostError ``unsafe_permissions``, ``no_directory``, ``write_failed``."""
        check_trusted(self.path)
        folder, self._name = os.path.split(os.path.realpath(self.path))
        self._directory = Directory(folder, open_trusted(folder))
        self._put(self._directory, self.after)

    def undo(self) -> None:
        if self._directory is not None:
            self._put(self._directory, self.before)

    def close(self) -> None:
        if self._directory is not None:
            os.close(self._directory.fd)
            self._directory = None

    def _put(self, directory: Directory, text: Optional[str]) -> None:
        if text is None:
            directory.remove(self._name)
            return
        try:
            status = os.stat(self._name, dir_fd=directory.fd, follow_symlinks=False)
            attributes = Attributes(stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)
        except FileNotFoundError:
            attributes = Attributes(0o644)
        write(directory, self._name, text.encode("utf-8"), attributes)


def drop_in(path: str, text: Optional[str], needed: bool) -> List[FileChange]:
    """Return the change that gives a file written only by this collection the *text*; a new file only if *needed*.

    Raises HostError ``not_ours``.
    """
    before = reading.read_text(path)
    if before is not None and not before.startswith(HEADER):
        raise HostError(f"{path} exists and was not written by podwire.cni; move it away", code="not_ours")
    after = None if text is None or not (needed or before is not None) else HEADER + text
    return [] if before == after else [FileChange(path, before, after)]


# ---- notes of processes that have to end, or to be told, before the next write takes effect


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
