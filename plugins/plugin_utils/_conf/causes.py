# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Why a text is not JSON: common mistakes of people and programs, recognized at the place where the parser fails."""

from __future__ import annotations

import re
from typing import Any, Callable, NamedTuple, Optional

from ...module_utils._host.secrets import MASK, mask_text

# How much of the text is inspected after the place where the parser fails.
_AHEAD = 200
_CLOSING = {"{": "}", "[": "]"}
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class Cause(NamedTuple):
    """*at* is the index of the character to blame."""

    code: str
    message: str
    at: int


def whole_text_cause(text: str) -> Optional[Cause]:
    """Return what is wrong with a text as a whole, from its first characters."""
    head = text.lstrip()[:_AHEAD]
    start = len(text) - len(text.lstrip())
    for pattern, code, message in _WHOLE:
        if re.match(pattern, head):
            return Cause(code, message, start)
    conflict = re.search(r"^(<{7}|={7}|>{7})( |$)", text, re.MULTILINE)
    if conflict:
        message = "unresolved merge conflict; keep one side, and remove the lines with <, = and >"
        return Cause("json_conflict", message, conflict.start())
    return None


_WHOLE = (
    (
        "\ufeff",
        "json_bom",
        "the text starts with a byte order mark (BOM), which JSON forbids; save it as UTF-8 without it",
    ),
    ("\0", "json_zeros", "the text starts with zero bytes, as a file does after a crash; restore the file"),
    (r"\$ANSIBLE_VAULT;", "json_vault", "the text is encrypted by ansible-vault; decrypt it first"),
    (r"<[!?a-zA-Z]", "json_markup", "this is HTML or XML, probably from a failed download; download the file again"),
    (r"---(\s|$)|- \w", "json_yaml", "this is YAML; set 'conflist' to it as a mapping, or write JSON"),
)


def cause(text: str, at: int, reason: str) -> Cause:
    """Return why *text* is not JSON from index *at* on; *reason* is the parser's message."""
    in_string = _in_string(text, at, reason)
    if in_string is not None:
        return in_string
    tail = text[at:]
    if not tail.strip():
        return _truncated(text) or Cause("json_invalid", f"this is not JSON that libcni accepts: {reason}", at)
    at += len(tail) - len(tail.lstrip())
    rest = text[at : at + _AHEAD]
    before = text[:at].rstrip()
    if rest[:1] in ("}", "]") and before.endswith(","):
        # Some versions of Python report the bracket, others the comma; the comma is wrong.
        return _trailing_comma(len(before) - 1)
    found = _Place(text, at, rest, before, reason)
    for rule in _RULES:
        result = rule(found)
        if result is not None:
            return result
    return Cause("json_invalid", f"this is not JSON that libcni accepts: {reason}", at)


class _Place(NamedTuple):
    """Where the parser fails: ``rest`` is the text from there, ``before`` the text before without trailing blanks."""

    text: str
    at: int
    rest: str
    before: str
    reason: str

    @property
    def value_wanted(self) -> bool:
        return self.before.endswith((":", ",", "["))

    def cause(self, code: str, message: str, at: Optional[int] = None) -> Cause:
        return Cause(code, message, self.at if at is None else at)

    def shown(self, value: str, at: int) -> str:
        """Return the *value* at this index for a message, masked if what is before makes it a secret."""
        return value if mask_text(self.text[:at] + value).endswith(value) else MASK


def _trailing_comma(at: int) -> Cause:
    return Cause("json_trailing_comma", "JSON does not allow a comma before the closing bracket; remove it", at)


def _template(place: _Place) -> Optional[Cause]:
    around = place.text[max(place.at - 1, 0) : place.at + 3]
    if re.match(r"\{[{%#]|<%|\$\{|\$\(|__[A-Z]|@[A-Z_]+@", place.rest) or re.match(r"\{[{%#]", around):
        message = (
            "this is an unrendered template; 'src' is not rendered, so set content: \"{{ "
            "lookup('ansible.builtin.template', 'FILE') }}\""
        )
        return place.cause("json_template", message)
    return None


def _comment(place: _Place) -> Optional[Cause]:
    if place.rest.startswith(("//", "/*", "#")):
        message = 'JSON does not allow this comment; remove it, or make it a key such as "_comment"'
        return place.cause("json_comment", message)
    return None


def _comma(place: _Place) -> Optional[Cause]:
    if re.match(r",\s*[}\]]", place.rest):
        return _trailing_comma(place.at)
    if place.rest.startswith(",") and place.before.endswith((",", "[", "{")):
        return place.cause("json_extra_comma", "there is an extra comma here; remove it")
    return None


def _no_value(place: _Place) -> Optional[Cause]:
    if place.before.endswith(":") and place.rest[:1] in (",", "}", "]"):
        message = "the value is missing, perhaps from an empty variable in a template; write a value"
        return place.cause("json_missing_value", message, len(place.before) - 1)
    return None


def _quotes(place: _Place) -> Optional[Cause]:
    if place.rest[0] in "'`\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb":
        message = f'JSON allows only plain double quotes; write " instead of {place.rest[0]}'
        return place.cause("json_quotes", message)
    return None


def _equals(place: _Place) -> Optional[Cause]:
    if "':'" in place.reason:
        sign = place.rest[0] if place.rest[0] in "=,;" else ""
        message = "a colon is missing between key and value; write one" + (f" instead of {sign!r}" if sign else "")
        return place.cause("json_missing_colon", message)
    return None


