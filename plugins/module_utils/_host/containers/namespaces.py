# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""All network namespaces of a host, whoever made them.

They are named, mounted, used by a process or thread, or held open by one with a descriptor or only a socket. A veth of
the host reveals a namespace to which none of these leads.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from functools import cached_property, partial
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from .. import netlink
from ..addresses import packed
from ..errors import HostError
from ..netns import NETNS_DIR, apart, boot_id, enter_known, identity_here, pid_namespace, same
from ..paths import names_in
from ..processes import mounts
from ..struct import field, struct

_OWN = "/proc/self/ns/net"
_TUN = "/dev/net/tun"
# How often the way to a namespace may vanish while namespaces are read.
_ATTEMPTS = 10
# include/uapi/linux/nsfs.h and sched.h
_NS_GET_NSTYPE = 0xB703
_CLONE_NEWNET = 0x40000000
# include/uapi/linux/sockios.h; system calls since Linux 5 have the same numbers on every architecture.
_SIOCGSKNS = 0x894C
_PIDFD_OPEN, _PIDFD_GETFD = 434, 438
# include/linux/proc_ns.h: the inode of the first PID namespace.
_INITIAL_PID_NAMESPACE = 0xEFFFFFFC
# Only the first network namespace has this setting.
_INITIAL_NETWORK_NAMESPACE = "/proc/sys/net/core/netdev_budget"


# Status, path and name of a namespace.
_Way = Tuple[os.stat_result, str, str]


@struct
class Namespace:
    """A network namespace: ``identity`` as in :class:`netns.Seen`, ``path`` that leads to it, human-readable ``name``.

    ``addresses``: packed address -> (index of the interface, prefix length); ``links`` by index; ``own``: it is the one
    of this process, the host's.
    """

    identity: Dict[str, Any]
    path: str
    name: str
    own: bool
    addresses: Dict[bytes, Tuple[int, int]] = field(default_factory=dict)
    links: Dict[int, netlink.Link] = field(default_factory=dict)
    _named: Optional[Dict[str, netlink.Link]] = None

    def link_named(self, name: str) -> Optional[netlink.Link]:
        """Return the interface of that name, None if there is none."""
        if self._named is None:
            self._named = {link.name: link for link in self.links.values()}
        return self._named.get(name)


@struct
class Namespaces:
    """All network namespaces of a host that a name, a mount, a process or a socket leads to.

    ``elsewhere``: path -> inodes of those that are mounted there in any mount namespace. ``away``: the names of the
    host's veths whose other end is in another existing namespace; ``unseen``: in one to which nothing leads.
    ``nested``: /proc is not that of the first PID namespace, so it may lack processes; ``outside``: it does lack them,
    because this is the network namespace of the first PID namespace.
    """

    all: Sequence[Namespace]
    elsewhere: Mapping[str, Collection[int]] = field(default_factory=dict)
    away: Collection[str] = ()
    unseen: Collection[str] = ()
    nested: bool = False
    outside: bool = False

    @cached_property
    def _by_inode(self) -> Dict[int, Namespace]:
        return {ns.identity["inode"]: ns for ns in self.all}

    @cached_property
    def _by_address(self) -> Dict[bytes, Namespace]:
        # The host's own namespace gives way: any other one is better evidence.
        return {address: ns for ns in sorted(self.all, key=lambda ns: not ns.own) for address in ns.addresses}

    def holder(self, address: str) -> Optional[Namespace]:
        """Return a namespace in which *address* (such as 10.1.0.2 or 10.1.0.2/24) is in use, None if there is none."""
        raw = packed(address.partition("/")[0])
        return self._by_address.get(raw) if raw else None

    def alive(self, identity: Optional[Mapping[str, Any]]) -> Optional[Namespace]:
        """Return the namespace with *identity* (of this boot), if it still exists."""
        namespace = self._by_inode.get((identity or {}).get("inode", 0))
        return namespace if namespace is not None and same(namespace.identity, identity) else None

    def at(self, path: str) -> List[Namespace]:
        """Return the namespaces that *path* leads to, here and in other mount namespaces that have one mounted there.

        There may be several: each container of Apptainer has its own at the same path.
        """
        inodes = []
        with contextlib.suppress(OSError, ValueError):
            status = os.stat(path)
            if any(status.st_dev == ns.identity["dev"] for ns in self.all[:1]):
                inodes.append(status.st_ino)
        inodes += sorted(self.elsewhere.get(_normal(path), ()))
        return [self._by_inode[inode] for inode in dict.fromkeys(inodes) if inode in self._by_inode]

    @property
    def host(self) -> Namespace:
        """The namespace of this process."""
        return next(ns for ns in self.all if ns.own)


