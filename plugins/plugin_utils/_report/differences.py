# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The difference between two states of an object in lines, for display."""

from __future__ import annotations

import difflib
import json
from typing import Any, NamedTuple

MOST_LINES = 120
"""The most lines of one difference. A longer one reports how many were left out."""
_MOST_READ = 500
_LONGEST_LINE = 400


class Diff(NamedTuple):
    """Lines with their sign (``+``, ``-``, `` `` or ``@`` for a gap), and how many more there are.

    ``whole`` is "+" or "-" if all of it appears or goes, so that there is nothing to compare.
    """

    lines: list[tuple[str, str]]
    more: int
    whole: str = ""


def diff(before: Any, after: Any) -> Diff:
    """Return the difference between two states; None and "" are the state of a missing object."""
    try:
        old, new = _lines(before), _lines(after)
    except RecursionError:
        return Diff([], 0)
    lines = []
    for line in list(difflib.unified_diff(old[:_MOST_READ], new[:_MOST_READ], lineterm="", n=3))[2:]:
        lines.append(("@", "") if line.startswith("@@") else (line[0], line[1:_LONGEST_LINE]))
    if lines and lines[0][0] == "@":
        del lines[0]
    unread = max(0, len(old) - _MOST_READ) + max(0, len(new) - _MOST_READ)
    whole = "" if old and new else "+" if new else "-" if old else ""
    return Diff(lines[:MOST_LINES], max(0, len(lines) - MOST_LINES) + unread, whole)


def _lines(state: Any) -> list[str]:
    if state is None or state == "":
        return []
    if not isinstance(state, str):
        state = json.dumps(state, indent=2, sort_keys=True, ensure_ascii=False)
    return state.split("\n")[:-1] if state.endswith("\n") else state.split("\n")
