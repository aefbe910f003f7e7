# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""Finding and running plugins (Go: pkg/invoke).

Deviations from Go: relative and empty plugin directories are refused (Go would let the shell's PATH decide); a plugin
runs in a process group of its own, and the deadline kills that group and bounds the wait for output that a left child
holds open; what a plugin prints is bounded; a busy binary is tried again with a new process; an error without a text
gets one; what a plugin writes to stderr while it succeeds is dropped unless the executor is told where to write it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import stat
import subprocess
import time
import typing as t

from . import gojson, version
from .errors import ERR_UNKNOWN, JSONError, PluginError, PluginNotFoundError, quote

# A result has some hundred bytes. What prints more than this is broken, and the host's memory is not its own.
STDOUT_LIMIT = 4 * 1024 * 1024
# The end of stderr is kept: that is where a panic or a traceback says what happened.
STDERR_LIMIT = 16 * 1024
# So much of what a plugin printed is quoted in an error's text.
QUOTE_LIMIT = 2048
# A binary that is being written cannot be run: 6 tries, a second apart, as Go means to do.
BUSY_TRIES = 6
BUSY_DELAY = 1.0
# Beyond the deadline: for what is already in the pipes, where this process was late to read it.
GRACE = 0.5
# For the kernel to end a process after the kill.
KILL_WAIT = 5.0
_CHUNK = 65536


def find_in_path(plugin: str, paths: t.Sequence[str]) -> str:
    """Return the path of the first regular file named `plugin` in `paths`; whether it is executable does not matter.

    Raises `PluginNotFoundError`.
    """
    reason = ""
    if not plugin:
        reason = "no plugin name provided"
    elif "/" in plugin:
        reason = f"invalid plugin name: {plugin}"
    elif not paths:
        reason = "no paths provided"
    for path in paths:
        if not os.path.isabs(path):
            reason = reason or f"plugin directory {quote(path)} is not an absolute path"
    if reason:
        raise PluginNotFoundError(reason, plugin, paths)
    for path in paths:
        candidate = os.path.normpath(os.path.join(path, plugin))
        try:
            if stat.S_ISREG(os.stat(candidate).st_mode):
                return candidate
        except (OSError, ValueError):
            continue
    raise PluginNotFoundError(f"failed to find plugin {quote(plugin)} in path [{' '.join(paths)}]", plugin, paths)


class Args:
    """What a plugin gets by its environment (Go: invoke.Args). `plugin_args_str` wins over `plugin_args`."""

    __slots__ = ("command", "container_id", "if_name", "net_ns", "path", "plugin_args", "plugin_args_str")

    def __init__(
        self,
        command: str,
        container_id: str = "",
        net_ns: str = "",
        plugin_args: t.Sequence[t.Sequence[str]] = (),
        plugin_args_str: str = "",
        if_name: str = "",
        path: str = "",
    ) -> None:
        self.command = command
        self.container_id = container_id
        self.net_ns = net_ns
        self.plugin_args = plugin_args
        self.plugin_args_str = plugin_args_str
        self.if_name = if_name
        self.path = path

    def as_env(self) -> dict[str, str]:
        """Return this process' environment with the six variables of the protocol set, the empty ones too."""
        env = dict(os.environ)
        env["CNI_COMMAND"] = self.command
        env["CNI_CONTAINERID"] = self.container_id
        env["CNI_NETNS"] = self.net_ns
        # Neither escaped nor checked, as in Go: a plugin refuses what it cannot split again.
        env["CNI_ARGS"] = self.plugin_args_str or ";".join(f"{key}={value}" for key, value in self.plugin_args)
        env["CNI_IFNAME"] = self.if_name
        env["CNI_PATH"] = self.path
        return env


class PluginOutput(bytes):
    """A plugin's stdout; `stderr` is what it wrote there, as text and bounded."""

    stderr = ""


class Executor:
    """Runs plugins (Go: RawExec). Subclass it to add a rule or to fake the plugins.

    `stderr`: binary file that gets what a successful plugin wrote to its stderr; None drops it. `argv0`: what a plugin
    is told its own path is, for binaries that are several plugins and choose by their name; None is where it is. An
    executor has no state: threads can share one.
    """

    __slots__ = ("argv0", "stderr")

    def __init__(self, stderr: t.BinaryIO | None = None, argv0: str | None = None) -> None:
        self.stderr = stderr
        self.argv0 = argv0

    def find_in_path(self, plugin: str, paths: t.Sequence[str]) -> str:
        """Return the path of the plugin's binary. Raises `PluginNotFoundError`."""
        return find_in_path(plugin, paths)

    def exec_plugin(self, path: str, stdin: bytes, env: t.Mapping[str, str], timeout: float | None = None) -> bytes:
        """Run the plugin at `path` and return its stdout (a `PluginOutput`). `timeout` in seconds, None is none.

        Raises `PluginError` if it does not exit with 0 in time and leave its stdout closed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            process = _start(path, env, deadline, self.argv0 or path)
        except (OSError, ValueError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) else None
            reason = (reason or "invalid argument").lower()
            raise plugin_error(os.path.basename(path), b"", b"", f"fork/exec {path}: {reason}") from exc
        run = _Run(process, stdin)
        try:
            failure = run.finish(deadline, timeout)
        finally:
            run.close()
        if failure:
            raise plugin_error(os.path.basename(path), bytes(run.stdout), bytes(run.stderr), failure, run.killed)
        if self.stderr is not None and run.stderr:
            self.stderr.write(run.stderr)
            self.stderr.flush()
        output = PluginOutput(run.stdout)
        output.stderr = _text(bytes(run.stderr))
        return output


def _start(path: str, env: t.Mapping[str, str], deadline: float | None, argv0: str) -> subprocess.Popen[bytes]:
    for _try in range(BUSY_TRIES - 1):
        try:
            return _popen(path, env, argv0)
        except OSError as exc:
            if exc.errno != errno.ETXTBSY:
                raise
            if deadline is not None and time.monotonic() + BUSY_DELAY > deadline:
                raise
        time.sleep(BUSY_DELAY)
    return _popen(path, env, argv0)


def _popen(path: str, env: t.Mapping[str, str], argv0: str) -> subprocess.Popen[bytes]:
    # A session of its own makes a process group of its own, without preexec_fn, which threads do not bear.
    # The rule wants AnsibleModule.run_command, but this package works without Ansible, and run_command neither ends a
    # process group nor bounds what it reads.
    return subprocess.Popen(  # pylint: disable=ansible-bad-function
        [argv0],
        executable=path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env=env,
        close_fds=True,
        start_new_session=True,
    )


class _Run:
    """One running plugin: feeds its stdin, collects its output, ends it."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes) -> None:
        self.process = process
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.killed = False
        self._input = memoryview(stdin)
        self._poller = select.poll()
        self._buffers: dict[int, bytearray] = {}
        for pipe, buffer in ((process.stdout, self.stdout), (process.stderr, self.stderr)):
            if pipe is not None:
                self._buffers[pipe.fileno()] = buffer
                self._poller.register(pipe.fileno(), select.POLLIN)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self._poller.register(process.stdin.fileno(), select.POLLOUT)

    def finish(self, deadline: float | None, timeout: float | None) -> str:
        """Wait for the end. Return "" if the plugin succeeded, else Go's text for how it ended."""
        if self._exchange(deadline) and self._wait(deadline, GRACE):
            return _exit_text(self.process.returncode)
        too_much = len(self.stdout) > STDOUT_LIMIT
        self._kill()
        if too_much:
            return f"signal: killed (it printed more than {STDOUT_LIMIT} bytes)"
        if self.process.returncode in (None, -signal.SIGKILL):
            return f"signal: killed (it did not end within {timeout or 0:g} s)"
        return (
            f"{_exit_text(self.process.returncode) or 'exit status 0'} "
            f"(but a process that it left behind held its output open for more than {timeout or 0:g} s, and was killed)"
        )

    def close(self) -> None:
        """Close the pipes; kill the plugin if it still runs, which is so after an interrupt only."""
        if self.process.returncode is None and not self.killed:
            self._kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def _exchange(self, deadline: float | None) -> bool:
        """Serve the pipes until both outputs are at their end; False if the deadline or the limit came first."""
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
            if len(self.stdout) > STDOUT_LIMIT:
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
        elif len(buffer) <= STDOUT_LIMIT:
            buffer += chunk

    def _send(self, fd: int) -> None:
        try:
            self._input = self._input[os.write(fd, self._input[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            # A plugin need not read its configuration.
            self._input = self._input[:0]
        if not self._input and self.process.stdin is not None:
            self._poller.unregister(fd)
            self.process.stdin.close()

    def _wait(self, deadline: float | None, minimum: float) -> bool:
        try:
            self.process.wait(None if deadline is None else max(minimum, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def _kill(self) -> None:
        # The plugin has not been waited for, so its number, which is the group's, cannot belong to others.
        self.killed = True
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self._wait(time.monotonic(), KILL_WAIT)


def _exit_text(returncode: int) -> str:
    if returncode > 0:
        return f"exit status {returncode}"
    if returncode < 0:
        return f"signal: {(signal.strsignal(-returncode) or str(-returncode)).lower()}"
    return ""


def plugin_error(plugin: str, stdout: bytes, stderr: bytes, failure: str, killed: bool = False) -> PluginError:
    """Return the error for a plugin that ended with `failure` (Go: RawExec.pluginErr).

    Its stdout should be the SPEC's error object; if not, the text says what there was instead.
    """
    code, msg, details = ERR_UNKNOWN, "", ""
    text = _text(stderr)
    if stdout:
        shown = quote(stdout[:QUOTE_LIMIT].decode("utf-8", "surrogateescape"))
        try:
            code, msg, details = _decode_error(stdout)
            msg = msg or f"netplugin failed and its output {shown} has no error message: {failure}"
        except JSONError as exc:
            msg = f"netplugin failed but error parsing its diagnostic message {shown}: {exc}"
            if killed:
                msg = f"{msg}: {failure}"
    elif stderr:
        msg = f"netplugin failed: {quote(text[-QUOTE_LIMIT:])}: {failure}"
    else:
        msg = f"netplugin failed with no error message: {failure}"
    return PluginError(code, msg, details, plugin, text)


def _decode_error(data: bytes) -> tuple[int, str, str]:
    code, msg, details = ERR_UNKNOWN, "", ""
    for name, value in gojson.struct_items(gojson.loads(data), ("code", "msg", "details")):
        if name == "code":
            code = gojson.as_int(value, name, 0, 2**64 - 1)
        elif name == "msg":
            msg = gojson.as_string(value, name)
        else:
            details = gojson.as_string(value, name)
    return code, msg, details


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def get_version_info(path: str, executor: Executor, timeout: float | None = None) -> list[str]:
    """Ask the plugin at `path` for the CNI versions that it supports (Go: invoke.GetVersionInfo).

    Raises `PluginError`.
    """
    args = Args("VERSION", net_ns="dummy", if_name="dummy", path="dummy")
    stdin = gojson.dumps({"cniVersion": version.CURRENT})
    try:
        stdout = executor.exec_plugin(path, stdin, args.as_env(), timeout)
    except PluginError as exc:
        if str(exc) == "unknown CNI_COMMAND: VERSION":
            return ["0.1.0"]
        raise
    try:
        return version.decode_plugin_info(stdout)
    except JSONError as exc:
        raise PluginError(
            ERR_UNKNOWN, str(exc), plugin=os.path.basename(path), stderr=getattr(stdout, "stderr", ""), cause=exc
        ) from exc
