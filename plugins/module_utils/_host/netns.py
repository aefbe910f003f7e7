# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network namespaces: their names and paths, the namespace that a path leads to, and the interfaces in it.

Uses only the standard library.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import sys
import threading
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, TypeVar

from ..libcni.kernel import setns
from .errors import HostError
from .paths import absolute

NETNS_DIR = "/run/netns"
NETNS_ETC = "/etc/netns"
"""``ip netns exec NAME`` mounts the files of its directory ``NAME`` over those in ``/etc``."""

Result = TypeVar("Result")

_OWN = "/proc/self/ns/net"
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


def netns_name(path: str) -> str:
    """Return the name of the namespace at *path*, "" if the path is not that of a name."""
    folder, _slash, name = path.rpartition("/")
    return name if folder in (NETNS_DIR, "/var" + NETNS_DIR) else ""


def check_name(name: str, where: str) -> None:
    """Raise HostError ``bad_netns`` if *name* cannot be the name of a namespace."""
    if name in (".", "..") or not _NAME.fullmatch(name) or len(os.fsencode(name)) > 255:
        raise HostError(
            f"{where}: {name!r} cannot be the name of a network namespace; it must not be empty, '.' or '..', start "
            "with '-', contain '/', blanks or control characters, or be longer than 255 bytes",
            code="bad_netns",
        )


def boot_id() -> str:
    """Return the ID of this boot of the host, "" if the kernel does not tell it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return stream.read().strip()
    except OSError:
        return ""


class Seen:
    """What a path leads to: ``identity`` (None: no network namespace), and which requested ``links`` exist there.

    ``identity`` is ``{boot_id, dev, inode, cookie, processes}``. The kernel gives the inode of a dead namespace to a
    new one; the cookie (Linux 5.14, else None) is never given twice. ``processes`` is the PID namespace that it was
    seen from, see ``pid_namespace``.
    """

    __slots__ = ("identity", "links")

    def __init__(self, identity: Optional[Dict[str, Any]] = None, links: Iterable[str] = ()) -> None:
        self.identity = identity
        self.links = frozenset(links)


def same(one: Optional[Mapping[str, Any]], other: Optional[Mapping[str, Any]]) -> bool:
    """Tell whether two identities are those of one namespace; False if one of them is None or empty."""
    if not one or not other:
        return False
    if any(one.get(key) != other.get(key) for key in ("boot_id", "dev", "inode")):
        return False
    cookies = (one.get("cookie"), other.get("cookie"))
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


def look(wanted: Mapping[str, Iterable[str]]) -> Dict[str, Seen]:
    """Return for each path the namespace that it leads to, and which of the interface names given for it exist there.

    Raises HostError ``netns_unusable``.
    """

    def work() -> Dict[str, Seen]:
        boot = boot_id()
        own_device = os.stat(_OWN).st_dev
        return {path: _look(path, names, boot, own_device) for path, names in wanted.items()}

    return apart(work) if wanted else {}


def visit(paths: Iterable[str], read: Callable[[], Result]) -> Dict[str, Result]:
    """Call *read* inside each namespace, and return its results; a path that leads to no namespace is left out.

    Raises HostError ``netns_unusable``, and what *read* raises.
    """
    return apart(lambda: {path: read() for path in paths if enter(path)})


def look_at(path: str, name: str) -> Seen:
    """Do the same as :func:`look` for one path and one interface name."""
    return look({path: (name,)})[path]


def enter(path: str) -> bool:
    """Move this thread permanently into the namespace at *path*; False if there is none."""
    return _open_and_enter(path, os.stat(_OWN).st_dev) is not None


def enter_known(path: str, status: os.stat_result) -> bool:
    """Move this thread into the namespace at *path*; False if it is no longer the one with *status*.

    Raises HostError ``netns_unusable``.
    """
    here = _open_and_enter(path, status.st_dev)
    return here is not None and here.st_ino == status.st_ino


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


def _look(path: str, names: Iterable[str], boot: str, own_device: int) -> Seen:
    status = _open_and_enter(path, own_device)
    if status is None:
        return Seen()
    links = [name for name in names if _link_exists(name)]
    return Seen(identity_here(status, boot), links)


def _open_and_enter(path: str, own_device: int) -> Optional[os.stat_result]:
    try:
        # Anything outside the file system of namespaces is not opened: it may be a device or a pipe.
        if os.stat(path).st_dev != own_device:
            return None
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        # ValueError: a path read from a file can contain a NUL.
        return None
    try:
        setns(fd)
        return os.fstat(fd)
    except OSError as error:
        if error.errno == errno.EINVAL:
            # A namespace of another kind.
            return None
        message = f"cannot enter the network namespace {path}: {error.strerror}"
        raise HostError(message, code="netns_unusable") from error
    finally:
        os.close(fd)


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
