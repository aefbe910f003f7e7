# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a text is no JSON: what people and programs leave in files, told from the place where a parser gives up."""

from __future__ import annotations

import re
from typing import Any, Callable, NamedTuple, Optional

# How much of a text is looked at behind the place where it stops to be JSON.
_AHEAD = 200
_CLOSING = {"{": "}", "[": "]"}
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class Cause(NamedTuple):
    """*at* is the index of the character to blame."""

    code: str
    message: str
    at: int


def whole_text_cause(text: str) -> Optional[Cause]:
    """Return what is wrong with a text from its first character on."""
    head = text.lstrip()[:_AHEAD]
    start = len(text) - len(text.lstrip())
    for pattern, code, message in _WHOLE:
        if re.match(pattern, head):
            return Cause(code, message, start)
    conflict = re.search(r"^(<{7}|={7}|>{7})( |$)", text, re.MULTILINE)
    if conflict:
        message = "a merge conflict was left here; decide for one side, and remove the lines with <, = and >"
        return Cause("json_conflict", message, conflict.start())
    return None


_WHOLE = (
    (
        "\ufeff",
        "json_bom",
        "the text starts with a byte order mark (BOM), which JSON forbids; save it as UTF-8 without it",
    ),
    ("\0", "json_zeros", "the text is zero bytes, as a crash leaves them; restore the file"),
    (r"\$ANSIBLE_VAULT;", "json_vault", "the text is encrypted by ansible-vault; decrypt it first"),
    (r"<[!?a-zA-Z]", "json_markup", "this is HTML or XML, as a failed download leaves it; fetch the file again"),
    (r"---(\s|$)|- \w", "json_yaml", "this is YAML; give it to 'conflist' as a mapping, or write JSON"),
)


def cause(text: str, at: int, reason: str) -> Cause:
    """Return why *text* stops to be JSON at index *at*; *reason* is what the parser says."""
    in_string = _in_string(text, at, reason)
    if in_string is not None:
        return in_string
    tail = text[at:]
    if not tail.strip():
        return _truncated(text) or Cause("json_invalid", "this is not JSON that libcni reads: %s" % reason, at)
    at += len(tail) - len(tail.lstrip())
    rest = text[at : at + _AHEAD]
    before = text[:at].rstrip()
    if rest[:1] in ("}", "]") and before.endswith(","):
        # Some Pythons find the bracket, others the comma, and the comma is what has to go.
        return _trailing_comma(len(before) - 1)
    found = _Place(text, at, rest, before, reason)
    for rule in _RULES:
        result = rule(found)
        if result is not None:
            return result
    return Cause("json_invalid", "this is not JSON that libcni reads: %s" % reason, at)


class _Place(NamedTuple):
    """Where the text stops to be JSON: ``rest`` from there on, ``before`` up to there without blanks at its end."""

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


def _trailing_comma(at: int) -> Cause:
    return Cause("json_trailing_comma", "a comma stands before the closing bracket, which JSON forbids; remove it", at)


def _template(place: _Place) -> Optional[Cause]:
    around = place.text[max(place.at - 1, 0) : place.at + 3]
    if re.match(r"\{[{%#]|<%|\$\{|\$\(|__[A-Z]|@[A-Z_]+@", place.rest) or re.match(r"\{[{%#]", around):
        message = (
            "an unrendered template stands here; 'src' is read as it is, so render it with content: \"{{ "
            "lookup('ansible.builtin.template', 'FILE') }}\""
        )
        return place.cause("json_template", message)
    return None


def _comment(place: _Place) -> Optional[Cause]:
    if place.rest.startswith(("//", "/*", "#")):
        message = 'a comment stands here, and JSON has none; remove it, or make it a key such as "_comment"'
        return place.cause("json_comment", message)
    return None


def _comma(place: _Place) -> Optional[Cause]:
    if re.match(r",\s*[}\]]", place.rest):
        return _trailing_comma(place.at)
    if place.rest.startswith(",") and place.before.endswith((",", "[", "{")):
        return place.cause("json_extra_comma", "a comma too many stands here; remove it")
    return None


def _no_value(place: _Place) -> Optional[Cause]:
    if place.before.endswith(":") and place.rest[:1] in (",", "}", "]"):
        message = "the value is missing here, as an empty variable of a template leaves it; write one"
        return place.cause("json_missing_value", message, len(place.before) - 1)
    return None


