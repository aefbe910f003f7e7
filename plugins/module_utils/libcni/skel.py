# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""What every plugin written in Python needs (Go: pkg/skel): environment, stdin, versions, errors, exit status.

    def add(args):
        return libcni.Result.build(interfaces=[libcni.Interface(args.ifname, sandbox=args.netns)])

    libcni.plugin_main(add=add, delete=lambda args: None, about="example v1")

Checks, their order, codes and texts are those of Go's skel. Deviations: the plugin's own network namespace is refused
before the callback runs, not after it; stdout has one document at most; a callback may return its result.
"""

from __future__ import annotations

import os
import sys

from . import gojson, validate, version
from .errors import (
    ERR_DECODING_FAILURE,
    ERR_INCOMPATIBLE_CNI_VERSION,
    ERR_INTERNAL,
    ERR_INVALID_ENVIRONMENT_VARIABLES,
    ERR_INVALID_NETNS,
    ERR_INVALID_NETWORK_CONFIG,
    ERR_IO_FAILURE,
    JSONError,
    PluginError,
    VersionError,
    os_error_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types as python_types
    import typing as t

    from .types import Result

    Callback = t.Callable[["CmdArgs"], t.Optional[Result]]

_ATTACHMENT = ("ADD", "CHECK", "DEL")
# Variable, the commands that require it, and its validation.
_VARIABLES: tuple[tuple[str, tuple[str, ...], t.Callable[[str], None] | None], ...] = (
    ("CNI_CONTAINERID", _ATTACHMENT, validate.validate_container_id),
    ("CNI_NETNS", ("ADD", "CHECK"), None),
    ("CNI_IFNAME", _ATTACHMENT, validate.validate_if_name),
    ("CNI_PATH", (*_ATTACHMENT, "GC", "STATUS"), None),
)
# The version that introduced a command.
_SINCE = {"CHECK": "0.4.0", "GC": "1.1.0", "STATUS": "1.1.0"}
# What only a mistake in the plugin's own code raises. The text alone ("'mtu'") says nothing.
_MISTAKES = (ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, TypeError)


class CmdArgs:
    """What a callback gets: the call as its environment and stdin describe it (Go: skel.CmdArgs).

    `container_id`, `netns` (a path, "" if not given), `ifname`, `args` (CNI_ARGS as it is), `path` (CNI_PATH as it is),
    `netns_override` (CNI_NETNS_OVERRIDE), `stdin_data` (bytes as they were read).
    """

    __slots__ = ("_config", "args", "container_id", "ifname", "netns", "netns_override", "path", "stdin_data")

    def __init__(
        self,
        container_id: str = "",
        netns: str = "",
        ifname: str = "",
        args: str = "",
        path: str = "",
        netns_override: str = "",
        stdin_data: bytes = b"{}",
        config: dict[str, t.Any] | None = None,
    ) -> None:
        self.container_id = container_id
        self.netns = netns
        self.ifname = ifname
        self.args = args
        self.path = path
        self.netns_override = netns_override
        self.stdin_data = stdin_data
        self._config = config

    @property
    def config(self) -> dict[str, t.Any]:
        """The configuration on stdin, parsed; unknown keys are kept. Raises `JSONError`."""
        if self._config is None:
            self._config = gojson.as_object(gojson.loads(self.stdin_data, lax=True), "")
        return self._config

    @property
    def cni_version(self) -> str:
        """The version of the configuration, which the result must have; never ""."""
        return version.config_version(self.config)

    @property
    def prev_result(self) -> Result | None:
        """The result of the plugins before this one, None without one (Go: ParsePrevResult). Raises `ResultError`."""
        raw = None
        for _name, value in gojson.struct_items(self.config, ("prevResult",)):
            raw = value
        if raw is None:
            return None
        from .types import parse_prev_result

        return parse_prev_result(self.cni_version, gojson.as_object(raw, "prevResult"))

    @property
    def ipam_type(self) -> str:
        """The plugin that assigns addresses (`ipam.type`), "" if there is none. Raises `JSONError`."""
        plugin_type = ""
        for _name, ipam in gojson.struct_items(self.config, ("ipam",)):
            for _field, value in gojson.struct_items(gojson.as_object(ipam, "ipam"), ("type",)):
                plugin_type = gojson.as_string(value, "ipam/type")
        return plugin_type

    def load_args(self, into: type[t.Any]) -> t.Any:
        """Return CNI_ARGS as an object of that class: see `plugin_args.load_args`."""
        from .plugin_args import load_args

        return load_args(self.args, into)


def plugin_main(
    add: Callback | None = None,
    check: Callback | None = None,
    delete: Callback | None = None,
    gc: Callback | None = None,
    status: Callback | None = None,
    versions: t.Sequence[str] = version.ALL,
    about: str = "",
    error_version: bool = False,
) -> None:
    """Be a plugin: do what the environment and stdin ask for, once (Go: skel.PluginMainFuncs).

    A callback gets a `CmdArgs`. What it returns or else prints is the result; a `Result` is printed in the version of
    the configuration. What it raises becomes the error object: a `PluginError` as it is, also as the cause (`raise ...
    from`) or a member of another exception, anything else with code 999. A command without a callback succeeds.
    `versions`: what the plugin supports, `about`: what a person sees who runs the plugin by hand. `error_version` also
    puts `cniVersion` into error objects, as the specification asks and Go's skel does not.
    Raises SystemExit with 1 after an error, and passes that of a callback on.
    """
    if not versions:
        raise ValueError("programmer error: you must support at least one version")
    _open_standard_files()
    callbacks = {"ADD": add, "CHECK": check, "DEL": delete, "GC": gc, "STATUS": status}
    command = os.environ.get("CNI_COMMAND", "")
    if not command and about:
        _note(f"{about}\nCNI protocol versions supported: {', '.join(versions)}\n".encode())
        return
    call = _Call(command, tuple(versions))
    with _Stdout() as stdout:
        try:
            text = call.run(callbacks, stdout)
        except Exception as exc:  # noqa: BLE001  # whatever it is, the runtime gets an error object
            text = call.error_text(exc, error_version)
            call.failed = True
        stdout.put(text)
    if call.failed or stdout.failed:
        raise SystemExit(1)


class _Call:
    """One call of the plugin: from the environment to what stdout gets."""

    def __init__(self, command: str, versions: tuple[str, ...]) -> None:
        self.command = command
        self.versions = versions
        self.config_version = ""
        self.failed = False

    def run(self, callbacks: t.Mapping[str, Callback | None], stdout: _Stdout) -> bytes:
        """Return what the call prints. Raises whatever went wrong."""
        if self.command == "VERSION":
            answer = gojson.Struct(cniVersion=version.CURRENT, supportedVersions=list(self.versions))
            return gojson.dumps(answer) + b"\n"
        container_id, netns, ifname, path = self._environment()
        args = CmdArgs(
            container_id,
            netns,
            ifname,
            os.environ.get("CNI_ARGS", ""),
            path,
            os.environ.get("CNI_NETNS_OVERRIDE", ""),
            _read_stdin(),
        )
        config = self._configuration(args)
        if self.command not in callbacks:
            raise PluginError(ERR_INVALID_ENVIRONMENT_VARIABLES, f"unknown CNI_COMMAND: {self.command}")
        self._check_version(config)
        if self.command in ("ADD", "DEL"):
            _refuse_own_namespace(args)
        callback = callbacks[self.command]
        if callback is None:
            return b""
        result = callback(args)
        printed = stdout.take()
        if result is None or self.command != "ADD":
            return printed
        if not hasattr(result, "as_version"):
            raise TypeError(f"the callback of ADD returned {type(result).__name__}; it must return a Result or None")
        # Beside the result it would make stdout two documents.
        _note(printed)
        return result.as_version(self.config_version).to_json(4)

    def _environment(self) -> list[str]:
        """Return the values of `_VARIABLES`."""
        values, missing = [], [] if self.command else ["CNI_COMMAND"]
        for name, required_by, check in _VARIABLES:
            value = os.environ.get(name, "")
            values.append(value)
            if self.command not in required_by:
                continue
            if not value:
                missing.append(name)
            elif check is not None:
                check(value)
        if missing:
            raise PluginError(
                ERR_INVALID_ENVIRONMENT_VARIABLES, f"required env variables [{','.join(missing)}] missing"
            )
        return values

    def _configuration(self, args: CmdArgs) -> t.Any:
        try:
            name = ""
            for _field, value in gojson.struct_items(args.config, ("name",)):
                name = gojson.string_over(name, value, "name")
        except JSONError as exc:
            raise PluginError(ERR_DECODING_FAILURE, f"error unmarshall network config: {exc}") from None
        if not name:
            raise PluginError(ERR_INVALID_NETWORK_CONFIG, "missing network name")
        validate.validate_network_name(name)
        return args.config

    def _check_version(self, config: t.Any) -> None:
        try:
            self.config_version = version.config_version(config)
            since = _SINCE.get(self.command)
            if since is not None:
                self._check_command(since)
        except (JSONError, VersionError) as exc:
            raise PluginError(ERR_DECODING_FAILURE, str(exc)) from None
        version.reconcile(self.config_version, self.versions)

    def _check_command(self, since: str) -> None:
        which = ""
        if not version.greater_than_or_equal_to(self.config_version, since):
            which = "config"
        elif not any(version.greater_than_or_equal_to(known, self.config_version) for known in self.versions):
            which = "plugin"
        if which:
            raise PluginError(ERR_INCOMPATIBLE_CNI_VERSION, f"{which} version does not allow {self.command}")

    def error_text(self, exc: BaseException, with_version: bool) -> bytes:
        """Return the error object for an exception."""
        error = _plugin_error(exc) or _other_error(exc)
        out = gojson.Struct()
        if with_version:
            known = self.config_version in self.versions
            out["cniVersion"] = self.config_version if known else self.versions[-1]
        out.update(code=error.code, msg=error.msg)
        if error.details:
            out["details"] = error.details
        return gojson.dumps(out, 4)


def _refuse_own_namespace(args: CmdArgs) -> None:
    if validate.is_overridden(args.netns_override):
        return
    try:
        same = os.path.samestat(os.stat(args.netns), os.stat("/proc/self/ns/net"))
    except (OSError, ValueError):
        # The path may lead nowhere in a DEL; an ADD notices by itself.
        return
    if same:
        raise PluginError(ERR_INVALID_NETNS, "plugin's netns and netns from CNI_NETNS should not be the same")


# ---- errors


def _plugin_error(exc: BaseException) -> PluginError | None:
    """Return the first CNI error in an exception, its causes and members (Go: errors.As)."""
    waiting, seen = [exc], set()
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, PluginError):
            return current
        # `errors` of MultiError, `exceptions` of Python's own groups.
        inner = [current.__cause__, *getattr(current, "errors", ()), *getattr(current, "exceptions", ())]
        waiting[:0] = [error for error in inner if isinstance(error, BaseException)]
    return None


def _other_error(exc: BaseException) -> PluginError:
    if isinstance(exc, JSONError) and exc.where:
        return PluginError(ERR_INTERNAL, exc.msg)
    if isinstance(exc, OSError) and exc.filename is not None:
        return PluginError(ERR_INTERNAL, f"{os.fsdecode(exc.filename)}: {exc.strerror}")
    if isinstance(exc, _MISTAKES) or not exc.args:
        return PluginError(ERR_INTERNAL, f"{type(exc).__name__}: {exc}", _place(exc.__traceback__))
    return PluginError(ERR_INTERNAL, str(exc))


def _place(traceback: python_types.TracebackType | None) -> str:
    """Return where a mistake is, as a person would look for it."""
    if traceback is None:
        return ""
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    code = traceback.tb_frame.f_code
    return f"{code.co_filename}, line {traceback.tb_lineno}, in {code.co_name}"


# ---- standard files


def _open_standard_files() -> None:
    """Give a file to each standard stream that was closed at the start, as Go does: the next file would become it."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is this one.
            os.open(os.devnull, os.O_RDWR)


