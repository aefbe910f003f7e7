# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A directory of network configurations as it is and as it will be, for the rules of the level ``directory``."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Sequence, Set

from ..confdir import ConfFile, drop_ins
from ..problems import ERROR, INFO, WARNING


class Placed(NamedTuple):
    """One plugin of a network's chain: ``path`` and ``pointer`` say where it is written."""

    path: str
    pointer: str
    plugin: Dict[str, Any]


class ConfView:
    """``before`` and ``files`` are what is there and what will be, both in the order of the runtimes.

    ``ours`` are the names of the files that we wrote, ``wanted`` those of the networks that are asked for.
    """

    def __init__(
        self,
        conf_dir: str,
        before: Sequence[ConfFile],
        files: Sequence[ConfFile],
        ours: Set[str],
        wanted: Set[str],
    ) -> None:
        self.conf_dir = conf_dir
        self.before = list(before)
        self.files = list(files)
        self.ours = ours
        self.wanted = wanted
        self._drop_ins: Dict[str, List[ConfFile]] = {}

    def loaded(self) -> List[ConfFile]:
        """Return the files that hold a network."""
        return [file for file in self.files if file.network and not file.error]

    def level(self, *files: ConfFile) -> str:
        """Return how much a problem between *files* matters here: what is between others is only to be known."""
        return WARNING if any(file.name in self.ours | self.wanted for file in files) else INFO

    def certain(self, file: ConfFile) -> str:
        """Return the level of what makes every ADD of *file* fail: an error if it is about to be written."""
        return ERROR if file.name in self.wanted else self.level(file)

    def drop_ins(self, file: ConfFile) -> List[ConfFile]:
        """Return the files whose plugins libcni appends to the list in *file*."""
        if file.kind != "conflist" or file.inlined_only or not file.network:
            return []
        if file.network not in self._drop_ins:
            self._drop_ins[file.network] = drop_ins(self.conf_dir, file.network)
        return self._drop_ins[file.network]

    def chain(self, file: ConfFile) -> List[Placed]:
        """Return the plugins of *file* in the order in which they run, drop-ins included."""
        if file.kind != "conflist":
            return [Placed(file.path, "", plugin) for plugin in file.plugins]
        own = [Placed(file.path, "/plugins/%d" % index, plugin) for index, plugin in enumerate(file.plugins)]
        extra = [Placed(extra.path, "", plugin) for extra in self.drop_ins(file) for plugin in extra.plugins]
        return own + extra
