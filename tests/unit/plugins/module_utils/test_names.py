# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A name says what it holds: no variable, argument, attribute, function or class is a word that says nothing of it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

COLLECTION = Path(__file__).parents[4]
EMPTY = {"one", "found", "there", "here", "look", "looks"}


def bound(tree):
    """Yield the names that a file gives to something, and those that it imports."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.keyword) and not isinstance(getattr(node, "ctx", None), ast.Load):
            yield from (getattr(node, field, None) for field in ("id", "attr", "arg", "name", "asname", "rest"))


@pytest.mark.parametrize("folder", ["plugins", "conformance", "examples", "extensions"])
def test_no_name_is_an_empty_word(folder):
    paths = list((COLLECTION / folder).rglob("*.py"))
    assert paths
    empty = {path: EMPTY.intersection(bound(ast.parse(path.read_text(encoding="utf-8")))) for path in paths}
    assert {str(path): names for path, names in empty.items() if names} == {}


def test_each_way_to_give_a_name_is_seen():
    source = "def there(one, *, look=1):\n    self.found = [looks for looks in (here := look)]"
    assert set(bound(ast.parse(source))) >= EMPTY
    for name in ("import found", "from a import found", "import a as found", "class found: pass", "a.found += 1"):
        assert "found" in bound(ast.parse(name))
    assert EMPTY.isdisjoint(bound(ast.parse("call(entry.found, found=here['one'])")))
