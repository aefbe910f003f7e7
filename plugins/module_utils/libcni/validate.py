# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""Validation of container ids, network names and interface names (Go: pkg/utils/utils.go).

Go validates on ADD only. This package validates on every verb and before any of the three becomes part of a path.
"""

from __future__ import annotations

import re

from .errors import (
    ERR_INVALID_ENVIRONMENT_VARIABLES,
    ERR_INVALID_NETWORK_CONFIG,
    ERR_UNKNOWN_CONTAINER,
    ValidationError,
)

MAX_INTERFACE_NAME_LENGTH = 15

# Always matched with fullmatch: in Python `$` would also match before a final newline.
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.\-]*")

# Go's unicode.IsSpace; str.isspace() has U+001C to U+001F on top.
_FORBIDDEN_IN_IF_NAME = re.compile("[/:\t\n\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")


def validate_container_id(container_id: str) -> None:
    """Raise `ValidationError` (3 if empty, 4 otherwise) unless `container_id` is a valid container id."""
    if not container_id:
        raise ValidationError(ERR_UNKNOWN_CONTAINER, "missing containerID")
    if not _NAME.fullmatch(container_id):
        raise ValidationError(ERR_INVALID_ENVIRONMENT_VARIABLES, "invalid characters in containerID", container_id)


def validate_network_name(name: str) -> None:
    """Raise `ValidationError` (7) unless `name` is a valid network name."""
    if not name:
        raise ValidationError(ERR_INVALID_NETWORK_CONFIG, "missing network name:")
    if not _NAME.fullmatch(name):
        raise ValidationError(ERR_INVALID_NETWORK_CONFIG, "invalid characters found in network name", name)


def validate_if_name(if_name: str) -> None:
    """Raise `ValidationError` (4) unless `if_name` can name an interface in Linux."""
    if not if_name:
        raise _bad_if_name("interface name is empty")
    # The kernel counts bytes, not characters.
    if len(if_name.encode("utf-8", "surrogatepass")) > MAX_INTERFACE_NAME_LENGTH:
        raise _bad_if_name(
            "interface name is too long",
            f"interface name should be less than {MAX_INTERFACE_NAME_LENGTH + 1} characters",
        )
    if if_name in (".", ".."):
        raise _bad_if_name("interface name is . or ..")
    if _FORBIDDEN_IN_IF_NAME.search(if_name):
        raise _bad_if_name("interface name contains / or : or whitespace characters")


def _bad_if_name(msg: str, details: str = "") -> ValidationError:
    return ValidationError(ERR_INVALID_ENVIRONMENT_VARIABLES, msg, details)
