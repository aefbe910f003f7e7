# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""YAML text: its documents one by one, and the places of their values, also of what is inside of a string."""

from __future__ import annotations

import re
from typing import AbstractSet, Any, Iterator, NamedTuple, Optional, Sequence

from .positions import UNKNOWN, Position
from .templates import HIDDEN

# Only manifests in YAML need it; Ansible has it, and the linter runs without Ansible.
YAML_MISSING: Optional[ImportError] = None
try:
    import yaml
except ImportError as _error:
    YAML_MISSING = _error
else:

    class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Reads values with tags of others (!vault, !Ref) as unknown ones."""

    _Loader.add_multi_constructor("", lambda _loader, _tag, _node: HIDDEN)

# Of one character of a quoted string: an escape, an escaped line break, a doubled quote.
_QUOTED = {
    '"': re.compile(r"\\(?:x..|u.{4}|U.{8}|\n|.)|[^\s\\]", re.DOTALL),
    "'": re.compile(r"''|\S"),
}
_NOT_YAML = re.compile("[\t\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_PLAIN = re.compile(r"\S")
_BLANK_ESCAPES = ("\\n", "\\t", "\\r", "\\ ", "\\\n", "\\\t")


class NotYaml(Exception):
    """A document is not YAML: *message* says why, *position* where."""

    def __init__(self, message: str, position: Position) -> None:
        super().__init__(message)
        self.position = position


class Part(NamedTuple):
    """The *text* of one document, after so many *lines* of the file."""

    text: str
    lines: int

    @property
    def numbers(self) -> range:
        """The numbers of its lines in the file."""
        return range(self.lines + 1, self.lines + self.text.count("\n") + 2)


def parts(text: str) -> list[Part]:
    """Return the documents of a text; directives and comments belong to the next one."""
    starts, documents = [match.start() for match in re.finditer(r"^---(?=\s|\Z)", text, re.MULTILINE)], []
    begin = 0
    for stop in [*starts, len(text)]:
        part = text[begin:stop]
        if re.fullmatch(r"(?:\s|[%#].*)*", part) and stop < len(text):
            continue
        documents.append(Part(part, text.count("\n", 0, begin)))
        begin = stop
    return documents


class YamlDocument:
    """``value`` of one document, and where its values are. Raises NotYaml.

    *lines*: those of the file from which a template may make parts come and go.
    """

    def __init__(self, part: Part, lines: AbstractSet[int] = frozenset()) -> None:
        self._open = lines
        # What is a line break to YAML only would have no line. JSON is YAML, except for some characters.
        text = re.sub(r"\r(?!\n)|[\x85\u2028\u2029]", " ", part.text)
        if re.match(r"(?:---)?\s*[\[{]", text):
            text = _NOT_YAML.sub(" ", text)
        self._lines = part.lines
        self._text = text
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        loader = _Loader(text)
        try:
            self._root = loader.get_node() if loader.check_node() else None
            self.value = None if self._root is None else loader.construct_document(self._root)
        except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            position = (part.lines + mark.line + 1, mark.column + 1) if mark else UNKNOWN
            raise NotYaml(str(getattr(error, "problem", None) or error), position) from error
        finally:
            loader.dispose()

    def position(self, pointer: Sequence[Any]) -> Position:
        """Return line and column of the value at *pointer*, or of what contains it."""
        for length in range(len(pointer), -1, -1):
            node = self._node(pointer[:length])
            if node is not None:
                return self._lines + node.start_mark.line + 1, node.start_mark.column + 1
        return UNKNOWN

    def is_open(self, pointer: Sequence[Any]) -> bool:
        """Tell whether a template may make parts of the value at *pointer* come and go."""
        node = self._node(pointer)
        if node is None:
            return False
        start, end = self._ends(node)
        first = self._lines + node.start_mark.line + 1
        return not self._open.isdisjoint(range(first, first + 1 + self._text[start:end].rstrip().count("\n")))

    def _ends(self, node: Any) -> tuple[int, int]:
        start, end = node.start_mark, node.end_mark
        # After a text without a line break at its end, a mark is on the line after the last one.
        last = len(self._text) if end.line >= len(self._starts) else self._starts[end.line] + end.column
        return self._starts[start.line] + start.column, last

    def inside(self, pointer: Sequence[Any], line: Optional[int], column: Optional[int]) -> Position:
        """Return the position in the file of line and column of the string at *pointer*."""
        node = self._node(pointer)
        if not isinstance(node, yaml.ScalarNode) or line is None or column is None:
            return self.position(pointer)
        # A string differs from its text in blanks, line breaks and escapes only: its n-th other character is the same.
        before = node.value.split("\n")[: line - 1]
        count = sum(len("".join(text.split())) for text in [*before, node.value.split("\n")[line - 1][: column - 1]])
        start, end = self._ends(node)
        if node.style in ("|", ">"):
            start = self._text.find("\n", start) + 1
        quote = 1 if node.style in ("'", '"') else 0
        pattern, at = _QUOTED.get(node.style or "", _PLAIN), start
        for match in pattern.finditer(self._text, start + quote, end - quote):
            at = match.start()
            if match[0] not in _BLANK_ESCAPES:
                count -= 1
                if count < 0:
                    break
        row = self._text.count("\n", 0, at)
        return self._lines + row + 1, at - self._starts[row] + 1

    def _node(self, pointer: Sequence[Any]) -> Any:
        node: Any = self._root
        for part in pointer:
            if isinstance(node, yaml.MappingNode):
                node = next((value for key, value in reversed(node.value) if key.value == part), None)
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                node = node.value[part]
            else:
                return None
        return node


def values(
    value: Any, pointer: tuple[Any, ...] = (), seen: Optional[set[int]] = None
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every value inside with its pointer; one that is referred to several times comes once."""
    seen = set() if seen is None else seen
    if isinstance(value, (dict, list)):
        if id(value) in seen:
            return
        seen.add(id(value))
    yield pointer, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from values(member, (*pointer, key), seen)
