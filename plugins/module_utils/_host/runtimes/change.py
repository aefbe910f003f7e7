# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The desired settings of a runtime, and the changes of its files that make them."""

from __future__ import annotations

import os
import stat
from typing import List, NamedTuple, Optional, Sequence

from ..errors import HostError
from ..files import Attributes, Directory, make_directory, write
from . import reading
from .profiles import Runtime

HEADER = "# Written by podwire.cni; changes are overwritten.\n"


class RuntimeSettings(NamedTuple):
    """The desired settings of runtimes; None keeps the current value. ``present`` False removes all managed settings.

    ``wait``: for how many seconds to ask the runtimes until they have loaded the network of ensure_effective.
    """

    conf_dir: str
    bin_dirs: Sequence[str]
    max_conf_num: Optional[int] = None
    setup_serially: Optional[bool] = None
    present: bool = True
    wait: float = 0.0

    def are_those_of(self, runtime: Runtime) -> bool:
        """Tell whether a runtime already has these settings."""
        return (
            bool(runtime.found)
            and runtime.reads
            and runtime.conf_dir == self.conf_dir
            and list(runtime.bin_dirs) == list(self.bin_dirs)
            and self.max_conf_num in (None, runtime.max_networks)
            and self.setup_serially in (None, runtime.setup_serially)
        )


class FileChange(NamedTuple):
    """A configuration file of a runtime: its current and its desired text; None means that there is no file."""

    path: str
    before: Optional[str]
    after: Optional[str]

    def make(self) -> None:
        _put(self.path, self.after)

    def undo(self) -> None:
        _put(self.path, self.before)


def drop_in(path: str, text: Optional[str], needed: bool) -> List[FileChange]:
    """Return the change that gives a file written only by this collection the *text*; a new file only if *needed*.

    Raises HostError ``not_ours``.
    """
    before = reading.read_text(path)
    if before is not None and not before.startswith(HEADER):
        raise HostError(f"{path} exists and was not written by podwire.cni; move it away", code="not_ours")
    after = None if text is None or not (needed or before is not None) else HEADER + text
    return [] if before == after else [FileChange(path, before, after)]


def _put(path: str, text: Optional[str]) -> None:
    # Changes the target of a symbolic link and keeps the link.
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    try:
        found: Optional[os.stat_result] = os.stat(path)
    except OSError:
        found = None
    if text is None and found is None:
        return
    make_directory(folder, 0o755)
    attributes = (
        Attributes(0o644) if found is None else Attributes(stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid)
    )
    with Directory(folder) as directory:
        if text is None:
            directory.remove(name)
        else:
            write(directory, name, text.encode("utf-8"), attributes)
