# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Network namespaces: their names and paths, the namespace that a path leads to, and the interfaces in it.

Uses only the standard library.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import sys
import threading
from functools import lru_cache
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, TypeVar

from ..libcni.kernel import setns
from .errors import HostError
from .paths import OWN_NETNS, THREAD_NETNS, absolute, kernel_text

NETNS_DIR = "/run/netns"
"""``ip netns exec NAME`` mounts the files of its directory ``NAME`` over those in ``/etc``."""

Result = TypeVar("Result")

_HOSTS = (OWN_NETNS, "/proc/1/ns/net")
_SO_NETNS_COOKIE = 71
# The names that iproute2 accepts, except those that cause trouble in a shell: blanks, control characters, leading dash.
_NAME = re.compile(r"[^\s/\x00-\x20\x7f-][^\s/\x00-\x20\x7f]*")


def netns_path(value: str, where: str) -> str:
    """Return the path of a namespace given by name (``/run/netns/NAME``) or by absolute path.

    *where* names the option in an error. Raises HostError ``bad_netns``, ``path_not_absolute`` or ``path_not_clean``.
    """
    if "/" in value:
        return absolute(value, where)
    check_name(value, where)
    return os.path.join(NETNS_DIR, value)


def check_name(name: str, where: str) -> None:
    """Raise HostError ``bad_netns`` if *name* cannot be the name of a namespace."""
    if name in (".", "..") or not _NAME.fullmatch(name) or len(os.fsencode(name)) > 255:
        raise HostError(
            f"{where}: {name!r} cannot be the name of a network namespace; it must not be empty, '.' or '..', start "
            "with '-', contain '/', blanks or control characters, or be longer than 255 bytes",
            code="bad_netns",
        )


@lru_cache(maxsize=None)
def boot_id() -> str:
    """Return the ID of this boot of the host, "" if the kernel does not tell it."""
    return kernel_text("/proc/sys/kernel/random/boot_id")


class Seen:
    """What a path leads to: ``identity`` (None: no network namespace), and which requested ``links`` exist there.

    ``host``: it is the host's own.

    ``identity`` is ``{boot_id, dev, inode, cookie, processes}``. The kernel gives the inode of a dead namespace to a
    new one; the cookie (Linux 5.14, else None) is never given twice. ``processes`` is the PID namespace that it was
    seen from, see ``pid_namespace``.
    """

    __slots__ = ("host", "identity", "links")

    def __init__(
        self, identity: Optional[Dict[str, Any]] = None, links: Iterable[str] = (), host: bool = False
    ) -> None:
        self.identity = identity
        self.links = frozenset(links)
        self.host = host


def same(identity: Optional[Mapping[str, Any]], other: Optional[Mapping[str, Any]]) -> bool:
    """Tell whether two identities are those of one namespace; False if one of them is None or empty."""
    if not identity or not other:
        return False
    if any(identity.get(key) != other.get(key) for key in ("boot_id", "dev", "inode")):
        return False
    cookies = (identity.get("cookie"), other.get("cookie"))
    return None in cookies or cookies[0] == cookies[1]


