# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A configuration as the user gave it, as text or as a mapping, turned into what can be validated and rendered."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple, Optional

from ansible_collections.podwire.cni.plugins.module_utils.libcni import gojson
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import JSONError

from .positions import DataPositions, TextPositions
from .render import parse


class Finding(NamedTuple):
    """A problem at a place of the configuration: *pointer* is a tuple of keys and indexes; *key*: its key is meant."""

    level: str
    code: str
    message: str
    pointer: tuple[Any, ...] = ()
    key: bool = False


class Unreadable(Exception):
    """The source is no JSON, or has values that JSON has not."""

    def __init__(
        self,
        code: str,
        message: str,
        line: Optional[int] = None,
        column: Optional[int] = None,
        pointer: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line
        self.column = column
        self.pointer = pointer


class TextSource:
    """JSON text. ``document`` keeps numbers as they are typed, and notes ``has_duplicate_keys``."""

    def __init__(self, text: str) -> None:
        self.text = str(text)
        self.has_duplicate_keys = False
        self.positions = TextPositions(self.text)

    def document(self) -> Any:
        """Return the parsed text. Raises :class:`Unreadable` with the cause."""
        if not self.text.strip():
            raise Unreadable("json_empty", "there is nothing in it; write a network configuration in JSON")
        try:
            gojson.loads(self.text)
        except JSONError as error:
            raise _unreadable(self.text, error) from error
        return parse(self.text, self._object)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        self.has_duplicate_keys = self.has_duplicate_keys or len(out) != len(pairs)
        return out


def _unreadable(text: str, error: JSONError) -> Unreadable:
    """Return what a text that is no JSON is to be refused with: place, cause, and what to write."""
    if text.startswith("\ufeff"):
        message = "the text starts with a byte order mark (BOM), which JSON forbids; save it as UTF-8 without BOM"
        return Unreadable("json_bom", message, 1, 1)
    lines = text.split("\n")
    if not error.line or not error.column or error.line > len(lines):
        return Unreadable("json_invalid", "this is not JSON that libcni reads: %s" % error.msg)
    at = sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1
    before = text[:at].rstrip()
    if text[at:].lstrip()[:1] in ("}", "]") and before.endswith(","):
        # Some Pythons find the bracket, others the comma, and the comma is what has to go.
        at = len(before) - 1
    code, message = _cause(text, at, error.msg)
    return Unreadable(code, message, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def _cause(text: str, at: int, reason: str) -> tuple[str, str]:
    """Return code and message for what stands at index *at*, where *text* stops to be JSON for *reason*."""
    rest = text[at:].lstrip()
    if re.match(r"\{[{%#]", text[max(at - 1, 0) :]) or re.match(r"\{[{%#]", rest):
        return (
            "json_template",
            (
                "an unrendered template stands here; 'src' is read as it is, so render it with content: \"{{ "
                "lookup('ansible.builtin.template', 'FILE') }}\""
            ),
        )
    if rest.startswith(("//", "/*", "#")):
        return "json_comment", "a comment stands here, and JSON has none; remove it"
    if re.match(r",\s*[}\]]", rest):
        return "json_trailing_comma", "a comma stands before the closing bracket, which JSON forbids; remove it"
    if rest.startswith("'"):
        return "json_quotes", "JSON knows double quotes only; write \" instead of '"
    if re.match(r"[A-Za-z_][\w-]*\s*:", rest):
        return "json_unquoted_key", "a key without quotes stands here; put it in double quotes"
    word = re.match(r"(true|false|null|none|yes|no)\b", rest, re.IGNORECASE)
    if word:
        return "json_word", "%r is no JSON; write true, false or null" % word.group(0)
    if "','" in reason and rest[:1] in ('"', "{", "["):
        return "json_missing_comma", "a comma is missing before this place; write one"
    return "json_invalid", "this is not JSON that libcni reads: %s" % reason


class DataSource:
    """A mapping from a playbook."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self.positions = DataPositions(data)

    def document(self) -> Any:
        """Return a copy that holds nothing but JSON's types. Raises :class:`Unreadable`."""
        return _plain(self._data, ())


def _plain(value: Any, pointer: tuple[Any, ...]) -> Any:
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise Unreadable(
                    "key_not_string",
                    "the key %r is not a string, as YAML reads it; put it in quotes" % (key,),
                    pointer=(*pointer, key),
                )
        return {str(key): _plain(member, (*pointer, key)) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(element, (*pointer, index)) for index, element in enumerate(value)]
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, str):
        return str(value)
    raise Unreadable(
        "not_json_type",
        "%r is of the type %s, which JSON does not have; YAML made it of a plain word: put it in quotes"
        % (str(value), type(value).__name__.lstrip("_")),
        pointer=pointer,
    )
