# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Running one program to its end, bounded in time and in what it prints, without the module subprocess.

subprocess takes milliseconds to import, and its wait with a timeout polls. Here, `os.posix_spawn` starts the child,
which copies none of the parent's memory on any Python, and a pidfd reports its end at once.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

# A result has some hundred bytes. A program that prints more than this is broken, and must not fill the memory.
STDOUT_LIMIT = 4 * 1024 * 1024
# The end of stderr is kept, because a panic or a traceback ends with what happened.
STDERR_LIMIT = 16 * 1024
# A binary that is being written cannot be run: 6 tries, a second apart, as Go means to do.
BUSY_TRIES = 6
BUSY_DELAY = 1.0
# After the deadline: the time to read what is already in the pipes.
GRACE = 0.5
# For the kernel to end a process after the kill.
KILL_WAIT = 5.0
_CHUNK = 65536
# Python ignores these, and a child would inherit that.
_TO_RESTORE = (signal.SIGPIPE, signal.SIGXFSZ)
_STANDARD = 3
# Not an exit status: other code has waited for the program, or SIGCHLD was ignored.
LOST = 256
# Used if /proc does not list the descriptors.
_LIKELY = range(_STANDARD, 256)


class Ended:
    """How a program ended.

    `failure` is "" if it exited with 0 in time, else Go's text for what happened; `returncode` as subprocess has it,
    None if the program could not be started or its end is unknown; `killed` tells that the deadline or the bound
    on its output ended it.
    """

    __slots__ = ("failure", "killed", "returncode", "stderr", "stdout")

    def __init__(self, stdout: bytes, stderr: bytes, failure: str, returncode: int | None, killed: bool) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.failure = failure
        self.returncode = returncode
        self.killed = killed


def run_program(
    path: str,
    argv: t.Sequence[str],
    stdin: bytes,
    env: t.Mapping[str, str],
    timeout: float | None = None,
    stdout_limit: int | None = None,
    keep: t.Collection[int] = (),
) -> Ended:
    """Run the program at `path` to its end, in a process group of its own. Every failure is in the return value.

    `timeout` in seconds, None for no limit. `stdout_limit` in bytes, default `STDOUT_LIMIT`; the end of stderr is kept.
    `keep`: descriptors that the program inherits, which have to be inheritable.
    If SIGCHLD is ignored, which a process inherits, it is set to its default while the program runs, because the kernel
    would discard the exit status. Only the main thread can do that; in any other thread, the program is not run.
    """
    ignored = signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    if ignored:
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        except ValueError:
            reason = "this process ignores SIGCHLD, which discards exit statuses; set it to SIG_DFL in the main thread"
            return Ended(b"", b"", f"fork/exec {path}: {reason}", None, False)
    limit = STDOUT_LIMIT if stdout_limit is None else stdout_limit
    try:
        return _run_program(path, argv, stdin, env, timeout, limit, keep)
    finally:
        if ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def _run_program(
    path: str,
    argv: t.Sequence[str],
    stdin: bytes,
    env: t.Mapping[str, str],
    timeout: float | None,
    stdout_limit: int,
    keep: t.Collection[int],
) -> Ended:
    deadline = None if timeout is None else time.monotonic() + timeout
    try:
        child = _start(path, env, deadline, argv, keep)
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else None
        reason = (reason or "invalid argument").lower()
        return Ended(b"", b"", f"fork/exec {path}: {reason}", None, False)
    run = _Run(child, stdin, stdout_limit)
    try:
        failure = run.finish(deadline, timeout)
    finally:
        run.close()
    returncode = None if child.returncode == LOST else child.returncode
    return Ended(bytes(run.stdout), bytes(run.stderr), failure, returncode, run.killed)


def _start(
    path: str, env: t.Mapping[str, str], deadline: float | None, argv: t.Sequence[str], keep: t.Collection[int]
) -> Child:
    for _try in range(BUSY_TRIES - 1):
        try:
            return start_child(path, argv, env, keep)
        except OSError as exc:
            if exc.errno != errno.ETXTBSY:
                raise
            if deadline is not None and time.monotonic() + BUSY_DELAY > deadline:
                raise
        time.sleep(BUSY_DELAY)
    return start_child(path, argv, env, keep)


