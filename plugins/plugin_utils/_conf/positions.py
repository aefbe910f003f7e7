# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The position in a text, or in a playbook, of the value at a JSON pointer."""

from __future__ import annotations

import bisect
import functools
import re
from typing import Any, Iterator, Optional, Sequence

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


def text_of(pointer: Pointer) -> str:
    """Return the pointer as RFC 6901 writes it."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in pointer)


class _Node:
    """A value of a JSON text: where it starts, and its members or elements, if it can have any."""

    __slots__ = ("elements", "members", "start")

    def __init__(self, start: int, token: str) -> None:
        self.start = start
        # Key, its start, and its value. A key may occur twice.
        self.members: Optional[list[tuple[str, int, _Node]]] = [] if token == "{" else None
        self.elements: Optional[list[_Node]] = [] if token == "[" else None


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)
_LINE_BREAK = re.compile(r"\r\n|\r|\n")


def _scan(text: str) -> Optional[_Node]:
    """Return the root of a valid JSON text."""
    root: Optional[_Node] = None
    stack: list[_Node] = []
    key: Optional[tuple[str, int]] = None
    for match in _TOKEN.finditer(text):
        token, start = match[0], match.start()
        if token in "}]":
            stack.pop()
        elif token in ",:":
            continue
        elif token[0] == '"' and stack and stack[-1].members is not None and key is None:
            key = (parse_json(token, strict=False), start)
        else:
            node = _Node(start, token)
            if not stack:
                root = node
            elif stack[-1].members is not None and key is not None:
                stack[-1].members.append((*key, node))
                key = None
            elif stack[-1].elements is not None:
                stack[-1].elements.append(node)
            if token in "{[":
                stack.append(node)
    return root


class TextPositions:
    """Positions in a valid JSON text."""

    def __init__(self, text: str) -> None:
        self._text = text

    @functools.cached_property
    def _root(self) -> Optional[_Node]:
        return _scan(self._text)

    @functools.cached_property
    def _breaks(self) -> list[int]:
        return [match.end() for match in _LINE_BREAK.finditer(self._text)]

    def _position(self, start: int) -> Position:
        line = bisect.bisect_right(self._breaks, start)
        return line + 1, start - (self._breaks[line - 1] if line else 0) + 1

    def find(self, pointer: Pointer, key: bool = False) -> Position:
        """Return line and column, from 1, of the value at *pointer* (*key*: of its key), or of what contains it."""
        node = self._root
        if node is None:
            return UNKNOWN
        start = node.start
        for part in pointer:
            if node.members is not None:
                member = next((member for member in reversed(node.members) if member[0] == part), None)
                if member is None:
                    break
                node = member[2]
                start = member[1] if key else node.start
            elif node.elements is not None and isinstance(part, int) and part < len(node.elements):
                node = node.elements[part]
                start = node.start
            else:
                break
        return self._position(start)

    def duplicate_keys(self) -> Iterator[tuple[Any, ...]]:
        """Yield the pointer of every key that occurs earlier in its object."""
        return _duplicates(self._root, ()) if self._root else iter(())


def _duplicates(node: _Node, pointer: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    seen = set()
    for name, _start, value in node.members or ():
        if name in seen:
            yield (*pointer, name)
        seen.add(name)
        yield from _duplicates(value, (*pointer, name))
    for index, value in enumerate(node.elements or ()):
        yield from _duplicates(value, (*pointer, index))


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
