# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A configuration as a plugin's Go decoder sees it: keys in any case, null means that the key is missing."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, NamedTuple

from ...module_utils._host.problems import INFO, WARNING
from ...module_utils.libcni.gojson import fold
from .positions import Fault
from .schema_files import Schema, Shape
from .spelling import meant

# The most findings that are reported for one object.
LIMIT = 50
_LONGEST_KEY = 100
# What libcni reads of a list only, and plugins do not read.
_OF_LISTS = ("cniVersions", "disableCheck", "disableGC", "loadOnlyInlinedPlugins")
# The age from which a schema of another's plugin may lack a key.
_YEAR = timedelta(days=365)


class Chosen(NamedTuple):
    """An object inside that another schema describes: its *path* in the folded value, the value as it is."""

    path: tuple[Any, ...]
    value: dict[str, Any]
    extra: Schema


class Folded:
    """``value``: keys in the schema's spelling, members that are null left out. ``findings``: keys in another case, and
    keys that the schema does not know. ``chosen``: the objects inside that have schemas of their own, not yet folded.

    *owner* is the subject of messages, *at* the pointer of the whole.
    """

    def __init__(self, value: Any, shape: Shape, owner: str, at: tuple[Any, ...]) -> None:
        self.findings: list[Fault] = []
        self.chosen: list[Chosen] = []
        self._owner = owner
        self._at = at
        is_old = shape.read is not None and date.today() - shape.read > _YEAR
        self._unknown = INFO if is_old else WARNING
        handed = shape.properties.get("runtimeConfig")
        self._options = set(shape.properties).difference(handed.properties if handed else ())
        self._written: dict[tuple[Any, ...], str] = {}
        self.value = self._fold(value, shape, ())

    def pointer(self, path: Any) -> tuple[Any, ...]:
        """Return the pointer in the original to *path* of the folded value."""
        out = list(self._at)
        path = tuple(path)
        for index, part in enumerate(path):
            out.append(self._written.get((*path[:index], part), part))
        return tuple(out)

    def put(self, path: tuple[Any, ...], value: Any) -> None:
        """Replace the value at *path* (not the whole)."""
        inside = self.value
        for part in path[:-1]:
            inside = inside[part]
        inside[path[-1]] = value

    def _fold(self, value: Any, shape: Shape, path: tuple[Any, ...]) -> Any:
        if isinstance(value, dict):
            if shape.extra and path:
                self.chosen.append(Chosen(path, value, shape.extra))
                return value
            return self._fold_object(value, shape, path)
        if isinstance(value, list) and shape.items:
            return [self._fold(element, shape.items[0], (*path, index)) for index, element in enumerate(value)]
        return value

    def _fold_object(self, value: dict[str, Any], shape: Shape, path: tuple[Any, ...]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for written, member in value.items():
            key = written
            if written not in shape.properties and not shape.exact:
                key = shape.by_case.get(fold(written), written)
            inner = shape.properties.get(key)
            if inner is None:
                self._note_unknown(written, shape, (*path, key))
                out[key] = self._fold(member, shape.rest, (*path, key)) if shape.rest else member
                continue
            pointer = (*path, key)
            if key in out:
                # libcni sorts the keys, and the last one wins: the one in lower case.
                first = self._written[pointer]
                last = max(written, first)
                text = f"{self._owner}: {first!r} and {written!r} are one key, and only {last!r} counts; keep that"
                self._note(WARNING, "duplicate_key", text, pointer)
                if written != last:
                    continue
            self._written[pointer] = written
            if member is not None:
                self._note_known(written, key, inner, member, pointer)
                out[key] = self._fold(member, inner, pointer)
        return out

    def _note(self, level: str, code: str, message: str, path: tuple[Any, ...]) -> None:
        if len(self.findings) < LIMIT:
            self.findings.append(Fault(level, code, message, self.pointer(path), key=True))

    def _note_known(self, written: str, key: str, shape: Shape, member: Any, path: tuple[Any, ...]) -> None:
        if written != key:
            text = f"{self._owner} reads {written!r} as {key!r}, because Go ignores case; write {key!r}"
            self._note(INFO, "key_case", text, path)
        since = shape.since
        if isinstance(since, dict):
            since = since.get(member) if isinstance(member, str) else None
        if shape.deprecated:
            what = shape.deprecated
            what = what[:1].lower() + what[1:] if what[1:2].islower() else what
            text = f"{self._owner}: {key} is for old releases only: {what}"
            self._note(INFO, "deprecated_key", text, path)
        if since is not None:
            subject = f"{key} {member}" if isinstance(shape.since, dict) else key
            text = f"{self._owner}: {subject} needs {since} of the plugins; older releases ignore or reject it"
            self._note(INFO, "needs_release", text, path)

    def _note_unknown(self, key: str, shape: Shape, path: tuple[Any, ...]) -> None:
        known = list(shape.properties)
        if not known or len(self.findings) >= LIMIT or any(pattern.search(key) for pattern in shape.patterns):
            return
        near = "" if key in _OF_LISTS else meant(key, known)
        is_option = path[:-1] == ("capabilities",) and key in self._options
        if shape.rest is not None and not near and not is_option:
            return
        advice = "write it beside 'plugins', in a list" if key in _OF_LISTS else "remove it, or check its name"
        advice = f"did you mean {near!r}?" if near else advice
        shown = key if len(key) <= _LONGEST_KEY else key[:_LONGEST_KEY] + "..."
        if is_option:
            text = f"{shown!r} is an option of {self._owner} and no capability; write it beside 'capabilities'"
        elif shape.rest is not None:
            text = f"{self._owner}: {shown!r} is not a usual key here; {advice}"
        elif shape.closed:
            text = f"{self._owner} has no key {shown!r} and ignores it; {advice}"
        else:
            text = f"{self._owner} has no known key {shown!r} and would ignore it; {advice}"
        self._note(self._unknown, "unknown_key", text, path)
