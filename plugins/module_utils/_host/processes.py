# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which programs root runs. Nothing else asks /proc for it.

A user can start a setuid program through a link of any name, with any arguments, environment and directory. So a
process is what the kernel says: its four user IDs, its user namespace and its executable. Its arguments are root's
then; paths among them are still trusted only like any other path, see :mod:`trust`.
"""

from __future__ import annotations

import os
import re
import stat
from functools import lru_cache
from typing import List, NamedTuple, Optional, Sequence, Tuple, Union

from .errors import HostError
from .trust import check_trusted

_COMMAND_LINE_LIMIT = 64 * 1024
_MOUNTS_LIMIT = 64 << 20
_ROOT = re.compile(rb"(?m)^Uid:\t0\t0\t0\t0$")
# What the kernel adds to the path of an executable that was removed or replaced, as an upgrade does.
_DELETED = " (deleted)"
# Interpreters, and their options after which a script still follows: not a text or module to execute, standard input,
# or the value of the option.
_INTERPRETERS = {"(a|ba|da)?sh": "-[^-Ocos]+", "python[0-9.]*": "-[^-QWXcm]+"}
# Where programs, configurations and state of runtimes are. A process that sees the same ones is of this host.
_STATE = ("/", "/etc", "/etc/cni", "/opt", "/opt/cni", "/run", "/usr", "/var/lib", "/var/lib/cni")
# Each is several programs, and acts as the one that it is called by.
_MULTICALL = ("busybox", "k3s", "kube-ovn-cmd")


class Mount(NamedTuple):
    """A mount: the ``device`` of its file system, its ``root`` in that, and the ``point`` where it is."""

    device: str
    root: str
    point: str


class Process(NamedTuple):
    """A process of root. The default values stand for one that does not run.

    ``name`` is that of its program, ``program`` the path that can be executed to ask it, "" if it is a script, was
    removed, or is in another mount namespace, where no scripts are known. ``argv`` of a script begins with the script.
    ``cwd`` is its directory.
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


