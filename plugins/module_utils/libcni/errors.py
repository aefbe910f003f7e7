# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Errors of libcni, and Go's way of quoting text in them.

Every error that this package raises on bad input is a `CNIError`. Its text is the text of Go's libcni where Go has one;
the attributes carry what a program wants to know.
"""

from __future__ import annotations

import copyreg

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t


# Well known error codes (CNI SPEC, section "Error"; Go: pkg/types). Plugins use 100 and above for their own.
ERR_UNKNOWN = 0
ERR_INCOMPATIBLE_CNI_VERSION = 1
ERR_UNSUPPORTED_FIELD = 2
ERR_UNKNOWN_CONTAINER = 3
ERR_INVALID_ENVIRONMENT_VARIABLES = 4
ERR_IO_FAILURE = 5
ERR_DECODING_FAILURE = 6
ERR_INVALID_NETWORK_CONFIG = 7
ERR_INVALID_NETNS = 8
ERR_TRY_AGAIN_LATER = 11
ERR_PLUGIN_NOT_AVAILABLE = 50
ERR_LIMITED_CONNECTIVITY = 51
ERR_INTERNAL = 999

LONGEST_QUOTE = 4096

_GO_ESCAPES = {char: f"\\{letter}" for char, letter in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"')}


def quote(text: str) -> str:
    """Return `text` in double quotes, escaped as Go's `%q` does it.

    Invalid UTF-8 must be in Python's `surrogateescape` form and prints as `\\xNN`. Of a text that is longer than
    `LONGEST_QUOTE`, only the start is quoted, with dots after it; Go's text could have 50 MB.
    """
    out = []
    for char in text[:LONGEST_QUOTE]:
        code = ord(char)
        if char in _GO_ESCAPES:
            out.append(_GO_ESCAPES[char])
        elif char.isprintable():
            out.append(char)
        elif 0xDC80 <= code <= 0xDCFF:
            out.append(f"\\x{code - 0xDC00:02x}")
        elif code < 0x20 or code == 0x7F:
            out.append(f"\\x{code:02x}")
        elif 0xD800 <= code <= 0xDFFF:
            out.append("\ufffd")
        elif code < 0x10000:
            out.append(f"\\u{code:04x}")
        else:
            out.append(f"\\U{code:08x}")
    return '"' + "".join(out) + ('"' if len(text) <= LONGEST_QUOTE else '"...')


def os_error_text(operation: str, path: str, error: OSError) -> str:
    """Return an OSError as Go prints its PathError, for instance `open /x: no such file or directory`."""
    reason = error.strerror or str(error)
    return f"{operation} {path}: {reason[:1].lower() + reason[1:]}"


class CNIError(Exception):
    """Base of all errors of this package. All can be copied and pickled, including their causes."""

    def __reduce__(self) -> tuple[t.Any, ...]:
        # The method of Exception would call the class with only the text, whatever arguments its __init__ takes.
        state = dict(self.__dict__)
        if isinstance(self.__cause__, CNIError):
            state["__cause__"] = self.__cause__
        return copyreg.__newobj__, (type(self), *self.args), state  # type: ignore[attr-defined]


class VersionError(CNIError):
    """An invalid CNI version."""


class ConfigError(CNIError):
    """A network configuration that cannot be read or parsed.

    `path`: the file, "" if the text came from memory. `line`, `column`: where the JSON is broken, both from 1, None if
    the JSON is sound and its content is not.
    """

    def __init__(self, msg: str, path: str = "", line: int | None = None, column: int | None = None) -> None:
        super().__init__(msg)
        self.msg = msg
        self.path = path
        self.line = line
        self.column = column


class JSONError(ConfigError):
    """Text that is not JSON, a value of the wrong type, or a value that JSON cannot express.

    `where`: the place of an invalid address in its document, as `ips/0/address`, else "". `msg` is without the place
    and the position, str() has them.
    """

    def __init__(self, msg: str, line: int | None = None, column: int | None = None, where: str = "") -> None:
        super().__init__(msg, line=line, column=column)
        self.where = where

    def __str__(self) -> str:
        text = f"{self.where}: {self.msg}" if self.where else self.msg
        return text if self.line is None else f"{text} (line {self.line}, column {self.column})"


class NotFoundError(ConfigError):
    """No network of that name (Go: NotFoundError)."""

    def __init__(self, directory: str, name: str) -> None:
        super().__init__(f'no net configuration with name "{name}" in {directory}', path=directory)
        self.dir = directory
        self.name = name


class NoConfigsFoundError(ConfigError):
    """No configuration file at all (Go: NoConfigsFoundError)."""

    def __init__(self, directory: str) -> None:
        super().__init__(f"no net configurations found in {directory}", path=directory)
        self.dir = directory


class CheckNotSupportedError(CNIError):
    """The configuration's version is older than the CHECK command (Go: ErrorCheckNotSupp)."""

    def __init__(self, version: str) -> None:
        super().__init__(f"configuration version {quote(version)} does not support the CHECK command")
        self.version = version


class CacheError(CNIError):
    """A cache entry that cannot be written or read, or that belongs to another attachment."""

    def __init__(self, msg: str, path: str = "") -> None:
        super().__init__(msg)
        self.msg = msg
        self.path = path


class ResultError(CNIError):
    """A result that cannot be decoded or converted."""


class PluginNotFoundError(CNIError):
    """No such plugin binary in the plugin directories (Go: FindInPath)."""

    def __init__(self, msg: str, plugin: str = "", paths: t.Sequence[str] = ()) -> None:
        super().__init__(msg)
        self.plugin = plugin
        self.paths = tuple(paths)


class PluginError(CNIError):
    """The error that a plugin reported, or its failure without a report (Go: types.Error).

    `code`: number of the SPEC's error object, 0 if there was none. `msg`, `details`: its texts. `plugin`: the plugin's
    type, "" if unknown. `stderr`: what it wrote there, bounded. `cause`: the error that this one wraps, or None.
    """

    def __init__(
        self,
        code: int,
        msg: str,
        details: str = "",
        plugin: str = "",
        stderr: str = "",
        cause: CNIError | None = None,
    ) -> None:
        super().__init__(msg)
        self.code = code
        self.msg = msg
        self.details = details
        self.plugin = plugin
        self.stderr = stderr
        self.cause = cause

    def __str__(self) -> str:
        if self.details:
            return f"{self.msg}; {self.details}"
        return self.msg


class ValidationError(PluginError):
    """A container id, network name or interface name that breaks the SPEC's rules (codes 3, 7 and 4 as in Go)."""


class PluginListError(PluginError):
    """A plugin of a list failed: Go's text `plugin type="T" failed (add): ...` around `cause`.

    `code`, `msg`, `details` and `stderr` are those of the cause (of any `CNIError`: code 0, its text). `verb`: add or
    delete.
    """

    def __init__(self, description: str, verb: str, plugin: str, cause: CNIError) -> None:
        if isinstance(cause, PluginError):
            super().__init__(cause.code, cause.msg, cause.details, plugin, cause.stderr, cause)
        else:
            super().__init__(ERR_UNKNOWN, str(cause), plugin=plugin, cause=cause)
        self.description = description
        self.verb = verb

    def __str__(self) -> str:
        return f"plugin {self.description} failed ({self.verb}): {self.cause}"


class MultiError(CNIError):
    """Several errors at once; `errors` holds them in order."""

    def __init__(self, msg: str, errors: t.Sequence[CNIError]) -> None:
        super().__init__(msg)
        self.errors = list(errors)
