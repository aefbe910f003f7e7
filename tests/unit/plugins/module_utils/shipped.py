# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The code that root runs on hosts, for the tests that know each of its places."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator

_COLLECTION = Path(__file__).resolve().parents[4]
_UTILS = _COLLECTION / "plugins" / "module_utils"
_PULL = _COLLECTION / "roles" / "pull" / "files"


def trees() -> Iterator[tuple[str, ast.Module]]:
    """Yield the name of each file and its code: module_utils with the plugins, modules, and what pull installs."""
    for folder, top in (
        (_UTILS, _UTILS),
        (_COLLECTION / "plugins" / "modules", _COLLECTION / "plugins"),
        (_PULL, _PULL),
    ):
        for path in sorted(folder.rglob("*.py")):
            yield path.relative_to(top).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def text_of(node: ast.AST) -> str | None:
    """Return a text of the code; one of a formatted string has {} for each value. None if *node* is no text."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else value.decode("latin-1") if isinstance(value, bytes) else None


def called_as(tree: ast.Module) -> dict[str, str]:
    """Return what names of a file that were imported from modules stand for, such as {"move": "os.rename"}."""
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    } | {
        alias.asname: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.asname
    }
