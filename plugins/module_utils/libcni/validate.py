# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Validation of container ids, network names, interface names (Go: pkg/utils/utils.go) and of network namespaces.

Go validates on ADD only. This package validates on every verb and before any of the three becomes part of a path.
"""

from __future__ import annotations

import os

from .errors import (
    ERR_INVALID_ENVIRONMENT_VARIABLES,
    ERR_INVALID_NETWORK_CONFIG,
    ERR_UNKNOWN_CONTAINER,
    ValidationError,
)

MAX_INTERFACE_NAME_LENGTH = 15

_FIRST_IN_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_IN_NAME = _FIRST_IN_NAME | frozenset("_.-")

# Go's unicode.IsSpace; str.isspace() also accepts U+001C to U+001F.
GO_SPACES = frozenset("\t\n\v\f\r \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000") | frozenset(
    map(chr, range(0x2000, 0x200B))
)
_FORBIDDEN_IN_IF_NAME = GO_SPACES | frozenset("/:")

_HOST_NETNS = ("/proc/self/ns/net", "/proc/1/ns/net")


def validate_container_id(container_id: str) -> None:
    """Raise `ValidationError` (3 if empty, 4 otherwise) unless `container_id` is a valid container id."""
    if not container_id:
        raise ValidationError(ERR_UNKNOWN_CONTAINER, "missing containerID")
    if not is_name(container_id):
        raise ValidationError(ERR_INVALID_ENVIRONMENT_VARIABLES, "invalid characters in containerID", container_id)


def validate_network_name(name: str) -> None:
    """Raise `ValidationError` (7) unless `name` is a valid network name."""
    if not name:
        raise ValidationError(ERR_INVALID_NETWORK_CONFIG, "missing network name:")
    if not is_name(name):
        raise ValidationError(ERR_INVALID_NETWORK_CONFIG, "invalid characters found in network name", name)


def is_name(text: str) -> bool:
    """Tell whether a text that is not empty can be a container id or the name of a network."""
    return text[0] in _FIRST_IN_NAME and _IN_NAME.issuperset(text)


def validate_if_name(if_name: str) -> None:
    """Raise `ValidationError` (4) unless `if_name` can name an interface in Linux."""
    if not if_name:
        raise _bad_if_name("interface name is empty")
    if _size(if_name) > MAX_INTERFACE_NAME_LENGTH:
        raise _bad_if_name(
            "interface name is too long",
            f"interface name should be less than {MAX_INTERFACE_NAME_LENGTH + 1} characters",
        )
    if if_name in (".", ".."):
        raise _bad_if_name("interface name is . or ..")
    if not _FORBIDDEN_IN_IF_NAME.isdisjoint(if_name):
        raise _bad_if_name("interface name contains / or : or whitespace characters")


def _size(text: str) -> int:
    """Return how many bytes the kernel counts; a byte of the environment that is not UTF-8 is one surrogate here."""
    try:
        return len(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return len(text.encode("utf-8", "surrogatepass"))


def _bad_if_name(msg: str, details: str = "") -> ValidationError:
    return ValidationError(ERR_INVALID_ENVIRONMENT_VARIABLES, msg, details)


def is_overridden(netns_override: str) -> bool:
    """Tell whether CNI_NETNS_OVERRIDE allows the host's own network namespace."""
    return netns_override.upper() in ("1", "TRUE")


def is_host_netns(path: str) -> bool:
    """Tell whether `path` leads to the network namespace of this process or of process 1, whatever it is called.

    Namespaces are compared by device and inode, so a symbolic link or a bind mount makes no difference.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return False
    for own in _HOST_NETNS:
        try:
            if os.path.samestat(status, os.stat(own)):
                return True
        except OSError:
            # Without permission to inspect process 1, only this process's namespace is known.
            continue
    return False
