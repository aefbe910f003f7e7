# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Reading data of unknown shape: from a host, or from a file."""

from __future__ import annotations

from typing import Any, Mapping

MOST_NUMBER = 1 << 63


def rows(value: Any) -> list[Mapping[str, Any]]:
    """Return the mappings of a list; none for any other value."""
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def table(value: Any) -> Mapping[str, Any]:
    """Return a mapping, an empty one for any other value."""
    return value if isinstance(value, Mapping) else {}


def texts(value: Any) -> list[str]:
    """Return the strings of a list."""
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return a string as it is, a number or boolean as text, "" for any other value."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, (bool, int, float)) and abs(value) < MOST_NUMBER else ""


def number(value: Any) -> int:
    """Return a count, 0 for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_NUMBER else 0
