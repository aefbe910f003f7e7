# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The subset of TOML in the configurations of runtimes: tables, arrays of tables, dotted keys, strings, lists.

Floating-point numbers and dates are read as None, because no caller needs them. Anything else is an error with its
line, never a guess.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List

from ..errors import HostError

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"[ \t]*(#[^\n]*)?")
_BLANKS = re.compile(r"([ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_PLAIN = re.compile(r"[^\s,\]}#]+")
_WHOLE = re.compile(r"[+-]?[0-9][0-9_]*|0x_*[0-9A-Fa-f][0-9A-Fa-f_]*|0o_*[0-7][0-7_]*|0b_*[01][01_]*")
_OTHER = re.compile(r"[+-]?([0-9][0-9eE_.:TZt+-]*|inf|nan)")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\", "e": "\x1b"}
# More than any configuration needs, and less than Python's stack allows.
_DEEPEST = 50

Table = Dict[str, Any]


def load_toml(text: str) -> Table:
    """Parse TOML to nested dicts. Raises HostError ``not_understood``."""
    return _Reader(text.replace("\r\n", "\n")).document()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def document(self) -> Table:
        root: Table = {}
        table = root
        while True:
            self._skip(_BLANKS)
            if self.at == len(self.text):
                return root
            if self._take("[["):
                table = self._append(root, self._closed_key("]]"))
            elif self._take("["):
                table = self._descend(root, self._closed_key("]"))
            else:
                self._pair(table)
            self._skip(_BLANK)
            if self.at < len(self.text) and not self._take("\n"):
                raise self._error("the end of the line")

    # ---- tables

    def _closed_key(self, end: str) -> List[str]:
        key = self._key()
        if not self._take(end):
            raise self._error(end)
        return key

    def _descend(self, table: Table, key: List[str]) -> Table:
        for part in key:
            inner = table.setdefault(part, {})
            if isinstance(inner, list) and inner:
                inner = inner[-1]
            if not isinstance(inner, dict):
                raise self._error(f"a key other than {part!r}, which is not a table")
            table = inner
        return table

    def _append(self, root: Table, key: List[str]) -> Table:
        tables = self._descend(root, key[:-1]).setdefault(key[-1], [])
        if not isinstance(tables, list):
            raise self._error(f"a key other than {key[-1]!r}, which is not an array of tables")
        tables.append({})
        last: Table = tables[-1]
        return last

    def _key(self) -> List[str]:
        key: List[str] = []
        while True:
            self._skip(_SPACE)
            bare = _BARE.match(self.text, self.at)
            if bare:
                self.at = bare.end()
                key.append(bare.group())
            elif self._next() in ('"', "'"):
                key.append(self._text(self._next()))
            else:
                raise self._error("a key")
            if len(key) > _DEEPEST:
                raise self._error("fewer nested tables")
            self._skip(_SPACE)
            if not self._take("."):
                return key

    def _pair(self, table: Table) -> None:
        key = self._key()
        if not self._take("="):
            raise self._error("=")
        self._skip(_SPACE)
        # The tables that the key creates nest, too.
        self.depth += len(key) - 1
        value = self._value()
        self.depth -= len(key) - 1
        self._descend(table, key[:-1])[key[-1]] = value

    # ---- values

    def _value(self) -> Any:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self._error("fewer nested values")
        try:
            return self._any_value()
        finally:
            self.depth -= 1

    def _any_value(self) -> Any:
        for quotes in ('"""', "'''"):
            if self._take(quotes):
                return self._long_text(quotes)
        first = self._next()
        if first in ('"', "'"):
            return self._text(first)
        if self._take("["):
            return self._list()
        if self._take("{"):
            return self._inline_table()
        plain = _PLAIN.match(self.text, self.at)
        word = plain.group() if plain else ""
        if word in ("true", "false"):
            value: Any = word == "true"
        elif _WHOLE.fullmatch(word) and len(word) < 40:
            digits = word.replace("_", "")
            value = int(digits, 10 if digits.lstrip("+-").isdigit() else 0)
        elif _OTHER.fullmatch(word):
            value = None
        else:
            raise self._error("a value")
        self.at += len(word)
        return value

    def _list(self) -> List[Any]:
        values: List[Any] = []
        while True:
            self._skip(_BLANKS)
            if self._take("]"):
                return values
            values.append(self._value())
            self._skip(_BLANKS)
            if not self._take(",") and self._next() != "]":
                raise self._error("a comma or ]")

    def _inline_table(self) -> Table:
        table: Table = {}
        while True:
            self._skip(_BLANKS)
            if self._take("}"):
                return table
            self._pair(table)
            self._skip(_BLANKS)
            if not self._take(",") and self._next() != "}":
                raise self._error("a comma or }")

    def _text(self, quote: str) -> str:
        self.at += 1
        start = self.at
        while self._next() not in ("", "\n", quote):
            self.at += 2 if quote == '"' and self._next() == "\\" else 1
        if self._next() != quote:
            raise self._error("the end of the string")
        raw = self.text[start : self.at]
        self.at += 1
        return self._unescaped(raw) if quote == '"' else raw

    def _long_text(self, quotes: str) -> str:
        end = self.text.find(quotes, self.at)
        while quotes == '"""' and end > 0 and self._is_escaped(end):
            end = self.text.find(quotes, end + 1)
        if end < 0:
            raise self._error("the end of the string")
        raw = self.text[self.at : end]
        self.at = end + 3
        raw = raw[1:] if raw.startswith("\n") else raw
        return self._unescaped(re.sub(r"\\[ \t]*\n\s*", "", raw)) if quotes == '"""' else raw

    def _is_escaped(self, place: int) -> bool:
        start = place
        while self.text.startswith("\\", start - 1, start):
            start -= 1
        return (place - start) % 2 == 1

    def _unescaped(self, raw: str) -> str:
        def meant(match: re.Match[str]) -> str:
            code = match.group(1)
            if code[0] in "uU" and len(code) > 1:
                number = int(code[1:], 16)
                return chr(number) if number < 0x110000 else "\ufffd"
            if code not in _ESCAPES:
                raise self._error("a string without the escape \\" + code)
            return _ESCAPES[code]

        return re.sub(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.|\Z)", meant, raw, flags=re.DOTALL)

    # ---- characters

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()

    def _error(self, expected: str) -> HostError:
        line = self.text.count("\n", 0, self.at) + 1
        return HostError(f"line {line} is not understood: expected {expected}", code="not_understood")
