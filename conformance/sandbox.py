# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""A private copy of the host that a plugin can change: mounts, network, processes, IPC and the name of the host.

Files below `OVERLAID` are an overlay in memory, so its upper directory lists exactly what a plugin wrote there. /run is
empty, so that a plugin finds no daemon of the real host. All processes that are left end with the sandbox.

This guards against faults, not against malice: a plugin runs as root.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import stat
import sys
import threading
import typing as t

from libcni.errors import CNIError
from libcni.process import run_program

HOME = "/run/podwire-conformance"
LEASES = f"{HOME}/leases"
NETNS_DIR = "/run/netns"
OVERLAID = ("/etc", "/opt", "/tmp", "/var/lib", "/var/log")
TOOLS = ("ip", "tc")

_NEW_MOUNTS, _NEW_UTS, _NEW_IPC, _NEW_PID, _NEW_NET = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
_BIND, _RECURSIVE, _PRIVATE, _DETACH = 0x1000, 0x4000, 0x40000, 2
_PARENT_DEATH_SIGNAL = 1
SOFTWARE = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

Result = t.TypeVar("Result")


class SandboxError(CNIError):
    """The sandbox cannot be made here: not root, no namespaces, or a program is missing."""


def run_apart(work: t.Callable[[], bytes], kept: t.Sequence[str] = ()) -> bytes:
    """Call *work* as process 1 of a sandbox, and return what it returns. *kept*: directories that stay visible.

    Raises `SandboxError`.
    """
    if os.geteuid() != 0:
        raise SandboxError("the conformance suite makes network namespaces; run it as root")
    if "/run" in kept:
        raise SandboxError("the plugin or the suite is in /run itself, which the sandbox hides; move it to a directory")
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=SOFTWARE)]
    if missing:
        raise SandboxError(f"{' and '.join(missing)} not found; install iproute2 (apt: iproute2, dnf: iproute-tc)")
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    outer = os.fork()
    if outer == 0:
        os.close(reading)
        _outer(work, kept, writing)
    os.close(writing)
    with open(reading, "rb") as stream:
        answer = stream.read()
    _pid, status = os.waitpid(outer, 0)
    if answer[:1] == b"+":
        return answer[1:]
    text = answer[1:].decode("utf-8", "replace") or f"the sandbox ended early (status {status})"
    raise SandboxError(text)


def _outer(work: t.Callable[[], bytes], kept: t.Sequence[str], writing: int) -> t.NoReturn:
    """Enter the namespaces, and wait for process 1 of them. Never returns."""
    try:
        libc("prctl", _PARENT_DEATH_SIGNAL, signal.SIGKILL)
        libc("unshare", _NEW_MOUNTS | _NEW_UTS | _NEW_IPC | _NEW_PID | _NEW_NET)
        inner = os.fork()
        if inner == 0:
            _inner(work, kept, writing)
        os.waitpid(inner, 0)
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - reported through the pipe
        _answer(writing, b"-" + f"cannot make private namespaces: {error}".encode("utf-8", "replace"))
        os._exit(1)


def _inner(work: t.Callable[[], bytes], kept: t.Sequence[str], writing: int) -> t.NoReturn:
    try:
        libc("prctl", _PARENT_DEATH_SIGNAL, signal.SIGKILL)
        _prepare(kept)
        done = b"+" + work()
    except SandboxError as error:
        done = b"-" + str(error).encode("utf-8", "replace")
    except BaseException:  # noqa: BLE001 - reported through the pipe
        import traceback

        done = b"-" + traceback.format_exc().encode("utf-8", "replace")
    _answer(writing, done)
    os._exit(0)


def _answer(writing: int, data: bytes) -> None:
    while data:
        data = data[os.write(writing, data) :]


def _prepare(kept: t.Sequence[str]) -> None:
    os.environ["PATH"] = f"{SOFTWARE}:{os.environ.get('PATH', '')}"
    os.chdir("/")
    _isolate_mounts()
    hidden = {path: os.open(path, os.O_PATH) for path in kept if (path + "/").startswith("/run/")}
    _mount("tmpfs", "/run", "tmpfs", 0, "mode=0755")
    for path, fd in hidden.items():
        os.makedirs(path, exist_ok=True)
        _mount(f"/proc/self/fd/{fd}", path, "", _BIND)
        os.close(fd)
    _mount("proc", "/proc", "proc")
    _mount("sysfs", "/sys", "sysfs")
    for path in (HOME, NETNS_DIR, *(f"{HOME}/{part}" for part in ("bin", "leases", "upper"))):
        os.makedirs(path, exist_ok=True)
    for path in filter(os.path.isdir, OVERLAID):
        _overlay(path)
    command("ip", "link", "set", "lo", "up")


