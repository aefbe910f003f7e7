# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The subset of HCL in Nomad's agent configuration: blocks with labels, attributes, strings, heredocs, lists, objects.

Nothing is evaluated. Anything else is an error with its line, never a guess.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterator, List, Tuple

from ..errors import HostError

_TOKEN = re.compile(
    r"""(?P<blank>(?:[\s,]|\#[^\n]*|//[^\n]*|/\*.*?\*/)+)
    |(?P<heredoc><<-?(?P<tag>[A-Za-z_][A-Za-z0-9_]*)[ \t]*\n(?:.*?\n)??[ \t]*(?P=tag)(?=\n|\Z))
    |(?P<text>"(?:[^"\\\n]|\\.)*")
    |(?P<number>-?[0-9][0-9A-Za-z.+-]*)
    |(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)
    |(?P<sign>[{}\[\]=:])
    |(?P<unknown>.)""",
    re.DOTALL | re.VERBOSE,
)
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
    return _Reader(text.replace("\r\n", "\n")).body("", 0)


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
        self._text = text
        self._tokens = _tokens(text)
        self._advance()

    def body(self, end: str, depth: int) -> Body:
        """Read attributes and blocks up to the sign *end* ("": the end of the text)."""
        body: Body = {}
        while (self._kind, self._word) != ("sign" if end else "", end):
            keys = [self._key()]
            # The labels of a block nest, too.
            while (self._kind, self._word) not in (("sign", "="), ("sign", ":"), ("sign", "{")):
                keys.append(self._key())
                if depth + len(keys) > _DEEPEST:
                    raise self._error("fewer nested blocks")
            is_block = self._word == "{"
            if not is_block:
                self._advance()
            value = self._value(depth + len(keys))
            for key in reversed(keys):
                value = {key: value}
            merge(body, value)
        self._advance()
        return body

    def _key(self) -> str:
        kind, word = self._kind, self._word
        if kind not in ("name", "text"):
            raise self._error("a name")
        return str(self._value(0)) if kind == "text" else self._advance(word)

    def _value(self, depth: int) -> Any:
        kind, word = self._kind, self._word
        if depth > _DEEPEST:
            raise self._error("fewer nested values")
        if kind == "text":
            try:
                return self._advance(json.loads(word))
            except ValueError:
                raise self._error("a string with valid escapes") from None
        if kind == "name" and word in ("true", "false"):
            return self._advance(word == "true")
        if kind == "number":
            return self._advance(int(word) if word.isdigit() and len(word) < 40 else None)
        if kind == "heredoc":
            # No setting that is read here is a heredoc.
            return self._advance(None)
        if (kind, word) == ("sign", "{"):
            self._advance()
            return self.body("}", depth)
        if (kind, word) != ("sign", "["):
            raise self._error("a literal value, not an expression" if kind == "name" else "a value")
        self._advance()
        values: List[Any] = []
        while (self._kind, self._word) != ("sign", "]"):
            values.append(self._value(depth + 1))
        return self._advance(values)

    def _advance(self, value: Any = None) -> Any:
        """Take the next token; return *value*."""
        self._kind, self._word, self._place = next(self._tokens)
        return value

    def _error(self, expected: str) -> HostError:
        line = self._text.count("\n", 0, self._place) + 1
        return HostError(f"line {line} is not understood: expected {expected}", code="not_understood")


def _tokens(text: str) -> Iterator[Tuple[str, str, int]]:
    """Yield kind, text and place of each token; those after the end are empty."""
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "blank":
            yield str(match.lastgroup), match.group(), match.start()
    while True:
        yield "", "", len(text)
