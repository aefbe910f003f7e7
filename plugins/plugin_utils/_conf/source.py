# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A configuration from the user, as text or as a mapping, in a form that can be validated and rendered.

Rendered JSON has this collection's layout: two spaces, keys in the user's order, numbers as the user wrote them.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from ...module_utils._host.json_text import parse_json
from ...module_utils._host.problems import ERROR, INFO, Finding
from ...module_utils.libcni import gojson
from ...module_utils.libcni.errors import JSONError
from .causes import cause, whole_text_cause
from .fault import Fault
from .positions import UNKNOWN, DataPositions, Position, TextPositions, text_of
from .templates import HIDDEN, is_certain, is_half, masked_json, with_right_commas

# A word in capitals for a number, which another program fills in.
_BARE = re.compile(r'("\s*:\s*)(?!(?:TRUE|FALSE|NONE|NULL|YES|OFF)\b)([A-Z][A-Z0-9_]+[A-Z0-9])(?=\s*[,}])')
_UNKNOWN_KEY = re.compile(rf'{HIDDEN}[^"\n]*"\s*:')


class Unreadable(Exception):
    """The source is not JSON, or has values that JSON does not have."""

    def __init__(self, code: str, message: str, position: Position = UNKNOWN, pointer: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        # INFO: a template of which nothing can be read before it is rendered.
        self.level = INFO if code == "template" else ERROR
        self.code = code
        self.message = message
        self.position = position
        self.pointer = pointer

    def finding(self, label: str) -> Finding:
        return Finding(self.level, self.code, self.message, "", label, text_of(self.pointer), *self.position)


class _Source:
    """``marked``: it is a template. ``in_file``: it stands in a file as it is, and not in a task."""

    marked = in_file = False

    def is_certain(self, document: Any, fault: Fault) -> bool:
        """Tell whether a fault of the *document* is one whatever a template makes of the text."""
        return True


class TextSource(_Source):
    """JSON text. ``document`` keeps numbers as they are written."""

    def __init__(self, text: str) -> None:
        self.text = str(text)
        self.positions = TextPositions(self.text)

    def document(self) -> Any:
        """Return the parsed text. Raises :class:`Unreadable` with the cause."""
        if not self.text.strip():
            raise Unreadable("json_empty", "the configuration is empty; write a network configuration in JSON")
        try:
            gojson.loads(self.text)
        except JSONError as error:
            raise _unreadable(self.text, error) from error
        return parse(self.text)


class TemplateSource(TextSource):
    """JSON text that may be a template: what :func:`templates.masked` has left of it.

    *is_open*: statements in it make parts of it come and go.
    """

    in_file = True

    def __init__(self, text: str, is_open: bool) -> None:
        text, more = masked_json(bare := _BARE.sub(lambda match: match[1] + HIDDEN * len(match[2]), text))
        super().__init__(text)
        # Text in quotes cannot make the rest right.
        self._is_quoted = text == bare
        self._open = is_open or more or _UNKNOWN_KEY.search(text) is not None
        self.marked = self._open or HIDDEN in text

    def document(self) -> Any:
        for text in (self.text, with_right_commas(self.text)):
            self.text, self.positions = text, TextPositions(text)
            try:
                return super().document()
            except Unreadable as error:
                if error.code == "json_yaml":
                    error.message = "this is YAML; write JSON, the only form that runtimes read"
                if self._is_quoted and not self._open and not is_half(text.replace(HIDDEN, "")):
                    raise
        text = "this is a template; it was not checked, because it is not JSON before it is rendered"
        raise Unreadable("template", text, (1, 1))

    def is_certain(self, document: Any, fault: Fault) -> bool:
        if fault.code == "duplicate_key" or not fault.pointer:
            return not self._open
        if fault.code in ("unknown_key", "key_case", "deprecated_key") and not self._open:
            # The value does not matter.
            return HIDDEN not in "".join(map(str, fault.pointer))
        return is_certain(document, fault.pointer, self._open)


def _unreadable(text: str, error: JSONError) -> Unreadable:
    """Return the error for a text that is not JSON: place, cause, and what to write."""
    defect = whole_text_cause(text)
    if defect is None:
        lines = text.split("\n")
        if not error.line or not error.column or error.line > len(lines):
            return Unreadable("json_invalid", f"this is not JSON that libcni accepts: {error.msg}")
        defect = cause(text, sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1, error.msg)
    code, message, at = defect
    return Unreadable(code, message, (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)))


class DataSource(_Source):
    """A mapping from a playbook."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self.positions = DataPositions(data)

    def document(self) -> Any:
        """Return a copy with only JSON's types. Raises :class:`Unreadable`."""
        return _plain(self._data, ())


def _plain(value: Any, pointer: tuple[Any, ...]) -> Any:
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise Unreadable(
                    "key_not_string",
                    f"YAML does not read the key {key!r} as a string; put it in quotes",
                    pointer=(*pointer, key),
                )
        return {str(key): _plain(member, (*pointer, key)) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(element, (*pointer, index)) for index, element in enumerate(value)]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        try:
            float(value)
        except OverflowError:
            text = "this number is too large for Go; if it is not a number, put it in quotes"
            raise Unreadable("json_number", text, pointer=pointer) from None
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, str):
        return str(value)
    raise Unreadable(
        "not_json_type",
        f"YAML reads {str(value)!r} as the type {type(value).__name__.lstrip('_')}, which JSON does not have; put it "
        "in quotes",
        pointer=pointer,
    )


class Number(str):
    """A number as it was typed, such as ``1500.0``."""

    __slots__ = ()


def parse(text: str) -> Any:
    """Return *text*, which must be valid JSON, with every number as a :class:`Number`."""
    return parse_json(text, parse_int=Number, parse_float=Number)


def render(value: Any) -> str:
    """Return *value* as JSON text with a newline at the end.

    *value* consists of the types of JSON and of :class:`Number`; keys must be strings.
    """
    return _render(value, "\n") + "\n"


def _render(value: Any, newline: str) -> str:
    inner = newline + "  "
    if isinstance(value, dict) and value:
        members = [f"{_scalar(key)}: {_render(member, inner)}" for key, member in value.items()]
        return "{" + inner + ("," + inner).join(members) + newline + "}"
    if isinstance(value, list) and value:
        elements = [_render(element, inner) for element in value]
        return "[" + inner + ("," + inner).join(elements) + newline + "]"
    return str(value) if isinstance(value, Number) else _scalar(value)


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
