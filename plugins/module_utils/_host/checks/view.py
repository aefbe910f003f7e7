# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A directory of network configurations that is checked: as it is, or as a plan will leave it."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set

from ..confdir import ConfFile, drop_ins
from ..hostview import HostView
from ..problems import ERROR, INFO, WARNING


class Placed(NamedTuple):
    """One plugin of a network's chain: ``path`` and ``pointer`` say where it is written."""

    path: str
    pointer: str
    plugin: Dict[str, Any]


class ConfView:
    """``before`` is the current state, ``files`` the planned one, both in the order of the runtimes.

    ``managed`` are the names of the managed files, ``wanted`` those of the requested networks' files, ``own_drop_ins``
    those of their drop-ins (``NETWORK/FILE``). ``at_each``: an overlap is reported at both files. ``host`` has the
    other directories. *folder_of* returns the drop-ins of a network.
    """

    def __init__(
        self,
        conf_dir: str,
        before: Sequence[ConfFile],
        files: Sequence[ConfFile],
        managed: Set[str],
        wanted: Set[str],
        host: Optional[HostView] = None,
        folder_of: Callable[[str, str], List[ConfFile]] = drop_ins,
    ) -> None:
        self.host = host or HostView()
        self.conf_dir = conf_dir
        self.before = list(before)
        self.files = list(files)
        self.managed = managed
        self.wanted = wanted
        self.own_drop_ins: Set[str] = set()
        self.at_each = False
        self._folder_of = folder_of
        self._drop_ins: Dict[str, List[ConfFile]] = {}

    def loaded(self) -> List[ConfFile]:
        """Return the files that hold a network."""
        return [file for file in self.files if file.network and not file.error]

    def level(self, *files: ConfFile) -> str:
        """Return the level of a problem between *files*: between unmanaged files it is only a note."""
        return WARNING if any(file.name in self.managed | self.wanted for file in files) else INFO

    def certain(self, file: ConfFile) -> str:
        """Return the level of a problem that makes every ADD of *file* fail: an error if the file will be written."""
        return ERROR if file.name in self.wanted else self.level(file)

    def drop_ins(self, file: ConfFile) -> List[ConfFile]:
        """Return the files whose plugins libcni appends to the conflist *file*."""
        if file.kind != "conflist" or file.inlined_only or not file.network:
            return []
        if file.network not in self._drop_ins:
            self._drop_ins[file.network] = self._folder_of(self.conf_dir, file.network)
        return self._drop_ins[file.network]

    def chain(self, file: ConfFile) -> List[Placed]:
        """Return the plugins of *file* in the order in which they run, drop-ins included."""
        if file.kind != "conflist":
            return [Placed(file.path, "", plugin) for plugin in file.plugins]
        placed = [Placed(file.path, f"/plugins/{index}", plugin) for index, plugin in enumerate(file.plugins)]
        extra = [Placed(extra.path, "", plugin) for extra in self.drop_ins(file) for plugin in extra.plugins]
        return placed + extra
