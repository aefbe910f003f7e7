# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""CNI spec versions: parsing, comparing, and reading them from plugins and configurations (Go: pkg/version)."""

from __future__ import annotations

from . import gojson
from .errors import ERR_INCOMPATIBLE_CNI_VERSION, JSONError, PluginError, VersionError, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

CURRENT = "1.1.0"
LEGACY = ("0.1.0", "0.2.0")
ALL = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def parse_version(version: str) -> tuple[int, int, int]:
    """Return the three numbers of `version`; "" is 0.1.0, missing parts are 0. Raises `VersionError`."""
    if version == "":
        return 0, 1, 0
    parts = version.split(".")
    if len(parts) >= 4:
        raise VersionError(f"invalid version {quote(version)}: too many parts")
    numbers = [_atoi(part, which) for part, which in zip(parts, ("major", "minor", "micro"))]
    major, minor, micro = [*numbers, 0, 0][:3]
    return major, minor, micro


def _atoi(part: str, which: str) -> int:
    # Like Go's strconv.Atoi. int() would also accept blanks, underscores and digits of other scripts.
    digits = part[1:] if part.startswith(("+", "-")) else part
    reason = ""
    if not (digits.isascii() and digits.isdigit()):
        reason = "invalid syntax"
    elif len(part) > 400 or not _INT64_MIN <= int(part) <= _INT64_MAX:
        reason = "value out of range"
    if reason:
        raise VersionError(
            f"failed to convert {which} version part {quote(part)}: strconv.Atoi: parsing {quote(part)}: {reason}"
        )
    return int(part)


def greater_than(version: str, other: str) -> bool:
    """Tell whether `version` is newer than `other`. Raises `VersionError`."""
    return parse_version(version) > parse_version(other)


def greater_than_or_equal_to(version: str, other: str) -> bool:
    """Tell whether `version` is `other` or newer. Raises `VersionError`."""
    return parse_version(version) >= parse_version(other)


def is_at_least(version: str, minimum: str) -> bool:
    """Tell the same; an invalid version is older than all others."""
    try:
        return greater_than_or_equal_to(version, minimum)
    except VersionError:
        return False


def decode_config_version(data: bytes) -> str:
    """Return the cniVersion of a configuration or result; "0.1.0" if it has none (Go: ConfigDecoder.Decode).

    Raises `JSONError`.
    """
    try:
        parsed = gojson.loads(data)
    except JSONError as exc:
        raise JSONError(f"decoding version from network config: {exc.msg}", line=exc.line, column=exc.column) from exc
    return config_version(parsed)


def config_version(parsed: t.Any) -> str:
    """Return the same of a configuration that is parsed already. Raises `JSONError`."""
    version = ""
    try:
        for _name, value in gojson.struct_items(parsed, ("cniVersion",)):
            version = gojson.string_over(version, value, "cniVersion")
    except JSONError as exc:
        raise JSONError(f"decoding version from network config: {exc.msg}") from exc
    return version or "0.1.0"


def decode_plugin_info(data: bytes) -> list[str]:
    """Return the versions that a plugin's answer to VERSION lists (Go: PluginDecoder.Decode). Raises `JSONError`."""
    version = ""
    supported: list[str] = []
    try:
        for name, value in gojson.struct_items(gojson.loads(data), ("cniVersion", "supportedVersions")):
            if name == "cniVersion":
                version = gojson.as_string(value, name)
            else:
                supported = [gojson.as_string(item, name) for item in gojson.as_list(value, name)]
    except JSONError as exc:
        raise JSONError(f"decoding version info: {exc.msg}", line=exc.line, column=exc.column) from exc
    if not version:
        raise JSONError("decoding version info: missing field cniVersion")
    if not supported:
        if version == "0.2.0":
            return list(LEGACY)
        raise JSONError("decoding version info: missing field supportedVersions")
    return supported


def reconcile(config_version: str, plugin_versions: t.Sequence[str]) -> None:
    """Raise `PluginError` (1) unless the plugin supports exactly that version (Go: Reconciler.CheckRaw and skel)."""
    if config_version not in plugin_versions:
        raise PluginError(
            ERR_INCOMPATIBLE_CNI_VERSION,
            "incompatible CNI versions",
            f"config is {quote(config_version)}, plugin supports [{' '.join(map(quote, plugin_versions))}]",
        )