class _Run:
    """One running program: feeds its stdin, collects its output, ends it."""

    def __init__(self, child: Child, stdin: bytes, stdout_limit: int) -> None:
        self.child = child
        self.stdout_limit = stdout_limit
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.killed = False
        self._input = memoryview(stdin)
        self._poller = select.poll()
        self._buffers = {child.stdout: self.stdout, child.stderr: self.stderr}
        for fd in self._buffers:
            self._poller.register(fd, select.POLLIN)
        os.set_blocking(child.stdin, False)
        self._poller.register(child.stdin, select.POLLOUT)

    def finish(self, deadline: float | None, timeout: float | None) -> str:
        """Wait for the end. Return "" if the plugin succeeded, else Go's text for how it ended."""
        if self._exchange(deadline) and self._wait(deadline, GRACE):
            return _exit_text(self.child.returncode)
        too_much = len(self.stdout) > self.stdout_limit
        self._kill()
        if too_much:
            return f"signal: killed (it printed more than {self.stdout_limit} bytes)"
        if self.child.returncode in (None, -signal.SIGKILL, LOST):
            return f"signal: killed (it did not end within {timeout or 0:g} s)"
        return (
            f"{_exit_text(self.child.returncode) or 'exit status 0'} "
            f"(but a process that it left behind held its output open for more than {timeout or 0:g} s, and was killed)"
        )

    def close(self) -> None:
        """Close the pipes; kill the plugin if it still runs, which happens only after an interrupt."""
        if self.child.returncode is None and not self.killed:
            self._kill()
        self.child.close()

    def _exchange(self, deadline: float | None) -> bool:
        """Serve the pipes until both outputs are at their end; False if the deadline or the limit came first."""
        # Most configurations fit into the pipe at once.
        self._send(self.child.stdin)
        while self._buffers:
            now = time.monotonic()
            if deadline is not None and now > deadline + GRACE:
                return False
            events = self._poller.poll(None if deadline is None else max(0, int((deadline - now) * 1000) + 1))
            if not events and deadline is not None and time.monotonic() >= deadline:
                return False
            for fd, _event in events:
                if fd in self._buffers:
                    self._receive(fd)
                else:
                    self._send(fd)
            if len(self.stdout) > self.stdout_limit:
                return False
        return True

    def _receive(self, fd: int) -> None:
        chunk = os.read(fd, _CHUNK)
        if not chunk:
            self._poller.unregister(fd)
            del self._buffers[fd]
            return
        buffer = self._buffers[fd]
        if buffer is self.stderr:
            buffer += chunk
            del buffer[:-STDERR_LIMIT]
        elif len(buffer) <= self.stdout_limit:
            buffer += chunk

    def _send(self, fd: int) -> None:
        try:
            self._input = self._input[os.write(fd, self._input[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            # A plugin need not read its configuration.
            self._input = self._input[:0]
        if not self._input:
            self._poller.unregister(fd)
            self.child.close_stdin()

    def _wait(self, deadline: float | None, minimum: float) -> bool:
        return self.child.wait(None if deadline is None else max(minimum, deadline - time.monotonic()))

    def _kill(self) -> None:
        # The plugin has not been waited for, so its PID, which is also that of the group, cannot be reused.
        self.killed = True
        try:  # noqa: SIM105  # contextlib takes long to import
            os.killpg(self.child.pid, signal.SIGKILL)
        except OSError:  # The group has no processes left.
            pass
        self._wait(time.monotonic(), KILL_WAIT)


def _exit_text(returncode: int | None) -> str:
    returncode = returncode or 0
    if returncode == LOST:
        return "exit status unknown (another part of this process waited for it, or SIGCHLD is ignored)"
    if returncode > 0:
        return f"exit status {returncode}"
    if returncode < 0:
        return f"signal: {(signal.strsignal(-returncode) or str(-returncode)).lower()}"
    return ""


# ---- one child process


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


def start_child(path: str, argv: t.Sequence[str], env: t.Mapping[str, str], keep: t.Collection[int] = ()) -> Child:
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
