# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Finding and running plugins (Go: pkg/invoke).

Deviations from Go: relative and empty plugin directories are refused (Go would let the shell's PATH decide); a plugin
runs in a process group of its own, and the deadline kills that group and bounds the wait for output that an orphaned
child holds open; what a plugin prints is bounded; a busy binary is tried again with a new process; an error without a
text gets one; the stderr of a plugin that succeeds is dropped unless the executor has a stream for it.
"""

from __future__ import annotations

import os
import stat

from . import gojson, version
from .errors import ERR_UNKNOWN, JSONError, PluginError, PluginNotFoundError, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

# How much of a plugin's output an error quotes.
QUOTE_LIMIT = 2048


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


def plugin_env(
    command: str,
    container_id: str = "",
    net_ns: str = "",
    args: t.Iterable[t.Sequence[str]] = (),
    if_name: str = "",
    path: str = "",
) -> dict[str, str]:
    """Return this process' environment with the six variables of the protocol set, the empty ones too (Go: Args.AsEnv).

    `args`: pairs for CNI_ARGS. They are neither escaped nor checked, as in Go: a plugin refuses what it cannot split.
    """
    return {
        **os.environ,
        "CNI_COMMAND": command,
        "CNI_CONTAINERID": container_id,
        "CNI_NETNS": net_ns,
        "CNI_ARGS": ";".join(f"{key}={value}" for key, value in args),
        "CNI_IFNAME": if_name,
        "CNI_PATH": path,
    }


class PluginOutput(bytes):
    """A plugin's stdout; `stderr` is what it wrote there, as text and bounded."""

    stderr = ""


class Executor:
    """Runs plugins (Go: RawExec). Subclass it to add a rule or to fake the plugins.

    `stderr`: binary file that gets what a successful plugin wrote to its stderr, if it can be written to; None drops
    it. `argv0`: argument 0 of a plugin, for binaries that contain several plugins and choose one by this name;
    None means the path. `keep`: descriptors that plugins inherit, such as one with a lock that shall be held as long as
    they run. An executor has no state: threads can share one.
    """

    __slots__ = ("argv0", "keep", "stderr")

    def __init__(
        self, stderr: t.BinaryIO | None = None, argv0: str | None = None, keep: t.Collection[int] = ()
    ) -> None:
        self.stderr = stderr
        self.argv0 = argv0
        self.keep = keep

    def find_in_path(self, plugin: str, paths: t.Sequence[str]) -> str:
        """Return the path of the plugin's binary. Raises `PluginNotFoundError`."""
        return find_in_path(plugin, paths)

    def exec_plugin(self, path: str, stdin: bytes, env: t.Mapping[str, str], timeout: float | None = None) -> bytes:
        """Run the plugin at `path` and return its stdout (a `PluginOutput`). `timeout` in seconds, None for no limit.

        Raises `PluginError` if it does not exit with 0 in time and leave its stdout closed.
        """
        # Imported here because most modules of the collection only look for plugins, and compiling it takes time.
        from .process import run_program

        ended = run_program(path, [self.argv0 or path], stdin, env, timeout, keep=self.keep)
        if ended.failure:
            raise plugin_error(os.path.basename(path), ended.stdout, ended.stderr, ended.failure, ended.killed)
        if self.stderr is not None and ended.stderr:
            try:
                self.stderr.write(ended.stderr)
                self.stderr.flush()
            except (OSError, ValueError):
                # As in Go, the plugin has succeeded even if its stderr cannot be written.
                pass
        output = PluginOutput(ended.stdout)
        output.stderr = _text(ended.stderr)
        return output


def plugin_error(plugin: str, stdout: bytes, stderr: bytes, failure: str, killed: bool = False) -> PluginError:
    """Return the error for a plugin that ended with `failure` (Go: RawExec.pluginErr).

    Its stdout should be the SPEC's error object; if not, the text quotes the output.
    """
    code, msg, details = ERR_UNKNOWN, "", ""
    text = _text(stderr)
    if stdout:
        shown = _quoted(stdout[:QUOTE_LIMIT])
        try:
            code, msg, details = _decode_error(stdout)
            msg = msg or f"netplugin failed and its output {shown} has no error message: {failure}"
        except JSONError as exc:
            msg = f"netplugin failed but error parsing its diagnostic message {shown}: {exc}"
            if killed:
                msg = f"{msg}: {failure}"
    elif stderr:
        msg = f"netplugin failed: {_quoted(stderr[-QUOTE_LIMIT:])}: {failure}"
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


def _quoted(data: bytes) -> str:
    return quote(data.decode("utf-8", "surrogateescape"))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def get_version_info(path: str, executor: Executor, timeout: float | None = None) -> list[str]:
    """Ask the plugin at `path` for the CNI versions that it supports (Go: invoke.GetVersionInfo).

    Raises `PluginError`.
    """
    env = plugin_env("VERSION", net_ns="dummy", if_name="dummy", path="dummy")
    stdin = gojson.dumps({"cniVersion": version.CURRENT})
    try:
        stdout = executor.exec_plugin(path, stdin, env, timeout)
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
