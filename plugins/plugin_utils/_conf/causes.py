# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Why a text is not JSON: common mistakes of people and programs, recognized at the place where the parser fails."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

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


class _Rule(NamedTuple):
    """A mistake: *rest* matches what begins where the parser fails, *before* the end of what is before, without blanks.

    *reason* is part of the parser's message. *message* has ``%s`` for what *rest* matches, masked if it is a secret.
    """

    code: str
    message: str
    rest: str = ""
    before: str = ""
    reason: str = ""


_CONTROL = {"\n": "a line break", "\r": "a line break", "\t": "a tab"}
_OF_VALUES = ("json_unquoted_value", "json_number")
_NO_QUOTES = 'this string has no quotes; write "%s"'
_NUMBER = "JSON does not allow the number %s; write digits without a sign or zeros in front, or put it in quotes"
_IN_STRINGS = (
    _Rule(
        "json_control",
        "the string contains %s; add the missing quote before it, or write \\n or \\t for it",
        r"[\x00-\x1f]",
        reason="control character",
    ),
    _Rule("json_escape", "JSON does not allow this escape; write \\\\ for a backslash", reason="escape"),
    _Rule(
        "json_truncated",
        "the string that starts here is not closed; write the closing quote",
        reason="Unterminated string",
    ),
)
_ELSEWHERE = (
    _Rule(
        "json_template",
        "this is an unrendered template; 'src' is not rendered, so set content: \"{{ "
        "lookup('ansible.builtin.template', 'FILE') }}\"",
        r"\{[{%#]|(?<=\{)[{%#]|<%|\$\{|\$\(|__[A-Z]|@[A-Z_]+@",
    ),
    _Rule(
        "json_comment",
        'JSON does not allow this comment; remove it, or make it a key such as "_comment"',
        r"//|/\*|#",
    ),
    _Rule("json_trailing_comma", "JSON does not allow a comma before the closing bracket; remove it", r",\s*[}\]]"),
    _Rule("json_extra_comma", "there is an extra comma here; remove it", ",", r"[,\[{]\Z"),
    _Rule(
        "json_missing_value",
        "the value is missing, perhaps from an empty variable in a template; write a value",
        r"[,}\]]",
        r":\Z",
    ),
    _Rule("json_extra_bracket", "there is an extra closing bracket here; remove it", r"[}\]]", reason="Extra data"),
    _Rule(
        "json_extra_text",
        "the configuration ends before this place; remove what follows, because one file has one network",
        reason="Extra data",
    ),
    _Rule("json_wrong_bracket", "", r"[}\]]"),
    _Rule(
        "json_quotes",
        'JSON allows only plain double quotes; write " instead of %s',
        "['`\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb]",
    ),
    _Rule(
        "json_missing_colon",
        "a colon is missing between key and value; write one instead of '%s'",
        "[=,;]",
        reason="':'",
    ),
    _Rule("json_missing_colon", "a colon is missing between key and value; write one", reason="':'"),
    _Rule(
        "json_yaml",
        "this is YAML, or a key without quotes and brackets; set 'conflist' to the YAML as a mapping, or write JSON",
        r"[A-Za-z_][\w./-]*\s*:(\s|\")",
        r"\A\Z",
    ),
    _Rule(
        "json_unquoted_key",
        "this key has no quotes; put it in double quotes",
        r"[A-Za-z_][\w./-]*\s*:",
        r"(?<!:)\Z",
    ),
    _Rule("json_number", "JSON has no %s; write a number", r"-?(NaN|Infinity)\b"),
    _Rule(
        "json_word",
        "'%s' is not JSON; write true, false or null",
        r"(?i:true|false|null|none|yes|no|on|off|nil|undefined)(?![\w.:/-])",
        r"(\A|[:,\[])\Z",
    ),
    _Rule("json_unquoted_value", _NO_QUOTES, r"[A-Za-z_][\w.:/-]{0,39}", r"(\A|[:,\[])\Z"),
    _Rule("json_missing_comma", "a comma is missing; write one instead of ';'", ";", reason="','"),
    _Rule("json_missing_comma", "a comma is missing before this place; write one", r'["{\[]|(?<=\s)', reason="','"),
)
# The parser fails after a leading zero, and before a sign.
_NUMBERS = (
    _Rule(
        "json_unquoted_value",
        _NO_QUOTES,
        r"([0-9]+(\.[0-9]+){2,3}(/[0-9]+)?|[0-9a-fA-F:]+:[0-9a-fA-F:./]*)(?![\w.+:/-])",
    ),
    _Rule("json_number", _NUMBER, r"[-+.]?[0-9][\w.+:/-]*"),
)


def cause(text: str, at: int, reason: str) -> Cause:
    """Return why *text* is not JSON from index *at* on; *reason* is the parser's message."""
    other = Cause("json_invalid", f"this is not JSON that libcni accepts: {reason}", at)
    in_string = _first(_IN_STRINGS, text, at, reason)
    if in_string is not None:
        return in_string
    tail = text[at:]
    if not tail.strip():
        return _truncated(text) or other
    at += len(tail) - len(tail.lstrip())
    before = text[:at].rstrip()
    if text[at] in "}]" and before.endswith(","):
        # Some versions of Python report the bracket, others the comma; the comma is wrong.
        at = len(before) - 1
    token = re.search(r"[-+]?[\w.+-]*\Z", text[max(at - 40, 0) : at])
    start = at - len(token[0]) if token else at
    return _first(_ELSEWHERE, text, at, reason) or _first(_NUMBERS, text, start, reason) or other._replace(at=at)


def _first(rules: tuple[_Rule, ...], text: str, at: int, reason: str) -> Optional[Cause]:
    before = text[:at].rstrip()
    for code, message, rest, end, part in rules:
        match = re.compile(rest).match(text, at, at + _AHEAD)
        if match is None or part not in reason or not re.search(end, before):
            continue
        if code == "json_wrong_bracket":
            message = _wrong_bracket(text, at)
        if message:
            shown = match[0]
            if code == "json_control":
                shown = _CONTROL.get(shown, "a control character")
            elif code in _OF_VALUES and not mask_text(text[:at] + shown).endswith(shown):
                shown = MASK
            # The colon is to blame for a missing value.
            return Cause(code, message.replace("%s", shown), len(before) - 1 if code == "json_missing_value" else at)
    return None


def _wrong_bracket(text: str, at: int) -> str:
    """Return the message for a bracket that does not close the last open one, "" if it does."""
    opened = _open_brackets(text[:at])
    if not opened or _CLOSING[opened[-1][0]] == text[at]:
        return ""
    bracket, start = opened[-1]
    line = text.count("\n", 0, start) + 1
    return f"{text[at]!r} does not close the {bracket!r} of line {line}; write {_CLOSING[bracket]!r} first"


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
