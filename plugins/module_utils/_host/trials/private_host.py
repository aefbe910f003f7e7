# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Runs work in a private copy of the host: namespaces of its own, and nothing that it does is seen outside.

A child process has its own mount, network and PID namespace. The whole file system is read-only there (Linux 5.12),
and what plugins and tools write to is empty and in memory. With the child, the kernel ends all processes that it
started and frees all that they made, also if this process is killed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import struct
import sys
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ...libcni.files import read_file
from ...libcni.kernel import unshare
from ...libcni.process import Child
from ..errors import HostError
from ..kinds import HOST_LOCAL, lease_dir, member_of, object_of, put_member, text_of
from ..netns import apart
from ..paths import kernel_text, names_in
from ..plan import workers_of
from ..processes import mounts
from ..secrets import one_line

STORE = "/run/podwire-rehearsal"
"""An empty directory of the private host, for what the work writes."""

_NEW_MOUNTS, _NEW_PROCESSES, _NEW_NETWORK = 0x20000, 0x20000000, 0x40000000
_PRIVATE, _BIND, _REMOUNT = 0x44000, 0x1000, 0x20
_PARENT_DEATH_SIGNAL = 1
# The same number on every architecture; include/uapi/linux/mount.h.
_MOUNT_SETATTR, _HERE, _RECURSIVE, _READ_ONLY = 442, -100, 0x8000, 1
# Where plugins and tools keep state: iptables' lock, names of namespaces, the stores of tuning and host-local.
_EMPTIED = ("/run", "/var/lib/cni")
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)
_CHUNK = 1 << 16
# A lease is two names.
_LARGEST_LEASE = 4096
_LARGEST = 32 << 20
# Plugins and tools are some; seconds between two counts.
_MOST_PROCESSES, _GLANCE = 500, 0.05
# Seconds for a work; one that has fewer than the least would not end.
_EACH, _LEAST = 20.0, 1.0
_FAILED, _DONE = b"-", b"+"

Work = Callable[[], bytes]


def private_store(number: int) -> str:
    """Return the data directory of host-local that stands for the store *number* of a chain."""
    return f"{STORE}/leases{number}"


def why_not_apart(plugin: Mapping[str, Any]) -> str:
    """Return why a plugin cannot work in a private host, "" if it can."""
    kind, ipam = text_of(plugin, "type"), text_of(object_of(plugin, "ipam"), "type")
    if "dhcp" in (kind, ipam):
        return "addresses of dhcp come from a server"
    if member_of(plugin, "linkincontainer"):
        return f"the parent of {kind} is in the container"
    if kind == "host-device" and not text_of(plugin, "device"):
        return "host-device names its device by hardware"
    if ipam == HOST_LOCAL and not lease_dir(plugin):
        return "the dataDir of host-local is not an absolute path"
    return ""


def confine(plugin: Dict[str, Any], number: int) -> str:
    """Let a plugin write only to the private host.

    Return the directory of leases that the store *number* stands for, "" for none.
    """
    real = lease_dir(plugin)
    if real:
        ipam = object_of(plugin, "ipam")
        # Instead of all spellings: host-local would take another one that sorts after it.
        put_member(ipam, "dataDir", private_store(number))
        put_member(plugin, "ipam", ipam)
    if text_of(plugin, "type") == "tuning":
        put_member(plugin, "dataDir", None)
    return real


def read_store(folder: str, target: str) -> Dict[str, Optional[bytes]]:
    """Return what a store of host-local has, by its path in *target*; None is a directory, b"" what cannot be read."""
    files: Dict[str, Optional[bytes]] = {}
    for name in names_in(folder):
        path, copy = os.path.join(folder, name), os.path.join(target, name)
        files[copy] = None if os.path.isdir(path) else b""
        with contextlib.suppress(OSError):
            files[copy] = read_file(path, _LARGEST_LEASE, follow=False)
    return files