def _read_stdin() -> bytes:
    chunks: list[bytes] = []
    try:
        while True:
            chunk = os.read(0, 65536)
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)
    except OSError as exc:
        raise PluginError(
            ERR_IO_FAILURE, f"error reading from stdin: {os_error_text('read', '/dev/stdin', exc)}"
        ) from exc


def _write_all(number: int, data: bytes) -> None:
    while data:
        data = data[os.write(number, data) :]


def _note(data: bytes) -> None:
    try:
        _write_all(2, data)
    except OSError:
        # Nobody reads it, which is no reason to fail.
        return


class _Stdout:
    """Collects what the callback and its children print, so that stdout gets one document, and none that is half."""

    def __init__(self) -> None:
        self.failed = False
        self._real = self._collected = -1

    def __enter__(self) -> _Stdout:
        if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
        _flush()
        self._collected = os.memfd_create("stdout")
        self._real = os.dup(1)
        os.dup2(self._collected, 1)
        return self

    def take(self) -> bytes:
        """Return what has been printed so far."""
        _flush()
        size = os.fstat(self._collected).st_size
        return os.pread(self._collected, size, 0) if size else b""

    def put(self, data: bytes) -> None:
        """Print the document."""
        try:
            _write_all(self._real, data)
        except OSError as exc:
            self.failed = True
            _note(f"cannot write the answer to stdout: {exc.strerror}\n".encode())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: python_types.TracebackType | None,
    ) -> None:
        if isinstance(exc, SystemExit):
            # The callback ends the plugin by itself, with what it has printed.
            self.put(self.take())
        _flush()
        os.dup2(self._real, 1)
        os.close(self._real)
        os.close(self._collected)


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()
