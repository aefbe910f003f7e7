# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The position in a text, or in a playbook, of the value at a JSON pointer."""

from __future__ import annotations

from typing import Any, Iterator, Optional, Sequence

import yaml

Origin: Any
try:
    from ansible._internal._datatag import _tags
except ImportError:
    # Ansible has no stable interface for the origin of a value, so its lack is tolerated.
    Origin = None
else:
    Origin = _tags.Origin

try:
    from yaml import CSafeLoader as _Loader
except ImportError:
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

Pointer = Sequence[Any]
Position = tuple[Optional[int], Optional[int]]

# JSON with one of these is not YAML: a tab must not indent, and the others break lines or are not allowed.
# One blank for each keeps every position.
_BLANKS = {ord(char): " " for char in "\t\x7f\x85\u2028\u2029"}
UNKNOWN: Position = (None, None)


def text_of(pointer: Pointer) -> str:
    """Return the pointer as RFC 6901 writes it."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in pointer)


class TextPositions:
    """Positions in a valid JSON text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root: Optional[yaml.Node] = None
        self._tried = False

    def _node(self) -> Optional[yaml.Node]:
        if not self._tried:
            self._tried = True
            try:
                self._root = yaml.compose(self._text.translate(_BLANKS), Loader=_Loader)
            except yaml.YAMLError:
                # Some rare texts are JSON but not YAML, such as a key of more than 1024 characters.
                self._root = None
        return self._root

    def find(self, pointer: Pointer, key: bool = False) -> Position:
        """Return line and column, from 1, of the value at *pointer* (*key*: of its key), or of what contains it."""
        node = self._node()
        if node is None:
            return UNKNOWN
        place = node
        for part in pointer:
            if isinstance(node, yaml.MappingNode):
                pair = next((pair for pair in reversed(node.value) if pair[0].value == part), None)
                if pair is None:
                    break
                place, node = (pair[0] if key else pair[1]), pair[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                place = node = node.value[part]
            else:
                break
        return place.start_mark.line + 1, place.start_mark.column + 1

    def duplicate_keys(self) -> Iterator[tuple[list[Any], Position]]:
        """Yield pointer and position of every key that occurs earlier in its object."""
        node = self._node()
        if node is not None:
            yield from _duplicates(node, [])


def _duplicates(node: yaml.Node, pointer: list[Any]) -> Iterator[tuple[list[Any], Position]]:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                yield [*pointer, key.value], (key.start_mark.line + 1, key.start_mark.column + 1)
            seen.add(key.value)
            yield from _duplicates(value, [*pointer, key.value])
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _duplicates(value, [*pointer, index])


class DataPositions:
    """Positions of values in the playbook that they come from, if Ansible records them."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def find(self, pointer: Pointer, key: bool = False) -> Position:
        """Return line and column of the value at *pointer* (*key*: of its key), or of the nearest that has one."""
        if Origin is None:
            return UNKNOWN
        value = self._data
        found = _origin(value)
        for part in pointer:
            try:
                if isinstance(value, dict):
                    name = next(name for name in value if name == part)
                    value = value[part]
                    found = (_origin(name) if key else _origin(value)) or _origin(value) or _origin(name) or found
                else:
                    value = value[part]
                    found = _origin(value) or found
            except (StopIteration, LookupError, TypeError):
                break
        return found or UNKNOWN


def _origin(value: Any) -> Optional[Position]:
    origin = Origin.get_tag(value)
    if origin is None or not origin.line_num:
        return None
    return origin.line_num, origin.col_num
