# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""Starting one child process and waiting for it, without the module subprocess.

subprocess takes milliseconds to import, and its wait with a timeout polls. Here, `os.posix_spawn` starts the child,
which copies none of the parent's memory on any Python, and a pidfd reports its end at once.
"""

from __future__ import annotations

import os
import select
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

# Python ignores these, and a child would inherit that.
_TO_RESTORE = (signal.SIGPIPE, signal.SIGXFSZ)
_STANDARD = 3
# Not an exit status: other code has waited for the program, or SIGCHLD was ignored.
LOST = 256
# Used if /proc does not list the descriptors.
_LIKELY = range(_STANDARD, 256)


class Child:
    """A started program: this process's ends of its pipes, and how it ended.

    It leads a process group of its own, with the number `pid`. `returncode` is None before it has been waited for, then
    as subprocess has it (negative for a signal), or `LOST`.
    """

    __slots__ = ("pid", "returncode", "stderr", "stdin", "stdout")

    def __init__(self, pid: int, stdin: int, stdout: int, stderr: int) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None

    def wait(self, seconds: float | None) -> bool:
        """Wait for the end, with None as long as it takes; False if it did not come in time."""
        if seconds is None:
            return self._reap(0)
        if self._reap(os.WNOHANG):
            return True
        deadline = time.monotonic() + seconds
        try:
            # Python 3.9, Linux 5.3.
            pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            return self._look_again(deadline)
        try:
            poller = select.poll()
            poller.register(pidfd, select.POLLIN)
            poller.poll(max(0, int(seconds * 1000) + 1))
        finally:
            os.close(pidfd)
        return self._reap(os.WNOHANG)

    def _look_again(self, deadline: float) -> bool:
        pause = 0.0001
        while time.monotonic() < deadline:
            time.sleep(pause)
            if self._reap(os.WNOHANG):
                return True
            pause = min(pause * 2, 0.05)
        return False

    def _reap(self, options: int) -> bool:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:
                self.returncode = LOST
                return True
            if pid:
                self.returncode = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return self.returncode is not None

    def close_stdin(self) -> None:
        """Tell the program that there is no more input."""
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1

    def close(self) -> None:
        """Close the pipes. The program is not waited for."""
        self.close_stdin()
        os.close(self.stdout)
        os.close(self.stderr)


def start(path: str, argv: t.Sequence[str], env: t.Mapping[str, str], keep: t.Collection[int] = ()) -> Child:
    """Start the program at `path` with pipes for its standard streams; it inherits no other descriptor but `keep`.

    Raises OSError and ValueError.
    """
    # For each stream: what is read from, what is written to.
    pipes: list[int] = []
    try:
        for _stream in range(_STANDARD):
            pipes += _pipe()
        theirs = (pipes[0], pipes[3], pipes[5])
        actions: list[tuple[int, ...]] = [(os.POSIX_SPAWN_DUP2, fd, stream) for stream, fd in enumerate(theirs)]
        actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable() if fd not in keep]
        # A session of its own would be a scheduling group of its own, too (autogroup), which takes time to make, and
        # for which a busy host makes the parent wait.
        pid = os.posix_spawn(path, list(argv), env, file_actions=actions, setpgroup=0, setsigdef=_TO_RESTORE)
    except BaseException:
        for fd in pipes:
            os.close(fd)
        raise
    for fd in theirs:
        os.close(fd)
    return Child(pid, pipes[1], pipes[2], pipes[4])


def _pipe() -> list[int]:
    """Make a pipe whose descriptors are none of the standard streams', as they would be in a process without those."""
    fds = list(os.pipe())
    if min(fds) >= _STANDARD:
        return fds
    import fcntl

    try:
        return [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _STANDARD) for fd in fds]
    finally:
        for fd in fds:
            os.close(fd)


def _inheritable() -> list[int]:
    """Return the descriptors that a child would inherit: none of Python's own, but perhaps some of its parent's."""
    try:
        fds: t.Iterable[int] = map(int, os.listdir("/proc/self/fd"))
    except OSError:
        fds = _LIKELY
    return [fd for fd in fds if fd >= _STANDARD and _is_inheritable(fd)]


def _is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:
        # Closed meanwhile.
        return False
