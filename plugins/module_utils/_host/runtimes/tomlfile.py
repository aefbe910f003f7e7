# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Managed settings in an unmanaged TOML file: every managed line is marked, and keeps the line that it replaced.

Lines are found by the layouts that people and tools use. The result is parsed again: if it does not have exactly the
intended meaning, nothing is changed, and an error tells what to write.
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any, Dict, List, Sequence, Tuple

from ..errors import HostError
from . import toml

MARK = "# podwire.cni"
_BEFORE = MARK + ", before: "
_TABLE = re.compile(r"[ \t]*\[")
_OPEN_IMPORTS = re.compile(r"[ \t]*imports[ \t]*=[ \t]*\[[ \t]*(#.*)?$")


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
    intended = copy.deepcopy(toml.load_toml(text))
    inner = intended
    for part in table:
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            raise _not_understood(table, key, value)
    if inner.get(key) == value:
        return text
    written_otherwise = bool(inner)
    inner[key] = value
    lines = _lines(text)
    setting = f"{key} = {rendered(value)}"
    start, end = _place(lines, table)
    if start < 0:
        # The table is inline, or has dotted keys; TOML does not allow to define it twice.
        if written_otherwise:
            raise _not_understood(table, key, value)
        lines += [f"[{'.'.join(map(_quoted, table))}]  {MARK}\n", f"  {setting}  {MARK}\n"]
    else:
        _put(lines, start + 1, end, key, setting)
    return _checked("".join(lines), intended, table, key, value)


def with_import(text: str, path: str) -> str:
    """Return the text with *path* in its imports, last if possible. Raises HostError ``not_understood``."""
    intended = copy.deepcopy(toml.load_toml(text))
    imports = list(intended.get("imports", []))
    lines = _lines(text)
    end = next((index for index, line in enumerate(lines) if _TABLE.match(line)), len(lines))
    start = next((index for index, line in enumerate(lines[:end]) if _OPEN_IMPORTS.match(line)), -1)
    if start < 0:
        place = len(imports)
        _put(lines, 0, end, "imports", f"imports = {rendered([*imports, path])}")
    else:
        # In a list over several lines, add it at the end if the last entry has a comma.
        close = next((index for index in range(start, end) if lines[index].lstrip().startswith("]")), end)
        last = close > start + 1 and not lines[close - 1].split("#")[0].rstrip().endswith(",")
        place = 0 if last else len(imports)
        lines.insert(start + 1 if last else close, f"  {rendered(path)},  {MARK}\n")
    intended["imports"] = [*imports[:place], path, *imports[place:]]
    return _checked("".join(lines), intended, [], "imports", intended["imports"])


def rendered(value: Any) -> str:
    """Return a string, number, boolean or list of strings as TOML."""
    # TOML has the escapes of JSON.
    return json.dumps(value)


def _lines(text: str) -> List[str]:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines


def _quoted(part: str) -> str:
    return part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part)


def _place(lines: List[str], table: Sequence[str]) -> Tuple[int, int]:
    """Return the line numbers of a table's header and of the next header, -1 if the table has none."""
    titles = [index for index, line in enumerate(lines) if _TABLE.match(line)]
    for number, index in enumerate(titles):
        if _is_title(lines[index], table):
            return index, titles[number + 1] if number + 1 < len(titles) else len(lines)
    return -1, -1


def _is_title(line: str, table: Sequence[str]) -> bool:
    meant: Dict[str, Any] = {}
    for part in reversed(table):
        meant = {part: meant}
    try:
        return toml.load_toml(line) == meant
    except HostError:
        return False


def _put(lines: List[str], start: int, end: int, key: str, setting: str) -> None:
    """Replace the line that sets *key*, or add one."""
    pattern = re.compile(rf"([ \t]*)([\"']?){re.escape(key)}\2[ \t]*=")
    for index in range(start, end):
        match = pattern.match(lines[index])
        if match:
            body = lines[index].rstrip("\r\n")
            lines[index] = f"{match.group(1)}{setting}  {_BEFORE}{body}\n"
            return
    indent = ""
    if start:
        title = lines[start - 1]
        indent = title[: len(title) - len(title.lstrip())] + "  "
    lines.insert(start, f"{indent}{setting}  {MARK}\n")


def _checked(text: str, intended: Dict[str, Any], table: Sequence[str], key: str, value: Any) -> str:
    try:
        right = toml.load_toml(text) == intended
    except HostError:
        right = False
    if not right:
        raise _not_understood(table, key, value)
    return text


def _not_understood(table: Sequence[str], key: str, value: Any) -> HostError:
    where = f"in [{'.'.join(map(_quoted, table))}]" if table else "at the top level"
    return HostError(
        f"its layout cannot be edited automatically; set {key} = {rendered(value)} {where} by hand",
        code="not_understood",
    )
