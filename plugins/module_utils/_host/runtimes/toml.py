# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""TOML: Python's own reader; before Python 3.11, one for what is in the configurations of runtimes.

That one reads floating-point numbers and dates as None, because no caller needs them. Anything else that it does not
know is an error with its line, never a guess.

Settings are edited in files of others: every managed line is marked, and keeps the line that it replaced. Lines are
found by the layouts that people and tools use. The result is parsed again: if it does not have exactly the intended
meaning, nothing is changed, and an error tells what to write.
"""

from __future__ import annotations

import contextlib
import copy
import json
import re
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

from ..errors import HostError
from ..json_text import parse_json

_NAME = r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'"""
_KEY = re.compile(rf"(?:{_NAME})(?:\.(?:{_NAME}))*")
_TOKEN = re.compile(
    r"""[ \t\r]+|\#[^\n]*
    |(?P<long>\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}.*?'{3})
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'[^'\n]*')
    |(?P<word>[A-Za-z0-9_+.:-]+)
    |(?P<sign>[\n\[\]{}=,])
    |(?P<unknown>.)""",
    re.DOTALL | re.VERBOSE,
)
# What JSON writes in another way: eight digits, a quotation mark as it is, and a line that goes on.
_ESCAPE = re.compile(r'\\U([0-9A-Fa-f]{8})|(")|(\\[ \t]*\n\s*)|\\.', re.DOTALL)
_WHOLE = re.compile(r"[+-]?[0-9][0-9_]*|0x[0-9A-Fa-f_]+|0o[0-7_]+|0b[01_]+")
_OTHER = re.compile(r"[+-]?([0-9][0-9eE_.:TZt+-]*|inf|nan)")

MARK = "# podwire.cni"
_BEFORE = MARK + ", before: "
_TABLE = re.compile(r"[ \t]*\[")
_OPEN_IMPORTS = re.compile(r"[ \t]*imports[ \t]*=[ \t]*\[[ \t]*(#.*)?$")

Table = Dict[str, Any]


def load_toml(text: str) -> Table:
    """Parse TOML to nested dicts. Raises HostError ``not_understood``."""
    loads: Callable[[str], Table] = _loads
    with contextlib.suppress(ImportError):
        from tomllib import loads
    try:
        return loads(text)
    except (ValueError, RecursionError) as error:
        raise HostError(f"it is not understood: {error}", code="not_understood") from error


def _loads(text: str) -> Table:
    root: Table = {}
    table = root
    for line, words in statements(text):
        try:
            if words[0] == "[":
                listed = 2 if words[1] == "[" else 1
                key = _names(words[listed:-listed])
                if words[-listed:] != ["]"] * listed:
                    raise ValueError("the header has no end")
                table = _at(root, key) if listed == 1 else {}
                if listed == 2:
                    _at(root, key[:-1]).setdefault(key[-1], []).append(table)
            else:
                place = words.index("=")
                key = _names(words[:place])
                _at(table, key[:-1])[key[-1]] = parse_json(" ".join(_in_json(words[place + 1 :])))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            # Not the words: they may be a password.
            raise ValueError(f"line {line}") from error
    return root


def statements(text: str) -> Iterator[Tuple[int, List[str]]]:
    """Yield the line and the words of each header and each pair; brackets and long strings may span lines."""
    words: List[str] = []
    line, open_brackets = 1, 0
    for match in _TOKEN.finditer(text + "\n"):
        word = match.group()
        if word == "\n" and words and open_brackets <= 0:
            yield line, words
            words, open_brackets = [], 0
        elif match.lastgroup and word != "\n":
            line = line if words else text.count("\n", 0, match.start()) + 1
            words.append(word)
            open_brackets += (word in "[{") - (word in "]}")
    if words:
        yield line, words


def _names(words: Sequence[str]) -> List[str]:
    key = "".join(words)
    if not _KEY.fullmatch(key):
        raise ValueError("no key")
    return [_string(name) if name[0] in "\"'" else name for name in re.findall(_NAME, key)]


def _at(table: Table, key: Sequence[str]) -> Table:
    for name in key:
        inner = table.setdefault(name, {})
        table = inner[-1] if isinstance(inner, list) else inner
    return table


def _in_json(words: Sequence[str]) -> Iterator[str]:
    for word, following in zip(words, [*words[1:], ""]):
        if word[0] in "\"'":
            yield json.dumps(_string(word))
        elif following == "=":
            yield json.dumps(word)
        elif word == "=":
            yield ":"
        elif _WHOLE.fullmatch(word) and len(word) < 40:
            digits = word.replace("_", "")
            yield str(int(digits, 10 if digits.lstrip("+-").isdigit() else 0))
        elif _OTHER.fullmatch(word):
            yield "null"
        elif word != "," or following not in ("]", "}"):
            yield word


