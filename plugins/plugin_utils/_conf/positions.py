# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The position in a text, or in a playbook, of the value at a JSON pointer, and what is wrong at a pointer."""

from __future__ import annotations

import bisect
import functools
import re
from typing import Any, NamedTuple, Optional, Sequence

from ...module_utils._host.json_text import parse_json

Origin: Any
try:
    from ansible._internal._datatag import _tags
except ImportError:
    # Ansible has no stable interface for the origin of a value, so its lack is tolerated.
    Origin = None
else:
    Origin = _tags.Origin

Pointer = Sequence[Any]
Position = tuple[Optional[int], Optional[int]]

UNKNOWN: Position = (None, None)


class Fault(NamedTuple):
    """A finding before its position is known: *pointer* is a tuple of keys and indexes; *key*: its key is meant."""

    level: str
    code: str
    message: str
    pointer: tuple[Any, ...] = ()
    key: bool = False


def text_of(pointer: Pointer) -> str:
    """Return the pointer as RFC 6901 writes it."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in pointer)


_NO_MEMBERS: Any = {}


class _Node:
    """A value of a JSON text: where it starts, and its members or elements, each with the start of its key."""

    __slots__ = ("is_object", "members", "start")

    def __init__(self, start: int, token: str) -> None:
        self.start = start
        self.is_object = token == "{"
        # By key or index; of equal keys, the last one. A value without any has none to itself: there may be many.
        self.members: dict[Any, tuple[int, _Node]] = {} if token in "{[" else _NO_MEMBERS


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)
_LINE_BREAK = re.compile(r"\r\n|\r|\n")


class TextPositions:
    """Positions in a valid JSON text."""

    def __init__(self, text: str) -> None:
        self._text = text

    @functools.cached_property
    def _scanned(self) -> tuple[_Node, list[tuple[Any, ...]]]:
        """The root, and the pointer of every key that occurs earlier in its object."""
        # What contains the text has it as its only element.
        stack = [_Node(0, "[")]
        path: list[Any] = []
        duplicates: list[tuple[Any, ...]] = []
        key: Optional[tuple[str, int]] = None
        for match in _TOKEN.finditer(self._text):
            token, start = match[0], match.start()
            if token in "}]":
                stack.pop()
                path.pop()
            elif token in ",:":
                continue
            elif token[0] == '"' and stack[-1].is_object and key is None:
                key = (parse_json(token, strict=False), start)
            else:
                members = stack[-1].members
                name, begin = key or (len(members), start)
                key = None
                if name in members:
                    duplicates.append((*path[1:], name))
                node = _Node(start, token)
                members[name] = (begin, node)
                if token in "{[":
                    stack.append(node)
                    path.append(name)
        return stack[0].members[0][1], duplicates

    @functools.cached_property
    def _breaks(self) -> list[int]:
        return [match.end() for match in _LINE_BREAK.finditer(self._text)]

    def _position(self, start: int) -> Position:
        line = bisect.bisect_right(self._breaks, start)
        return line + 1, start - (self._breaks[line - 1] if line else 0) + 1

    def find(self, pointer: Pointer, key: bool = False) -> Position:
        """Return line and column, from 1, of the value at *pointer* (*key*: of its key), or of what contains it."""
        node, _duplicates = self._scanned
        start = node.start
        for part in pointer:
            if part not in node.members:
                break
            begin, node = node.members[part]
            start = begin if key else node.start
        return self._position(start)

    def duplicate_keys(self) -> list[tuple[Any, ...]]:
        """Return the pointer of every key that occurs earlier in its object."""
        return self._scanned[1]


class DataPositions:
    """Positions of values in the playbook that they come from, if Ansible records them."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def find(self, pointer: Pointer, key: bool = False) -> Position:
        """Return line and column of the value at *pointer* (*key*: of its key), or of the nearest that has one."""
        value = self._data
        origin = origin_of(value)
        for part in pointer:
            try:
                if isinstance(value, dict):
                    name = next(name for name in value if name == part)
                    value = value[part]
                    first, second = (name, value) if key else (value, name)
                    origin = origin_of(first) or origin_of(second) or origin
                else:
                    value = value[part]
                    origin = origin_of(value) or origin
            except (StopIteration, LookupError, TypeError):
                break
        return (origin.line_num, origin.col_num) if origin else UNKNOWN


def origin_of(value: Any) -> Any:
    """Return where Ansible read a value, None if that is not known: what is read as JSON has no lines."""
    origin = Origin.get_tag(value) if Origin is not None else None
    return origin if origin and origin.line_num else None
