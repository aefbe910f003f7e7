# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What root may execute: regular ELF files that root owns, in directories that nobody else can write to."""

from __future__ import annotations

import os
import stat
import sys
from typing import BinaryIO, Optional

from .errors import HostError

# (e_machine, byte order) -> a word for it: what uname -m says, the family for arm and i386, with the order for mips.
MACHINES = {
    (3, "little"): "i386",
    (8, "little"): "mips64le",
    (8, "big"): "mips64",
    (21, "little"): "ppc64le",
    (21, "big"): "ppc64",
    (22, "big"): "s390x",
    (40, "little"): "arm",
    (62, "little"): "x86_64",
    (183, "little"): "aarch64",
    (243, "little"): "riscv64",
    (258, "little"): "loongarch64",
}
ELF_HEADER_SIZE = 20
"""As many bytes of a file's beginning :func:`elf_machine` looks at."""


def elf_machine(stream: BinaryIO) -> Optional[str]:
    """Return the machine that an ELF file is for (unknown ones as ``elf-N``), None if it is not ELF."""
    header = stream.read(ELF_HEADER_SIZE)
    if len(header) < ELF_HEADER_SIZE or header[:4] != b"\x7fELF" or header[5] not in (1, 2):
        return None
    order = "little" if header[5] == 1 else "big"
    number = int.from_bytes(header[18:20], "little" if header[5] == 1 else "big")
    return MACHINES.get((number, order), "elf-%d" % number)


def host_machine() -> str:
    """Return this host's machine in the words of :data:`MACHINES`."""
    machine = os.uname().machine
    if machine.startswith("arm"):
        return "arm"
    if machine in ("i486", "i586", "i686"):
        return "i386"
    if machine == "mips64" and sys.byteorder == "little":
        return "mips64le"
    return machine


def check_executable(path: str) -> str:
    """Return the real path of *path* if root may run it, else raise HostError ``unsafe_permissions`` or ``not_elf``.

    Links are followed (some plugins are links to one binary); owner and mode are tested on what they lead to.
    """
    real = os.path.realpath(path)
    try:
        found = os.stat(real)
        if not stat.S_ISREG(found.st_mode):
            raise HostError("%s is not a regular file and is not executed" % path, code="not_elf")
        _check_owner(real, found, "file", sticky_is_fine=False)
        check_directory(os.path.dirname(real))
        with open(real, "rb") as stream:
            if elf_machine(stream) is None:
                raise HostError("%s is not an ELF file and is not executed" % path, code="not_elf")
    except OSError as error:
        raise HostError("cannot examine %s: %s" % (path, error.strerror), code="unreadable") from error
    return real


def check_directory(path: str) -> None:
    """Raise HostError ``unsafe_permissions`` unless only root can put files into *path* or exchange it."""
    folder = os.path.realpath(path)
    try:
        _check_owner(folder, os.stat(folder), "directory", sticky_is_fine=False)
        while folder != "/":
            folder = os.path.dirname(folder)
            # In a sticky directory others cannot rename or remove what root owns.
            _check_owner(folder, os.stat(folder), "directory", sticky_is_fine=True)
    except OSError as error:
        raise HostError("cannot examine %s: %s" % (path, error.strerror), code="unreadable") from error


def _check_owner(path: str, found: os.stat_result, what: str, sticky_is_fine: bool) -> None:
    if found.st_uid != 0:
        raise HostError(
            "the %s %s belongs to user %d, and root runs plugins only from files and directories of its own; "
            "mend it with: chown root %s" % (what, path, found.st_uid, path),
            code="unsafe_permissions",
        )
    if found.st_mode & 0o022 and not (sticky_is_fine and found.st_mode & stat.S_ISVTX):
        raise HostError(
            "the %s %s (mode %04o) can be written by others than root, so root does not run plugins from it; "
            "mend it with: chmod go-w %s" % (what, path, stat.S_IMODE(found.st_mode), path),
            code="unsafe_permissions",
        )
