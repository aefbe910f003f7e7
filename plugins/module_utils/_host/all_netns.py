# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All network namespaces of a host, whoever made them: named, mounted, of a process or thread, or held open by one."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from functools import partial
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from . import rtnetlink
from .addresses import packed
from .errors import HostError
from .netns import NETNS_DIR, apart, boot_id, enter_known, identity_here

_OCTAL = re.compile(r"\\([0-7]{3})")
_MAX_MOUNTS = 64 << 20
# How often what leads to a namespace may go away while it is read.
_ATTEMPTS = 10
# include/uapi/linux/nsfs.h and sched.h
_NS_GET_NSTYPE = 0xB703
_CLONE_NEWNET = 0x40000000


class Namespace:
    """A network namespace: ``identity`` as in :class:`netns.Seen`, ``path`` that leads to it, ``name`` for people.

    ``addresses``: packed address -> (index of the interface, prefix length); ``links`` by index, empty unless asked
    for; ``own`` tells that it is the one this process is in, the host's.
    """

    __slots__ = ("addresses", "identity", "links", "name", "own", "path")

    def __init__(self, identity: Dict[str, Any], path: str, name: str, own: bool) -> None:
        self.identity = identity
        self.path = path
        self.name = name
        self.own = own
        self.addresses: Dict[bytes, Tuple[int, int]] = {}
        self.links: Dict[int, rtnetlink.Link] = {}


class Namespaces:
    """All network namespaces of a host that a name, a mount or a process leads to."""

    def __init__(self, found: Sequence[Namespace]) -> None:
        self.all = list(found)
        self._by_inode = {(ns.identity["dev"], ns.identity["inode"]): ns for ns in found}
        self._by_address: Dict[bytes, Namespace] = {}
        # The host's own comes last: another one's is the better evidence.
        for ns in sorted(found, key=lambda ns: not ns.own):
            self._by_address.update(dict.fromkeys(ns.addresses, ns))

    def holder(self, address: str) -> Optional[Namespace]:
        """Return a namespace in which *address* (such as 10.1.0.2 or 10.1.0.2/24) is in use, None if there is none."""
        raw = packed(address.partition("/")[0])
        return self._by_address.get(raw) if raw else None

    def alive(self, identity: Optional[Mapping[str, Any]]) -> Optional[Namespace]:
        """Return the namespace that *identity* (of this boot) is of, if it is still there."""
        if identity is None:
            return None
        here = self._by_inode.get((identity.get("dev"), identity.get("inode")))
        if here is None or here.identity["boot_id"] != identity.get("boot_id"):
            return None
        cookies = (here.identity["cookie"], identity.get("cookie"))
        return here if None in cookies or cookies[0] == cookies[1] else None

    def at(self, path: str) -> Optional[Namespace]:
        """Return the namespace that *path* leads to."""
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return None
        return self._by_inode.get((status.st_dev, status.st_ino))

    @property
    def host(self) -> Optional[Namespace]:
        """The namespace of this process."""
        return next((ns for ns in self.all if ns.own), None)


def read_namespaces(more: Iterable[str] = (), with_links: bool = False) -> Namespaces:
    """Return every network namespace: named, mounted anywhere, with a process in it or held open by one, and *more*.

    Raises HostError ``netns_unusable`` or ``kernel_unreadable``: what cannot be looked into may hold anything.
    """
    return Namespaces(apart(partial(_read_all, list(more), with_links)))


def _read_all(more: Sequence[str], with_links: bool) -> List[Namespace]:
    found: List[Namespace] = []
    own, boot = os.stat("/proc/self/ns/net"), boot_id()
    wanted = _distinct(more)
    for _attempt in range(_ATTEMPTS):
        lost = set()
        for status, path, name in wanted:
            if not enter_known(path, status):
                lost.add(status.st_ino)
                continue
            is_own = (status.st_dev, status.st_ino) == (own.st_dev, own.st_ino)
            ns = Namespace(identity_here(status, boot), path, "the host itself" if is_own else name, is_own)
            ns.addresses = rtnetlink.addresses()
            if with_links:
                ns.links = rtnetlink.links()
            found.append(ns)
        # Whoever led there has come to its end; that others still do is found out by looking again.
        wanted = [entry for entry in _distinct(more) if entry[0].st_ino in lost] if lost else []
        if not wanted:
            return found
    raise HostError(
        f"network namespaces change hands faster than they can be read ({wanted[0][1]}); run again",
        code="netns_unusable",
    )


