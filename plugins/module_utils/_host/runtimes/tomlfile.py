# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of ours in a TOML file of somebody else: every line of ours says so, and keeps the line that it replaced.

Lines are found by how people and tools write them. What comes out is read again: if it does not say exactly what is
meant, nothing is changed and the user is told what to write.
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


def without_ours(text: str) -> str:
    """Return the text as it was before anything of ours came into it."""
    lines = []
    for line in text.splitlines(keepends=True):
        body = line.rstrip("\r\n")
        _ours, was, before = body.partition(_BEFORE)
        if was:
            lines.append(before + line[len(body) :])
        elif not body.endswith(MARK):
            lines.append(line)
    return "".join(lines)


def with_setting(text: str, table: Sequence[str], key: str, value: Any) -> str:
    """Return the text with *key* of a table set. Raises HostError ``not_understood``."""
    wanted = copy.deepcopy(toml.load_toml(text))
    inner = wanted
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
        # Inline, or with dotted keys: TOML does not let it be there twice.
        if written_otherwise:
            raise _not_understood(table, key, value)
        lines += [f"[{'.'.join(map(_quoted, table))}]  {MARK}\n", f"  {setting}  {MARK}\n"]
    else:
        _put(lines, start + 1, end, key, setting)
    return _checked("".join(lines), wanted, table, key, value)


def with_import(text: str, path: str) -> str:
    """Return the text with *path* among its imports, if possible as the last. Raises HostError ``not_understood``."""
    wanted = copy.deepcopy(toml.load_toml(text))
    imports = list(wanted.get("imports", []))
    lines = _lines(text)
    end = next((index for index, line in enumerate(lines) if _TABLE.match(line)), len(lines))
    start = next((index for index, line in enumerate(lines[:end]) if _OPEN_IMPORTS.match(line)), -1)
    if start < 0:
        place = len(imports)
        _put(lines, 0, end, "imports", f"imports = {rendered([*imports, path])}")
    else:
        # A list over several lines: at its end, if the last entry has a comma.
        close = next((index for index in range(start, end) if lines[index].lstrip().startswith("]")), end)
        last = close > start + 1 and not lines[close - 1].split("#")[0].rstrip().endswith(",")
        place = 0 if last else len(imports)
        lines.insert(start + 1 if last else close, f"  {rendered(path)},  {MARK}\n")
    wanted["imports"] = [*imports[:place], path, *imports[place:]]
    return _checked("".join(lines), wanted, [], "imports", wanted["imports"])


def rendered(value: Any) -> str:
    """Return a text, number, truth value or list of texts as TOML."""
    # What JSON escapes in a text, TOML escapes likewise.
    return json.dumps(value)


def _lines(text: str) -> List[str]:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines


def _quoted(part: str) -> str:
    return part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part)


def _place(lines: List[str], table: Sequence[str]) -> Tuple[int, int]:
    """Return the lines of a table's title and of the next one's, -1 if the table has none."""
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
    """Replace the line that sets *key*, or make one."""
    pattern = re.compile(rf"([ \t]*)([\"']?){re.escape(key)}\2[ \t]*=")
    for index in range(start, end):
        found = pattern.match(lines[index])
        if found:
            body = lines[index].rstrip("\r\n")
            lines[index] = f"{found.group(1)}{setting}  {_BEFORE}{body}\n"
            return
    indent = ""
    if start:
        title = lines[start - 1]
        indent = title[: len(title) - len(title.lstrip())] + "  "
    lines.insert(start, f"{indent}{setting}  {MARK}\n")


def _checked(text: str, wanted: Dict[str, Any], table: Sequence[str], key: str, value: Any) -> str:
    try:
        right = toml.load_toml(text) == wanted
    except HostError:
        right = False
    if not right:
        raise _not_understood(table, key, value)
    return text


def _not_understood(table: Sequence[str], key: str, value: Any) -> HostError:
    title = f"[{'.'.join(map(_quoted, table))}] " if table else "the top level: "
    return HostError(
        f"its layout is not one that can be changed here; write by hand in {title}{key} = {rendered(value)}",
        code="not_understood",
    )
