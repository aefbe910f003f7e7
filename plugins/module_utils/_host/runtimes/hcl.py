# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The subset of HCL in Nomad's agent configuration: blocks with labels, attributes, strings, heredocs, lists, objects.

Nothing is evaluated. Anything else is an error with its line, never a guess.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List

from ..errors import HostError

_BLANKS = re.compile(r"([\s,]|#[^\n]*|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_NUMBER = re.compile(r"-?[0-9][0-9A-Za-z.+-]*")
_HEREDOC = re.compile(r"<<-?([A-Za-z_][A-Za-z0-9_]*)[ \t]*\n(?:.*?\n)??[ \t]*\1(?=\n|\Z)", re.DOTALL)
# More than any configuration needs, and less than Python's stack allows.
_DEEPEST = 50

Body = Dict[str, Any]


def load_hcl(text: str) -> Body:
    """Return attributes and blocks of an HCL or JSON text as dicts; blocks of one name are merged.

    The labels of a block are nested dicts. Raises HostError ``not_understood``.
    """
    if text.lstrip().startswith("{"):
        try:
            body: Body = _merged_lists(json.loads(text))
            return body
        except (ValueError, RecursionError) as error:
            raise HostError(f"it is not valid JSON ({error})", code="not_understood") from error
    return _Reader(text.replace("\r\n", "\n")).body("")


def merge(base: Body, other: Body) -> None:
    """Merge *other* into *base*: bodies are merged, any other value is replaced."""
    for key, value in other.items():
        inner = base.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            merge(inner, value)
        else:
            base[key] = value


def _merged_lists(value: Any) -> Any:
    """Convert a list of objects, which is how JSON writes a block, to the block."""
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        body: Body = {}
        for item in value:
            merge(body, _merged_lists(item))
        return body
    if isinstance(value, dict):
        return {key: _merged_lists(inner) for key, inner in value.items()}
    return value


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def body(self, end: str) -> Body:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self._error("fewer nested blocks")
        body: Body = {}
        while True:
            self._skip()
            if self.at == len(self.text):
                if end:
                    raise self._error(end)
                break
            if end and self._take(end):
                break
            merge(body, self._item())
        self.depth -= 1
        return body

    def _item(self) -> Body:
        """Return one attribute or block as a dict with one key."""
        keys = [self._key()]
        while True:
            self._skip()
            if self._take("=") or self._take(":"):
                self._skip()
                value = self._value()
                break
            if self._take("{"):
                # The labels nest, too.
                self.depth += len(keys) - 1
                value = self.body("}")
                self.depth -= len(keys) - 1
                break
            keys.append(self._key())
            if len(keys) > _DEEPEST:
                raise self._error("fewer labels")
        for key in reversed(keys):
            value = {key: value}
        return dict(value)

    def _key(self) -> str:
        name = _NAME.match(self.text, self.at)
        if name:
            self.at = name.end()
            return name.group()
        if self.text.startswith('"', self.at):
            return self._text()
        raise self._error("a name")

    def _value(self) -> Any:
        if self.text.startswith('"', self.at):
            return self._text()
        if self._take("{"):
            return self.body("}")
        if self._take("["):
            return self._list()
        heredoc = _HEREDOC.match(self.text, self.at)
        if heredoc:
            self.at = heredoc.end()
            # No setting that is read here is a heredoc.
            return None
        word = _NUMBER.match(self.text, self.at) or _NAME.match(self.text, self.at)
        if not word:
            raise self._error("a value")
        self.at = word.end()
        if word.group() in ("true", "false"):
            return word.group() == "true"
        if _NAME.fullmatch(word.group()):
            raise self._error("a literal value, not an expression")
        return int(word.group()) if word.group().isdigit() and len(word.group()) < 40 else None

    def _list(self) -> List[Any]:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self._error("fewer nested lists")
        found: List[Any] = []
        while True:
            self._skip()
            if self._take("]"):
                self.depth -= 1
                return found
            found.append(self._value())

    def _text(self) -> str:
        match = _TEXT.match(self.text, self.at)
        if not match:
            raise self._error("the end of the string")
        try:
            text = json.loads(match.group())
        except ValueError:
            raise self._error("a string with valid escapes") from None
        self.at = match.end()
        return str(text)

    def _skip(self) -> None:
        match = _BLANKS.match(self.text, self.at)
        if match:
            self.at = match.end()

    def _take(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def _error(self, wanted: str) -> HostError:
        line = self.text.count("\n", 0, self.at) + 1
        return HostError(f"line {line} is not understood: expected {wanted}", code="not_understood")