def put_files(files: Mapping[str, Optional[bytes]]) -> None:
    """Make files, and directories (None), by their paths in the private host."""
    for path, content in files.items():
        os.makedirs(path if content is None else os.path.dirname(path), exist_ok=True)
        if content is not None:
            with open(path, "wb") as stream:
                stream.write(content)


class _Running:
    """One child that works: its process, and the end of the pipe that its answer comes from."""

    def __init__(self, work: Work, needed: Sequence[str], timeout: float) -> None:
        self.fd, writer = os.pipe()
        self.answer = bytearray()
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            _tell(writer, _FAILED, f"no process can be started: {error.strerror}".encode())
            pid = -1
        if not pid:
            # Nothing of this process may run in the child, whatever happens.
            try:
                os.close(self.fd)
                _live_and_die_with(parent)
                _guard(work, needed, writer, timeout)
            finally:
                os._exit(1)
        os.close(writer)
        self.child = Child(pid, -1, -1, -1)

    def receive(self) -> bool:
        """Read from the pipe; False at its end."""
        chunk = os.read(self.fd, _CHUNK)
        self.answer += chunk
        return bool(chunk) and len(self.answer) <= _LARGEST

    def end(self) -> None:
        """Kill the child if it still runs, and wait for its end."""
        if self.child.pid > 0 and not self.child.wait(1.0 if self.answer else 0.0):
            os.kill(self.child.pid, signal.SIGKILL)
            self.child.wait(None)
        os.close(self.fd)

    def result(self, code: str) -> Union[bytes, HostError]:
        if self.answer[:1] == _DONE:
            return bytes(self.answer[1:])
        said = bytes(self.answer[1:]).decode("utf-8", "replace") if self.answer[:1] == _FAILED else ""
        return HostError(said or "the process ended without an answer", code=code)


def work_apart(works: Sequence[Work], needed: Sequence[str], total: float) -> List[Union[bytes, HostError]]:
    """Do each work in a private host of its own, several at a time; return the answers in their order.

    *needed* are directories that stay visible there. A work that takes too long is killed, and so is what still runs
    after *total* seconds; none begins in the last one. Their answers are HostErrors ``not_rehearsed`` and, if there
    was no time for them, ``too_many``.
    """
    try:
        _libc()
    except ImportError:
        return [HostError("the host's Python lacks ctypes", code="not_rehearsed") for _work in works]
    results: List[Union[bytes, HostError]] = [HostError("", code="too_many") for _work in works]
    running: Dict[int, Tuple[int, _Running]] = {}
    waiting, workers = list(enumerate(works)), workers_of()
    deadline = time.monotonic() + total
    poller = select.poll()
    try:
        while True:
            while waiting and len(running) < workers and deadline - time.monotonic() > _LEAST:
                number, work = waiting.pop(0)
                child = _Running(work, needed, min(_EACH, deadline - time.monotonic()))
                running[child.fd] = number, child
                poller.register(child.fd, select.POLLIN)
            if not running:
                return results
            for fd, event in poller.poll(int((_EACH + 5) * 1000)) or [(fd, 0) for fd in running]:
                if event and running[fd][1].receive():
                    continue
                poller.unregister(fd)
                number, child = running.pop(fd)
                child.end()
                results[number] = child.result("not_rehearsed" if time.monotonic() < deadline else "too_many")
    finally:
        for _number, child in running.values():
            child.end()


def _live_and_die_with(parent: int) -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    _libc().prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _guard(work: Work, needed: Sequence[str], writer: int, timeout: float) -> None:
    """Start the process that works, the first one of a PID namespace, and kill it at the deadline."""
    try:
        unshare(_NEW_MOUNTS | _NEW_PROCESSES | _NEW_NETWORK)
    except OSError as error:
        _tell(writer, _FAILED, f"no private namespaces: {error.strerror}".encode())
        os._exit(0)
    pid = os.fork()
    if not pid:
        try:
            _libc().prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
            _work(work, needed, writer)
        finally:
            os._exit(1)
    child, end = Child(pid, -1, -1, -1), time.monotonic() + timeout
    while not child.wait(_GLANCE):
        running = _inside()
        why = f"it started more than {_MOST_PROCESSES} processes" if len(running) > _MOST_PROCESSES else ""
        if time.monotonic() > end:
            why = f"it took longer than {round(timeout, 1):g} s"
        if why:
            name = kernel_text(f"/proc/{running[0]}/comm") if running else ""
            why += f", in {one_line(name) or 'a process that has ended'}" if running else ""
            os.kill(pid, signal.SIGKILL)
            child.wait(None)
            _tell(writer, _FAILED, why.encode())
    os._exit(0)


