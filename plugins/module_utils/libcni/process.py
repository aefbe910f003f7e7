# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""Running one program to its end, bounded in time and in what it prints."""

from __future__ import annotations

import errno
import os
import select
import signal
import time

from . import spawn

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
    returncode = None if child.returncode == spawn.LOST else child.returncode
    return Ended(bytes(run.stdout), bytes(run.stderr), failure, returncode, run.killed)


def _start(
    path: str, env: t.Mapping[str, str], deadline: float | None, argv: t.Sequence[str], keep: t.Collection[int]
) -> spawn.Child:
    for _try in range(BUSY_TRIES - 1):
        try:
            return spawn.start(path, argv, env, keep)
        except OSError as exc:
            if exc.errno != errno.ETXTBSY:
                raise
            if deadline is not None and time.monotonic() + BUSY_DELAY > deadline:
                raise
        time.sleep(BUSY_DELAY)
    return spawn.start(path, argv, env, keep)


class _Run:
    """One running program: feeds its stdin, collects its output, ends it."""

    def __init__(self, child: spawn.Child, stdin: bytes, stdout_limit: int) -> None:
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
        if self.child.returncode in (None, -signal.SIGKILL, spawn.LOST):
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
        _kill_group(self.child.pid)
        self._wait(time.monotonic(), KILL_WAIT)


def _kill_group(number: int) -> None:
    try:
        os.killpg(number, signal.SIGKILL)
    except OSError:
        # The group has no processes left.
        return


def _exit_text(returncode: int | None) -> str:
    returncode = returncode or 0
    if returncode == spawn.LOST:
        return "exit status unknown (another part of this process waited for it, or SIGCHLD is ignored)"
    if returncode > 0:
        return f"exit status {returncode}"
    if returncode < 0:
        return f"signal: {(signal.strsignal(-returncode) or str(-returncode)).lower()}"
    return ""