def _string(word: str) -> str:
    quotes = 3 if word[:3] in ('"""', "'''") else 1
    raw = word[quotes:-quotes]
    raw = raw[1:] if quotes == 3 and raw.startswith("\n") else raw
    return raw if word[0] == "'" else str(parse_json(f'"{_ESCAPE.sub(_of_json, raw)}"', strict=False))


def _of_json(match: re.Match[str]) -> str:
    digits, quote, goes_on = match.groups()
    if digits:
        return json.dumps(chr(int(digits, 16)))[1:-1]
    return '\\"' if quote else "" if goes_on else match.group()


# ---- managed lines


def without_managed_lines(text: str) -> str:
    """Return the text as it was without managed lines."""
    lines = []
    for line in text.splitlines(keepends=True):
        body = line.rstrip("\r\n")
        _line, was, before = body.partition(_BEFORE)
        if was:
            lines.append(before + line[len(body) :])
        elif not body.endswith(MARK):
            lines.append(line)
    return "".join(lines)


def with_setting(text: str, table: Sequence[str], key: str, value: Any) -> str:
    """Return the text with *key* of a table set. Raises HostError ``not_understood``."""
    intended = copy.deepcopy(load_toml(text))
    inner = intended
    for part in table:
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            raise _not_understood(table, key, value)
    if inner.get(key) == value:
        return text
    written_otherwise = bool(inner)
    inner[key] = value
    lines = _ended(text)
    setting = f"{key} = {rendered(value)}"
    start, end = _pairs(lines, table)
    if start < 0:
        # The table is inline, or has dotted keys; TOML does not allow to define it twice.
        if written_otherwise:
            raise _not_understood(table, key, value)
        lines += [f"[{'.'.join(map(_quoted, table))}]  {MARK}\n", f"  {setting}  {MARK}\n"]
    else:
        _put(lines, start, end, key, setting)
    return _checked("".join(lines), intended, table, key, value)


def with_import(text: str, path: str) -> str:
    """Return the text with *path* in its imports, last if possible. Raises HostError ``not_understood``."""
    tables = load_toml(text)
    imports = list(tables.get("imports", []))
    lines = _ended(text)
    end = _pairs(lines, [])[1]
    start = next((index for index, line in enumerate(lines[:end]) if _OPEN_IMPORTS.match(line)), -1)
    if start < 0:
        return with_setting(text, [], "imports", [*imports, path])
    # In a list over several lines, add it at the end if the last entry has a comma.
    close = next((index for index in range(start, end) if lines[index].lstrip().startswith("]")), end)
    last = close > start + 1 and not lines[close - 1].split("#")[0].rstrip().endswith(",")
    imports.insert(0 if last else len(imports), path)
    lines.insert(start + 1 if last else close, f"  {rendered(path)},  {MARK}\n")
    return _checked("".join(lines), {**tables, "imports": imports}, [], "imports", imports)


def rendered(value: Any) -> str:
    """Return a string, number, boolean or list of strings as TOML."""
    # TOML has the escapes of JSON.
    return json.dumps(value)


def _ended(text: str) -> List[str]:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines


def _quoted(part: str) -> str:
    return part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part)


def _pairs(lines: List[str], table: Sequence[str]) -> Tuple[int, int]:
    """Return where the pairs of a table begin, and where the next header is; -1 if it has no header."""
    titles = [*(index for index, line in enumerate(lines) if _TABLE.match(line)), len(lines)]
    if not table:
        return 0, titles[0]
    for index, following in zip(titles, titles[1:]):
        if _is_title(lines[index], table):
            return index + 1, following
    return -1, -1


def _is_title(line: str, table: Sequence[str]) -> bool:
    meant: Dict[str, Any] = {}
    for part in reversed(table):
        meant = {part: meant}
    try:
        return load_toml(line) == meant
    except HostError:
        return False


def _put(lines: List[str], start: int, end: int, key: str, setting: str) -> None:
    """Replace the line that sets *key*, or add one."""
    pattern = re.compile(rf"([ \t]*)([\"']?){re.escape(key)}\2[ \t]*=")
    for index in range(start, end):
        match = pattern.match(lines[index])
        if match:
            lines[index] = f"{match.group(1)}{setting}  {_BEFORE}{lines[index]}"
            return
    lines.insert(start, f"{'  ' if start else ''}{setting}  {MARK}\n")


def _checked(text: str, intended: Dict[str, Any], table: Sequence[str], key: str, value: Any) -> str:
    with contextlib.suppress(HostError):
        if load_toml(text) == intended:
            return text
    raise _not_understood(table, key, value)


def _not_understood(table: Sequence[str], key: str, value: Any) -> HostError:
    where = f"in [{'.'.join(map(_quoted, table))}]" if table else "at the top level"
    return HostError(
        f"its layout cannot be edited automatically; set {key} = {rendered(value)} {where} by hand",
        code="not_understood",
    )