def _unquoted_key(place: _Place) -> Optional[Cause]:
    if re.match(r"[A-Za-z_][\w./-]*\s*:(\s|\")", place.rest) and not place.before:
        message = (
            "this is YAML, or a key without quotes and brackets; set 'conflist' to the YAML as a mapping, or write JSON"
        )
        return place.cause("json_yaml", message)
    if re.match(r"[A-Za-z_][\w./-]*\s*:", place.rest) and not place.before.endswith(":"):
        return place.cause("json_unquoted_key", "this key has no quotes; put it in double quotes")
    return None


def _word(place: _Place) -> Optional[Cause]:
    special = re.match(r"-?(NaN|Infinity)\b", place.rest)
    if special:
        return place.cause("json_number", f"JSON has no {special.group()}; write a number")
    word = re.match(r"[A-Za-z_][\w.:/-]*", place.rest)
    if not word or not (place.value_wanted or not place.before):
        return None
    if re.fullmatch(r"true|false|null|none|yes|no|on|off|nil|undefined", word.group(), re.IGNORECASE):
        return place.cause("json_word", f"{word.group()!r} is not JSON; write true, false or null")
    shown = place.shown(word.group()[:40], place.at)
    return place.cause("json_unquoted_value", f'this string has no quotes; write "{shown}"')


def _number(place: _Place) -> Optional[Cause]:
    # The parser fails after a leading zero, and before a sign.
    token = re.search(r"[-+]?[\w.+-]*\Z", place.text[max(place.at - 40, 0) : place.at])
    start = token.start() + max(place.at - 40, 0) if token else place.at
    number = re.match(r"[-+.]?[0-9][\w.+:/-]*", place.text[start : start + 40])
    if not number:
        return None
    shown = place.shown(number.group(), start)
    if re.fullmatch(r"[0-9]+(\.[0-9]+){2,3}(/[0-9]+)?|[0-9a-fA-F:]+:[0-9a-fA-F:./]*", number.group()):
        return place.cause("json_unquoted_value", f'this string has no quotes; write "{shown}"', start)
    message = (
        f"JSON does not allow the number {shown}; write digits without a sign or zeros in front, or put it in quotes"
    )
    return place.cause("json_number", message, start)


def _after_end(place: _Place) -> Optional[Cause]:
    if "Extra data" not in place.reason:
        return None
    if place.rest[0] in "}]":
        return place.cause("json_extra_bracket", "there is an extra closing bracket here; remove it")
    message = "the configuration ends before this place; remove what follows, because one file has one network"
    return place.cause("json_extra_text", message)


def _brackets(place: _Place) -> Optional[Cause]:
    if place.rest[0] in "}]":
        opened = _open_brackets(place.text[: place.at])
        if opened and _CLOSING[opened[-1][0]] != place.rest[0]:
            line = place.text.count("\n", 0, opened[-1][1]) + 1
            message = (
                f"{place.rest[0]!r} does not close the {opened[-1][0]!r} of line {line}; write "
                f"{_CLOSING[opened[-1][0]]!r} first"
            )
            return place.cause("json_wrong_bracket", message)
    return None


def _missing_comma(place: _Place) -> Optional[Cause]:
    if "','" not in place.reason:
        return None
    if place.rest[0] == ";":
        return place.cause("json_missing_comma", "a comma is missing; write one instead of ';'")
    if place.rest[0] in '"{[' or len(place.before) < place.at:
        return place.cause("json_missing_comma", "a comma is missing before this place; write one")
    return None


_RULES: tuple[Callable[[Any], Optional[Cause]], ...] = (
    _template,
    _comment,
    _comma,
    _no_value,
    _after_end,
    _brackets,
    _quotes,
    _equals,
    _unquoted_key,
    _word,
    _missing_comma,
    _number,
)


def _in_string(text: str, at: int, reason: str) -> Optional[Cause]:
    if "control character" in reason:
        names = {"\n": "a line break", "\t": "a tab", "\r": "a line break"}
        message = (
            f"the string contains {names.get(text[at : at + 1], 'a control character')}; add the missing quote "
            "before it, or write \\n or \\t for it"
        )
        return Cause("json_control", message, at)
    if "escape" in reason:
        return Cause("json_escape", "JSON does not allow this escape; write \\\\ for a backslash", at)
    if "Unterminated string" in reason:
        return Cause("json_truncated", "the string that starts here is not closed; write the closing quote", at)
    return None


def _truncated(text: str) -> Optional[Cause]:
    opened = _open_brackets(text)
    end = len(text.rstrip())
    if not opened:
        return None
    bracket, at = opened[-1]
    line = text.count("\n", 0, at) + 1
    missing = "".join(_CLOSING[other] for other, _at in reversed(opened[-10:]))
    message = f"the text ends before the {bracket!r} of line {line} is closed; it is cut off, or {missing} is missing"
    return Cause("json_truncated", message, end)


def _open_brackets(text: str) -> list[tuple[str, int]]:
    """Return the brackets that are open at the end of *text*, with their indexes."""
    opened: list[tuple[str, int]] = []
    for match in _TOKENS.finditer(text):
        token = match.group()
        if token in _CLOSING:
            opened.append((token, match.start()))
        elif token in ("}", "]") and opened and _CLOSING[opened[-1][0]] == token:
            opened.pop()
    return opened
