# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A runtime on this host, or one that is asked about: its row, its version and what its configuration says."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Sequence

from .profiles import PROFILES, RULES, Rules, libcni_of


class Runtime:
    """One reader of network configurations.

    ``name`` of its profile, ``version`` ("" if it is not known), ``conf_dir`` and ``bin_dirs``. ``conf_file``: the only
    file that it reads, "" if it reads the directory. ``max_networks``: how many files it uses at once, 0 for all.
    ``default_network``: what it uses if nobody names a network, "" for the rule of its profile. ``folder``: a folder
    of conf_dir that it reads, too. ``found``: what says that it is on this host, "" if nothing does. ``notes``:
    sentences about what could not be found out, or what is special here. ``reads`` is False for one that is here but
    uses no CNI, with the reason in ``notes``.

    For those that can be configured here: ``config`` is the file (containerd) or the directory of drop-ins that it
    reads ("" if there is none), ``pid`` its process (0 if it does not run), ``address`` its socket for CRI,
    ``setup_serially`` whether it calls its networks one after another,
    ``tables`` all that its configuration says (containerd).
    """

    def __init__(
        self, name: str, version: str = "", found: str = "", conf_dir: str = "", bin_dirs: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.profile = PROFILES[name]
        self.version = version
        self.found = found
        self.conf_file = ""
        self.conf_dir = ""
        self.set_conf(conf_dir or self.profile.conf_dir)
        self.bin_dirs = list(bin_dirs or self.profile.bin_dirs)
        self.max_networks = 1
        self.default_network = self.profile.default_network
        self.folder = ""
        self.notes: List[str] = []
        self.reads = True
        self.config = ""
        self.pid = 0
        self.address = ""
        self.setup_serially = False
        self.tables: Dict[str, Any] = {}

    @property
    def rules(self) -> Rules:
        return RULES[self.profile.rules]

    @property
    def libcni(self) -> str:
        """The release of libcni that it carries, such as 1.1."""
        return libcni_of(self.profile, self.version)

    def set_conf(self, path: str) -> None:
        """Set the directory that it reads; for buildkit the file."""
        if self.profile.rules == "buildkit":
            self.conf_file = path
            path = os.path.dirname(path)
        self.conf_dir = path

    def may_read(self, conf_dir: str) -> bool:
        """Tell whether its conf_dir could be configured to be *conf_dir*, or is that anyway."""
        return self.conf_dir == conf_dir or not (self.profile.fixed or self.conf_file or self.rules.choice == "own")