def _inside() -> List[int]:
    """Return the processes of the private host without its first one, the oldest first; none before it is isolated."""
    # This process shares the mounts, and is not in the PID namespace of the new /proc.
    names = [] if os.path.exists("/proc/self") else os.listdir("/proc")
    return sorted(int(name) for name in names if name.isdigit() and name != "1")


def _work(work: Work, needed: Sequence[str], writer: int) -> None:
    try:
        _isolate(needed)
        answer = work()
    except HostError as error:
        _tell(writer, _FAILED, error.msg.encode("utf-8", "replace"))
    except MemoryError:
        _tell(writer, _FAILED, b"no memory is left")
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
        _tell(writer, _FAILED, what.encode("utf-8", "replace"))
    else:
        _tell(writer, _DONE, answer)
    os._exit(0)


def _tell(writer: int, kind: bytes, text: bytes) -> None:
    left = memoryview(kind + text)
    while left:
        left = left[os.write(writer, left) :]


def _isolate(needed: Sequence[str]) -> None:
    """Make the mounts private, hide what must not be written to, and show the new namespaces."""
    # This process imports a file now and then.
    sources = [path if os.path.isdir(path) else os.path.dirname(path) for path in sys.path]
    kept = [
        (path, os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
        for path in dict.fromkeys([*needed, *sources])
        if f"{os.path.realpath(path)}/".startswith(tuple(f"{name}/" for name in _EMPTIED)) and os.path.isdir(path)
    ]
    _mount(None, "/", None, _PRIVATE)
    attributes = struct.pack("=QQQQ", _READ_ONLY, 0, 0, 0)
    if _libc().syscall(_MOUNT_SETATTR, _HERE, b"/", _RECURSIVE, attributes, len(attributes)) != 0:
        # Before Linux 5.12, and where "/" is no mount point.
        for mount in mounts("self"):
            _make_read_only(mount.point)
    for path in _EMPTIED:
        if os.path.isdir(path):
            _mount("podwire", path, "tmpfs")
            os.chmod(path, 0o755)
    for path, fd in kept:
        os.makedirs(path, exist_ok=True)
        _mount(f"/proc/self/fd/{fd}", path, None, _BIND)
        os.close(fd)
    _mount("podwire", "/proc", "proc")
    _mount("podwire", "/sys", "sysfs")
    os.makedirs(STORE)
    os.makedirs("/run/netns")
    # Where bridge 1.1.1 writes what nft reads.
    os.environ["TMPDIR"] = STORE


def _make_read_only(point: str) -> None:
    try:
        # Their numbers are those of mount(2).
        kept = os.statvfs(point).f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC)
        _mount(None, point, None, _REMOUNT | _BIND | _READ_ONLY | kept)
    except OSError as error:
        # What is below another mount cannot be reached by its path, by nobody.
        if error.errno not in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
            raise


def new_netns(name: str) -> str:
    """Create a network namespace in the private host, and return its path. Raises OSError."""
    path = f"/run/netns/{name}"
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    def make() -> None:
        unshare()
        _mount("/proc/thread-self/ns/net", path, None, _BIND)

    apart(make)
    return path


def _libc() -> Any:
    # Costs memory, and is needed in children only.
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _mount(source: Union[str, None], target: str, kind: Union[str, None], flags: int = 0) -> None:
    import ctypes

    names = [None if name is None else os.fsencode(name) for name in (source, target, kind)]
    if _libc().mount(*names, ctypes.c_ulong(flags), None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot mount {target}: {os.strerror(number)}")
