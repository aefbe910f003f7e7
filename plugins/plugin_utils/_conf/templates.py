# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is certain in a text that is a template: of Go and Helm, Jinja, ERB, a shell, or with placeholders.

An expression becomes HIDDEN characters, a statement becomes nothing. Nothing else moves to another line or column.
"""

from __future__ import annotations

import re
from typing import Any, FrozenSet, Iterator, List, Match, NamedTuple, Sequence, Set, Tuple

HIDDEN = "\ue000"
"""What stands for text that is not known; no person writes it."""

_MARK = re.compile(
    r"""\{\{(?P<go>(?:(?!\}\}).){0,4000})\}\}
    |(?P<statement>\{%.{0,4000}?%\}|\{\#.{0,4000}?\#\}|<%[^=].{0,4000}?%>|%\{[^\n{}]*\}
      |(?m:^)[ \t]*%[ ]*(?:end\w*|for|if|else|elif|set|block|macro|include|import|do)\b[^\n]*)
    |\[\[-?\s*[A-Za-z$./][^\[\]{}"]*(?:"[^"\n]*"[^\[\]{}"]*)*\]\]
    |\$\{(?:[^{}\n]|\{[^{}\n]*\})+\} | \$\([A-Za-z_][\w.-]*\) | \$[A-Z_][A-Z0-9_]+ | (?<!\w)\$[a-z_]\w+\b(?!["']?\s*:)
    |__[A-Za-z0-9][\w.-]*?__ | (?<![\w.])(?:@[A-Za-z][\w.-]*@|%[A-Za-z_]\w+%)(?![\w.])
    | \#\{[\w.-]+\}\#? | <%=.{0,4000}?%>
    |(?<![<\w])<[A-Za-z][\w .:'-]{0,60}>""",
    re.DOTALL | re.VERBOSE,
)
_STATEMENT = re.compile(
    r"-?\s*([#^/!]|\$\w+(\s*,\s*\$\w+)?\s*:?=|else\b|(end|break|continue)\s*-?\Z|(if|range|with|define|block)\s+[^|\s])"
)
# A word in capitals, one in brackets, one for printf, or digits that are left open.
_PLACEHOLDER = re.compile(
    r"([A-Z][A-Z0-9]*([ _.-][A-Z0-9]+)*|[{%<\[]+[\w .-]+[}%>\]]+|%[a-z]"
    r"|(?=\S*[xX])([\dxX]{1,3}[.:]){3,5}[\dxX]{1,3})(/\w+)?"
)
_KEY = re.compile(r"[\w.-]+:(\s|\Z)|- ")
_WORDS = ("TRUE", "FALSE", "YES", "NO", "ON", "OFF", "NONE", "NULL")
_HALF = re.compile(r"\{\{|\{%|<%|\$\{")
# Beside its letters, the words of a value in JSON that has no quotes.
_TOKEN = re.compile(
    rf"""(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<run>[#]?[\w./+-]*{HIDDEN}(?:[\w./+{HIDDEN}-]|:(?=\w))*)|(?P<sign>[\[\]{{}},:])|[^\s"]""",
    re.VERBOSE,
)


class Masked(NamedTuple):
    """``text`` without the marks of templates. ``open``: the numbers of the lines from which parts may come and go."""

    text: str
    open: FrozenSet[int] = frozenset()


def masked(text: str) -> Masked:
    """Return *text* as far as it is certain. Expressions on lines of their own go to the end of the line before."""
    lines = [""]
    is_open: Set[int] = set()
    for line, marks in _lines(text):
        rest, is_value = line, False
        for mark in marks:
            is_statement = bool(mark["statement"] or (mark["go"] is not None and _STATEMENT.match(mark["go"])))
            is_value = is_value or not is_statement
            if is_statement:
                is_open.add(len(lines))
            blank = re.sub(r"[^\n]", " " if is_statement else HIDDEN, mark[0])
            # A key of YAML begins where a statement before it does.
            at = rest.find(mark[0])
            is_first = is_statement and not rest[:at].strip() and _KEY.match(rest, at + len(mark[0]))
            rest = rest.replace(mark[0], "" if is_first else blank, 1)
        if not marks or rest.strip(f" \t\r\n{HIDDEN}"):
            lines.extend(rest.split("\n"))
            continue
        if is_value:
            last = next((index for index in range(len(lines) - 1, 0, -1) if lines[index].strip()), 0)
            is_open.update((last, len(lines)))
            lines[last] = f"{lines[last].rstrip()} #{HIDDEN * 4}" if last else ""
        lines.extend([""] * (line.count("\n") + 1))
    return Masked("\n".join(lines[1:]), frozenset(is_open))


def _lines(text: str) -> Iterator[Tuple[str, List[Match[str]]]]:
    """Yield the lines of a text with the marks in each; a mark of several lines keeps them together."""
    start = 0
    marks: List[Match[str]] = []
    for match in [*_MARK.finditer(text), None]:
        stop = match.start() if match else len(text) + 1
        while True:
            end = text.find("\n", max(start, marks[-1].end() if marks else 0))
            if end < 0 or end >= stop:
                break
            yield text[start:end], marks
            start, marks = end + 1, []
        if match:
            marks.append(match)
    yield text[start:], marks


def masked_json(text: str) -> Tuple[str, bool]:
    """Return JSON of what :func:`masked` leaves of JSON, and whether objects and lists in it may have more members.

    A value that is unknown becomes a string of HIDDEN.
    """
    if HIDDEN not in text:
        return text, False
    out, is_open, stack, before = list(text), False, [""], ""
    tokens = list(_TOKEN.finditer(text))
    for index, match in enumerate(tokens):
        word = match[0]
        if match["run"]:
            after = tokens[index + 1][0] if index + 1 < len(tokens) else ""
            if before == ":" or (stack[-1] == "[" and before in "[," and after[:1] in ("]", ",", "")):
                word = '"' + HIDDEN * (len(word) - 2) + '"'
            else:
                is_open, word = True, " " * len(word)
            out[match.start() : match.end()] = word
            before = word if word.strip() else before
            continue
        if word in "{[":
            stack.append(word)
        elif word in "]}" and len(stack) > 1:
            stack.pop()
        before = word
    return "".join(out), is_open


def with_right_commas(text: str) -> str:
    """Return JSON with the commas that it needs, and no others: parts of a template come and go with theirs."""
    out, before = list(text), None
    for match in _TOKEN.finditer(text):
        word = match[0]
        last = before[0] if before else ""
        if before and last == "," and word in "]},":
            out[before.start()] = " "
        elif word == "," and last in ("", "[", "{", ","):
            out[match.start()] = " "
            continue
        elif before and last not in ("[", "{", ",", ":") and word not in ("]", "}", ",", ":"):
            blank = next((index for index in range(before.end(), match.start()) if out[index] == " "), None)
            if blank is not None:
                out[blank] = ","
        before = match
    return "".join(out)


def is_half(text: str) -> bool:
    """Tell whether a text that is not what it should be looks as if a template made it so."""
    return HIDDEN in text or _HALF.search(text) is not None


def is_placeholder(value: Any) -> bool:
    """Tell whether a value that is not what it should be is a word for it, which somebody replaces."""
    return isinstance(value, str) and _PLACEHOLDER.fullmatch(value) is not None and value not in _WORDS


def is_certain(value: Any, pointer: Sequence[Any], is_open: bool) -> bool:
    """Tell whether what is said of the place *pointer* of *value* holds whatever the unknown texts are.

    *is_open*: objects and lists may have other members.
    """
    for part in pointer:
        if HIDDEN in str(part):
            return False
        try:
            value = value[part]
        except (LookupError, TypeError):
            return not is_open
    if value is None or isinstance(value, (dict, list)):
        return not is_open
    return not (isinstance(value, str) and HIDDEN in value)