def _distinct(more: Iterable[str]) -> List[Tuple[os.stat_result, str, str]]:
    """Return (status, path, name) of each namespace once, under the name that says most to people."""
    device = os.stat("/proc/self/ns/net").st_dev
    found: Dict[int, Tuple[os.stat_result, str, str]] = {}

    def add(path: str, name: str) -> None:
        try:
            status = os.stat(path)
        except OSError:
            return
        if status.st_dev == device and status.st_ino not in found:
            found[status.st_ino] = (status, path, name)

    for name in _names(NETNS_DIR):
        path = os.path.join(NETNS_DIR, name)
        add(path, path)
    for path in more:
        add(path, path)
    mounts: Dict[int, str] = {}
    for pid in _processes():
        add(f"/proc/{pid}/ns/net", f"process {pid}{_command(pid)}")
        try:
            mounts.setdefault(os.stat(f"/proc/{pid}/ns/mnt").st_ino, pid)
        except OSError:
            continue
    for pid in mounts.values():
        for inode, path in _mounted(pid):
            if inode not in found:
                add(f"/proc/{pid}/root{path}", path)
    for pid in _processes():
        for thread in _threads(pid):
            add(f"/proc/{pid}/task/{thread}/ns/net", f"thread {thread} of process {pid}{_command(pid)}")
        for inode, path in _held(pid, device):
            if inode not in found:
                add(path, f"a namespace that process {pid}{_command(pid)} holds open")
    return list(found.values())


def _processes() -> Iterator[str]:
    return (name for name in _names("/proc") if name.isdigit())


def _threads(pid: str) -> List[str]:
    """Return the threads of a process beside its first one: each may be in a namespace of its own."""
    try:
        return [thread for thread in os.listdir(f"/proc/{pid}/task") if thread != pid]
    except OSError:
        # The process has come to its end.
        return []


def _command(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as stream:
            return " (%s)" % stream.read(64).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _held(pid: str, device: int) -> Iterator[Tuple[int, str]]:
    """Yield (inode, path) of each network namespace that a process holds open without being in it."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        # The process has come to its end.
        return
    for name in names:
        path = f"{folder}/{name}"
        try:
            target = os.readlink(path)
            if target.startswith("net:[") and target[5:-1].isdigit():
                yield int(target[5:-1]), path
            elif target == "/":
                # So looks what was opened by a name that has been taken away since, as well as the root directory.
                status = os.stat(path)
                if status.st_dev == device and stat.S_ISREG(status.st_mode) and _is_netns(path):
                    yield status.st_ino, path
        except OSError:
            continue


def _is_netns(path: str) -> bool:
    """Tell whether a file of the file system of namespaces is that of a network's."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return fcntl.ioctl(fd, _NS_GET_NSTYPE) == _CLONE_NEWNET
    finally:
        os.close(fd)


def _mounted(pid: str) -> Iterator[Tuple[int, str]]:
    """Yield (inode, path) of each namespace file that is mounted where a process is."""
    try:
        with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as stream:
            lines = stream.read(_MAX_MOUNTS).splitlines()
    except OSError:
        return
    for line in lines:
        # "... 0:4 net:[4026532281] /run/netns/web rw shared:1 - nsfs nsfs rw"
        if " - nsfs " not in line:
            continue
        fields = line.split(" ")
        root = fields[3]
        if root.startswith("net:[") and root[5:-1].isdigit():
            yield int(root[5:-1]), _OCTAL.sub(lambda match: chr(int(match.group(1), 8)), fields[4])


def _names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise HostError(
            f"cannot list {folder}: {error.strerror}; without it nobody knows what lives here", code="source_unusable"
        ) from error