def _isolate_mounts() -> None:
    """Make all mounts private. In a chroot, only the real root can be told so, and setns leads there."""
    child = os.fork()
    if child == 0:
        try:
            libc("setns", os.open("/proc/self/ns/mnt", os.O_RDONLY), _NEW_MOUNTS)
            _mount("", "/", "", _RECURSIVE | _PRIVATE)
        except BaseException:  # noqa: BLE001 - the exit status tells it
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise SandboxError("cannot make the mounts private")


def _overlay(path: str) -> None:
    upper, work = (f"{HOME}/upper/{path.strip('/').replace('/', '-')}{end}" for end in ("", ".work"))
    os.mkdir(upper)
    os.mkdir(work)
    status = os.stat(path)
    os.chmod(upper, stat.S_IMODE(status.st_mode))
    _mount("overlay", path, "overlay", 0, f"lowerdir={path},upperdir={upper},workdir={work}")


def written_files() -> t.Dict[str, str]:
    """Return what was written since the start: path -> "file", "directory", "removed" ..., without the own files."""
    written: t.Dict[str, str] = {}
    for path in OVERLAID:
        upper = f"{HOME}/upper/{path.strip('/').replace('/', '-')}"
        written.update(_walk(upper, path, ()))
    written.update(_walk("/run", "/run", (HOME, NETNS_DIR)))
    written.update(_walk(LEASES, LEASES, ()))
    return written


def _walk(folder: str, shown: str, left_out: t.Sequence[str]) -> t.Iterator[t.Tuple[str, str]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.path in left_out or os.path.ismount(entry.path):
            continue
        status = entry.stat(follow_symlinks=False)
        path = f"{shown}/{entry.name}"
        if stat.S_ISDIR(status.st_mode):
            yield path, "directory"
            yield from _walk(entry.path, path, left_out)
        elif stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            yield path, "removed"
        else:
            yield path, "link" if stat.S_ISLNK(status.st_mode) else "file"


# ---- network namespaces


def make_netns(name: str) -> str:
    """Make a network namespace that a plugin gets as CNI_NETNS, and return its path."""
    path = f"{NETNS_DIR}/{name}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))

    def work() -> None:
        libc("unshare", _NEW_NET)
        _mount("/proc/thread-self/ns/net", path, "", _BIND)

    _apart(work)
    return path


def remove_netns(path: str) -> None:
    """Remove a namespace; it may be gone already, or a plugin may have put a plain file in its place."""
    if os.path.ismount(path):
        libc("umount2", path.encode(), _DETACH)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def inside(path: str, work: t.Callable[[], Result]) -> Result:
    """Call *work* in the namespace at *path*; "" is the host's, in which this process is."""
    if not path:
        return work()

    def run() -> Result:
        fd = os.open(path, os.O_RDONLY)
        try:
            libc("setns", fd, _NEW_NET)
        finally:
            os.close(fd)
        return work()

    return _apart(run)


def _apart(work: t.Callable[[], Result]) -> Result:
    """Call *work* in a thread of its own, which has a network namespace of its own."""
    results: t.List[Result] = []
    errors: t.List[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


# ---- programs and system calls


def command(*words: str, stdin: str = "", check: bool = True) -> str:
    """Run a program of the system, in the namespace of this thread, and return its output. Raises `SandboxError`."""
    path = shutil.which(words[0])
    if path is None:
        raise SandboxError(f"{words[0]} is not in PATH; install it")
    ended = run_program(path, words, stdin.encode(), os.environ)
    if check and ended.failure:
        said = ended.stderr.decode("utf-8", "replace").strip()
        raise SandboxError(f"{' '.join(words)} failed: {said or ended.failure}")
    return ended.stdout.decode("utf-8", "replace")


def libc(function: str, *arguments: t.Any) -> None:
    """Call a function of libc that Python lacks, or has only since 3.12. Raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, function)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    try:
        words = [word.encode() or None for word in (source, target, kind)]
        libc("mount", *words, ctypes.c_ulong(flags), options.encode() or None)
    except OSError as error:
        raise SandboxError(f"cannot mount {kind or source or 'private'} on {target}: {error.strerror}") from error
