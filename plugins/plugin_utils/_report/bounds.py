# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""How much of what a host returns is kept. A compromised host must not cost the controller more than a large one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ...module_utils._host.json_text import parse_json
from ...module_utils._host.secrets import visible
from ..untrusted import MOST_NUMBER, number, table
from .fleet import CUT, is_future, seconds

LONGEST = 20_000
"""The most characters of a text."""
DEEPEST = 40
_PRICE_OF_VALUE = 32


class Limit(NamedTuple):
    """*room* is for the texts of a field, with a price for each of its values; *rows* are the most of a list."""

    room: int
    rows: int = 1000


LIMITS = {
    "format": Limit(100),
    "host": Limit(4096),
    "time": Limit(4096),
    "groups": Limit(64 << 10),
    "status": Limit(100),
    "error": Limit(1 << 20),
    "unreachable": Limit(100),
    "no_connection": Limit(LONGEST),
    "steps": Limit(4 << 20, 2000),
    "warnings": Limit(1 << 20),
    "problems": Limit(1 << 20),
    "confirmed": Limit(100),
    "info": Limit(8 << 20, 5000),
}
"""The fields of a record. What else a record has is left out."""
_MOST_LINES = 100
_RESULT = Limit(16 << 20, 10_000)


def bounded(record: Any) -> Any:
    """Return a copy of a record that says in ``cut`` what was left out or shortened; what is no record, as it is."""
    if not isinstance(record, Mapping):
        return record
    fields = {name: record[name] for name in LIMITS if name in record}
    kept, cut = reduced(fields, LIMITS)
    for name, count in table(record.get(CUT)).items():
        if isinstance(name, str) and len(name) < 20 and len(cut) < 2 * len(LIMITS):
            cut[name] = cut.get(name, 0) + number(count)
    error, time = kept.get("error"), kept.get("time")
    if isinstance(error, str) and error.count("\n") >= _MOST_LINES:
        *lines, _rest = error.split("\n", _MOST_LINES)
        kept["error"] = "\n".join(lines)
        cut["error"] = cut.get("error", 0) + error.count("\n") + 1 - _MOST_LINES
    if isinstance(time, str) and time and (seconds(time) is None or is_future(time)):
        kept["time"] = ""
        cut["time"] = cut.get("time", 0) + 1
    return {**kept, CUT: cut} if cut else kept


def reduced(
    fields: Mapping[str, Any], limits: Mapping[str, Limit] | None = None
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return a copy of each field with only Python's own types, and how many values of which field were cut.

    Ansible's types have tags and are evaluated late. Parts of this are printed, so terminal escapes are removed.
    """
    kept, cut = {}, {}
    for name, value in fields.items():
        field = _Field((limits or {}).get(name, _RESULT))
        kept[name] = field.copy(value, 0)
        if field.cut:
            cut[name] = field.cut
    return kept, cut


def plain(value: Any) -> Any:
    """Return a copy of one value, see :func:`reduced`."""
    return reduced({"": value})[0][""]


class _Field:
    """What is kept of one field, as long as there is room."""

    def __init__(self, limit: Limit) -> None:
        self._room = limit.room
        self._rows = limit.rows
        self.cut = 0

    def copy(self, value: Any, depth: int) -> Any:
        self._room -= _PRICE_OF_VALUE
        # Most values are of these types, and a fleet has millions of them.
        if type(value) is str:  # pylint: disable=unidiomatic-typecheck
            return self._text(value)
        if isinstance(value, dict):
            pairs = self._fitting(value.items(), len(value), depth)
            return {self._text(str(key)): self.copy(entry, depth + 1) for key, entry in pairs}
        if isinstance(value, (list, tuple)):
            return [self.copy(entry, depth + 1) for entry in self._fitting(value, len(value), depth)]
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int(value) if abs(value) < MOST_NUMBER else self._without()
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else self._without()
        return self._text(str(value))

    def _fitting(self, entries: Iterable[Any], count: int, depth: int) -> Iterable[Any]:
        """Yield the entries for which there is room, each when the one before has taken its part of it."""
        for index, entry in enumerate(entries):
            if index == self._rows or self._room < 0 or depth == DEEPEST:
                self.cut += count - index
                return
            yield entry

    def _without(self) -> None:
        self.cut += 1

    def _text(self, text: str) -> str:
        length = len(text)
        if length <= LONGEST and length <= self._room and text.isprintable() and type(text) is str:  # pylint: disable=unidiomatic-typecheck
            self._room -= length
            return text
        longest = min(LONGEST, max(1, self._room))
        shown = visible(text[: longest + 1])
        if len(shown) > longest:
            self.cut += 1
            shown = shown[: longest - 1] + "…"
        self._room -= len(shown)
        # Ansible's own kind of text ends here.
        return shown if type(shown) is str else str(parse_json(json.dumps(shown)))  # pylint: disable=unidiomatic-typecheck