def _quotes(place: _Place) -> Optional[Cause]:
    if place.rest[0] in "'`\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb":
        message = 'JSON knows plain double quotes only; write " instead of %s' % place.rest[0]
        return place.cause("json_quotes", message)
    return None


def _equals(place: _Place) -> Optional[Cause]:
    if "':'" in place.reason:
        sign = place.rest[0] if place.rest[0] in "=,;" else ""
        message = "a colon is missing between key and value; write one" + (" instead of %r" % sign if sign else "")
        return place.cause("json_missing_colon", message)
    return None


def _unquoted_key(place: _Place) -> Optional[Cause]:
    if re.match(r"[A-Za-z_][\w./-]*\s*:(\s|\")", place.rest) and not place.before:
        message = (
            "this is YAML, or a key without quotes and brackets; give YAML to 'conflist' as a mapping, or write JSON"
        )
        return place.cause("json_yaml", message)
    if re.match(r"[A-Za-z_][\w./-]*\s*:", place.rest) and not place.before.endswith(":"):
        return place.cause("json_unquoted_key", "a key without quotes stands here; put it in double quotes")
    return None


def _word(place: _Place) -> Optional[Cause]:
    special = re.match(r"-?(NaN|Infinity)\b", place.rest)
    if special:
        return place.cause("json_number", "JSON has no %s; write a number" % special.group())
    word = re.match(r"[A-Za-z_][\w.:/-]*", place.rest)
    if not word or not (place.value_wanted or not place.before):
        return None
    if re.fullmatch(r"true|false|null|none|yes|no|on|off|nil|undefined", word.group(), re.IGNORECASE):
        return place.cause("json_word", "%r is no JSON; write true, false or null" % word.group())
    shown = word.group()[:40]
    return place.cause("json_unquoted_value", 'a text without quotes stands here; write "%s"' % shown)


def _number(place: _Place) -> Optional[Cause]:
    # The parser stops behind a leading zero and before a sign.
    token = re.search(r"[-+]?[\w.+-]*\Z", place.text[max(place.at - 40, 0) : place.at])
    start = token.start() + max(place.at - 40, 0) if token else place.at
    number = re.match(r"[-+.]?[0-9][\w.+:/-]*", place.text[start : start + 40])
    if not number:
        return None
    given = number.group()
    if re.fullmatch(r"[0-9]+(\.[0-9]+){2,3}(/[0-9]+)?|[0-9a-fA-F:]+:[0-9a-fA-F:./]*", given):
        return place.cause("json_unquoted_value", 'a text without quotes stands here; write "%s"' % given, start)
    message = "%s is no number that JSON allows; write it in digits, without sign and zeros before it, or in quotes"
    return place.cause("json_number", message % given, start)


def _after_end(place: _Place) -> Optional[Cause]:
    if "Extra data" not in place.reason:
        return None
    if place.rest[0] in "}]":
        return place.cause("json_extra_bracket", "a closing bracket too many stands here; remove it")
    message = "the configuration has ended before this place; remove what follows, one file holds one network"
    return place.cause("json_extra_text", message)


def _brackets(place: _Place) -> Optional[Cause]:
    if place.rest[0] in "}]":
        opened = _open_brackets(place.text[: place.at])
        if opened and _CLOSING[opened[-1][0]] != place.rest[0]:
            line = place.text.count("\n", 0, opened[-1][1]) + 1
            message = "%r does not close the %r of line %d; write %r first"
            return place.cause(
                "json_wrong_bracket", message % (place.rest[0], opened[-1][0], line, _CLOSING[opened[-1][0]])
            )
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
        message = "%s stands in a string; the quote before it is missing, or write \\n or \\t for it"
        return Cause("json_control", message % names.get(text[at : at + 1], "a control character"), at)
    if "escape" in reason:
        return Cause("json_escape", "JSON does not know this escape; write \\\\ for a backslash", at)
    if "Unterminated string" in reason:
        return Cause("json_truncated", "the string that begins here has no end; write the closing quote", at)
    return None


def _truncated(text: str) -> Optional[Cause]:
    opened = _open_brackets(text)
    end = len(text.rstrip())
    if not opened:
        return None
    bracket, at = opened[-1]
    line = text.count("\n", 0, at) + 1
    missing = "".join(_CLOSING[other] for other, _at in reversed(opened[-10:]))
    message = "the text ends while the %r of line %d is open; it is cut off, or %s is missing" % (
        bracket,
        line,
        missing,
    )
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