def processes(*names: str, seeing: str = "") -> List[Process]:
    """Return root's processes whose program has one of *names* (``x*``: begins with x), sorted by PID.

    Only processes that see the files of this host count: others (a cluster in a container, a user's own runtime) keep
    the state of their containers elsewhere, and their paths mean nothing here. *seeing*: those that have this directory
    mounted, wherever, count, too. A container's program that only has the name of another one does not.
    """
    try:
        users, home = os.stat("/proc/1/ns/user"), os.stat("/proc/self/ns/mnt")
    except OSError:
        # Without root's privileges, nothing is known of root's processes.
        return []
    matching, places = [], _places(seeing) if seeing else []
    for pid in sorted(int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        try:
            # It belongs to this process, also if the number is given to another one meanwhile.
            directory = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            link = os.readlink("exe", dir_fd=directory)
            # A user can make a read of his arguments block.
            if not _may_be(link, names) or not _is_roots(directory, users):
                continue
            sees_host = os.path.samestat(os.stat("ns/mnt", dir_fd=directory), home) or _sees_the_same(directory)
            # One in another mount namespace may have one of the places mounted.
            if not (sees_host or (places and any((mount.device, mount.root) in places for mount in mounts(pid)))):
                continue
            if not _is_trusted(directory, link if sees_host else ""):
                continue
            process = _named(pid, directory, link, sees_host)
            # It has not become another program, or a user's, since.
            same = os.readlink("exe", dir_fd=directory) == link and _is_roots(directory, users)
            if same and _is_among(process.name, names):
                matching.append(process)
        except OSError:
            # It has ended, or is one of the kernel's.
            continue
        finally:
            os.close(directory)
    return matching


@lru_cache(maxsize=None)
def is_running(name: str) -> bool:
    """Tell whether root runs the program *name*; each plugin of a run gets the same answer, as it takes a walk."""
    return bool(processes(name))


def open_root(process: Process) -> int:
    """Return a descriptor of the root directory of one of root's processes, as it is in its own mount namespace.

    Raises OSError if it has ended, or is not root's any more.
    """
    users = os.stat("/proc/1/ns/user")
    directory = os.open(f"/proc/{process.pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        root = os.open("root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
        if _is_roots(directory, users):
            return root
        os.close(root)
        raise ProcessLookupError(process.pid)
    finally:
        os.close(directory)


def _sees_the_same(directory: int) -> bool:
    """Tell whether a process sees the files of this host, as services with ``ProtectHome=`` or ``PrivateTmp=`` do."""
    root = os.open("root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        places = [(path, os.path.relpath(path, "/")) for path in _STATE if os.path.isdir(path)]
        return all(os.path.samestat(os.stat(path), os.stat(name, dir_fd=root)) for path, name in places)
    except OSError:
        # It lacks one of them.
        return False
    finally:
        os.close(root)


def _places(path: str) -> List[Tuple[str, str]]:
    """Return the file system, and the directory in it, of *path* and of each directory above it in that file system."""
    real = os.path.realpath(path)
    covering = [mount for mount in mounts("self") if f"{real}/".startswith(mount.point.rstrip("/") + "/")]
    if not covering:
        return []
    # The last one covers those before it.
    mount = max(reversed(covering), key=lambda mount: len(mount.point))
    inside = os.path.normpath(os.path.join(mount.root, os.path.relpath(real, mount.point))).strip("/").split("/")
    return [(mount.device, "/" + "/".join(inside[:count])) for count in range(len(inside) + 1)]


def mounts(process: Union[int, str]) -> List[Mount]:
    """Return the mounts that a process (``self``: this one) sees, in order: later ones cover earlier ones.

    Raises OSError if the process has ended.
    """
    with open(f"/proc/{process}/mountinfo", encoding="utf-8", errors="surrogateescape") as stream:
        rows = [line.split(" ", 5) for line in stream.read(_MOUNTS_LIMIT).splitlines()]
    return [Mount(row[2], _unescaped(row[3]), _unescaped(row[4])) for row in rows if len(row) > 5]


def _unescaped(path: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), path) if "\\" in path else path


def started(pid: int) -> Optional[str]:
    """Return when a process started, in clock ticks; None if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # The name, in parentheses, may contain anything.
            return stream.read().rpartition(b")")[2].split()[19].decode("ascii")
    except (OSError, IndexError):
        return None


def _may_be(link: str, names: Sequence[str]) -> bool:
    """Tell whether an executable can be a program with one of *names*."""
    name = os.path.basename(_without_mark(link))
    return name in _MULTICALL or _script_options(name) != "" or _is_among(name, names)


def _is_among(name: str, names: Sequence[str]) -> bool:
    return any(name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in names)


def _without_mark(link: str) -> str:
    return link[: -len(_DELETED)] if link.endswith(_DELETED) else link


def _script_options(name: str) -> str:
    return next((options for names, options in _INTERPRETERS.items() if re.fullmatch(names, name)), "")


def _named(pid: int, directory: int, link: str, sees_host: bool) -> Process:
    """Return a process by its program; interpreters, and what is several programs, tell by argv."""
    argv = [os.fsdecode(word) for word in _read(directory, "cmdline").rstrip(b"\0").split(b"\0")]
    path = _without_mark(link)
    name = os.path.basename(path)
    if name in _MULTICALL:
        # k3s writes its command line again, as one word.
        name = os.path.basename(argv[0].partition(" ")[0])
        beside = os.path.join(os.path.dirname(path), name)
        path = beside if os.path.realpath(beside) == path else ""
    options = _script_options(name)
    script = _script(argv, options) if options and sees_host else 0
    if script:
        argv = argv[script:]
        name, path = os.path.basename(argv[0]), ""
    program = path if sees_host and os.path.isfile(path) else ""
    return Process(pid, argv, name, program, os.readlink("cwd", dir_fd=directory))


def _script(argv: Sequence[str], options: str) -> int:
    """Return the place of the script that an interpreter executes, 0 unless it is a file that only root can change."""
    place = next((place for place, word in enumerate(argv) if place and not re.fullmatch(options, word)), 0)
    return place if _is_only_roots(argv[place]) and os.path.isfile(argv[place]) else 0


def _is_roots(directory: int, users: os.stat_result) -> bool:
    same = os.path.samestat(os.stat("ns/user", dir_fd=directory), users)
    return same and _ROOT.search(_read(directory, "status")) is not None


def _is_trusted(directory: int, link: str) -> bool:
    """Tell whether only root can change the program; *link* is its executable, "" in another mount namespace."""
    status = os.stat("exe", dir_fd=directory)
    # Whoever may run a setuid program chooses its arguments.
    return status.st_uid == 0 and not status.st_mode & (stat.S_ISUID | 0o022) and (not link or _is_only_roots(link))


def _is_only_roots(path: str) -> bool:
    if not os.path.isabs(path):
        return False
    try:
        check_trusted(path)
    except HostError:
        return False
    return True


def _read(directory: int, name: str) -> bytes:
    with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory), "rb") as stream:
        return stream.read(_COMMAND_LINE_LIMIT)