def read_namespaces(more: Iterable[str] = ()) -> Namespaces:
    """Return every network namespace: named, mounted anywhere, with a process in it or held open by one, and *more*.

    Raises HostError ``netns_unusable`` or ``kernel_unreadable``: a namespace that cannot be read may hold anything.
    """
    elsewhere: Dict[str, Set[int]] = {}
    with contextlib.ExitStack() as stack:
        namespaces = apart(partial(_read_all, lambda: _distinct(more, elsewhere, stack)))
    host = next(ns for ns in namespaces if ns.own)
    inside = {(link.link, link.index) for ns in namespaces if not ns.own for link in ns.links.values()}
    away = [link for link in host.links.values() if link.kind == "veth" and link.abroad]
    unseen = [link for link in away if (link.index, link.link) not in inside]
    # Interfaces outlive their namespace for a moment.
    ended = {nsid for nsid in {link.nsid for link in unseen} if not netlink.namespace_exists(nsid)}
    ends = {link.name for link in unseen if link.nsid in ended}
    # The first PID namespace has all processes.
    nested = pid_namespace() != _INITIAL_PID_NAMESPACE
    return Namespaces(
        namespaces,
        elsewhere,
        {link.name for link in away} - ends,
        {link.name for link in unseen} - ends,
        nested,
        outside=nested and os.path.exists(_INITIAL_NETWORK_NAMESPACE),
    )


def _read_all(distinct: Callable[[], List[_Way]]) -> List[Namespace]:
    namespaces: List[Namespace] = []
    own, boot = os.stat(_OWN), boot_id()
    wanted = distinct()
    for _attempt in range(_ATTEMPTS):
        lost = set()
        for status, path, name in wanted:
            if not enter_known(path, status):
                lost.add(status.st_ino)
                continue
            is_own = (status.st_dev, status.st_ino) == (own.st_dev, own.st_ino)
            ns = Namespace(identity_here(status, boot), path, "the host itself" if is_own else name, is_own)
            ns.addresses = netlink.host_addresses()
            ns.links = netlink.links()
            namespaces.append(ns)
        # The way there has vanished; look again for another one.
        wanted = [entry for entry in distinct() if entry[0].st_ino in lost] if lost else []
        if not wanted:
            return namespaces
    raise HostError(
        f"network namespaces come and go faster than they can be read ({wanted[0][1]}); run again",
        code="netns_unusable",
    )


def _distinct(more: Iterable[str], elsewhere: Dict[str, Set[int]], stack: contextlib.ExitStack) -> List[_Way]:
    """Return each namespace once, under its most informative name.

    Namespaces that are mounted anywhere are added to *elsewhere*. Some paths depend on files that stay open until
    *stack* ends.
    """
    device = os.stat(_OWN).st_dev
    ways: Dict[int, _Way] = {}

    def add(path: str, name: str) -> None:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            # ValueError: a path that comes from a file can contain a NUL.
            return
        if status.st_dev == device and status.st_ino not in ways:
            ways[status.st_ino] = (status, path, name)

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
            elsewhere.setdefault(_normal(path), set()).add(inode)
            if inode not in ways:
                add(f"/proc/{pid}/root{path}", path)
    sockets: Set[str] = set()
    for pid in _processes():
        # Each thread may be in a namespace of its own.
        for thread in (name for name in names_in(f"/proc/{pid}/task") if name != pid):
            add(f"/proc/{pid}/task/{thread}/ns/net", f"thread {thread} of process {pid}{_command(pid)}")
        files = _open_files(pid)
        for inode, path in _held(files, device):
            if inode not in ways:
                add(path, f"a namespace that process {pid}{_command(pid)} holds open")
        for inode, path in _kept_by_sockets(pid, files, sockets, stack):
            if inode not in ways:
                add(path, f"a namespace that a socket of process {pid}{_command(pid)} keeps")
    add(_OWN, _OWN)
    return list(ways.values())


