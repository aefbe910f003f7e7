# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which programs root runs. Nothing else asks /proc for it.

A user can start a setuid program through a link of any name, with any arguments, environment and directory. So a
process is what the kernel says: its four user IDs, its user namespace and its executable. Its arguments are root's
then; paths among them are still trusted only like any other path, see :mod:`trust`.
"""

from __future__ import annotations

import os
import re
import stat
from typing import List, NamedTuple, Optional, Sequence

from .errors import HostError
from .trust import check_trusted

_COMMAND_LINE_LIMIT = 64 * 1024
_ROOT = re.compile(rb"(?m)^Uid:\t0\t0\t0\t0$")
# What the kernel adds to the path of an executable that was removed or replaced, as an upgrade does.
_DELETED = " (deleted)"
# Their first argument that is not an option is the program.
_INTERPRETERS = re.compile(r"(ba|da)?sh|busybox|python[0-9.]*")
# Each is several programs, and acts as the one that it is called by.
_MULTICALL = ("k3s", "kube-ovn-cmd")


class Process(NamedTuple):
    """A process of root. The default values stand for one that does not run.

    ``name`` is that of its program, ``program`` the path that can be executed to ask it, "" if it is a script, was
    removed, or is in another mount namespace. ``argv`` of a script begins with the script. ``cwd`` is its directory.
    """

    pid: int = 0
    argv: Sequence[str] = ()
    name: str = ""
    program: str = ""
    cwd: str = "/"

    def option(self, *names: str) -> str:
        """Return the value of the last of its options *names*, as ``NAME VALUE`` or ``NAME=VALUE``; "" if none."""
        values = self.options(*names)
        return values[-1] if values else ""

    def options(self, *names: str) -> List[str]:
        """Return all values of its options *names*, in order."""
        values = []
        for index, word in enumerate(self.argv[1:], 1):
            name, equals, value = word.partition("=")
            if name not in names:
                continue
            if equals:
                values.append(value)
            elif index + 1 < len(self.argv):
                values.append(self.argv[index + 1])
        return values

    def paths(self, *names: str) -> List[str]:
        """Return all values of its options *names* as absolute paths, in order. None of them is trusted yet."""
        return [os.path.normpath(os.path.join(self.cwd, path)) for path in self.options(*names) if path]


def processes(*names: str, elsewhere: bool = False) -> List[Process]:
    """Return root's processes whose program has one of *names* (``x*``: begins with x), sorted by PID.

    Only processes in this mount namespace count: those in another one (a cluster in a container, a user's own runtime)
    keep the state of their containers elsewhere, and their paths mean nothing here. *elsewhere*: these count, too.
    """
    try:
        users, mounts = os.stat("/proc/1/ns/user"), os.stat("/proc/self/ns/mnt")
    except OSError:
        # Without root's privileges, nothing is known of root's processes.
        return []
    found = []
    for pid in sorted(int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        try:
            # It belongs to this process, also if the number is given to another one meanwhile.
            directory = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            link = os.readlink("exe", dir_fd=directory)
            process = _named(pid, directory, link, names)
            if process is None or not os.path.samestat(os.stat("ns/user", dir_fd=directory), users):
                continue
            here = os.path.samestat(os.stat("ns/mnt", dir_fd=directory), mounts)
            if (
                (here or elsewhere)
                and _ROOT.search(_read(directory, "status"))
                and _is_trusted(directory, process, link if here else "")
                # It has not become another program since.
                and os.readlink("exe", dir_fd=directory) == link
            ):
                found.append(process if here else process._replace(program=""))
        except OSError:
            # It has ended, or is one of the kernel's.
            continue
        finally:
            os.close(directory)
    return found


def started(pid: int) -> Optional[str]:
    """Return when a process started, in clock ticks; None if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # The name, in parentheses, may contain anything.
            return stream.read().rpartition(b")")[2].split()[19].decode("ascii")
    except (OSError, IndexError):
        return None


def _named(pid: int, directory: int, link: str, names: Sequence[str]) -> Optional[Process]:
    """Return a process if its program has one of *names*; interpreters, and what is several programs, tell by argv."""
    path = link[: -len(_DELETED)] if link.endswith(_DELETED) else link
    name = os.path.basename(path)
    argv: List[str] = []
    if _INTERPRETERS.fullmatch(name):
        argv = _argv(directory)
        script = next((index for index, word in enumerate(argv) if index and not word.startswith("-")), 0)
        if os.path.isabs(argv[script]):
            argv = argv[script:]
            name, path = os.path.basename(argv[0]), ""
    elif name in _MULTICALL:
        argv = _argv(directory)
        # k3s writes its command line again, as one word.
        name = os.path.basename(argv[0].partition(" ")[0])
        beside = os.path.join(os.path.dirname(path), name)
        path = beside if os.path.realpath(beside) == path else ""
    if not any(name.startswith(one[:-1]) if one.endswith("*") else name == one for one in names):
        return None
    program = path if os.path.isfile(path) else ""
    return Process(pid, argv or _argv(directory), name, program, os.readlink("cwd", dir_fd=directory))


def _argv(directory: int) -> List[str]:
    return [os.fsdecode(word) for word in _read(directory, "cmdline").rstrip(b"\0").split(b"\0")]


def _is_trusted(directory: int, process: Process, link: str) -> bool:
    """Tell whether only root can change the program; *link* is its executable, "" in another mount namespace."""
    status = os.stat("exe", dir_fd=directory)
    # Whoever may run a setuid program chooses its arguments.
    if status.st_uid != 0 or status.st_mode & (stat.S_ISUID | 0o022):
        return False
    script = process.argv[:1] if _INTERPRETERS.fullmatch(os.path.basename(link)) else ()
    try:
        for path in (link, *script) if link else ():
            check_trusted(path)
    except HostError:
        return False
    return True


def _read(directory: int, name: str) -> bytes:
    with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory), "rb") as stream:
        return stream.read(_COMMAND_LINE_LIMIT)