def apart(work: Callable[[], Result]) -> Result:
    """Call *work* in a short-lived thread, which may enter namespaces; return or raise what it does.

    A thread has a network namespace of its own, so the rest of the process never leaves its namespace.
    """
    results: List[Result] = []
    errors: List[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread below
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


class Netns:
    """The network namespace that *path* leads to when it is opened; with *identity*, only the one that has it.

    A moment later the path may lead elsewhere: its process ends and the PID is used again, or another namespace is
    mounted there. So a namespace is opened once, the descriptor is compared, and it is entered by that descriptor only.
    The host's own is never entered.

    ``with`` keeps the descriptor, and what is done meanwhile is all done in one namespace. Else each visit opens the
    path, and compares again.
    """

    __slots__ = ("_fd", "identity", "path")

    def __init__(self, path: str, identity: Optional[Mapping[str, Any]] = None) -> None:
        self.path = path
        self.identity = identity
        self._fd: Optional[int] = None

    def __enter__(self) -> Netns:
        self._fd = self._opened()
        return self

    def __exit__(self, *_exception: object) -> None:
        fd, self._fd = self._fd, None
        if fd is not None and fd >= 0:
            os.close(fd)

    @property
    def fd(self) -> int:
        """The descriptor while it is kept, -1 if there is no such namespace."""
        return -1 if self._fd is None else self._fd

    def enter(self) -> bool:
        """Move this thread permanently into the namespace; False if the path does not lead there, or to the host's.

        Raises HostError ``netns_unusable``.
        """
        fd = self._opened() if self._fd is None else self._fd
        if fd < 0:
            return False
        try:
            # A kernel without cookies has only compared the inode.
            return _enter(fd, self.path) and (self.identity is None or same(self.identity, seen_here().identity))
        finally:
            if self._fd is None:
                os.close(fd)

    def inspect(self, names: Iterable[str]) -> Seen:
        """Return the identity of the namespace, which it keeps, and which of the interface *names* exist there."""
        seen = apart(lambda: seen_here(names) if self.enter() else Seen())
        self.identity = self.identity or seen.identity
        return seen

    @property
    def at_its_path(self) -> bool:
        """Whether the path leads to the namespace that is kept open."""
        try:
            return self.fd >= 0 and os.path.samestat(os.stat(self.path), os.fstat(self.fd))
        except (OSError, ValueError):
            return False

    def require(self, what: str) -> None:
        """Raise HostError ``netns_replaced``, which begins with *what* cannot be done, unless it is at its path."""
        if not self.at_its_path:
            raise HostError(
                f"{what}: {self.path} does not lead to the same network namespace as before, because its container has "
                "ended or was replaced; run again when the container is up",
                code="netns_replaced",
            )

    def _opened(self) -> int:
        fd = _open(self.path)
        if fd < 0:
            return -1
        status, identity = os.fstat(fd), self.identity
        if _is_host(status) or (
            identity is not None and (status.st_dev, status.st_ino) != (identity.get("dev"), identity.get("inode"))
        ):
            os.close(fd)
            return -1
        return fd


def inspect_paths(wanted: Mapping[str, Iterable[str]]) -> Dict[str, Seen]:
    """Return for each path the namespace that it leads to, and which of the interface names given for it exist there.

    Raises HostError ``netns_unusable``.
    """
    return apart(lambda: {path: _inspect(path, names) for path, names in wanted.items()}) if wanted else {}


def inspect_planned(wanted: Mapping[str, Iterable[str]], planned: Mapping[str, bool]) -> Dict[str, Seen]:
    """Do the same; a namespace that a step will create, by *planned* (HostView.namespaces), has no interfaces."""
    seen = inspect_paths(wanted)
    for path in seen:
        if planned.get(path) and seen[path].identity is None:
            # An empty identity is the same as no other.
            seen[path] = Seen({})
    return seen


def visit(namespaces: Iterable[Netns], read: Callable[[], Result]) -> Dict[str, Result]:
    """Call *read* inside each namespace, and return its results by path; those that are not there are left out.

    Raises HostError ``netns_unusable``, and what *read* raises.
    """
    return apart(lambda: {namespace.path: read() for namespace in namespaces if namespace.enter()})


def inspect_path(path: str, name: str) -> Seen:
    """Do the same as :func:`inspect_paths` for one path and one interface name."""
    return inspect_paths({path: (name,)})[path]


def enter_host() -> None:
    """Move this thread permanently into the namespace of this process."""
    enter_known(OWN_NETNS, os.stat(OWN_NETNS))


def enter_known(path: str, status: os.stat_result) -> bool:
    """Move this thread into the namespace at *path*; False if it is no longer the one with *status*.

    Raises HostError ``netns_unusable``.
    """
    fd = _open(path)
    if fd < 0:
        return False
    try:
        return os.path.samestat(os.fstat(fd), status) and _enter(fd, path)
    finally:
        os.close(fd)


def pid_namespace() -> int:
    """Return the inode of the PID namespace whose processes /proc shows, 0 if it is unknown."""
    try:
        return os.stat("/proc/1/ns/pid").st_ino
    except OSError:
        return 0


def identity_here(status: os.stat_result, boot: str) -> Dict[str, Any]:
    """Return the identity of the namespace that this thread is in, whose file has *status*."""
    return {
        "boot_id": boot,
        "dev": status.st_dev,
        "inode": status.st_ino,
        "cookie": _cookie(),
        "processes": pid_namespace(),
    }


def seen_here(names: Iterable[str] = ()) -> Seen:
    """Return what this thread is in."""
    status = os.stat(THREAD_NETNS)
    return Seen(identity_here(status, boot_id()), [name for name in names if _link_exists(name)], _is_host(status))


def _inspect(path: str, names: Iterable[str]) -> Seen:
    fd = _open(path)
    if fd < 0:
        return Seen()
    try:
        return seen_here(names) if _enter(fd, path) else Seen()
    finally:
        os.close(fd)


def _is_host(status: os.stat_result) -> bool:
    """Tell whether a namespace is that of this process, or of the first one."""
    for path in _HOSTS:
        # The first process may be another user's.
        with contextlib.suppress(OSError):
            if os.path.samestat(status, os.stat(path)):
                return True
    return False


def _open(path: str) -> int:
    """Open the namespace at *path*, -1 if there is none."""
    try:
        # What is behind the path is not opened before it is known to be a namespace: it may be a device or a pipe.
        path_fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        # ValueError: a path read from a file can contain a NUL.
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            raise _unusable(path, error) from error
        return -1
    try:
        if os.fstat(path_fd).st_dev != os.stat(OWN_NETNS).st_dev:
            return -1
        return os.open(f"/proc/thread-self/fd/{path_fd}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _unusable(path, error) from error
    finally:
        os.close(path_fd)


def _enter(fd: int, path: str) -> bool:
    """Move this thread into the namespace that is open as *fd*; False if it is one of another kind."""
    try:
        setns(fd)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise _unusable(path, error) from error
    return True


def _unusable(path: str, error: OSError) -> HostError:
    return HostError(f"cannot enter the network namespace {path}: {error.strerror}", code="netns_unusable")


def _link_exists(name: str) -> bool:
    try:
        socket.if_nametoindex(name)
    except (OSError, ValueError):
        return False
    return True


def _cookie() -> Optional[int]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            return int.from_bytes(probe.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8), sys.byteorder)
        except OSError:
            return None
