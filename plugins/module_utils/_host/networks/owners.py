# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a file is that we did not write: told by its content, and by what runs on the host."""

from __future__ import annotations

import os
import re
from typing import Dict, Iterator, NamedTuple, Optional

from ..binaries.types import types_of
from ..confdir import ConfFile
from .owner_table import INJECTED, OWNERS, Owner

CILIUM_SUFFIX = ".cilium_bak"
"""What Cilium renames the configurations of others to, with ``cni.exclusive``."""

# The kernel cuts the name of a process.
_NAME_LENGTH = 15
_CONFIG_SIZE = 1 << 20


class Living(NamedTuple):
    """A daemon that runs, by one of its processes."""

    owner: Owner
    process: str
    pid: int

    @property
    def claim(self) -> str:
        return "this file is written by %s, which is running (%s, process %d)" % (
            self.owner.name,
            self.process,
            self.pid,
        )

    @property
    def setting(self) -> str:
        return self.owner.setting


class Owners:
    """Finds the daemons behind files. Processes are listed once, and only if a file asks for it."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._processes: Optional[Dict[str, int]] = None

    def living(self, file: ConfFile) -> Optional[Living]:
        """Return the running daemon whose *file* is, by its content or its name; None if there is none."""
        for owner in _fitting(file):
            found = self._running(owner)
            if found is not None:
                return found
        return None

    def named(self, name: str) -> Optional[Living]:
        """Return the daemon *name* of the table if it is running."""
        return next((self._running(owner) for owner in OWNERS if owner.name == name), None)

    def injector(self, plugin_type: str) -> Optional[Living]:
        """Return the running daemon that puts plugins of this type into the lists of others."""
        return self.named(INJECTED[plugin_type]) if plugin_type in INJECTED else None

    def _running(self, owner: Owner) -> Optional[Living]:
        if self._processes is None:
            self._processes = _processes_of_root(self._proc)
        for process in owner.processes:
            pid = self._processes.get(process[:_NAME_LENGTH])
            if pid is not None and _configured(owner):
                return Living(owner, process, pid)
        return None


def recognise(file: ConfFile) -> Optional[Owner]:
    """Return whose *file* is by its content or name, whether that runs or not; None for anybody's."""
    return next(_fitting(file), None)


def _fitting(file: ConfFile) -> Iterator[Owner]:
    types = set(types_of(file.plugins))
    for owner in OWNERS:
        if types.intersection(owner.types) or re.search(owner.path, file.path):
            yield owner


def _processes_of_root(proc: str) -> Dict[str, int]:
    """Return the names of the processes of root -> the lowest id.

    Only root's count: anybody could give a process of his own the name of a daemon.
    """
    found: Dict[str, int] = {}
    for pid in sorted((int(name) for name in os.listdir(proc) if name.isdigit()), reverse=True):
        try:
            with open("%s/%d/status" % (proc, pid), "rb") as stream:
                text = stream.read().decode("utf-8", "replace")
        except OSError:
            continue
        name = re.match(r"Name:\t(.*)", text)
        if name and re.search(r"(?m)^Uid:\t0\t", text) and not re.search(r"(?m)^State:\t[ZX]", text):
            found[name.group(1)] = pid
    return found


def _configured(owner: Owner) -> bool:
    path, pattern = owner.config
    if not path:
        return True
    try:
        with open(path, "rb") as stream:
            return re.search(pattern, stream.read(_CONFIG_SIZE).decode("utf-8", "replace")) is not None
    except OSError:
        return False
