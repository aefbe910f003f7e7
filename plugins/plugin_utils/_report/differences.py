# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The difference between two states of an object, for display: as a table of settings, or as lines."""

from __future__ import annotations

import difflib
import json
from typing import Any, Iterator, NamedTuple

MOST_LINES = 120
"""The most lines of one difference. A longer one reports how many were left out."""
MOST_SETTINGS = 12
"""The most settings of a table. If more of them differ, the difference is shown as lines."""
_MOST_READ = 500
_LONGEST = 200
_LONGEST_LINE = 400
_GONE = object()


class Diff(NamedTuple):
    """Lines with their sign (``+``, ``-``, `` `` or ``@`` for a gap), and how many more there are.

    ``whole`` is "+" or "-" if all of it appears or goes, so that there is nothing to compare. ``settings`` are the
    places in two JSON values that differ, each with its value before and after ("" if it is missing there); if there
    are any, they say it all.
    """

    lines: list[tuple[str, str]]
    more: int
    whole: str = ""
    settings: list[tuple[str, str, str]] = []  # noqa: RUF012 - never changed


def diff(before: Any, after: Any) -> Diff:
    """Return the difference between two states; None and "" are the state of a missing object."""
    try:
        settings = _settings(_value(before), _value(after))
    except RecursionError:
        return Diff([], 0)
    if settings:
        return Diff([], 0, "", settings)
    old, new = _lines(before), _lines(after)
    lines = []
    for line in list(difflib.unified_diff(old[:_MOST_READ], new[:_MOST_READ], lineterm="", n=3))[2:]:
        lines.append(("@", "") if line.startswith("@@") else (line[0], line[1:_LONGEST_LINE]))
    if lines and lines[0][0] == "@":
        del lines[0]
    unread = max(0, len(old) - _MOST_READ) + max(0, len(new) - _MOST_READ)
    whole = "" if old and new else "+" if new else "-" if old else ""
    return Diff(lines[:MOST_LINES], max(0, len(lines) - MOST_LINES) + unread, whole)


def _value(state: Any) -> Any:
    """Return a state as JSON data: a text may be the content of a file."""
    if isinstance(state, str) and state.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(state)
        except (ValueError, RecursionError):
            return state
    return state


def _settings(before: Any, after: Any) -> list[tuple[str, str, str]]:
    """Return the places that differ; none if they are too many, or too long for a table."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return []
    settings = []
    for place, old, new in _differing("", before, after):
        settings.append((place, _shown(old), _shown(new)))
        if len(settings) > MOST_SETTINGS or any(len(text) > _LONGEST for text in settings[-1]):
            return []
    return settings


def _differing(place: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            yield from _differing(f"{place}.{key}" if place else key, before.get(key, _GONE), after.get(key, _GONE))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after)):
            yield from _differing(f"{place}[{index}]", old, new)
    elif before != after or type(before) is not type(after):
        yield place, before, after


def _shown(value: Any) -> str:
    if value is _GONE:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _lines(state: Any) -> list[str]:
    if state is None or state == "":
        return []
    if not isinstance(state, str):
        state = json.dumps(state, indent=2, sort_keys=True, ensure_ascii=False)
    return state.split("\n")[:-1] if state.endswith("\n") else state.split("\n")
