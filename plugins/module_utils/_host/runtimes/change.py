# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of a runtime's configuration, and the files that would say it."""

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
    """What the runtimes are to use; None leaves what is there. ``present`` False takes everything of ours out again.

    ``wait``: for how many seconds to ask the runtimes until they have loaded the network that is to be effective.
    """

    conf_dir: str
    bin_dirs: Sequence[str]
    max_conf_num: Optional[int] = None
    setup_serially: Optional[bool] = None
    present: bool = True
    wait: float = 0.0

    def are_those_of(self, runtime: Runtime) -> bool:
        """Tell whether a runtime's configuration says this already."""
        return (
            bool(runtime.found)
            and runtime.reads
            and runtime.conf_dir == self.conf_dir
            and list(runtime.bin_dirs) == list(self.bin_dirs)
            and self.max_conf_num in (None, runtime.max_networks)
            and self.setup_serially in (None, runtime.setup_serially)
        )


class FileChange(NamedTuple):
    """A file of a runtime's configuration: its text, and the one that it is to have; None is no file."""

    path: str
    before: Optional[str]
    after: Optional[str]

    def make(self) -> None:
        _put(self.path, self.after)

    def undo(self) -> None:
        _put(self.path, self.before)


def drop_in(path: str, text: Optional[str], needed: bool) -> List[FileChange]:
    """Return what gives a file that is all ours the *text*; where it is not there yet, only if it is *needed*.

    Raises HostError ``not_ours``.
    """
    before = reading.read_text(path)
    if before is not None and not before.startswith(HEADER):
        raise HostError(f"{path} is there and was not written by podwire.cni; move it away", code="not_ours")
    after = None if text is None or not (needed or before is not None) else HEADER + text
    return [] if before == after else [FileChange(path, before, after)]


def _put(path: str, text: Optional[str]) -> None:
    # What is linked to is changed, and the link stays.
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