def _normal(path: str) -> str:
    """Return the path under which the kernel lists a mount: many programs write /var/run, which leads to /run."""
    path = os.path.normpath(path)
    return path[len("/var") :] if path.startswith("/var/run/") else path


def _processes() -> Iterator[str]:
    return (name for name in _names("/proc") if name.isdigit())


def _command(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as stream:
            return f" ({stream.read(64).decode('utf-8', 'replace').strip()})"
    except OSError:
        return ""


def _held(files: Mapping[str, str], device: int) -> Iterator[Tuple[int, str]]:
    """Yield (inode, path) of each network namespace among the open files of a process, see :func:`_open_files`."""
    for path, target in files.items():
        try:
            if target.startswith("net:[") and target[5:-1].isdigit():
                yield int(target[5:-1]), path
            elif target == "/":
                # A file whose name has been removed since looks like this, and so does the root directory.
                status = os.stat(path)
                if status.st_dev == device and stat.S_ISREG(status.st_mode) and _is_netns(path):
                    yield status.st_ino, path
        except OSError:
            continue


def _open_files(pid: str) -> Dict[str, str]:
    """Return path -> target for all that a process has open."""
    folder = f"/proc/{pid}/fd"
    targets: Dict[str, str] = {}
    # A process that has ended has none.
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                targets[f"{folder}/{name}"] = os.readlink(f"{folder}/{name}")
    return targets


def _kept_by_sockets(
    pid: str, files: Mapping[str, str], known: Set[str], stack: contextlib.ExitStack
) -> Iterator[Tuple[int, str]]:
    """Yield (inode, path) of the namespaces of a process's sockets. *known* sockets are skipped, others added to it.

    A socket keeps its namespace alive, and no file leads from one to the other. The namespace cannot be found on a
    kernel before 5.6, or on one that does not allow descriptors to be copied.
    """
    # To the kernel, an open tap device, with which a virtual machine takes over a container's address, is a socket.
    new = {
        path if target == _TUN else target: path
        for path, target in files.items()
        if target not in known and (target == _TUN or target.startswith("socket:"))
    }
    known.update(new)
    if not new:
        return
    try:
        import ctypes
    except ImportError:
        # This Python was built without it.
        return
    libc = ctypes.CDLL(None)
    process = libc.syscall(_PIDFD_OPEN, int(pid), 0)
    if process < 0:
        return
    try:
        inodes: Set[int] = set()
        for path in new.values():
            copy = libc.syscall(_PIDFD_GETFD, process, int(path.rpartition("/")[2]), 0)
            if copy < 0:
                continue
            try:
                fd = fcntl.ioctl(copy, _SIOCGSKNS)
            except OSError:
                continue
            finally:
                os.close(copy)
            inode = os.fstat(fd).st_ino
            if inode in inodes:
                os.close(fd)
                continue
            inodes.add(inode)
            stack.callback(os.close, fd)
            yield inode, f"/proc/self/fd/{fd}"
    finally:
        os.close(process)


def _is_netns(path: str) -> bool:
    """Tell whether a file of the file system of namespaces belongs to a network namespace."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return fcntl.ioctl(fd, _NS_GET_NSTYPE) == _CLONE_NEWNET
    finally:
        os.close(fd)


def _mounted(pid: str) -> List[Tuple[int, str]]:
    """Return (inode, path) of each namespace file that is mounted where a process is."""
    try:
        seen = mounts(pid)
    except OSError:
        return []
    # The root of such a mount is like net:[4026532281].
    files = [mount for mount in seen if mount.root.startswith("net:[") and mount.root[5:-1].isdigit()]
    return [(int(mount.root[5:-1]), mount.point) for mount in files]


def _names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise HostError(
            f"cannot list {folder}: {error.strerror}; it is needed to find out which containers are alive",
            code="source_unusable",
        ) from error
